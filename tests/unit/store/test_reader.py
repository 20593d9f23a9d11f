"""Reading a store from outside gives what a broker would give."""

from pathlib import Path

import pytest
from storekit import ManualClock, message, open_store, put, read_queue, run, tiny

from gantrymq.base.disk import OsDisk
from gantrymq.store.errors import StoreError
from gantrymq.store.reader import StoreReader
from gantrymq.testing.disk import MemoryDisk


async def fill(store: object, count: int = 50) -> None:
    for n in range(count):
        await put(store, message("orders", n % 3, b"%d" % n * 40, unique=f"u{n}"))
    await put(store, message("bills", 0, b"bill"))


@pytest.mark.parametrize("running", [False, True])
@pytest.mark.parametrize("java", [False, True])
def test_a_reader_sees_what_the_store_holds(running: bool, java: bool) -> None:
    """Stopped or running, and when no checkpoint of ours tells the file sizes."""

    async def body() -> None:
        disk = MemoryDisk()
        store = await open_store(disk)
        await fill(store)
        expected = {q: await read_queue(store, "orders", q) for q in range(3)}
        await (store._keep_derived() if running else store.close())
        if java:
            disk.open("store/checkpoint").pwrite(bytes(4096), 0)
        before = disk.contents()
        reader = StoreReader("store", disk=disk)
        assert reader.topics() == ["bills", "orders"]
        assert reader.queues("orders") == [0, 1, 2]
        for queue_id in range(3):
            end = len(expected[queue_id])
            assert reader.range("orders", queue_id) == ("orders", queue_id, 0, end)
            assert list(reader.messages("orders", queue_id)) == expected[queue_id]
            some = reader.records("orders", queue_id, 3, 9)
            assert [one.queue_offset for one in some] == list(range(3, 9))
            assert list(reader.messages("orders", queue_id, 5, 999)) == expected[queue_id][5:]
        assert reader.range("orders", 9)[2:] == (0, 0)
        assert list(reader.records("nothing", 0)) == []
        assert disk.contents() == before, "nothing was changed"

    run(body)


def test_a_reader_begins_where_the_log_does() -> None:
    """
    A reader starts at the first offset whose record is still in the log.
    """

    async def body() -> None:
        disk, clock = MemoryDisk(), ManualClock()
        store = await open_store(disk, clock=clock)
        for n in range(40):
            await put(store, message(body=b"%d" % n + b"x" * 900))
        clock.ms += 100 * 3_600_000
        await put(store, *[message(body=b"new" * 300) for _ in range(10)])
        await store.checkpoint()
        await store.delete_expired()
        await store._keep_derived()
        reader = StoreReader("store", disk=disk)
        expected = await read_queue(store, "orders", 0)
        assert reader.range("orders", 0)[2:] == (expected[0].queue_offset, 50)
        assert list(reader.messages("orders", 0)) == expected
        await store.close()

    run(body)


def test_a_reader_stops_at_a_record_that_is_not_there() -> None:
    """A power cut left the entry and took the record, and no broker has repaired it yet."""

    async def body() -> None:
        disk = MemoryDisk()
        store = await open_store(disk)
        appends = await put(store, *[message(body=b"%d" % n) for n in range(5)])
        await store.close()
        log = disk.open("store/commitlog/00000000000000000000")
        log.pwrite(bytes(9), appends[3].physical_offset)
        reader = StoreReader("store", disk=disk)
        assert [one.body for one in reader.messages("orders", 0)] == [b"0", b"1", b"2"]

    run(body)


def test_a_reader_follows_a_store_that_grows_into_new_files(tmp_path: Path) -> None:
    """
    After `refresh` a reader sees messages in files that were created since.
    """

    async def body() -> None:
        directory = str(tmp_path / "store")
        store = await open_store(OsDisk(), tiny(directory))
        await fill(store, 3)
        await store._keep_derived()
        reader = StoreReader(directory)
        assert len(list(reader.records("orders", 0))) == 1
        await fill(store, 300)
        await store._keep_derived()
        reader.refresh()
        assert len(list(reader.records("orders", 0))) == 101
        await store.close()

    run(body)


def test_a_directory_without_a_log_is_no_store() -> None:
    """
    A directory without a commit log raises StoreError.
    """
    with pytest.raises(StoreError, match="no commit log"):
        StoreReader("nowhere", disk=MemoryDisk())
