"""Opening what a crash, a Java broker or a careless person left behind."""

import struct

import pytest
from storekit import (
    BORN,
    FOREVER,
    HOST,
    START_MS,
    ManualClock,
    message,
    open_store,
    put,
    read_log,
    read_queue,
    run,
    tiny,
)

from gantrymq.base.disk import delete_tree
from gantrymq.kernel import encode_records
from gantrymq.store import PutStatus, Store
from gantrymq.store.errors import LayoutError
from gantrymq.store.recovery import checkpoint as checkpoints
from gantrymq.testing.disk import MemoryDisk

pytestmark = pytest.mark.usefixtures("quiet")

ASYNC = tiny(flush="ASYNC_FLUSH")


async def filled(disk: MemoryDisk, count: int = 40, *, clock: ManualClock | None = None) -> Store:
    """A store with messages in two queues, one second apart."""
    clock = clock or ManualClock()
    store = await open_store(disk, ASYNC, clock=clock)
    for n in range(count):
        clock.ms += 1000
        await put(store, message("orders", n % 2, b"%d" % n + b"x" * 500, unique=f"u{n}"))
    return store


async def check_filled(store: Store, count: int = 40) -> None:
    """Everything that `filled` put is there, in queues and index."""
    for queue_id in (0, 1):
        found = await read_queue(store, "orders", queue_id)
        numbers = [int(one.body.partition(b"x")[0]) for one in found]
        assert numbers == list(range(queue_id, count, 2))
        assert [one.queue_offset for one in found] == list(range(len(found)))
    for n in range(count):
        assert len((await store.reads.query("orders", f"u{n}", 9, 0, FOREVER)).records) == 1


def java_took_over(disk: MemoryDisk, log_ms: int, queue_ms: int, index_ms: int) -> None:
    """A Java broker wrote its three times into the checkpoint; the rest of the page it left."""
    disk.open("store/checkpoint").pwrite(struct.pack(">qqq", log_ms, queue_ms, index_ms), 0)


def forget_ours(disk: MemoryDisk) -> None:
    """A checkpoint as only a Java broker ever wrote it."""
    file = disk.open("store/checkpoint")
    file.pwrite(file.pread(24, 0).ljust(4096, b"\0"), 0)


def drop_entries(disk: MemoryDisk, queue_id: int, first: int) -> None:
    """Zero a queue's entries from an offset on."""
    directory = f"store/consumequeue/orders/{queue_id}"
    for name in disk.list(directory):
        file = disk.open(f"{directory}/{name}")
        keep = min(max(0, first * 20 - int(name)), 160)
        if keep == 0:
            disk.delete(f"{directory}/{name}")
        else:
            file.pwrite(bytes(160 - keep), keep)


def test_a_killed_process_loses_nothing_in_any_mode() -> None:
    """
    A killed process loses no message in any flush mode.
    """

    async def body() -> None:
        disk = MemoryDisk()
        await filled(disk)
        again = await open_store(disk.after_kill(), ASYNC)
        await check_filled(again)
        assert (await put(again, message()))[0].queue_offset == 20
        await again.close()

    run(body)


def test_topics_with_long_names_are_recovered() -> None:
    """Their records are of version 2, in one log with those of version 1."""
    names = [f"%RETRY%{'g' * 120}{'+' * size}" for size in (0, 1, 100, 128)]

    async def body() -> None:
        disk = MemoryDisk()
        store = await open_store(disk, ASYNC)
        for number, name in enumerate(names):
            await put(store, message(name, 0, b"%d" % number, unique=f"u{number}"))
        again = await open_store(disk.after_kill(), ASYNC)
        for number, name in enumerate(names):
            (found,) = await read_queue(again, name, 0)
            assert (found.topic, found.body) == (name, b"%d" % number)
            assert len((await again.reads.query(name, f"u{number}", 9, 0, FOREVER)).records) == 1
        again.delete_topic(names[-1])
        assert await read_queue(again, names[-1], 0) == []
        await again.close()

    run(body)


