"""The files of a RocketMQ broker: read as rows, audited, and rebuilt for it."""

import asyncio
import contextlib
from pathlib import Path

import pytest
import toolchain
from real import RealCluster

from gantrymq import Admin, Message, Producer, Queue
from gantrymq.model.offset_ranges import OffsetRange
from gantrymq.spark.options.source_parser import parse_source_options
from gantrymq.spark.source.rows import open_rows
from gantrymq.store.audit.whole import Audit, audit_store
from gantrymq.store.errors import StoreError
from gantrymq.store.tools.rebuild_store import rebuild_store

pytestmark = pytest.mark.timeout(400)
TOPIC, BROKER = "FilesTopic", "broker-a"
EACH = 500
SMALL = {"mappedFileSizeCommitLog": str(1 << 20), "maxHashSlotNum": "1000", "maxIndexNum": "4000"}
"""Log files of a MiB and small index files, so that there are several."""


def audited(store: Path) -> Audit:
    return audit_store(str(store))


async def write(namesrv: str, part: str) -> None:
    """Ordinary, packed, batched, delayed and transactional messages."""
    async with Admin(namesrv) as admin:
        await admin.create_topic(TOPIC, queues=4)
    async with Producer(namesrv, group="files") as producer:
        for number in range(EACH):
            message = Message(TOPIC, f"{part}-{number}" + "." * 2000, tags=f"t{number % 3}",
                              keys=[f"{part}{number}", "all"])  # fmt: skip
            await producer.send(message)
        await producer.send(Message(TOPIC, f"{part}-packed" + "x" * 50_000))
        await producer.send_batch([Message(TOPIC, f"{part}-batch-{n}") for n in range(10)])
        await producer.send(Message(TOPIC, f"{part}-later", delay_level=1))
        await producer.send_transaction(Message(TOPIC, f"{part}-agreed"), lambda _: "commit")
        await producer.send_transaction(Message(TOPIC, f"{part}-dropped"), lambda _: "rollback")


def bodies(store: Path, namesrv: str = "") -> list[str]:
    """The first word of every message that the files hold."""
    settings = {"via": "store", "storePath": str(store), "topic": TOPIC}
    if namesrv:
        settings["nameServer"] = namesrv
    found = []
    with open_rows(parse_source_options(settings)) as rows:
        lows, highs = rows.bounds()
        assert {Queue(TOPIC, BROKER, number) for number in range(4)} == set(highs)
        for queue, high in highs.items():
            for batch in rows.batches(OffsetRange(queue, lows[queue], high), ["body"]):
                found += [
                    body.decode().rstrip(".").rstrip("x") for body in batch["body"].to_pylist()
                ]
    return sorted(found)


def expected(*parts: str) -> list[str]:
    words = [f"-{number}" for number in range(EACH)]
    words += ["-packed", *(f"-batch-{n}" for n in range(10)), "-later", "-agreed"]
    return sorted(f"{part}{word}" for part in parts for word in words)


async def until_delivered(store: Path, wanted: list[str]) -> None:
    """The delayed message takes its second."""
    for _ in range(300):
        with contextlib.suppress(Exception):
            if bodies(store) == wanted:
                return
        await asyncio.sleep(0.1)
    assert wanted == bodies(store)


@pytest.mark.parametrize("version", toolchain.JAVA_SERVERS)
def test_files_of_a_java_broker_are_read_audited_and_rebuilt(tmp_path: Path, version: str) -> None:
    """
    Running or stopped, its rows are those that were sent and nothing is wrong with it; queues and
    index that were made anew serve it like its own.
    """
    store = tmp_path / "store"
    with RealCluster(version, store=store, settings=SMALL) as cluster:
        asyncio.run(write(cluster.namesrv, "one"))
        asyncio.run(until_delivered(store, expected("one")))
        assert expected("one") == bodies(store, cluster.namesrv)
        running = audited(store)
        with pytest.raises(StoreError, match="stop it first"):
            rebuild_store(str(store))

    stopped = audited(store)
    assert [] == running.findings
    assert [] == stopped.findings
    assert any("left out" in note for note in running.notes)
    assert [] == stopped.notes
    assert stopped.covered["keys with their index entry"] > 1000
    assert expected("one") == bodies(store)

    made = rebuild_store(str(store))
    assert made.entries > EACH
    assert [] == audited(store).findings
    assert expected("one") == bodies(store)

    with RealCluster(version, store=store, settings=SMALL) as cluster:
        asyncio.run(write(cluster.namesrv, "two"))
        asyncio.run(until_delivered(store, expected("one", "two")))
    assert [] == audited(store).findings
