"""When the newest entries of queues go from memory to their files."""

import errno
import os

import pytest
from storekit import message, open_store, put, read_queue, run, tiny

from gantrymq.store import Store
from gantrymq.testing.disk import MemoryDisk

AT_ONCE = 2


def in_files(store: Store) -> dict[int, int]:
    """How many entries of each queue of the topic are in files."""
    queues = store.queues
    return {number: queues.at("orders", number).tail_start for number in queues.ids("orders")}


def test_of_many_queues_those_are_written_first_that_waited_longest() -> None:
    """
    None waits for ever, however busy the others are; a checkpoint writes all.
    """

    async def body() -> None:
        disk = MemoryDisk()
        store = await open_store(disk, tiny(queues_written_max=AT_ONCE))
        await put(store, *[message(queue_id=number) for number in range(5)])
        await store.upkeep.write_derived()
        assert in_files(store) == {0: 1, 1: 1, 2: 0, 3: 0, 4: 0}
        await put(store, message(queue_id=0), message(queue_id=4))
        await store.upkeep.write_derived()
        assert in_files(store) == {0: 1, 1: 1, 2: 1, 3: 1, 4: 0}
        store.upkeep.request_checkpoint()
        await store.upkeep.write_derived()
        assert in_files(store) == {0: 2, 1: 1, 2: 1, 3: 1, 4: 2}
        store = await open_store(disk.after_kill(), tiny())
        found = [len(await read_queue(store, "orders", number)) for number in range(5)]
        assert found == [2, 1, 1, 1, 2]
        await store.close()

    run(body)


@pytest.mark.usefixtures("quiet")
def test_a_write_that_failed_is_tried_again_first() -> None:
    """
    The store takes messages again only when a write has shown that the disk is well.
    """

    async def body() -> None:
        disk = MemoryDisk()
        store = await open_store(disk, tiny(queues_written_max=AT_ONCE))
        await put(store, *[message(queue_id=number) for number in range(3)])

        def fault(name: str, path: str) -> OSError | None:
            hit = name == "pwrite" and "consumequeue" in path
            return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path) if hit else None

        disk.fault = fault
        for _ in range(3):
            await store.upkeep.write_derived()
            assert "cannot be written" in str(store.writable)
        disk.fault = None
        await store.upkeep.write_derived()
        assert (store.writable, in_files(store)) == (None, {0: 1, 1: 1, 2: 0})
        await store.close()

    run(body)


@pytest.mark.parametrize("clean", [True, False])
def test_entries_in_memory_are_there_after_the_next_start(clean: bool) -> None:
    """
    A clean end writes them; after a kill they are derived from the log.
    """

    async def body() -> None:
        disk = MemoryDisk()
        store = await open_store(disk, tiny(queues_written_max=AT_ONCE))
        await put(store, *[message(queue_id=number) for number in range(3)])
        await store.upkeep.write_derived()
        if clean:
            await store.close()
            assert in_files(store) == {0: 1, 1: 1, 2: 1}
        store = await open_store(disk if clean else disk.after_kill())
        found = [len(await read_queue(store, "orders", number)) for number in range(3)]
        assert found == [1, 1, 1]
        await store.close()

    run(body)
