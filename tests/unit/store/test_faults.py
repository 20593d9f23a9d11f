"""A disk that is full, fails to write, fails to sync: what is answered, and what is left."""

import asyncio
import errno
import os

import pytest
from storekit import (
    FOREVER,
    ManualClock,
    message,
    open_store,
    pull,
    put,
    read_log,
    read_queue,
    run,
    tiny,
)

from gantrymq.base.disk import File
from gantrymq.store import PutStatus, ReadStatus, Store, StoreError
from gantrymq.store.log.syncer import Done, HelperSyncer, InlineSyncer
from gantrymq.testing.disk import PAGE, MemoryDisk

pytestmark = pytest.mark.usefixtures("quiet")

OK = PutStatus.PUT_OK
REFUSED = PutStatus.SERVICE_NOT_AVAILABLE


def failing(operation: str, part: str, number: int = errno.EIO, *, skip: int = 0) -> object:
    """A fault: the operation on paths with this part fails, after `skip` good ones."""
    left = skip

    def fault(name: str, path: str) -> OSError | None:
        nonlocal left
        if name == operation and part in path:
            if left == 0:
                return OSError(number, os.strerror(number), path)
            left -= 1
        return None

    return fault


async def bodies(store: Store, topic: str = "orders") -> list[bytes]:
    return [one.body for one in await read_queue(store, topic, 0)]


@pytest.mark.parametrize("flush", ["SYNC_FLUSH", "ASYNC_FLUSH"])
def test_a_failed_write_answers_its_own_appends_and_moves_nothing(flush: str) -> None:
    """
    A failed write refuses its own appends only, and leaves log and offsets unchanged.
    """

    async def body() -> None:
        disk = MemoryDisk()
        store = await open_store(disk, tiny(flush=flush))
        await put(store, message(body=b"before"))
        end = store.log_max
        disk.fault = failing("pwrite", "commitlog")
        failed = await put(store, message(body=b"lost"), message(queue_id=1))
        assert {one.status for one in failed} == {PutStatus.UNKNOWN_ERROR}
        assert "cannot be written" in failed[0].error
        assert (failed[0].queue_offset, store.log_max) == (-1, end)
        disk.fault = None
        (after,) = await put(store, message(body=b"after"))
        assert (after.queue_offset, after.physical_offset) == (1, end)
        assert await bodies(store) == [b"before", b"after"]
        assert store.queues.max_offset("orders", 1) == 0
        await store.close()

    run(body)


def test_what_a_failed_write_left_on_disk_is_never_found_again() -> None:
    """The refused records follow exactly where a shorter, accepted one ends."""

    async def body() -> None:
        disk = MemoryDisk()
        store = await open_store(disk)
        await put(store, message(body=b"first"))
        real = store._log.file(0)
        original = type(real).pwrite

        def half_written(file: File, data: bytes, at: int) -> None:
            original(file, data, at)
            if "commitlog" in file.path:
                raise OSError(errno.EIO, "after writing everything")

        type(real).pwrite = half_written
        try:
            refused = await put(store, message(body=b"12345"), message(body=b"67890"))
        finally:
            type(real).pwrite = original
        assert {one.status for one in refused} == {PutStatus.UNKNOWN_ERROR}
        (kept,) = await put(store, message(body=b"abcde"))
        assert kept.status is OK
        again = await open_store(disk.after_kill())
        assert [one.body for one in read_log(again)] == [b"first", b"abcde"]
        await store.close()

    run(body)


