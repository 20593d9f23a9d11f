"""Queues and index that are made anew are those that the store itself had made."""

from random import Random
from typing import Any

import pytest
from storekit import ManualClock, message, open_store, put, read_queue, run, tiny

from gantrymq.base.offload import InlineOffload
from gantrymq.store.errors import StoreError
from gantrymq.store.recovery.rebuild import Rebuilt, rebuild
from gantrymq.testing.disk import MemoryDisk

QUEUES = [("orders", 0), ("orders", 1), ("bills", 0)]


async def filled(count: int = 60, clock: ManualClock | None = None) -> MemoryDisk:
    """A store of several files of every kind, stopped properly."""
    disk = MemoryDisk()
    store = await open_store(disk, clock=clock or ManualClock())
    for number in range(count):
        topic, queue_id = QUEUES[number % 3]
        await put(
            store,
            message(topic, queue_id, b"%d" % number * 60, unique=f"u{number}",
                    keys=f"k{number % 7} all", tags=f"t{number % 4}"),
        )  # fmt: skip
    await put(store, message("SCHEDULE_TOPIC_XXXX", 2, b"later", delay=3))
    await store.close()
    return disk


async def rebuilt(disk: MemoryDisk, **changes: Any) -> Rebuilt:
    return await rebuild(
        tiny(**changes), disk=disk, clock=ManualClock(), offload=InlineOffload()
    )  # fmt: skip


def derived(disk: MemoryDisk) -> dict[str, bytes]:
    """Queue files by name, index files by number: those are named after the time they are made."""
    files = disk.contents()
    queues = {path: data for path, data in files.items() if path.startswith("store/consumequeue/")}
    index = sorted(path for path in files if path.startswith("store/index/"))
    return queues | {f"index {number}": files[path] for number, path in enumerate(index)}


async def everything(disk: MemoryDisk) -> list[Any]:
    store = await open_store(disk)
    found = [await read_queue(store, *queue) for queue in QUEUES]
    await store.close()
    return found


def log_of(disk: MemoryDisk) -> dict[str, bytes]:
    return {path: data for path, data in disk.contents().items() if "/commitlog/" in path}


def test_rebuilt_files_are_byte_for_byte_the_same() -> None:
    """The old ones are kept, the log is as it was, and the store opens with all its messages."""

    async def body() -> None:
        disk = await filled()
        before, log, messages = derived(disk), log_of(disk), await everything(disk.after_kill())

        made = await rebuilt(disk)

        assert before == derived(disk)
        assert log == log_of(disk)
        assert ["checkpoint.before", "consumequeue.before", "index.before"] == made.kept
        assert (4, 61) == (made.queues, made.entries)
        assert messages == await everything(disk)
        assert not disk.exists("store/rebuilding")

    run(body)


def test_damaged_queues_and_index_are_replaced() -> None:
    """Whatever stands in the old files does not matter."""

    async def body() -> None:
        disk = await filled()
        good = derived(disk)
        for path in [path for path in disk.contents() if "/consumequeue/" in path]:
            disk.open(path).pwrite(b"\xa5" * 20, 40)
        for path in [path for path in disk.contents() if "/index/" in path]:
            disk.open(path).pwrite(bytes(100), 60)

        await rebuilt(disk)
        again = await rebuilt(disk)

        assert good == derived(disk)
        assert "consumequeue.before.2" in again.kept

    run(body)


def test_a_store_whose_first_files_expired_goes_on_with_its_offsets() -> None:
    """The same bytes as when the store derives everything by itself."""

    async def body() -> None:
        clock = ManualClock()
        disk = await filled(clock=clock)
        clock.ms += 100 * 3_600_000
        store = await open_store(disk, clock=clock)
        for number in range(20):
            await put(store, message("orders", 0, b"new" * 200, unique=f"n{number}"))
        await store.upkeep.checkpoint()
        await store.upkeep.delete_expired()
        assert store.log_min > 0
        ends = {queue: store.queues.max_offset(*queue) for queue in QUEUES}
        await store.close()
        own = disk.after_kill()
        own.delete("store/checkpoint")
        await everything(own)

        await rebuilt(disk)

        assert derived(own) == derived(disk)
        store = await open_store(disk, clock=clock)
        assert ends == {queue: store.queues.max_offset(*queue) for queue in QUEUES}
        await store.close()

    run(body)


