"""Runs of plain sends on their way through the store: as if each send had come by itself."""

import asyncio
import errno
import os

import pytest
from storekit import BORN, HOST, open_store, put, read_log, read_queue, run, tiny

from gantrymq.kernel import SendRules, SendRun, cut_requests, read_send
from gantrymq.model import TopicConfig
from gantrymq.protocol.command import Command, encode
from gantrymq.store.append import Append, PutStatus
from gantrymq.store.engine import Store
from gantrymq.testing.disk import MemoryDisk

OK = PutStatus.PUT_OK
TAIL = b"CLUSTER\x01c\x02"
RULES = SendRules({"orders": TopicConfig(topic_name="orders")}, TAIL, HOST, 512, 16_000, 16_000)


def sends(count: int, first: int = 0) -> list[Command]:
    """Messages for two queues in turn."""
    return [
        Command(
            code=310, opaque=number, body=b"%04d" % number + bytes(300),
            ext={"b": "orders", "e": str(number % 2), "g": "1700000000000",
                 "i": f"UNIQ_KEY\x01K{number}\x02TAGS\x01a"},
        )
        for number in range(first, first + count)
    ]  # fmt: skip


def run_of(commands: list[Command]) -> SendRun:
    requests, *_ = cut_requests(b"".join(map(encode, commands)), 1 << 20, 999, RULES, BORN)
    assert len(requests) == 1
    assert isinstance(requests[0], SendRun)
    return requests[0]


def append_of(command: Command) -> Append:
    plain = read_send(command.ext, TAIL)
    assert plain is not None
    topic, queue_id, flag, sys_flag, born_ms, again, stored, _, _ = plain
    return Append(topic, queue_id, command.body, stored, flag, sys_flag, born_ms, BORN, again)


async def put_runs(store: Store, *runs: SendRun) -> list[tuple[list[bytes], PutStatus]]:
    """Put runs in one turn; the messages of each answer, and its status."""
    answers: list[tuple[list[bytes], PutStatus]] = []
    left = sum(map(len, runs))
    done = asyncio.Event()

    def reply(answered: SendRun) -> None:
        nonlocal left
        left -= len(answered)
        answers.append(([each.body[:4] for each in answered.commands()], answered.status))
        if not left:
            done.set()

    for each in runs:
        each.reply = reply
        store.put(each)
    await asyncio.wait_for(done.wait(), 20)
    return answers


@pytest.mark.parametrize("flush", ["SYNC_FLUSH", "ASYNC_FLUSH"])
def test_a_store_is_the_same_whether_sends_come_in_runs_or_alone(flush: str) -> None:
    """
    Log, queues and index have the same bytes in both stores, through several files of the log.
    """

    async def story() -> None:
        commands = sends(60)
        disks = MemoryDisk(), MemoryDisk()
        alone, together = [await open_store(disk, tiny(flush=flush)) for disk in disks]
        await put(alone, *map(append_of, commands))
        answers = await put_runs(together, run_of(commands[:1]), run_of(commands[1:]))
        bodies = [each.body[:4] for each in commands]
        assert [body for found, _ in answers for body in found] == bodies
        assert {status for _, status in answers} == {OK}
        assert len(answers) > 3, "runs are split where a file ends"
        assert together.written.count == alone.written.count == 60
        for store in (alone, together):
            assert [one.body[:4] for one in read_log(store)] == bodies
            assert [one.body[:4] for one in await read_queue(store, "orders", 1)] == bodies[1::2]
            await store.close()
        first, second = [
            {path: data for path, data in disk.contents().items() if "/index/" not in path}
            for disk in disks
        ]
        assert first == second

    run(story)


@pytest.mark.usefixtures("quiet")
def test_a_failed_write_refuses_its_run_and_gives_the_places_back() -> None:
    """
    All sends of the run are refused together; the next ones get their queue offsets.
    """

    async def story() -> None:
        disk = MemoryDisk()
        store = await open_store(disk, tiny())
        await put_runs(store, run_of(sends(3)))

        def fault(name: str, path: str) -> OSError | None:
            broken = name == "pwrite" and "commitlog" in path
            return OSError(errno.EIO, os.strerror(errno.EIO), path) if broken else None

        disk.fault = fault
        failed = await put_runs(store, run_of(sends(4, 3)), run_of(sends(2, 7)))
        assert {status for _, status in failed} == {PutStatus.UNKNOWN_ERROR}
        assert store.written.failed == 6
        disk.fault = None
        await put_runs(store, run_of(sends(3, 9)))
        found = await read_queue(store, "orders", 1)
        assert [(one.queue_offset, one.body[:4]) for one in found] == [
            (0, b"0001"),
            (1, b"0009"),
            (2, b"0011"),
        ]
        await store.close()

    run(story)


def test_runs_and_appends_keep_their_order() -> None:
    """
    Records lie in the log in the order in which runs and appends were put.
    """

    async def story() -> None:
        store = await open_store(MemoryDisk(), tiny())
        commands = sends(9)
        for each in (run_of(commands[:3]), append_of(commands[3]), run_of(commands[4:8])):
            store.put(each)
        await put(store, append_of(commands[8]))
        found = [(one.body[:4], one.queue_offset) for one in read_log(store)]
        assert found == [(each.body[:4], number // 2) for number, each in enumerate(commands)]
        await store.close()

    run(story)


def test_a_closing_store_refuses_a_run() -> None:
    """
    The run is answered once, and nothing is stored.
    """

    async def story() -> None:
        store = await open_store(MemoryDisk(), tiny())
        await store.close()
        answers = await put_runs(store, run_of(sends(2)))
        assert answers == [([b"0000", b"0001"], PutStatus.SERVICE_NOT_AVAILABLE)]

    run(story)