@pytest.mark.parametrize("operation", ["create", "allocate", "sync", "sync_dir"])
def test_a_log_file_that_cannot_be_made_refuses_and_recovers(operation: str) -> None:
    """
    Appends are refused while the next log file cannot be created, and accepted when it can.
    """

    async def body() -> None:
        disk = MemoryDisk()
        store = await open_store(disk)
        await put(store, message())
        stored = 1
        while store._log.room > 1500:
            (one,) = await put(store, message(body=b"x" * 1000))
            stored += one.status is OK
        await store._writer.drain()
        if store._log.spare is not None:
            disk.delete(store._log.spare.path)
            store._log.spare = None
        disk.fault = failing(operation, "commitlog", errno.ENOSPC)
        if operation == "sync":
            disk.fault = failing(operation, "00000000000000008192", errno.ENOSPC)
        refused = await put(store, message(body=b"y" * 2000), message(body=b"y" * 2000))
        assert {one.status for one in refused} == {PutStatus.CREATE_FILE_FAILED}
        assert "No space left" in refused[0].error
        disk.fault = None
        (after,) = await put(store, message(body=b"z" * 2000))
        assert (after.status, after.queue_offset) == (OK, stored)
        assert after.physical_offset == 8192
        await store.close()
        store = await open_store(disk)
        assert len(await bodies(store)) == stored + 1
        await store.close()

    run(body)


def test_a_full_disk_is_an_error_answer_and_space_brings_it_back() -> None:
    """Everything accepted stays readable, nothing refused appears, and no restart is needed."""

    async def body() -> None:
        disk = MemoryDisk(capacity=12 * PAGE)
        store = await open_store(disk)
        accepted: list[bytes] = []
        refused = 0
        for n in range(80):
            text = b"%d" % n + b"x" * 900
            (one,) = await put(store, message(body=text, unique=f"u{n}"))
            accepted += [text] if one.status is OK else []
            refused += one.status in (REFUSED, PutStatus.CREATE_FILE_FAILED)
            await store.upkeep.write_derived()
        assert len(accepted) + refused == 80
        assert refused > 10
        assert await bodies(store) == accepted
        disk.capacity = None
        await store.upkeep.write_derived()
        assert store.writable is None
        (one,) = await put(store, message(body=b"again"))
        assert one.status is OK
        await store.close()
        store = await open_store(disk)
        assert await bodies(store) == [*accepted, b"again"]
        await store.close()

    run(body)


@pytest.mark.parametrize("part", ["consumequeue", "index"])
@pytest.mark.parametrize("operation", ["pwrite", "create", "truncate", "allocate"])
def test_queues_and_index_that_cannot_be_written_wait_in_memory(part: str, operation: str) -> None:
    """Messages stay visible, new ones are refused until the disk obeys again, nothing is lost."""

    async def body() -> None:
        disk = MemoryDisk()
        store = await open_store(disk)
        disk.fault = failing(operation, part, errno.ENOSPC)
        await put(store, *[message(body=b"%d" % n, unique=f"u{n}") for n in range(40)])
        store.upkeep.request_checkpoint()
        await store.upkeep.write_derived()
        hit = store.writable is not None
        if hit:
            assert "cannot be written" in str(store.writable)
            assert (await put(store, message()))[0].status is REFUSED
        assert len(await bodies(store)) == 40
        disk.fault = None
        await store.upkeep.write_derived()
        assert store.writable is None
        for n in (0, 39):
            assert len((await store.reads.query("orders", f"u{n}", 9, 0, FOREVER)).records) == 1
        again = await open_store(disk.after_kill())
        assert len(await bodies(again)) == 40
        await store.close()
        again = await open_store(disk)
        assert len(await bodies(again)) == 40
        assert len((await again.reads.query("orders", "u7", 9, 0, FOREVER)).records) == 1
        await again.close()

    run(body)


def test_a_failed_sync_refuses_the_waiting_and_makes_the_store_read_only() -> None:
    """
    A failed sync refuses the waiting appends and fences the store against writes.
    """

    async def body() -> None:
        disk = MemoryDisk()
        store = await open_store(disk)
        (safe,) = await put(store, message(body=b"safe"))
        flushed = store.flushed.value
        disk.fault = failing("sync", "commitlog")
        waiting = await put(store, message(body=b"unsafe"), message(body=b"unsafe"))
        assert {one.status for one in waiting} == {PutStatus.UNKNOWN_ERROR}, "it may be found"
        assert "could not be synced" in waiting[0].error
        assert store.flushed.value == flushed == safe.size
        disk.fault = None
        assert "could not be synced" in str(store.writable)
        assert (await put(store, message()))[0].status is REFUSED
        assert await bodies(store) == [b"safe"], "what may be lost is not shown"
        assert (await pull(store, "orders", 0, 1)).status is ReadStatus.OFFSET_OVERFLOW_ONE
        assert disk.exists("store/fenced")
        await store.close()
        assert disk.exists("store/abort"), "the stop was not clean"

    run(body)