@pytest.mark.parametrize("count", [18, 60])
@pytest.mark.parametrize("at, size", [(0, 20), (0, 60), (20, 20), (20, 40)])
def test_a_damaged_queue_without_a_record_in_the_log_keeps_its_end(
    count: int, at: int, size: int
) -> None:
    """Were its offsets to begin again, consumers would take its next messages for old ones."""

    async def body() -> None:
        clock = ManualClock()
        disk = await filled(count, clock=clock)
        clock.ms += 100 * 3_600_000
        store = await open_store(disk, clock=clock)
        for number in range(40):
            await put(store, message("orders", 0, b"new" * 200, unique=f"n{number}"))
        await store.upkeep.checkpoint()
        clock.ms += 100 * 3_600_000
        while await store.upkeep.delete_expired():
            pass
        ends = {queue: store.queues.max_offset(*queue) for queue in QUEUES}
        assert store.queues.min_offset("bills", 0) == ends["bills", 0] == count // 3
        await store.close()
        for path in [path for path in disk.contents() if "/consumequeue/bills/" in path]:
            disk.open(path).pwrite(bytes(size), at)

        await rebuilt(disk)

        store = await open_store(disk, clock=clock)
        assert ends == {queue: store.queues.max_offset(*queue) for queue in QUEUES}
        await put(store, message("bills", 0, b"next"))
        assert count // 3 + 1 == store.queues.max_offset("bills", 0)
        await store.close()

    run(body)


def test_a_store_that_is_open_is_refused() -> None:
    """A broker runs on it, or died on it: both know better what to do."""

    async def body() -> None:
        disk = await filled()
        store = await open_store(disk)
        before = disk.contents()
        with pytest.raises(StoreError, match="a broker runs on store: stop it first"):
            await rebuilt(disk)
        with pytest.raises(StoreError, match="was not stopped properly"):
            await rebuilt(disk.after_kill())
        assert before == disk.contents()
        await store.close()

    run(body)


def test_a_damaged_log_is_refused() -> None:
    """What lies behind the damage would vanish from the queues."""

    async def body() -> None:
        disk = await filled()
        before = derived(disk)
        log = sorted(log_of(disk))[1]
        disk.open(log).pwrite(b"\xff" * 50, 500)

        with pytest.raises(StoreError, match=rf"damaged at byte \d+ of {log}.*nothing was changed"):
            await rebuilt(disk)

        assert before == derived(disk)

    run(body)


def test_a_power_cut_at_any_moment_loses_nothing() -> None:
    """After every single operation: the next start gives every message, and takes new ones."""

    async def body() -> None:
        disk = await filled(24)
        expected = await everything(disk.after_kill())
        cuts: list[MemoryDisk] = []
        tear = Random(3)
        disk.after_each = lambda: cuts.append(disk.image(tear))

        await rebuilt(disk)
        disk.after_each = None

        assert len(cuts) > 30
        for cut in cuts:
            assert expected == await everything(cut)
            assert expected == await everything(cut)

    run(body)


def test_a_full_disk_loses_nothing() -> None:
    """Wherever it fills up: the error says what to do, and the store opens with all it had."""

    async def body() -> None:
        disk = await filled(24)
        expected = await everything(disk.after_kill())
        needed = sum(len(data) for data in disk.contents().values())
        refused = 0
        for more in range(0, 40_000, 1500):
            image = disk.after_kill()
            image.capacity = needed + more
            try:
                await rebuilt(image)
            except StoreError as error:
                refused += 1
                assert "run it again, or start the broker" in str(error)  # noqa: PT017
            image.capacity = None
            assert expected == await everything(image)
        assert refused > 1

    run(body)
