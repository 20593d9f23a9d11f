"""Units beside the queues: bitmaps that spare reading, never decide wrongly, and come and go."""

from random import Random
from typing import Any

import pytest
from storekit import HOST, START_MS, ManualClock, message, pull, put, read_queue, run, tiny

from gantrymq.base.disk import delete_tree
from gantrymq.base.offload import InlineOffload
from gantrymq.kernel import ENTRY, java_hash
from gantrymq.protocol import properties as props
from gantrymq.protocol.record import StoredMessage, decode_records
from gantrymq.store.append import Append, ReadResult, ReadStatus
from gantrymq.store.engine import Store
from gantrymq.store.log.segment import OpenFiles
from gantrymq.store.log.syncer import InlineSyncer
from gantrymq.store.queues.queueext import ADDRESS_ZERO, Mark, QueueExt
from gantrymq.store.reading.entry_filter import EntryFilter
from gantrymq.store.shared import StorePorts
from gantrymq.testing.disk import MemoryDisk

CONFIG = tiny(ext_file_bytes=512)
SMALL_BITS = Mark(mask=1, size=14, born_ms=0, born_position=0)
EXT = "store/consumequeue_ext"


def marker(topic: bytes, properties: bytes) -> bytes | None:
    """Bit 0 says that the price is small; messages without a price get no bitmap."""
    found = props.decode(properties).get("price")
    if found is None or topic != b"orders":
        return None
    return int(found == "small").to_bytes(14, "little")


async def open_marked(disk: MemoryDisk, clock: ManualClock | None = None) -> Store:
    ports = StorePorts(disk, clock or ManualClock(), InlineOffload(), InlineSyncer())
    return await Store.open(CONFIG, ports, store_host=HOST, marker=marker)


def priced(number: int, price: str | None, **changes: Any) -> Append:
    given = {"TAGS": f"tag{number % 3}"} | ({"price": price} if price else {})
    encoded = props.encode(given).encode()
    return message(body=b"%d" % number, properties=encoded, **changes)


def small(raw: bytes) -> bool:
    return props.decode(raw).get("price") == "small"


async def sift(store: Store, asked: list[bytes], mark: Mark | None = SMALL_BITS) -> ReadResult:
    def matches(raw: bytes) -> bool:
        asked.append(raw)
        return small(raw)

    return await pull(store, "orders", 0, 0, entry_filter=EntryFilter(matches, 800, mark))


def bodies(pulled: ReadResult) -> list[bytes]:
    return [found.body for found in decode_records(pulled.body)]


def check(store: Store) -> int:
    """Every unit that an entry leads to tells of that entry's message; returns how many do."""
    queue = store.queues.get("orders", 0)
    if queue is None or queue.ext is None:
        return 0
    offsets = range(queue.min_offset, queue.max_offset)
    entries = b"".join(queue.read(offset, 1) for offset in offsets)
    units, seen = queue.ext.units(entries), 0
    for position, size, code in ENTRY.iter_unpack(entries):
        if code in units:
            stored: StoredMessage = next(iter(decode_records(store._log.read(size, position))))
            expected = (java_hash(stored.properties["TAGS"]), stored.store_ms)
            assert expected == units[code][:2]
            assert small(props.encode(stored.properties).encode()) == bool(units[code].bitmap[0])
            seen += 1
    return seen


def test_bits_that_say_no_spare_reading() -> None:
    """
    Only what the bitmap does not rule out is read and asked.
    """

    async def body() -> None:
        store = await open_marked(MemoryDisk())
        for number in range(20):
            await put(store, priced(number, "small" if number % 5 == 0 else "large"))
        asked: list[bytes] = []
        found = await sift(store, asked)

        assert ([b"0", b"5", b"10", b"15"], 20, 4) == (bodies(found), found.next_offset, len(asked))
        await store.close()

    run(body)


@pytest.mark.parametrize(
    "mark",
    [
        None,
        SMALL_BITS._replace(born_ms=START_MS),
        SMALL_BITS._replace(born_position=1 << 40),
        SMALL_BITS._replace(size=16),
    ],
)
def test_bits_of_another_time_or_kind_decide_nothing(mark: Mark | None) -> None:
    """
    A condition that came later, by time or by place, and a bitmap of another size.
    """

    async def body() -> None:
        store = await open_marked(MemoryDisk())
        for number in range(6):
            await put(store, priced(number, "small" if number % 2 else "large"))
        asked: list[bytes] = []
        found = await sift(store, asked, mark)

        assert (3, 6) == (found.count, len(asked))
        await store.close()

    run(body)