def test_a_clean_stop_is_opened_without_reading_the_log() -> None:
    """
    After a clean stop only the end of the log is read at the next start.
    """

    async def body() -> None:
        disk = MemoryDisk()
        await (await filled(disk)).close()
        read: list[str] = []
        disk.fault = lambda name, path: read.append(path) if name == "pread" else None
        store = await open_store(disk, ASYNC)
        of_log = [path for path in read if "commitlog" in path]
        assert len(of_log) <= 3, "one look at the end, one at the rest of the file"
        disk.fault = None
        await check_filled(store)
        await store.close()

    run(body)


def test_a_log_that_goes_on_behind_a_clean_checkpoint_is_followed() -> None:
    """Whoever wrote there, the records are in the log."""

    async def body() -> None:
        disk = MemoryDisk()
        store = await filled(disk, 10)
        end, next_offset = store.log_max, store.queues.max_offset("orders", 0)
        await store.close()
        item = (b"orders", 0, next_offset, 0, 0, 1, BORN, 0, 0, b"10x", b"UNIQ_KEY\x01u10\x02")
        data, _ = encode_records([item], end, START_MS + 99_000, HOST)
        base = end - end % 8192
        disk.open(f"store/commitlog/{base:020d}").pwrite(data, end - base)
        store = await open_store(disk, ASYNC)
        await check_filled(store, 11)
        await store.close()

    run(body)


def test_queue_entries_of_records_that_were_lost_never_come_back() -> None:
    """They were on disk before their records were, and the log grows past their place again."""

    async def body() -> None:
        disk = MemoryDisk()
        store = await open_store(disk, ASYNC)
        await put(store, message("orders", 0, b"kept"))
        await store.upkeep.checkpoint()
        await put(store, *[message("orders", 0, b"lost" * 100) for _ in range(4)])
        await store.upkeep.write_derived()
        cut = disk.after_kill()
        log = cut.open("store/commitlog/00000000000000000000")
        first_lost = len(next(iter(await _records(store))))
        log.pwrite(bytes(8192 - first_lost), first_lost)

        store = await open_store(cut, ASYNC)
        assert [one.body for one in await read_queue(store, "orders", 0)] == [b"kept"]
        await put(store, *[message("bills", 0, b"new" * 100) for _ in range(8)])
        await store.upkeep.checkpoint()
        store = await open_store(cut.after_kill(), ASYNC)
        assert [one.body for one in await read_queue(store, "orders", 0)] == [b"kept"]
        assert store.queues.max_offset("orders", 0) == 1
        await store.close()

    run(body)


async def _records(store: Store) -> list[bytes]:
    record = await store.reads.message_at(0)
    assert record is not None
    return [record]


def test_old_bytes_behind_the_end_are_never_taken_for_records_again() -> None:
    """A torn record is replaced by one of its size; behind it an old record would fit."""

    async def body() -> None:
        disk = MemoryDisk()
        store = await open_store(disk, ASYNC)
        torn, old = await put(store, message(body=b"torn!"), message(body=b"old!!"))
        cut = disk.after_kill()
        cut.open("store/commitlog/00000000000000000000").pwrite(b"\xff", torn.size - 30)
        body_at = torn.physical_offset + 88
        cut.open("store/commitlog/00000000000000000000").pwrite(b"TORN!", body_at)
        store = await open_store(cut, ASYNC)
        assert store.log_max == 0
        (new,) = await put(store, message(body=b"new!!"))
        assert (new.size, new.physical_offset) == (torn.size, 0)
        again = await open_store(cut.after_kill(), ASYNC)
        assert [one.body for one in read_log(again)] == [b"new!!"]
        assert old.status is PutStatus.PUT_OK

    run(body)


@pytest.mark.parametrize("size", [0x7FFFFFFF, -1, 91, 8192, 1])
def test_a_senseless_size_ends_the_log(size: int) -> None:
    """
    A record with an impossible size ends the log at recovery.
    """

    async def body() -> None:
        disk = MemoryDisk()
        store = await filled(disk, 5)
        end = store.log_max
        cut = disk.after_kill()
        cut.open("store/commitlog/00000000000000000000").pwrite(
            struct.pack(">iI", size, 0xDAA320A7) + b"\x01" * 200, end
        )
        store = await open_store(cut, ASYNC)
        assert store.log_max == end
        await check_filled(store, 5)
        await store.close()

    run(body)


