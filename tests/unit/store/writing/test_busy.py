"""A disk that is slow: appends are refused with a reason, never stalled in silence."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from storekit import HOST, ManualClock, message, tiny

from gantrymq.store.append import Append, PutStatus
from gantrymq.store.engine import Store
from gantrymq.store.log.syncer import InlineSyncer
from gantrymq.store.shared import StorePorts
from gantrymq.testing.disk import MemoryDisk
from gantrymq.testing.loop import VirtualLoop, simulate

T = TypeVar("T")


class SlowOffload:
    """Work off the loop that takes its time once somebody says so."""

    def __init__(self) -> None:
        self.seconds = 0.0

    async def run(self, work: Callable[..., T], *args: Any) -> T:
        if self.seconds:
            await asyncio.sleep(self.seconds)
        return work(*args)


async def open_slow(disk: MemoryDisk, offload: SlowOffload, **changes: Any) -> Store:
    ports = StorePorts(disk, ManualClock(), offload, InlineSyncer())
    return await Store.open(tiny(flush="ASYNC_FLUSH", **changes), ports, store_host=HOST)


async def put_all(store: Store, count: int) -> list[Append]:
    """Put messages that fill two files, and wait until each is answered."""
    answers: list[Append] = []
    done = asyncio.Event()

    def reply(append: Append) -> None:
        answers.append(append)
        if len(answers) == count:
            done.set()

    for _ in range(count):
        append = message(body=b"x" * 1000)
        append.reply = reply
        store.put(append)
    await done.wait()
    return answers


class TestWaitingForAFile:
    def test_appends_that_wait_too_long_for_the_next_file_are_refused(self) -> None:
        """
        The reason names the file, the time and the setting; afterwards everything goes on.
        """

        async def story() -> None:
            offload = SlowOffload()
            store = await open_slow(MemoryDisk(), offload)
            await asyncio.sleep(1)
            offload.seconds = 3.0
            began = asyncio.get_running_loop().time()
            answers = await put_all(store, 20)
            took = asyncio.get_running_loop().time() - began
            statuses = [append.status for append in answers]
            refused = [a for a in answers if a.status is PutStatus.PAGECACHE_BUSY]

            assert {PutStatus.PUT_OK, PutStatus.PAGECACHE_BUSY} == set(statuses)
            assert 0.2 <= took <= 0.25
            assert "waitTimeMillsInSendQueue is 200" in refused[0].error
            assert "the next log file is still being made" in refused[0].error

            offload.seconds = 0.0
            await asyncio.sleep(5)
            assert [PutStatus.PUT_OK] == [a.status for a in await put_all(store, 1)]
            await store.close()

        simulate(story)

    def test_a_file_that_comes_in_time_refuses_nobody(self) -> None:
        """
        Waiting for 100 ms is nothing to speak of.
        """

        async def story() -> None:
            offload = SlowOffload()
            store = await open_slow(MemoryDisk(), offload)
            await asyncio.sleep(1)
            offload.seconds = 0.1

            assert {PutStatus.PUT_OK} == {a.status for a in await put_all(store, 12)}
            await store.close()

        simulate(story)

    def test_without_fast_failure_they_wait_as_long_as_it_takes(self) -> None:
        """
        With brokerFastFailureEnable=false appends wait for the next log file as long as it
        takes.
        """

        async def story() -> None:
            offload = SlowOffload()
            store = await open_slow(MemoryDisk(), offload, queue_wait_max_ms=0)
            await asyncio.sleep(1)
            offload.seconds = 3.0

            assert {PutStatus.PUT_OK} == {a.status for a in await put_all(store, 12)}
            await store.close()

        simulate(story)


class TestSlowWrites:
    def test_what_piled_up_behind_a_slow_write_is_refused_with_its_reason(self) -> None:
        """
        The slow write itself is stored; those behind it are told how long it took.
        """

        async def story() -> None:
            loop = asyncio.get_running_loop()
            assert isinstance(loop, VirtualLoop)
            disk = MemoryDisk()
            store = await open_slow(disk, SlowOffload())
            await asyncio.sleep(1)

            def slow(operation: str, path: str) -> None:
                if operation == "pwrite" and "commitlog" in path:
                    disk.fault = None
                    loop.now += 1.5

            disk.fault = slow
            first = await put_all(store, 1)
            behind = await put_all(store, 3)

            assert [PutStatus.PUT_OK] == [a.status for a in first]
            assert {PutStatus.PAGECACHE_BUSY} == {a.status for a in behind}
            assert "took 1500 ms, osPageCacheBusyTimeOutMills is 1000" in behind[0].error

            await asyncio.sleep(0.06)
            assert [PutStatus.PUT_OK] == [a.status for a in await put_all(store, 1)]
            await store.close()

        simulate(story)
