"""The log of a raft group's member: written, shown when committed, cut, begun anew."""

import asyncio

import pytest
from storekit import message, open_store, put, read_queue, run, tiny

from gantrymq.store.append import PutStatus
from gantrymq.store.engine import Store
from gantrymq.store.errors import StoreError
from gantrymq.store.writing.group_log import GroupLog
from gantrymq.testing.disk import MemoryDisk

GROUP = tiny(in_group=True, flush="ASYNC_FLUSH")


async def log_of(*bodies: bytes) -> bytes:
    """The bytes that a leader would send."""
    store = await open_store(MemoryDisk(), tiny(flush="ASYNC_FLUSH"))
    for body in bodies:
        await put(store, message("orders", 0, body))
    data = store.group_log.read(0, store.log_max)
    await store.close()
    return data


async def shown(store: Store) -> list[bytes]:
    return [one.body for one in await read_queue(store, "orders", 0)]


def end_of_first(log: GroupLog) -> int:
    return log.boundary_in(0, log.read(0, log.boundary_bytes(0, 1)))


def dispatch(store: Store, upto: int) -> None:
    while store.group_log.dispatch(upto):
        pass


def test_a_member_takes_no_messages_by_itself() -> None:
    """Before it knows a leader it says so."""

    async def body() -> None:
        store = await open_store(MemoryDisk(), GROUP)
        (refused,) = await put(store, message())
        assert refused.status is PutStatus.SERVICE_NOT_AVAILABLE
        assert refused.error.startswith("[NOT_LEADER]")
        await store.close()

    run(body)


def test_only_what_is_committed_is_shown() -> None:
    """Also after a start, which finds more in the log."""

    async def body() -> None:
        disk, data = MemoryDisk(), await log_of(b"one", b"two", b"three")
        store = await open_store(disk, GROUP)
        await store.group_log.write(0, data)
        first = end_of_first(store.group_log)
        assert await shown(store) == []
        dispatch(store, first)
        assert await shown(store) == [b"one"]
        await store.close()
        store = await open_store(disk, GROUP)
        assert store.group_log.end == len(data)
        assert await shown(store) == [b"one"]
        dispatch(store, len(data))
        assert await shown(store) == [b"one", b"two", b"three"]
        await store.close()

    run(body)


def test_a_cut_makes_room_for_other_records() -> None:
    """What was written and flushed behind it counts no more; what is committed cannot be cut."""

    async def body() -> None:
        store = await open_store(MemoryDisk(), GROUP)
        data, other = await log_of(b"one", b"two", b"three"), await log_of(b"one", b"2")
        log, first = store.group_log, 0
        await log.write(0, data)
        await store.flush()
        first = end_of_first(log)
        log.cut(first)
        assert log.end == store.flushed.value == first
        await log.write(first, other[first:])
        assert store.flushed.value == first
        dispatch(store, log.end)
        assert await shown(store) == [b"one", b"2"]
        with pytest.raises(StoreError, match="is committed"):
            log.cut(first)
        await store.close()

    run(body)


def test_a_cut_over_several_files() -> None:
    """Files behind it are deleted, and the one that was made to follow them."""

    async def body() -> None:
        disk, size = MemoryDisk(), 3_000
        data = await log_of(*(b"%d" % n * size for n in range(9)))
        store = await open_store(disk, GROUP)
        log = store.group_log
        await log.write(0, data)
        first = end_of_first(log)
        log.cut(first)
        assert len(disk.list("store/commitlog")) == 1
        await log.write(first, data[first:])
        dispatch(store, log.end)
        assert [len(each) for each in await shown(store)] == [size] * 9
        assert log.read(0, len(data)) == data
        await store.close()

    run(body)


def test_a_log_is_begun_anew() -> None:
    """At the leader's first file: log and queues have nothing of before."""

    async def body() -> None:
        disk = MemoryDisk()
        data = await log_of(*(b"%d" % n * 3_000 for n in range(9)))
        store = await open_store(disk, GROUP)
        log = store.group_log
        start = 2 * GROUP.segment_bytes
        await log.write(0, data[: log_start(data, store)])
        dispatch(store, log.end)
        store.upkeep.delete_folders(log.begin_anew(start))
        assert (log.first, log.end, store.flushed.value) == (start, start, start)
        await log.write(start, data[start:])
        dispatch(store, log.end)
        found = await shown(store)
        assert found
        assert set(found) < {b"%d" % n * 3_000 for n in range(9)}
        await store.close()
        store = await open_store(disk, GROUP)
        assert store.log_min == start
        await store.close()

    run(body)


def log_start(data: bytes, store: Store) -> int:
    """Where the first file of a log ends."""
    return min(len(data), store.config.segment_bytes)


def test_a_leader_record_is_in_no_queue() -> None:
    """It has a place in the log, and nobody consumes it."""

    async def body() -> None:
        store = await open_store(MemoryDisk(), GROUP)
        await store.group_log.write_leader_record(7)
        dispatch(store, store.group_log.end)
        assert store.group_log.end > 0
        assert store.queues.topics() == []
        await store.close()

    run(body)


def test_who_waits_for_the_flush_of_what_is_cut_is_told() -> None:
    """It will never be flushed; a deposed leader's parts must not wait for it."""

    async def body() -> None:
        store = await open_store(MemoryDisk(), GROUP)
        log = store.group_log
        await log.write(0, await log_of(b"one", b"two"))
        first = end_of_first(log)
        waiting = asyncio.create_task(store.flush())
        await asyncio.sleep(0)
        log.cut(first)
        with pytest.raises(OSError, match="was cut off before it was flushed"):
            await asyncio.wait_for(waiting, 10)
        await store.close()

    run(body)


def test_what_was_cut_is_not_kept_by_what_replaced_it() -> None:
    """A log that was cut and has grown again is as long as before, but progress in it is void."""

    async def body() -> None:
        data = await log_of(b"one", b"two")
        store = await open_store(MemoryDisk(), GROUP)
        store.leading = lambda: None
        await store.group_log.write(0, data)
        before, first = store.cuts, end_of_first(store.group_log)
        store.group_log.cut(first)
        await store.group_log.write(first, data[first:])
        dispatch(store, len(data))
        await store.sync()
        with pytest.raises(OSError, match="cut off"):
            await store.sync(before)
        await store.close()

    run(body)
