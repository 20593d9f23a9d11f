"""Records and queue entries: the compiled kernel gives what the readable one gives."""

import struct
import zlib
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from twins import I32, I64, NAMES, hosts, outcome, properties, pure, record_items, twin

from gantrymq.kernel import crc32
from gantrymq.kernel.records import ENTRY, FILLER_SIZE, RecordItem
from gantrymq.protocol.record import MAGIC_BLANK, MAGIC_V2

FILE_BYTES = 1 << 20
bases = st.one_of(st.just(0), st.integers(0, 1 << 50))


def both(name: str, *arguments: Any) -> Any:
    """What both kernels give; they must agree."""
    first = outcome(twin(name), *arguments)
    assert first == outcome(pure(name), *arguments)
    return first


def log_of(items: list[RecordItem], base: int, host: bytes = bytes(8)) -> bytes:
    data: bytes = both("encode_records", items, base, 1_700_000_000_000, host)[0]
    return data


@given(st.lists(record_items(), max_size=4), bases, st.integers(0, 1 << 45), hosts)
def test_records_have_the_same_bytes(
    items: list[RecordItem], base: int, store_ms: int, host: bytes
) -> None:
    """
    Both kernels encode records to the same bytes and sizes.
    """
    data, sizes = both("encode_records", items, base, store_ms, host)
    assert sum(sizes) == len(data)


@given(st.lists(record_items(), max_size=4), bases, hosts, st.booleans(), st.integers(0, 60))
def test_records_are_walked_alike_up_to_where_they_are_cut(
    items: list[RecordItem], base: int, host: bytes, check: bool, missing: int
) -> None:
    """
    Both kernels walk the same records, also when the data is cut.
    """
    data = log_of(items, base, host)
    both("walk_records", data, base, FILE_BYTES, check)
    both("walk_records", memoryview(data)[: len(data) - missing], base, FILE_BYTES, check)


def item(body: bytes, props: bytes, topic: bytes = b"orders") -> RecordItem:
    return (topic, 1, 2, 0, 0, 3, bytes(8), 0, 0, body, props)


@given(st.lists(st.binary(max_size=200), min_size=1, max_size=3), st.data())
def test_a_damaged_byte_ends_the_walk_at_the_same_record(
    bodies: list[bytes], data: st.DataObject
) -> None:
    """
    A damaged byte ends the walk of both kernels at the same record.
    """
    log = bytearray(log_of([item(body, b"TAGS\x01a\x02") for body in bodies], 4096))
    at = data.draw(st.integers(0, len(log) - 1))
    log[at] ^= data.draw(st.integers(1, 255))
    for check in (False, True):
        both("walk_records", log, 4096, FILE_BYTES, check)


@given(st.integers(0, 5), st.integers(0, 40), st.sampled_from([0, 1, -1]))
def test_the_blank_end_of_a_file_is_found_alike(count: int, rest: int, off: int) -> None:
    """
    Both kernels recognise the blank record at the end of a log file.
    """
    log = log_of([item(b"x" * 50, b"")] * count, 0)
    blank = struct.pack(">ii", 8 + rest + off, MAGIC_BLANK) + bytes(rest)
    walk = both("walk_records", log + blank, 0, len(log) + 8 + rest, True)
    assert len(walk.records) == count


@given(st.integers(0, 100), st.booleans())
def test_zeros_behind_the_last_record_end_the_walk_alike(zeros: int, check: bool) -> None:
    """
    Both kernels end the walk at zeros behind the last record.
    """
    both("walk_records", log_of([item(b"x", b"")], 0) + bytes(zeros), 0, FILE_BYTES, check)


@given(st.integers(1, 700), st.data())
def test_torn_sectors_are_seen_alike(size: int, data: st.DataObject) -> None:
    """
    Both kernels recognise a record in which sectors were not written.
    """
    base = data.draw(st.integers(0, 2000))
    log = bytearray(log_of([item(b"", b"A\x01" + b"v" * size)], base))
    start = data.draw(st.integers(0, len(log)))
    end = data.draw(st.integers(start, len(log)))
    # Lengths stay: what is wiped lies behind the head and the lengths of topic and properties.
    for at in range(max(start, 97), end):
        log[at] = 0
    both("walk_records", log, base, FILE_BYTES, True)


