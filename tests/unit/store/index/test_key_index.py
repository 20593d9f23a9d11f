"""Finding messages by key: exact keys, time windows, many files, RocketMQ's bytes."""

import struct

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from storekit import FOREVER, START_MS, ManualClock, message, open_store, put, run, tiny

from gantrymq.kernel import hash_keys
from gantrymq.protocol.record import decode_record
from gantrymq.store.index.index_file import HEADER, link, next_name
from gantrymq.testing.disk import MemoryDisk


def bodies(records: list[bytes]) -> list[bytes]:
    return [decode_record(record).body for record in records]


def test_every_key_of_a_message_finds_it_and_no_other() -> None:
    """`Aa` and `BB` have the same hash in Java, and so have longer words made of them."""

    async def body() -> None:
        store = await open_store(MemoryDisk())
        await put(
            store,
            message(body=b"1", unique="id1", keys="Aa red"),
            message(body=b"2", unique="id2", keys="BB red"),
            message("bills", body=b"3", unique="id3", keys="Aa"),
            message(body=b"4"),
        )
        for key, expected in {
            "Aa": [b"1"],
            "BB": [b"2"],
            "red": [b"1", b"2"],
            "id1": [b"1"],
            "id3": [],
            "": [],
            "Aa red": [],
        }.items():
            found = await store.reads.query("orders", key, 32, 0, FOREVER)
            assert bodies(found.records) == expected, key
        assert found.last_update_ms == START_MS
        await store.close()

    run(body)


def test_the_newest_messages_are_found_first_and_returned_in_log_order() -> None:
    """
    A query takes the newest messages of a key over several files, and returns them in log
    order.
    """

    async def body() -> None:
        store = await open_store(MemoryDisk())
        for n in range(100):
            await put(store, message(body=b"%d" % n, keys="same"))
        found = await store.reads.query("orders", "same", 5, 0, FOREVER)
        assert bodies(found.records) == [b"95", b"96", b"97", b"98", b"99"]
        assert len(store.reads._index.sealed) >= 2, "several files were searched"
        everything = await store.reads.query("orders", "same", 1000, 0, FOREVER)
        assert len(everything.records) == 100
        await store.close()

    run(body)


def test_a_window_is_exact_to_the_millisecond_at_every_file_boundary() -> None:
    """Entries know seconds only, and files roll anywhere."""

    async def body() -> None:
        clock = ManualClock()
        store = await open_store(MemoryDisk(), clock=clock)
        times = []
        for n in range(80):
            clock.ms += 137
            times.append(clock.ms)
            await put(store, message(body=b"%d" % n, keys="k"))
        for n in range(80):
            found = await store.reads.query("orders", "k", 99, times[n], times[n])
            assert bodies(found.records) == [b"%d" % n]
            found = await store.reads.query("orders", "k", 99, times[n] + 1, times[-1])
            assert len(found.records) == 79 - n
        await store.close()

    run(body)


def test_a_message_with_more_keys_than_a_file_has_room_for_is_found_by_all() -> None:
    """
    A message with more keys than an index file has entries is found by each of them.
    """

    async def body() -> None:
        store = await open_store(MemoryDisk())
        keys = [f"k{n}" for n in range(70)]
        await put(store, message(body=b"many", keys=" ".join(keys)))
        for key in keys:
            assert bodies((await store.reads.query("orders", key, 9, 0, FOREVER)).records) == [
                b"many"
            ]
        await store.close()

    run(body)


def test_files_have_rocketmqs_layout() -> None:
    """Read back with nothing but the specification's numbers."""

    async def body() -> None:
        disk, clock = MemoryDisk(), ManualClock()
        store = await open_store(disk, clock=clock)
        first = (await put(store, message(unique="one")))[0]
        clock.ms += 5500
        second = (await put(store, message(unique="one", keys="two")))[0]
        await store.close()
        (name,) = disk.list("store/index")
        data = disk.contents()[f"store/index/{name}"]
        assert len(data) == 40 + 16 * 4 + 32 * 20
        assert (len(name), name.isdigit()) == (17, True)
        slots_used = len({h % 16 for h in hash_keys([b"orders#one", b"orders#two"])})
        assert HEADER.unpack_from(data) == (
            START_MS,
            START_MS + 5500,
            first.physical_offset,
            second.physical_offset,
            slots_used,
            4,
        )
        one, two = hash_keys([b"orders#one", b"orders#two"])
        rows = [struct.unpack_from(">iqii", data, 40 + 64 + n * 20) for n in range(1, 4)]
        assert rows[0] == (one, first.physical_offset, 0, 0)
        assert rows[1] == (one, second.physical_offset, 5, 1)
        assert rows[2][:3] == (two, second.physical_offset, 5)
        assert struct.unpack_from(">i", data, 40 + two % 16 * 4) == (3,)

    run(body)


def test_the_index_can_be_switched_off_and_on_again() -> None:
    """
    Messages are found by key if the index was enabled when they were stored.
    """

    async def body() -> None:
        disk = MemoryDisk()
        for life, enabled in enumerate([True, False, True]):
            store = await open_store(disk, tiny(index_enabled=enabled))
            await put(store, message(unique=f"u{life}"))
            found = [
                len((await store.reads.query("orders", f"u{n}", 9, 0, FOREVER)).records)
                for n in range(3)
            ]
            assert found == [[1, 0, 0], [0, 0, 0], [1, 0, 1]][life]
            await store.close()

    run(body)


@given(st.lists(st.integers(0, 5), max_size=30), st.lists(st.integers(0, 5), max_size=30))
def test_linking_many_at_once_equals_linking_one_by_one(first: list[int], rest: list[int]) -> None:
    """
    Linking many entries at once sets the same slots and chains as linking one by one.
    """
    plain = [0] * 6
    expected = []
    for number, place in enumerate(first + rest, start=1):
        expected.append(plain[place])
        plain[place] = number
    slots = np.zeros(6, np.int32)
    linked = [
        *link(slots, np.array(first, np.int64), 1).tolist(),
        *link(slots, np.array(rest, np.int64), 1 + len(first)).tolist(),
    ]

    assert linked == expected
    assert slots.tolist() == plain


def test_a_file_made_in_the_same_millisecond_gets_the_next_name() -> None:
    """
    The name of a new index file is later than the last one, also when the clock went back.
    """
    name = next_name(START_MS, "")

    assert next_name(START_MS, name) > name
    assert next_name(START_MS - 99, name) > name, "also when the clock went back"