def test_nothing_matches_when_all_bits_say_no() -> None:
    """
    The reader is sent behind all of them without a record being read.
    """

    async def body() -> None:
        store = await open_marked(MemoryDisk())
        for number in range(70):
            await put(store, priced(number, "large"))
        asked: list[bytes] = []
        found = await sift(store, asked)

        assert (ReadStatus.NO_MATCHED_MESSAGE, 70, []) == (found.status, found.next_offset, asked)
        await store.close()

    run(body)


def test_tags_are_found_in_the_units() -> None:
    """
    The address has taken the hash's place in the entry; messages without a unit keep theirs.
    """

    async def body() -> None:
        store = await open_marked(MemoryDisk())
        for number in range(9):
            await put(store, priced(number, "small" if number % 2 else None))
        wanted = frozenset({java_hash("tag1")})
        found = await pull(store, "orders", 0, 0, tag_codes=wanted)

        assert [b"1", b"4", b"7"] == bodies(found)
        await store.close()

    run(body)


def test_without_its_units_a_queue_still_gives_every_message() -> None:
    """
    Somebody removed the directory: tags let the message through, the client looks at the text.
    """

    async def body() -> None:
        disk = MemoryDisk()
        store = await open_marked(disk)
        for number in range(9):
            await put(store, priced(number, "small"))
        await store.close()
        for path in [path for path in disk._names.files if path.startswith(EXT)]:
            disk.delete(path)
        store = await open_marked(disk)
        queue = store.queues.get("orders", 0)
        assert queue is not None
        by_tag = await pull(store, "orders", 0, 0, tag_codes=frozenset({java_hash("tag1")}))
        asked: list[bytes] = []
        by_condition = await sift(store, asked)

        assert {b"1", b"4", b"7"} <= set(bodies(by_tag))
        assert (9, 9) == (by_condition.count, len(asked))
        await store.close()

    run(body)


def test_units_that_cannot_be_read_change_no_result() -> None:
    """
    The disk refuses to read them: the records themselves are asked.
    """

    async def body() -> None:
        disk = MemoryDisk()
        store = await open_marked(disk)
        for number in range(9):
            await put(store, priced(number, "small" if number % 2 else "large"))
        await store.close()
        store = await open_marked(disk)
        disk.fault = lambda name, path: (
            OSError(5, name) if name == "pread" and EXT in path else None
        )
        asked: list[bytes] = []
        by_condition = await sift(store, asked)

        assert [b"1", b"3", b"5", b"7"] == bodies(by_condition)
        assert 9 == len(asked)
        disk.fault = None
        await store.close()

    run(body)


@pytest.mark.parametrize("operation", ["pwrite", "create", "truncate"])
def test_units_that_cannot_be_written_wait_with_their_entries(operation: str) -> None:
    """
    Sends are refused until the disk obeys; no entry names a unit that is not there.
    """

    async def body() -> None:
        disk = MemoryDisk()
        store = await open_marked(disk)
        disk.fault = lambda name, path: (
            OSError(28, "full", path) if name == operation and EXT in path else None
        )
        for number in range(9):
            await put(store, priced(number, "small"))
        store.upkeep.request_checkpoint()
        await store.upkeep.write_derived()
        assert "cannot be written" in str(store.writable)
        disk.fault = None
        await store.upkeep.write_derived()
        assert store.writable is None
        await store.close()
        store = await open_marked(disk)
        assert 9 == check(store)
        await store.close()

    run(body)


def test_cold_units_are_not_waited_for() -> None:
    """
    They are an aid: reading the records costs less than stopping everybody.
    """

    async def body() -> None:
        disk = MemoryDisk()
        store = await open_marked(disk)
        for number in range(6):
            await put(store, priced(number, "small" if number % 2 else "large"))
        await store.close()
        store = await open_marked(disk)
        disk.is_cold = lambda path, at: EXT in path
        asked: list[bytes] = []
        found = await sift(store, asked)

        assert (3, 6) == (found.count, len(asked))
        await store.close()

    run(body)