@given(st.integers(0, 300), properties(), st.booleans(), st.integers(-2, 2))
def test_version_2_records_are_read_alike(
    topic_size: int, props: bytes, check: bool, off: int
) -> None:
    """
    Both kernels read version 2 records, with a topic length of two bytes, alike.
    """
    body, topic = b"body", b"t" * topic_size
    size = 88 + len(body) + 2 + len(topic) + 2 + len(props)
    head = struct.pack(
        ">iiiiiqqiq8sq8siqi", size, MAGIC_V2, zlib.crc32(body) & 0x7FFFFFFF, 1, 0, 2, 0, 0, 5,
        bytes(8), 6, bytes(8), 0, 0, len(body),
    )  # fmt: skip
    record = head + body + struct.pack(">H", max(0, len(topic) + off)) + topic
    record += struct.pack(">h", len(props)) + props
    both("walk_records", record, 0, FILE_BYTES, check)


@given(st.binary(max_size=200), st.integers(0, 300), st.booleans())
def test_any_bytes_are_walked_alike(data: bytes, room: int, check: bool) -> None:
    """
    Both kernels give the same walk for any bytes.
    """
    both("walk_records", data, 0, room, check)


@given(st.one_of(st.text(max_size=20), st.binary(max_size=40), st.just("\ud800x")))
@example("polygenelubricants")
def test_javas_hash_is_the_same(text: str | bytes) -> None:
    """
    Both kernels compute Java's string hash alike.
    """
    both("java_hash", text)


@given(st.lists(st.one_of(st.binary(max_size=30), st.just(b"A1" * 16)), max_size=30))
@example([b"orders#polygenelubricants", b"polygenelubricants"] * 8)
def test_keys_hash_alike(keys: list[bytes]) -> None:
    """
    Both kernels hash keys for the index alike.
    """
    both("hash_keys", keys)


@given(properties(), st.one_of(NAMES, st.binary(max_size=5)))
def test_properties_are_found_alike(text: bytes, name: bytes) -> None:
    """
    Both kernels find a property in stored properties alike.
    """
    both("find_property", text, name)


@given(st.one_of(properties(), st.binary(max_size=60)))
def test_index_keys_are_the_same(text: bytes) -> None:
    """
    Both kernels list the same index keys of stored properties.
    """
    both("index_keys", text)


entries = st.tuples(
    st.one_of(st.integers(0, 4000), I64),
    st.one_of(st.just(100), st.just(FILLER_SIZE), st.integers(0, 5000)),
    st.one_of(st.sampled_from([0, 1, 2]), I64),
)
chains = st.lists(st.sampled_from([100, 200]), max_size=20)


@given(
    st.lists(entries, max_size=20),
    st.one_of(st.none(), st.frozensets(st.sampled_from([0, 1, 2]), max_size=2)),
    st.integers(1, 10), st.integers(0, 3000), st.integers(0, 2000),
)  # fmt: skip
def test_entries_are_selected_alike(
    rows: list[tuple[int, int, int]], codes: frozenset[int] | None, count_max: int,
    bytes_max: int, log_min: int,
) -> None:  # fmt: skip
    """
    Both kernels select the same queue entries by tags, count, bytes and log start.
    """
    data = b"".join(ENTRY.pack(*row) for row in rows)
    both("select_entries", data, codes, count_max, bytes_max, log_min)


@given(chains, st.integers(1, 30), st.integers(0, 5000))
def test_neighbours_become_one_run_alike(sizes: list[int], count_max: int, bytes_max: int) -> None:
    """
    Both kernels join adjacent records to one run.
    """
    at, data = 512, bytearray()
    for size in sizes:
        data += ENTRY.pack(at, size, 0)
        at += size
    chosen = both("select_entries", data, None, count_max, bytes_max, 0)
    assert len(chosen.runs) == bool(sizes)


@given(st.binary(max_size=45))
def test_half_an_entry_is_refused_alike(data: bytes) -> None:
    """
    Both kernels refuse data that ends within a queue entry.
    """
    both("select_entries", data, None, 10, 10_000, 0)


@given(I32, st.one_of(st.just(b"t" * 256), st.just(b"t")), st.integers(65530, 65540))
def test_what_does_not_fit_a_record_is_refused_by_both(
    queue_id: int, topic: bytes, props: int
) -> None:
    """
    Both kernels refuse a record whose fields do not fit, with the same error.
    """
    wide: RecordItem = (topic, queue_id, 0, 0, 0, 0, bytes(8), 0, 0, b"", b"p" * props)
    first = outcome(twin("encode_records"), [wide], 0, 0, bytes(8))
    second = outcome(pure("encode_records"), [wide], 0, 0, bytes(8))
    assert first == second


@given(st.binary(max_size=5000))
def test_the_checksum_is_zlibs(data: bytes) -> None:
    """
    The kernel's checksum is that of zlib.
    """
    assert crc32(data) == zlib.crc32(data)
