"""Local offsets: RocketMQ's file, written so that a crash leaves a readable one."""

import asyncio
from pathlib import Path

import pytest

from gantrymq.base.errors import ProtocolError
from gantrymq.client.consume.membership.offset_store import (
    LocalOffsets,
    format_offsets,
    parse_offsets,
)
from gantrymq.model import Queue

Q0, Q1 = Queue("T", "broker-a", 0), Queue("T", "broker-a", 1)
JAVA_FILE = (
    b'{\n\t"offsetTable":{{\n\t\t\t"brokerName":"broker-a",\n\t\t\t"queueId":0,\n'
    b'\t\t\t"topic":"T"\n\t\t}:7,{"brokerName":"broker-a","queueId":1,"topic":"T"}:9\n\t}\n}'
)


def test_a_file_that_java_wrote_is_read() -> None:
    """
    The offset file of a Java client is read, with its objects as keys.
    """
    assert parse_offsets(JAVA_FILE) == {Q0: 7, Q1: 9}


def test_keys_written_as_text_are_read_too() -> None:
    """
    An offset file whose keys are JSON strings is read as well.
    """
    text = rb'{"offsetTable":{"{\"brokerName\":\"broker-a\",\"queueId\":0,\"topic\":\"T\"}":7}}'

    assert parse_offsets(text) == {Q0: 7}


def test_what_is_written_is_in_javas_form_and_comes_back() -> None:
    """
    The written file has the bytes of a Java client, and is read back.
    """
    data = format_offsets({Q1: 9, Q0: 7})

    assert data == (
        b'{"offsetTable":{{"brokerName":"broker-a","queueId":0,"topic":"T"}:7,'
        b'{"brokerName":"broker-a","queueId":1,"topic":"T"}:9}}'
    )
    assert parse_offsets(data) == {Q0: 7, Q1: 9}


@pytest.mark.parametrize(
    "data", [b"", b"  ", b"{", b'{"offsetTable":{"x":1}}', b'{"offsetTable":3}']
)
def test_a_damaged_file_is_an_error_of_its_own_kind(data: bytes) -> None:
    """
    A damaged offset file raises ProtocolError.
    """
    with pytest.raises(ProtocolError):
        parse_offsets(data)


def stored(path: Path) -> dict[Queue, int | None]:
    async def work() -> dict[Queue, int | None]:
        offsets = LocalOffsets(path)
        await offsets.load()
        return {queue: await offsets.read(queue) for queue in (Q0, Q1)}

    return asyncio.run(work())


def store(path: Path, table: dict[Queue, int]) -> None:
    async def work() -> None:
        offsets = LocalOffsets(path)
        await offsets.load()
        await offsets.store(table, wait=True)

    asyncio.run(work())


def test_offsets_survive_and_those_of_other_queues_stay(tmp_path: Path) -> None:
    """
    Saving the offsets of one queue keeps those of other queues in the file.
    """
    path = tmp_path / "10.0.0.1@DEFAULT" / "group" / "offsets.json"

    store(path, {Q0: 5})
    store(path, {Q1: 6})

    assert stored(path) == {Q0: 5, Q1: 6}


def test_the_backup_stands_in_for_a_damaged_file(tmp_path: Path) -> None:
    """
    An empty file after a crash is replaced by its backup.
    """
    path = tmp_path / "offsets.json"
    store(path, {Q0: 5})
    store(path, {Q0: 6})

    path.write_bytes(b"")

    assert stored(path) == {Q0: 5, Q1: None}


def test_no_file_means_no_progress(tmp_path: Path) -> None:
    """
    Without a file every queue has no offset.
    """
    assert stored(tmp_path / "offsets.json") == {Q0: None, Q1: None}
