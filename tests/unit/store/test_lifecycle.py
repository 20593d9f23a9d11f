"""Opening and closing: locks, sizes, real parts, many queues, files on disk."""

import asyncio
import os
import threading
from pathlib import Path

import pytest
from storekit import (
    FOREVER,
    HOST,
    ManualClock,
    message,
    open_store,
    pull,
    put,
    read_queue,
    run,
    tiny,
)

from gantrymq.base.disk import Disk, LockedError, OsDisk
from gantrymq.base.offload import InlineOffload, ThreadOffload
from gantrymq.kernel import ENTRY
from gantrymq.store import HelperSyncer, PutStatus, Store
from gantrymq.store.errors import LayoutError
from gantrymq.store.log.syncer import InlineSyncer
from gantrymq.store.recovery.checkpoint import load
from gantrymq.store.shared import StorePorts
from gantrymq.testing.disk import MemoryDisk

OK = PutStatus.PUT_OK


def test_a_store_opened_again_goes_on_where_it_was(place: tuple[Disk, str]) -> None:
    """
    A store that is opened again continues at its offsets; `abort` exists only while it is open.
    """
    disk, directory = place

    async def body() -> None:
        for life in range(4):
            store = await open_store(disk, tiny(directory))
            assert store.queues.max_offset("orders", 0) == life * 7
            assert disk.exists(f"{directory}/abort")
            await put(store, *[message(body=b"x" * 700, unique=f"{life}-{n}") for n in range(7)])
            assert store.flushed.value == store.dispatched.value == store.log_max
            await store.close()
            assert not disk.exists(f"{directory}/abort")
        store = await open_store(disk, tiny(directory))
        assert len((await store.reads.query("orders", "2-3", 9, 0, FOREVER)).records) == 1
        assert len(await read_queue(store, "orders", 0)) == 28
        await store.close()

    run(body)


def test_a_second_opener_is_refused_and_the_first_not_disturbed(place: tuple[Disk, str]) -> None:
    """
    A second opener of a store raises LockedError, and the first one can go on.
    """
    disk, directory = place

    async def body() -> None:
        store = await open_store(disk, tiny(directory))
        with pytest.raises(LockedError, match=r"pid|process \d+"):
            await open_store(disk, tiny(directory))
        assert (await put(store, message()))[0].status is OK
        await store.close()
        await (await open_store(disk, tiny(directory))).close()

    run(body)


@pytest.mark.parametrize(
    "change",
    [
        {"segment_bytes": 16384},
        {"queue_file_entries": 16},
        {"index_slots": 32},
        {"index_entries": 64},
    ],
)
def test_other_file_sizes_are_refused_naming_both(change: dict[str, int]) -> None:
    """
    A store with other file sizes than configured is refused with both sizes and not changed.
    """

    async def body() -> None:
        disk = MemoryDisk()
        store = await open_store(disk)
        await put(store, message(unique="u"))
        await store.close()
        before = disk.contents()
        with pytest.raises(LayoutError) as caught:
            await open_store(disk, tiny(**change))
        assert str(tiny().sizes) in str(caught.value)
        assert str(tiny(**change).sizes) in str(caught.value)
        assert disk.contents() == before, "nothing was touched"
        await (await open_store(disk)).close()

    run(body)


def test_real_threads_and_a_real_helper_process_serve_a_store(tmp_path: Path) -> None:
    """
    A store works with real threads and a real helper process for syncs.
    """

    async def body() -> None:
        syncer, offload = HelperSyncer(), ThreadOffload(2)
        store = await Store.open(
            tiny(str(tmp_path)),
            StorePorts(OsDisk(), ManualClock(), offload, syncer),
            store_host=HOST,
        )
        for _ in range(10):
            appends = await put(store, *[message(body=b"x" * 500, unique="u") for _ in range(20)])
            assert {one.status for one in appends} == {OK}
        assert len(await read_queue(store, "orders", 0)) == 200
        assert len((await store.reads.query("orders", "u", 64, 0, FOREVER)).records) == 64
        await store.close()
        syncer.close()
        offload.close()

    run(body)