def test_a_record_larger_than_a_read_is_recovered() -> None:
    """
    A record that is larger than one read of the scan is recovered.
    """

    async def body() -> None:
        disk = MemoryDisk()
        config = tiny(segment_bytes=8 << 20, flush="ASYNC_FLUSH")
        store = await open_store(disk, config)
        big = b"x" * (3 << 20)
        await put(store, message(body=b"a"), message(body=big), message(body=b"c"))
        again = await open_store(disk.after_kill(), config)
        assert [len(one.body) for one in await read_queue(again, "orders", 0)] == [1, 3 << 20, 1]
        await again.close()

    run(body)


def test_recovering_twice_in_a_row_is_recovering_once() -> None:
    """A crash in the middle of recovery, after each of its operations."""

    async def body() -> None:
        disk = MemoryDisk()
        await filled(disk)
        crashed = disk.after_kill()
        left: list[MemoryDisk] = []
        crashed.after_each = lambda: left.append(crashed.after_kill())
        await open_store(crashed, ASYNC)
        assert len(left) > 20
        for cut in left:
            store = await open_store(cut, ASYNC)
            await check_filled(store)
            await store.close()

    run(body)


# Stores that a Java broker wrote


def test_a_clean_java_store_is_taken_over() -> None:
    """With queues that are a little behind the log: dispatch goes on at their largest position."""

    async def body() -> None:
        for only_java in (False, True):
            disk, clock = MemoryDisk(), ManualClock()
            await (await filled(disk, clock=clock)).close()
            java_took_over(disk, clock.ms, clock.ms - 1, 0)
            if only_java:
                forget_ours(disk)
            for queue_id in (0, 1):
                drop_entries(disk, queue_id, 17)
            for name in disk.list("store/index"):
                disk.delete(f"store/index/{name}")
            store = await open_store(disk, ASYNC, clock=clock)
            for queue_id in (0, 1):
                assert len(await read_queue(store, "orders", queue_id)) == 20
            assert len((await store.reads.query("orders", "u39", 9, 0, FOREVER)).records) == 1
            await store.close()
            await (await open_store(disk, ASYNC, clock=clock)).close()

    run(body)