def test_a_restart_goes_on_behind_the_last_unit() -> None:
    """
    Old units still tell, new ones follow them.
    """

    async def body() -> None:
        disk = MemoryDisk()
        for life in range(4):
            store = await open_marked(disk)
            for number in range(10):
                await put(store, priced(number, "small" if number == life else "large"))
            assert 10 * (life + 1) == check(store)
            await store.close()

    run(body)


@pytest.mark.parametrize("seed", range(6))
def test_a_crash_never_leaves_a_unit_that_tells_of_another_message(seed: int) -> None:
    """
    Killed or cut from power at a random moment, again and again: whatever the entries lead to
    tells of their own message, and the queue is complete.
    """

    async def body() -> None:
        rng = Random(seed)
        disk, clock, stored, seen = MemoryDisk(), ManualClock(), 0, 0
        for _ in range(12):
            store = await open_marked(disk, clock)
            assert stored == len(await read_queue(store, "orders", 0))
            seen += check(store)
            for _ in range(rng.randint(1, 25)):
                price = rng.choice(["small", "large", None])
                await put(store, priced(stored, price))
                stored += 1
                clock.ms += 1
                if rng.random() < 0.2:
                    await store.queues.write_tails()
                if rng.random() < 0.1:
                    await store.upkeep.checkpoint()
            check(store)
            store.upkeep.stop()  # the process ends without a word
            disk = disk.image(rng) if rng.random() < 0.6 else disk.after_kill()
        assert seen > 100

    run(body)


def test_a_rebuilt_queue_has_its_units_again() -> None:
    """
    The queues were removed so that they be built anew: the messages are asked again.
    """

    async def body() -> None:
        disk = MemoryDisk()
        store = await open_marked(disk)
        for number in range(12):
            await put(store, priced(number, "small"))
        await store.close()
        delete_tree(disk, "store/consumequeue")
        store = await open_marked(disk)

        assert 12 == check(store)
        await store.close()

    run(body)


def test_files_go_with_the_messages_they_tell_of() -> None:
    """
    Retention drops what lies before the first entry.
    """

    async def body() -> None:
        disk, clock = MemoryDisk(), ManualClock()
        store = await open_marked(disk, clock)
        for number in range(150):
            await put(store, priced(number, "small", wait=False))
        await store.upkeep.checkpoint()
        before = len(disk.list(f"{EXT}/orders/0"))
        clock.ms += 100 * 3_600_000
        await store.upkeep.delete_expired()

        assert len(disk.list(f"{EXT}/orders/0")) < before
        assert store.queues.max_offset("orders", 0) - store.queues.min_offset("orders", 0) == check(
            store
        )
        await store.close()

    run(body)


def test_a_deleted_topic_takes_its_units_along() -> None:
    """
    A topic of the same name begins anew.
    """

    async def body() -> None:
        disk = MemoryDisk()
        store = await open_marked(disk)
        for number in range(20):
            await put(store, priced(number, "small"))
        await store.upkeep.checkpoint()
        store.delete_topic("orders")
        assert [] == [path for path in disk._names.files if path.startswith(EXT)]
        await put(store, priced(0, "large"))

        assert 1 == check(store)
        await store.close()

    run(body)


def test_units_are_laid_out_as_in_rocketmq() -> None:
    """
    Size, tag code, store time, size of the bitmap, bitmap; addresses count from the smallest long;
    a file ends with -1 where the next unit does not fit. RocketMQ goes by the unit's size, and so
    passes over the log offset behind the bitmap.
    """
    disk = MemoryDisk()
    ext = QueueExt(OpenFiles(disk, 8), "ext", 64)
    addresses = [ext.add(5, -7, 1_000 + number, bytes([number] * 14)) for number in range(2)]
    ext.write_tail()

    first = "002a" + "fffffffffffffff9" + "00000000000003e8" + "000e" + "00" * 14 + "00" * 7 + "05"
    assert [0, 64] == [address - ADDRESS_ZERO for address in addresses]
    file = disk.open_read("ext/00000000000000000000")
    assert first + "ffff" + "00" * 20 == file.pread(64, 0).hex()
