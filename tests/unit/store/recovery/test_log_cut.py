"""A cut that an operator orders: log, queues and index end there, and nothing is destroyed."""

from random import Random

import pytest
from storekit import FOREVER, ManualClock, message, open_store, put, read_log, read_queue, run, tiny

from gantrymq.base.offload import InlineOffload
from gantrymq.store.engine import Store
from gantrymq.store.errors import StoreError
from gantrymq.store.recovery.log_cut import OrderedCut, order_cut
from gantrymq.testing.disk import MemoryDisk

pytestmark = pytest.mark.usefixtures("quiet")

COUNT = 60
ASYNC = tiny(flush="ASYNC_FLUSH")


async def filled(disk: MemoryDisk) -> tuple[Store, list[int]]:
    """A store with messages in two queues over several files; where each record begins."""
    store = await open_store(disk, ASYNC)
    starts = []
    for n in range(COUNT):
        one = message("orders", n % 2, b"%d" % n + b"x" * 500, unique=f"u{n}")
        await put(store, one)
        starts.append(one.physical_offset)
    return store, starts


async def ordered(disk: MemoryDisk, at: int) -> OrderedCut:
    return await order_cut("store", at, disk=disk, offload=InlineOffload())


async def check_first(store: Store, count: int) -> None:
    """The store has the first messages in log, queues and index, and no others."""
    assert count == len(list(read_log(store)))
    for queue_id in (0, 1):
        found = await read_queue(store, "orders", queue_id)
        numbers = [int(one.body.partition(b"x")[0]) for one in found]
        assert numbers == list(range(queue_id, count, 2))
        assert [one.queue_offset for one in found] == list(range(len(found)))
    for n in range(COUNT):
        records = (await store.reads.query("orders", f"u{n}", 9, 0, FOREVER)).records
        assert len(records) == (n < count)


@pytest.mark.parametrize("killed", [False, True], ids=["stopped", "killed"])
def test_any_record_can_be_the_last_one(killed: bool) -> None:
    """Wherever the cut is, the store is as if nothing had come behind it, and takes messages."""

    async def work() -> None:
        for kept in range(1, COUNT, 3):
            disk = MemoryDisk()
            store, starts = await filled(disk)
            end = store.log_max
            if killed:
                await store.upkeep.checkpoint()
                store.upkeep.stop()
                disk = disk.after_kill()
            else:
                await store.close()
            cut = await ordered(disk, starts[kept])
            assert (end - starts[kept], COUNT - kept) == (cut.bytes, cut.messages)
            store = await open_store(disk, ASYNC)
            assert starts[kept] == store.log_max
            await check_first(store, kept)
            await put(store, message("orders", kept % 2, b"%d" % kept, unique=f"u{kept}"))
            await check_first(store, kept + 1)
            await store.close()
            store = await open_store(disk, ASYNC)
            await check_first(store, kept + 1)
            await store.close()

    run(work)


def test_what_is_cut_off_is_a_store_of_its_own() -> None:
    """A broker that is started on the saved folder has every message behind the cut."""

    async def work() -> None:
        disk = MemoryDisk()
        store, starts = await filled(disk)
        await store.close()
        cut = await ordered(disk, starts[20])
        saved = await open_store(disk, tiny(cut.saved))
        bodies = [int(one.body.partition(b"x")[0]) for one in read_log(saved)]
        assert list(range(20, COUNT)) == [n for n in bodies if n >= 20]
        await saved.close()

    run(work)


def test_a_power_cut_at_any_moment_leaves_all_or_the_cut() -> None:
    """During the order and during the start that cuts: whatever is lost was saved before."""

    async def work() -> None:
        disk, tear = MemoryDisk(), Random(5)
        store, starts = await filled(disk)
        await store.close()
        images: list[MemoryDisk] = []
        disk.after_each = lambda: images.append(disk.image(tear))
        cut = await ordered(disk, starts[33])
        store = await open_store(disk, ASYNC)
        disk.after_each = None
        await store.close()
        outcomes = set()
        for image in images:
            store = await open_store(image, ASYNC)
            count = len(list(read_log(store)))
            outcomes.add(count)
            await check_first(store, count)
            await store.close()
            if count < COUNT:
                saved = await open_store(image, tiny(cut.saved))
                assert f"u{COUNT - 1}" in {one.properties["UNIQ_KEY"] for one in read_log(saved)}
                await saved.close()
        assert {33, COUNT} == outcomes

    run(work)