def test_ten_thousand_queues_need_few_descriptors(tmp_path: Path) -> None:
    """
    Ten thousand queues are served with at most `open_files_max` descriptors.
    """

    async def body() -> None:
        store = await Store.open(
            tiny(str(tmp_path), segment_bytes=1 << 22, flush="ASYNC_FLUSH", open_files_max=200),
            StorePorts(OsDisk(), ManualClock(), InlineOffload(), HelperSyncer()),
            store_host=HOST,
        )
        await put(store, *[message("many", queue_id) for queue_id in range(10_000)])
        await store.queues.write_tails()
        assert store.usage["queues"] == 10_000
        assert store.usage["open_files"] <= 200
        assert len(os.listdir("/proc/self/fd")) < 600
        for queue_id in range(0, 10_000, 97):
            assert (await pull(store, "many", queue_id, 0)).count == 1
        store._lock.release()  # a kill: closing would sync ten thousand files for nothing
        store.upkeep.stop()

    run(body)


def test_figures_describe_the_store() -> None:
    """
    `usage` tells the size of the log and how far flush and dispatch are behind.
    """

    async def body() -> None:
        store = await open_store(MemoryDisk(), tiny(flush="ASYNC_FLUSH"))
        (append,) = await put(store, message())
        usage = store.usage
        assert usage["log_bytes"] == append.size == store.log_max
        assert usage["flush_behind_bytes"] == append.size
        assert (usage["dispatch_behind_bytes"], store.dispatch_behind_bytes) == (0, 0)
        assert store.writable is None
        assert (store.log_min, store.flushed.value) == (0, 0)
        await store.close()
        assert store.writable == "the store is closed"

    run(body)


def test_queue_files_have_rocketmqs_layout() -> None:
    """
    Consume queue files have RocketMQ's names, sizes and entries.
    """

    async def body() -> None:
        disk = MemoryDisk()
        store = await open_store(disk)
        appends = await put(store, *[message(tags="TagA") for _ in range(10)])
        await store.close()
        assert disk.list("store/consumequeue/orders/0") == [f"{n:020d}" for n in (0, 160)]
        data = disk.contents()["store/consumequeue/orders/0/00000000000000000160"]
        assert len(data) == 160
        assert ENTRY.unpack_from(data, 20) == (appends[9].physical_offset, appends[9].size, 2598919)
        assert not any(data[40:])
        assert len(disk.contents()["store/checkpoint"]) == 4096

    run(body)


def test_two_checkpoints_at_the_same_time_wait_for_each_other() -> None:
    """
    One that begins while the disk syncs for another is neither refused nor written before it.
    """

    async def body() -> None:
        disk, offload = MemoryDisk(), ThreadOffload(2)
        syncing, may_go = threading.Event(), threading.Event()
        ports = StorePorts(disk, ManualClock(), offload, InlineSyncer())
        store = await Store.open(tiny(), ports, store_host=HOST)

        def hang(name: str, path: str) -> None:
            if name == "sync_all":
                syncing.set()
                may_go.wait(20)

        await put(store, message())
        disk.fault = hang
        first = asyncio.ensure_future(store.upkeep.checkpoint())
        await asyncio.to_thread(syncing.wait, 20)
        await put(store, message())
        second = asyncio.ensure_future(store.upkeep.checkpoint())
        for _ in range(20):
            await asyncio.sleep(0.01)
        assert not second.done()
        may_go.set()
        await asyncio.gather(first, second)
        disk.fault = None

        found = load(disk, "store/checkpoint")
        assert found is not None
        assert store.upkeep.checkpointer.last.dispatched == found.dispatched == store.log_max
        await store.close()
        offload.close()

    run(body)
