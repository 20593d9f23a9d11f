"""A record that the disk has damaged is told from a write that was torn."""

import logging

import pytest
from storekit import message, open_store, put, run, tiny

from gantrymq.store.recovery.damage import SECTOR
from gantrymq.testing.disk import MemoryDisk

LOG = "store/commitlog/00000000000000000000"
GROUP = tiny(in_group=True)


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    """The store says loudly what the tests provoke."""
    caplog.set_level(logging.CRITICAL + 1, "gantrymq.store")


async def filled(disk: MemoryDisk) -> list[int]:
    """A store that was killed with four messages in its log; where each begins, and the end."""
    store = await open_store(disk, tiny(flush="ASYNC_FLUSH"))
    appends = [message("orders", 0, b"x" * 700, unique=f"u{n}") for n in range(4)]
    await put(store, *appends)
    return [*(append.physical_offset for append in appends), store.log_max]


async def reopened(disk: MemoryDisk) -> tuple[int | None, int]:
    """Where the damage is and where the log ends, when a member of a group is started."""
    store = await open_store(disk, GROUP)
    found = store.damage.at, store.log_max
    await store.close()
    return found


@pytest.mark.parametrize("number", [0, 2, 3], ids=["first", "in the middle", "last"])
@pytest.mark.parametrize("byte", [1, 2, 3, 4, 7, 84, 88, 500, 787])
def test_a_bit_that_turned_over_is_damage(number: int, byte: int) -> None:
    """In the size, the magic number, a length or the body; whatever bit it is."""

    async def work() -> None:
        for bit in range(8):
            disk = MemoryDisk()
            starts = await filled(disk)
            left = disk.after_kill()
            left.flip_bit(LOG, starts[number] + byte, bit)

            assert (starts[number], starts[number]) == await reopened(left)

    run(work)


def test_a_torn_write_is_no_damage() -> None:
    """Whichever sectors of it are missing, one at least: nobody was told that it is stored."""

    async def work() -> None:
        disk = MemoryDisk()
        starts = await filled(disk)
        sectors = range(starts[3] // SECTOR, starts[4] // SECTOR + 1)
        for missing in range(1, 1 << len(sectors)):
            left = disk.after_kill()
            data = left._names.files[LOG].data
            for number, sector in enumerate(sectors):
                if missing >> number & 1:
                    start = max(starts[3], sector * SECTOR)
                    stop = min(starts[4], (sector + 1) * SECTOR)
                    data[start:stop] = bytes(stop - start)

            assert (None, starts[3]) == await reopened(left)

    run(work)


def test_the_end_of_a_whole_log_is_no_damage() -> None:
    """Nothing was cut off."""

    async def work() -> None:
        disk = MemoryDisk()
        starts = await filled(disk)

        assert (None, starts[4]) == await reopened(disk.after_kill())

    run(work)


def test_damage_is_known_until_somebody_has_noted_it() -> None:
    """A crash right after the cut leaves the mark, because the log looks whole by then."""

    async def work() -> None:
        disk = MemoryDisk()
        starts = await filled(disk)
        left = disk.after_kill()
        left.flip_bit(LOG, starts[2] + 300)
        store = await open_store(left, GROUP)
        left = left.after_kill()

        assert (starts[2], starts[2]) == await reopened(left)
        store = await open_store(left, GROUP)
        store.damage.clear()
        await store.close()
        assert (None, starts[2]) == await reopened(left)

    run(work)