def test_an_order_can_be_repeated() -> None:
    """The second one finds the mark of the first."""

    async def work() -> None:
        disk = MemoryDisk()
        store, starts = await filled(disk)
        await store.close()
        first = await ordered(disk, starts[33])
        assert first == await ordered(disk, starts[33])
        store = await open_store(disk, ASYNC)
        await check_first(store, 33)
        await store.close()
        assert "cut_at" not in disk.list("store")

    run(work)


def test_a_second_cut_at_one_place_keeps_the_first() -> None:
    """What was saved before is never replaced."""

    async def work() -> None:
        disk = MemoryDisk()
        store, starts = await filled(disk)
        await store.close()
        await ordered(disk, starts[33])
        store = await open_store(disk, ASYNC)
        await put(store, message("orders", 1, b"33", unique="u33"))
        await store.close()
        with pytest.raises(StoreError, match="has an earlier cut at the same place"):
            await ordered(disk, starts[33])

    run(work)


@pytest.mark.parametrize(
    ("shift", "words"),
    [(5, "the nearest end before it is"), (1 << 30, "lies between 0 and")],
)
def test_only_the_end_of_a_record_can_be_one(shift: int, words: str) -> None:
    """Anything else is refused, and nothing is changed."""

    async def work() -> None:
        disk = MemoryDisk()
        store, starts = await filled(disk)
        await store.close()
        before = disk.contents()
        with pytest.raises(StoreError, match=words):
            await ordered(disk, starts[33] + shift)
        assert before == disk.contents()

    run(work)


def test_the_end_itself_changes_nothing() -> None:
    """There is nothing to save and nothing to cut."""

    async def work() -> None:
        disk = MemoryDisk()
        store, _ = await filled(disk)
        end = store.log_max
        await store.close()
        assert OrderedCut(end, 0, 0, "") == await ordered(disk, end)
        assert "cut_at" not in disk.list("store")

    run(work)


def test_the_log_may_lie_elsewhere() -> None:
    """storePathCommitLog: the log is found and cut there, what is saved lies beside the store."""

    async def work() -> None:
        disk, config = MemoryDisk(), tiny(flush="ASYNC_FLUSH", log_directory="fast/log")
        store = await open_store(disk, config)
        (_, last) = [(await put(store, message(body=body)))[0] for body in (b"a", b"b")]
        await store.close()
        at, offload = last.physical_offset, InlineOffload()
        cut = await order_cut("store", at, disk=disk, offload=offload, log_directory="fast/log")
        assert (1, True) == (cut.messages, cut.saved.startswith("store/cut/"))
        store = await open_store(disk, config)
        assert [b"a"] == [record.body for record in read_log(store)]
        await store.close()

    run(work)


def test_a_running_broker_is_not_cut() -> None:
    """It has to be stopped first."""

    async def work() -> None:
        disk = MemoryDisk()
        store, starts = await filled(disk)
        with pytest.raises(StoreError, match="stop it first"):
            await ordered(disk, starts[33])
        await store.close()

    run(work)


def test_a_folder_without_a_store_is_refused() -> None:
    """Without our checkpoint nobody knows the size of its files."""

    async def work() -> None:
        disk = MemoryDisk()
        disk.make_dirs("store/commitlog")
        with pytest.raises(StoreError, match="no store that a broker of GantryMQ has opened"):
            await ordered(disk, 0)

    run(work)


def test_times_of_a_store_go_on_behind_the_cut() -> None:
    """A clock that went back does not give a new message an older time than a lost one."""

    async def work() -> None:
        disk, clock = MemoryDisk(), ManualClock()
        store, starts = await filled(disk)
        await store.close()
        await ordered(disk, starts[33])
        clock.ms -= 60_000
        store = await open_store(disk, ASYNC, clock=clock)
        (one,) = await put(store, message("orders", 1, b"33", unique="u33"))
        assert one.physical_offset == starts[33]
        times = [record.store_ms for record in read_log(store)]
        assert times == sorted(times)
        await store.close()

    run(work)


def test_the_log_of_a_raft_group_is_not_cut() -> None:
    """What its members agreed on is not for one of them to take back."""

    async def body() -> None:
        disk = MemoryDisk()
        store, starts = await filled(disk)
        await store.close()
        disk.make_dirs("store/raft")
        with pytest.raises(StoreError, match="its leader decides what is cut"):
            await ordered(disk, starts[10])

    run(body)
