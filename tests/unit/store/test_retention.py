"""What is deleted, when, and what follows it."""

import asyncio
from datetime import datetime

import pytest
from storekit import (
    FOREVER,
    START_MS,
    ManualClock,
    message,
    open_store,
    pull,
    put,
    read_queue,
    run,
    tiny,
)

from gantrymq.protocol.record import decode_records
from gantrymq.store import PutStatus, ReadStatus, Store
from gantrymq.store.retention import SegmentAge, expired
from gantrymq.testing.disk import PAGE, MemoryDisk

HOUR = 3_600_000
OLD, YOUNG = START_MS - 73 * HOUR, START_MS - 71 * HOUR
RATIOS = tiny(judge_by_free_bytes=False)


def choose(ages: list[int], *, hour: int = 4, ratio: float = 0.1, asked: bool = False) -> list[int]:
    segments = [SegmentAge(n, ms) for n, ms in enumerate(ages)]
    return expired(segments, RATIOS, now_ms=START_MS, hour=hour, used_ratio=ratio, asked=asked)


def test_old_files_go_at_their_hour() -> None:
    """
    Expired files are deleted at the hour of deleteWhen, or when an operator asks.
    """
    assert choose([OLD, OLD, YOUNG]) == [0, 1]
    assert choose([OLD, OLD, YOUNG], hour=5) == []
    assert choose([OLD], hour=5, asked=True) == [0]


def test_deletion_stops_at_the_first_file_that_is_not_old() -> None:
    """A file in the middle never goes before those in front of it."""
    assert choose([OLD, YOUNG, OLD]) == [0]
    assert choose([YOUNG, OLD]) == []


def test_a_fuller_disk_deletes_at_any_hour_and_then_at_any_age() -> None:
    """
    Above the first ratio expired files are deleted at any hour, above the second any file.
    """
    assert choose([OLD, YOUNG], hour=5, ratio=0.76) == [0]
    assert choose([OLD, YOUNG], hour=5, ratio=0.74) == []
    assert choose([YOUNG, YOUNG], hour=5, ratio=0.86) == [0, 1]


def test_one_round_deletes_a_bounded_number_of_files() -> None:
    """
    One round deletes at most `delete_batch_max` files.
    """
    assert len(choose([OLD] * 50)) == RATIOS.delete_batch_max == 10


def test_judging_by_free_bytes_ignores_how_full_the_disk_is() -> None:
    """
    With `judge_by_free_bytes` the ratios are ignored.
    """
    ages = [SegmentAge(0, YOUNG)]
    assert expired(ages, tiny(), now_ms=START_MS, hour=5, used_ratio=0.99) == []


@pytest.mark.parametrize("when", ["4", "04", "02;04", " 04 ; 11"])
def test_several_hours_can_be_named(when: str) -> None:
    """
    Several hours can be given, separated by semicolons.
    """
    ages = [SegmentAge(0, OLD)]
    config = tiny(delete_when=when)
    assert expired(ages, config, now_ms=START_MS, hour=4, used_ratio=0.0) == [0]
    assert expired(ages, config, now_ms=START_MS, hour=5, used_ratio=0.0) == []


async def aged(disk: MemoryDisk, clock: ManualClock) -> Store:
    """A store with files of four days."""
    store = await open_store(disk, clock=clock)
    for day in range(4):
        for n in range(20):
            await put(store, message(body=b"x" * 900, queue_id=n % 2, unique=f"{day}-{n}"))
        if day < 3:
            clock.ms += 24 * HOUR
    await put(store, message("rare", 0, b"old topic"))
    await store.upkeep.checkpoint()
    return store


def test_queues_and_index_follow_the_log() -> None:
    """
    Deleting log files moves the smallest offsets of queues and deletes old index files.
    """

    async def body() -> None:
        disk, clock = MemoryDisk(), ManualClock()
        store = await aged(disk, clock)
        clock.ms += HOUR
        assert await store.upkeep.delete_expired() > 0
        low = store.queues.min_offset("orders", 0)
        assert store.log_min > 0
        assert 0 < low < 40
        found = await read_queue(store, "orders", 0)
        assert found[0].queue_offset == low
        assert found[0].physical_offset >= store.log_min
        assert found[-1].queue_offset == 39
        answer = await pull(store, "orders", 0, 0)
        assert (answer.status, answer.next_offset) == (ReadStatus.OFFSET_TOO_SMALL, low)
        first = int(disk.list("store/consumequeue/orders/0")[0])
        assert first <= low * 20 < first + 160
        assert (await store.reads.query("orders", "0-0", 9, 0, FOREVER)).records == []
        assert len((await store.reads.query("orders", "3-5", 9, 0, FOREVER)).records) == 1
        assert await store.reads.message_at(0) is None
        await store.close()
        again = await open_store(disk, clock=clock)
        assert again.queues.min_offset("orders", 0) == low
        assert await read_queue(again, "orders", 0) == found
        await again.close()

    run(body)


