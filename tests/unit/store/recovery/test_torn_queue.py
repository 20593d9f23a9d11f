"""A power cut tears the file of a queue behind the checkpoint: nothing before it is lost."""

import pytest
from storekit import message, open_store, put, read_queue, run, tiny

from gantrymq.store.queues.consumequeue import ENTRY_BYTES
from gantrymq.testing.disk import SECTOR, MemoryDisk

FILE = "store/consumequeue/orders/0/00000000000000000000"
CONFIG = tiny(queue_file_entries=1_000, segment_bytes=1 << 20)
LATER = 130
"""More than fills two sectors."""


@pytest.mark.parametrize("kept", range(75, 103))
def test_a_torn_entry_is_not_taken_for_an_old_one(kept: int) -> None:
    """The sectors behind the checkpoint are missing but for one, which begins inside an entry."""

    async def work() -> None:
        disk = MemoryDisk()
        store = await open_store(disk, CONFIG)
        await put(store, *(message("orders", 0, b"%d" % n) for n in range(kept)))
        await store.upkeep.checkpoint()
        await put(store, *(message("orders", 0, b"%d" % n) for n in range(kept, kept + LATER)))
        await store.queues.write_tails()
        first = kept * ENTRY_BYTES // SECTOR
        for there in range(first + 1, first + 5):
            left = disk.after_kill()
            data = left._names.files[FILE].data
            for sector in range(first, len(data) // SECTOR + 1):
                start = max(kept * ENTRY_BYTES, sector * SECTOR)
                stop = min(len(data), (sector + 1) * SECTOR)
                if sector != there and start < stop:
                    data[start:stop] = bytes(stop - start)
            again = await open_store(left, CONFIG)
            found = [int(one.body) for one in await read_queue(again, "orders", 0)]
            assert again.queues.min_offset("orders", 0) == 0
            assert found == list(range(kept + LATER))
            await again.close()
        await store.close()

    run(work)