def test_a_fenced_store_writes_its_tail_again_before_it_trusts_it() -> None:
    """After a failed sync the system may have dropped pages that it still shows as clean."""

    async def body() -> None:
        disk = MemoryDisk()
        store = await open_store(disk)
        await put(store, message(body=b"safe"))
        disk.fault = failing("sync", "commitlog")
        await put(store, message(body=b"doubtful"))
        disk.fault = None
        await store.close()
        written: list[tuple[str, str]] = []

        def watch(name: str, path: str) -> None:
            if name in ("pwrite", "sync") and "commitlog" in path:
                written.append((name, path))

        disk.fault = watch
        store = await open_store(disk)
        assert written.index(("pwrite", store._log.path(0))) < len(written) - 1
        assert ("sync", store._log.path(0)) in written
        disk.fault = None
        assert not disk.exists("store/fenced")
        assert store.writable is None
        assert await bodies(store) == [b"safe", b"doubtful"]
        assert (await put(store, message()))[0].status is OK
        await store.close()

    run(body)


def test_a_store_whose_tail_cannot_be_synced_does_not_open() -> None:
    """
    A store whose last records cannot be synced does not open.
    """

    async def body() -> None:
        disk = MemoryDisk()
        store = await open_store(disk)
        await put(store, message())
        disk.fault = failing("sync", "commitlog")
        await put(store, message())
        await store.close()
        with pytest.raises(StoreError, match="durable"):
            await open_store(disk)
        disk.fault = None
        await (await open_store(disk)).close()

    run(body)


class StuckSyncer:
    """A disk that never answers a sync, until it is told to."""

    def __init__(self) -> None:
        self.asked: list[Done] = []

    def sync(self, files: object, done: Done) -> None:
        self.asked.append(done)

    def close(self) -> None:
        """There is nothing to close."""


def test_a_slow_sync_is_answered_as_a_timeout_though_the_message_is_stored() -> None:
    """
    A sync that takes too long is answered with FLUSH_DISK_TIMEOUT, and the message is stored.
    """

    async def body() -> None:
        syncer = StuckSyncer()
        disk = MemoryDisk()
        store = await open_store(disk, tiny(sync_flush_timeout_ms=20), syncer=syncer)
        patient, hasty = await put(store, message(body=b"a"), message(body=b"b", wait=False))
        assert patient.status is PutStatus.FLUSH_DISK_TIMEOUT
        assert patient.status.is_stored
        assert hasty.status is OK
        assert (patient.queue_offset, hasty.queue_offset) == (0, 1)
        assert await bodies(store) == [], "nobody sees what a power cut could take back"
        assert len(syncer.asked) == 1
        syncer.asked[0](None)
        assert await bodies(store) == [b"a", b"b"]
        closing = asyncio.create_task(store.close())
        while not closing.done():
            await asyncio.sleep(0)
            while syncer.asked:
                syncer.asked.pop()(None)

    run(body)


def test_one_sync_serves_everybody_who_came_while_the_last_one_ran() -> None:
    """Group commit: the number of syncs follows the disk, not the senders."""

    async def body() -> None:
        syncer = StuckSyncer()
        store = await open_store(MemoryDisk(), tiny(segment_bytes=1 << 20), syncer=syncer)
        answered: list[int] = []
        await store._writer.drain()  # the first file is there
        for n in range(50):
            store.put(message(reply=lambda one, n=n: answered.append(n)))
            await asyncio.sleep(0)
        assert (len(syncer.asked), answered) == (1, [])
        syncer.asked[0](None)
        assert (len(syncer.asked), answered) == (2, [0])
        syncer.asked[1](None)
        assert answered == list(range(50))
        assert len(syncer.asked) == 2
        store.upkeep.stop()

    run(body)