def test_two_rounds_at_once_delete_each_file_once() -> None:
    """
    A round that an operator asks for waits for the one under way.
    """

    async def body() -> None:
        disk, clock = MemoryDisk(), ManualClock()
        store = await aged(disk, clock)
        clock.ms += HOUR
        files = len(store._log.bases)
        first, second = await asyncio.gather(
            store.upkeep.delete_expired(), store.upkeep.delete_expired()
        )
        assert first > 0
        assert files - first - second == len(store._log.bases)
        await store.close()

    run(body)


def test_the_file_being_written_is_never_deleted() -> None:
    """
    The log file that is written to is never deleted.
    """

    async def body() -> None:
        disk, clock = MemoryDisk(), ManualClock()
        store = await aged(disk, clock)
        clock.ms += 1000 * HOUR
        for _ in range(9):
            await store.upkeep.delete_expired()
        assert len(store._log.bases) == 1
        assert (await put(store, message("rare", 0)))[0].queue_offset == 1
        assert (await read_queue(store, "rare", 0))[0].body == b"old topic"
        await store.close()

    run(body)


def test_ages_are_those_of_records_so_a_copied_store_keeps_them() -> None:
    """The times of files, which a copy or a touch changes, do not matter."""

    async def body() -> None:
        disk, clock = MemoryDisk(), ManualClock()
        await (await aged(disk, clock)).close()
        copy = disk.after_kill()
        store = await open_store(copy, clock=clock)
        assert await store.upkeep.delete_expired() == 0
        clock.ms += HOUR
        assert await store.upkeep.delete_expired() > 0
        await store.close()

    run(body)


def test_background_cleaning_acts_at_the_configured_hour() -> None:
    """
    The background task deletes expired files at the configured hour only.
    """

    async def body() -> None:
        disk, clock = MemoryDisk(), ManualClock()
        store = await aged(disk, clock)
        clock.ms += HOUR
        hour = datetime.fromtimestamp(clock.ms / 1000).hour  # noqa: DTZ006 (as the store reads it)
        before = store.log_min
        if hour != 4:
            await store.upkeep.clean()
            assert store.log_min == before
        clock.ms += ((4 - hour) % 24) * HOUR
        await store.upkeep.clean()
        assert store.log_min > before
        await store.close()

    run(body)


def test_records_that_recovery_still_needs_are_not_deleted() -> None:
    """
    Records behind the last checkpoint are not deleted.
    """

    async def body() -> None:
        disk, clock = MemoryDisk(), ManualClock()
        store = await open_store(disk, clock=clock)
        for _ in range(40):
            await put(store, message(body=b"x" * 900))
        clock.ms += 100 * HOUR
        await put(store, *[message(body=b"x" * 900) for _ in range(10)])
        assert await store.upkeep.delete_expired() == 0, "no checkpoint vouches for the queues yet"
        await store.upkeep.checkpoint()
        assert await store.upkeep.delete_expired() > 0
        await store.close()

    run(body)


def test_a_disk_that_is_too_full_refuses_until_there_is_room() -> None:
    """
    A disk above the third ratio refuses appends until it has room again; reads go on.
    """

    async def body() -> None:
        disk = MemoryDisk()
        store = await open_store(disk, tiny(judge_by_free_bytes=False))
        await put(store, message())
        disk.capacity = int(disk._used() / 0.95) // PAGE * PAGE + 1
        await store.upkeep.clean()
        (refused,) = await put(store, message())
        assert refused.status is PutStatus.SERVICE_NOT_AVAILABLE
        assert "full" in refused.error
        assert len(await read_queue(store, "orders", 0)) == 1
        disk.capacity *= 2
        await store.upkeep.clean()
        assert (await put(store, message()))[0].status is PutStatus.PUT_OK
        await store.close()

    run(body)


def test_a_reader_that_meets_a_deletion_gets_the_right_bytes_or_nothing() -> None:
    """A cold read has found its file before the file is deleted."""

    async def body() -> None:
        disk, clock = MemoryDisk(), ManualClock()
        store = await aged(disk, clock)
        warm = {one.queue_offset: one for one in await read_queue(store, "orders", 0)}
        disk.is_cold = lambda path, at: True
        cold = store.reads.pull("orders", 0, 0, 32, 1 << 20, None)
        late = store.reads.pull("orders", 0, 1, 32, 1 << 20, None)
        reading = asyncio.ensure_future(cold)
        await asyncio.sleep(0)
        clock.ms += HOUR
        assert await store.upkeep.delete_expired() > 0
        for first, answer in ((0, await reading), (1, await late)):
            assert answer.status in (ReadStatus.FOUND, ReadStatus.MESSAGE_WAS_REMOVING)
            for one in decode_records(answer.body):
                assert one == warm[one.queue_offset]
                assert one.queue_offset >= first
        await store.close()

    run(body)