@pytest.mark.parametrize("known_ms", [0, 15_000, 39_000])
def test_a_crashed_java_store_is_rebuilt_from_the_file_its_times_name(known_ms: int) -> None:
    """Whatever the queues hold behind that point is not believed."""

    async def body() -> None:
        disk, clock = MemoryDisk(), ManualClock()
        await (await filled(disk, clock=clock)).close()
        disk.open("store/abort", create=True)
        stamp = START_MS + known_ms if known_ms else 0
        java_took_over(disk, stamp, stamp, 0)
        drop_entries(disk, 0, max(0, (known_ms - 12_000) // 2000))
        store = await open_store(disk, ASYNC, clock=clock)
        await check_filled(store)
        await store.close()

    run(body)


def test_a_java_broker_that_left_no_checkpoint_times_is_scanned_from_the_start() -> None:
    """
    A store without checkpoint times is scanned from its first file on.
    """

    async def body() -> None:
        disk, clock = MemoryDisk(), ManualClock()
        await (await filled(disk, clock=clock)).close()
        disk.delete("store/checkpoint")
        disk.open("store/abort", create=True)
        store = await open_store(disk, ASYNC, clock=clock)
        await check_filled(store)
        await store.close()

    run(body)


def test_what_we_leave_is_a_checkpoint_a_java_broker_can_use() -> None:
    """
    The checkpoint has the page layout and times that a Java broker reads.
    """

    async def body() -> None:
        disk, clock = MemoryDisk(), ManualClock()
        await (await filled(disk, clock=clock)).close()
        page = disk.contents()["store/checkpoint"]
        log_ms, queue_ms, index_ms = struct.unpack_from(">qqq", page)
        assert len(page) == 4096
        assert log_ms == queue_ms == clock.ms
        assert START_MS < index_ms < clock.ms, "the end of the last full index file"
        ours = checkpoints.load(disk, "store/checkpoint")
        assert ours is not None
        assert ours.sizes == ASYNC.sizes
        used = len(page.rstrip(b"\0"))
        assert used <= 512, "a disk writes a sector whole or not at all"
        for at in range(used):
            damaged = bytearray(page)
            damaged[at] ^= 1
            assert checkpoints.decode(bytes(damaged)).dispatched is None, at

    run(body)


# What people do


@pytest.mark.parametrize("part", ["consumequeue", "index"])
def test_what_was_removed_is_built_again_from_the_log(part: str) -> None:
    """
    A deleted consume queue or index is built again from the log.
    """

    async def body() -> None:
        disk = MemoryDisk()
        await (await filled(disk)).close()
        delete_tree(disk, f"store/{part}")
        store = await open_store(disk, ASYNC)
        await check_filled(store)
        await store.close()

    run(body)


def test_queues_that_lost_their_beginning_keep_their_offsets() -> None:
    """The first log files are gone and so are the queues: what is left keeps its numbers."""

    async def body() -> None:
        disk = MemoryDisk()
        store = await filled(disk)
        expected = {q: await read_queue(store, "orders", q) for q in (0, 1)}
        await store.close()
        delete_tree(disk, "store/consumequeue")
        disk.delete("store/commitlog/00000000000000000000")
        store = await open_store(disk, ASYNC)
        for queue_id in (0, 1):
            found = await read_queue(store, "orders", queue_id)
            assert found[0].queue_offset == store.queues.min_offset("orders", queue_id) > 0
            assert found == expected[queue_id][-len(found) :]
        await store.close()
        store = await open_store(disk, ASYNC)
        assert store.queues.min_offset("orders", 0) > 0
        assert (await put(store, message()))[0].queue_offset == 20
        await store.close()

    run(body)


def test_a_log_that_was_removed_takes_the_queues_with_it() -> None:
    """
    A store without its commit log starts empty, without the old queues.
    """

    async def body() -> None:
        disk = MemoryDisk()
        await (await filled(disk)).close()
        delete_tree(disk, "store/commitlog")
        store = await open_store(disk, ASYNC)
        assert (store.queues.topics(), store.log_max) == ([], 0)
        assert (await put(store, message()))[0].queue_offset == 0
        await store.close()

    run(body)


def test_a_gap_in_the_log_hides_what_is_before_it() -> None:
    """
    If a log file is missing, the log starts behind the gap.
    """

    async def body() -> None:
        disk = MemoryDisk()
        store = await filled(disk)
        await store.close()
        disk.delete("store/commitlog/00000000000000008192")
        store = await open_store(disk, ASYNC)
        assert store.log_min == 16384
        found = await read_queue(store, "orders", 0)
        assert found[0].physical_offset >= 16384
        assert found[-1].queue_offset == 19
        await store.close()

    run(body)


def test_an_empty_last_log_file_is_completed() -> None:
    """A crash between making and allocating it."""

    async def body() -> None:
        disk = MemoryDisk()
        store = await filled(disk)
        await store.close()
        last = disk.list("store/commitlog")[-1]
        disk.open(f"store/commitlog/{last}").truncate(0)
        store = await open_store(disk, ASYNC)
        await check_filled(store)
        await store.close()

    run(body)


def test_a_log_file_of_another_size_is_refused_naming_both() -> None:
    """
    A log file of another size is refused with both sizes.
    """

    async def body() -> None:
        disk = MemoryDisk()
        await (await filled(disk)).close()
        disk.open("store/commitlog/00000000000000000000").truncate(5000)
        with pytest.raises(LayoutError, match=r"5000.*8192"):
            await open_store(disk, ASYNC)

    run(body)


def test_queue_ends_are_known_before_the_first_request() -> None:
    """So that progress beyond them can be brought back into range."""

    async def body() -> None:
        disk = MemoryDisk()
        await filled(disk)
        cut = disk.after_kill()
        cut.open("store/commitlog/00000000000000008192").pwrite(b"\xff" * 8192, 0)
        store = await open_store(cut, ASYNC)
        assert store.queues.ids("orders") == [0, 1]
        assert 0 < store.queues.max_offset("orders", 0) < 20
        await store.close()

    run(body)