def test_a_helper_that_dies_counts_as_a_failed_sync(tmp_path: object) -> None:
    """Whether its last sync worked is unknown, so nothing may be built on it."""

    async def body() -> None:
        from gantrymq.base.disk import OsDisk

        syncer = HelperSyncer()
        store = await open_store(OsDisk(), tiny(f"{tmp_path}/store"), syncer=syncer)
        assert (await put(store, message()))[0].status is OK
        assert syncer._process is not None
        syncer._process.kill()
        syncer._process.wait()
        (lost,) = await put(store, message())
        assert lost.status is PutStatus.UNKNOWN_ERROR
        await store.close()
        syncer.close()
        syncer = HelperSyncer()
        store = await open_store(OsDisk(), tiny(f"{tmp_path}/store"), syncer=syncer)
        assert (await put(store, message()))[0].status is OK
        await store.close()
        syncer.close()

    run(body)


def test_a_failed_checkpoint_sync_is_never_forgotten() -> None:
    """The system reports a lost page once; a later success proves nothing about it."""

    async def body() -> None:
        disk = MemoryDisk()
        store = await open_store(disk)
        await put(store, message(body=b"a"))
        disk.fault = failing("sync_all", "store")
        store.upkeep.request_checkpoint()
        await store.upkeep.write_derived()
        assert store.writable is not None
        disk.fault = None
        before = store.upkeep.checkpointer.last
        store.upkeep.request_checkpoint()
        await store.upkeep.write_derived()
        assert store.upkeep.checkpointer.last == before
        await store.close()
        assert disk.exists("store/abort")
        store = await open_store(disk)
        assert await bodies(store) == [b"a"]
        await store.close()

    run(body)


@pytest.mark.parametrize("operation", ["pwrite", "sync"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EROFS])
def test_a_checkpoint_that_cannot_be_written_leaves_the_old_one(
    operation: str, number: int
) -> None:
    """Sends are refused until one can be written; a start derives what it did not cover."""

    async def body() -> None:
        disk = MemoryDisk()
        store = await open_store(disk)
        await put(store, message(body=b"a"))
        disk.fault = failing(operation, "store/checkpoint", number)
        before = store.upkeep.checkpointer.last
        store.upkeep.request_checkpoint()
        await store.upkeep.write_derived()
        assert before == store.upkeep.checkpointer.last
        assert store.writable is not None
        disk.fault = None
        again = await open_store(disk.after_kill())
        assert await bodies(again) == [b"a"]
        store.upkeep.request_checkpoint()
        await store.upkeep.write_derived()
        assert store.writable is None
        await store.close()

    run(body)


def test_a_listener_that_fails_does_not_silence_the_others() -> None:
    """
    A reply callback that raises does not keep other callbacks from being called.
    """

    async def body() -> None:
        store = await open_store(MemoryDisk(), tiny(flush="ASYNC_FLUSH"))
        heard: list[PutStatus] = []

        def broken(one: object) -> None:
            raise RuntimeError("broken listener")

        store.put(message(reply=broken))
        store.put(message(reply=lambda one: heard.append(one.status)))
        await asyncio.sleep(0)
        while not heard:
            await asyncio.sleep(0)
        assert heard == [OK]
        await store.close()

    run(body)


def test_closing_answers_everything_that_was_accepted() -> None:
    """
    Closing a store answers every append that it accepted.
    """

    async def body() -> None:
        for delay in (0.0, 0.01):
            clock = ManualClock()
            store = await open_store(MemoryDisk(), clock=clock, syncer=InlineSyncer(delay))
            answers: list[PutStatus] = []
            for _ in range(30):
                store.put(
                    message(body=b"x" * 900, reply=lambda one, a=answers: a.append(one.status))
                )
            await store.close()
            assert answers == [OK] * 30

    run(body)
