"""One record: golden bytes, every host combination, and what the batch functions make of it."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gantrymq.base.errors import ProtocolError
from gantrymq.kernel.records import (
    STOP_BLANK,
    STOP_INVALID,
    STOP_PARTIAL,
    STOP_ZERO,
    encode_records,
    find_property,
    hash_keys,
    index_keys,
    is_torn,
    java_hash,
    select_entries,
    store_ms_of,
    walk_records,
)
from gantrymq.protocol import properties as props
from gantrymq.protocol.ids import encode_host
from gantrymq.protocol.record import (
    MAGIC_BLANK,
    body_crc,
    decode_record,
    decode_records,
    record_size,
)

GOLDEN = bytes.fromhex(
    "00000078daa320a73610a686000000000000000000000000000000050000000000001000000000000000018b"
    "cfe568000a0000020000c3500000018bcfe56801c0a8000100002a9f000000000000000000000000000000"
    "0568656c6c6f01540017554e49515f4b4559014142430254414753015461674102"
)
STORE_HOST = encode_host("192.168.0.1", 10911)
BORN_HOST = encode_host("10.0.0.2", 50000)
PROPERTIES = props.encode({"UNIQ_KEY": "ABC", "TAGS": "TagA"}).encode()
GOLDEN_ITEM = (
    b"T",
    0,
    5,
    0,
    0,
    1_700_000_000_000,
    BORN_HOST,
    0,
    0,
    b"hello",
    PROPERTIES,
)


def item(body: bytes = b"hello", properties: bytes = PROPERTIES, topic: bytes = b"T") -> tuple:
    return (*GOLDEN_ITEM[:9], body, properties) if topic == b"T" else (topic, *item(body)[1:])


def test_a_record_is_encoded_to_the_golden_bytes() -> None:
    """The vector of the wire specification, byte for byte."""
    data, sizes = encode_records([GOLDEN_ITEM], 4096, 1_700_000_000_001, STORE_HOST)

    assert data == GOLDEN
    assert sizes == [120]


def test_the_golden_bytes_decode_to_their_fields() -> None:
    """
    The golden bytes of a RocketMQ record decode to their fields.
    """
    message = decode_record(GOLDEN)

    assert (message.topic, message.body, message.queue_offset) == ("T", b"hello", 5)
    assert (message.physical_offset, message.size) == (4096, 120)
    assert message.born_host == ("10.0.0.2", 50000)
    assert message.store_host == ("192.168.0.1", 10911)
    assert (message.born_ms, message.store_ms) == (1_700_000_000_000, 1_700_000_000_001)
    assert message.properties == {"UNIQ_KEY": "ABC", "TAGS": "TagA"}
    assert message.body_crc == body_crc(b"hello") == 907060870
    assert message.offset_message_id == "C0A8000100002A9F0000000000001000"


@pytest.mark.parametrize("born", ["10.0.0.2", "2001:db8::2"])
@pytest.mark.parametrize("store", ["192.168.0.1", "2001:db8::1"])
def test_all_four_combinations_of_hosts_survive(born: str, store: str) -> None:
    """Each IPv6 host is twelve bytes longer and moves everything behind it."""
    hosts = encode_host(born, 50000), encode_host(store, 10911)
    one = (*GOLDEN_ITEM[:6], hosts[0], *GOLDEN_ITEM[7:])

    data, sizes = encode_records([one, one], 0, 99, hosts[1])
    first, second = decode_records(data)

    assert (first.born_host, first.store_host) == ((born, 50000), (store, 10911))
    assert sizes[0] == 120 + 12 * (":" in born) + 12 * (":" in store)
    assert second.physical_offset == sizes[0]
    assert record_size(1, 5, len(PROPERTIES), first.sys_flag) == sizes[0]
    assert store_ms_of(data) == 99
    assert [one[7] for one in walk_records(data, 0, 10_000, True).records] == [99, 99]


@given(
    st.lists(
        st.tuples(
            st.binary(max_size=200),
            st.dictionaries(
                st.text("abcXYZ_", min_size=1, max_size=8),
                st.text(min_size=1, max_size=20).filter(
                    lambda text: not set(text) & set("\x01\x02\0")
                ),
                max_size=4,
            ),
        ),
        max_size=6,
    ),
    st.integers(0, 1 << 40),
)
def test_what_is_encoded_is_walked_and_decoded_alike(
    messages: list[tuple[bytes, dict[str, str]]], base: int
) -> None:
    """Encoder, walker and decoder agree on every record."""
    items = [item(body, props.encode(properties).encode()) for body, properties in messages]
    data, sizes = encode_records(items, base, 7, STORE_HOST)
    walk = walk_records(data, base, len(data) + 8, True)
    decoded = list(decode_records(data))

    assert walk.end == base + len(data)
    assert [one[4] for one in walk.records] == sizes == [one.size for one in decoded]
    assert [one[3] for one in walk.records] == [one.physical_offset for one in decoded]
    assert [(one.body, one.properties) for one in decoded] == messages


@given(st.integers(0, 119), st.integers(1, 255))
def test_a_changed_byte_never_yields_another_body_or_place(at: int, change: int) -> None:
    """The checks see damage to everything they cover; what they cannot see keeps its place."""
    damaged = bytearray(GOLDEN)
    damaged[at] ^= change
    walk = walk_records(bytes(damaged), 4096, 4096, True)

    for _, _, _, position, size, *_ in walk.records:
        assert (position, size) == (4096, 120)
        assert damaged[88:93] == b"hello"


@pytest.mark.parametrize("keep", range(120))
def test_a_record_cut_at_a_sector_is_never_taken_for_a_whole_one(keep: int) -> None:
    """Zeros in place of the sector that was never written, as a torn write leaves them."""
    base = 4096 - keep
    data, _ = encode_records([GOLDEN_ITEM], base, 1, STORE_HOST)

    assert walk_records(data.ljust(200, b"\0"), base, 4096, True).records
    assert not walk_records(data[:keep].ljust(200, b"\0"), base, 4096, True).records


def test_walking_says_why_it_ended() -> None:
    """
    A walk says whether a blank record, zeros, invalid bytes or the end of the data stopped it.
    """
    data, _ = encode_records([GOLDEN_ITEM], 0, 1, STORE_HOST)
    blank = struct.pack(">ii", 1000 - len(data), MAGIC_BLANK)
    huge = struct.pack(">iI", 0x7FFFFFFF, 0xDAA320A7) + bytes(100)

    assert walk_records(data + blank, 0, 1000, True).stop == STOP_BLANK
    assert walk_records(data + bytes(80), 0, 1000, True).stop == STOP_ZERO
    assert walk_records(data + b"garbage!", 0, 1000, True).stop == STOP_INVALID
    assert walk_records(data[:50], 0, 1000, True).stop == STOP_PARTIAL
    assert walk_records(huge, 0, 1000, True).stop == STOP_INVALID
    assert walk_records(data, 1, 1000, True).stop == STOP_INVALID, "not where it says it is"


def test_a_lost_sector_behind_the_body_is_noticed() -> None:
    """No checksum covers properties, but a sector that was never written reads as zeros."""
    whole = b"NAME\x01" + b"v" * 1000

    assert not is_torn(b"T", whole, 5000)
    assert is_torn(b"T", whole[:608] + bytes(397), 5005), "the last sector begins at 4608"
    assert is_torn(b"\0", b"", 10)
    assert not is_torn(b"T", b"NAME\x01a\0b", 5000), "a zero among other bytes is no lost sector"


def test_bytes_that_are_no_record_are_refused() -> None:
    """
    Bytes that are no complete record raise ProtocolError.
    """
    for data in (b"", b"\0" * 100, GOLDEN[:-1], GOLDEN[:4] + b"\0" * 116):
        with pytest.raises(ProtocolError):
            decode_record(data)


def test_properties_survive_both_endings_and_lose_empty_entries() -> None:
    """4.9 leaves the last separator out, 5.x keeps it; empty values vanish in Java too."""
    assert props.decode(b"a\x01b\x02c\x01d") == {"a": "b", "c": "d"}
    assert props.decode(b"a\x01b\x02c\x01d\x02") == {"a": "b", "c": "d"}
    assert props.decode(b"a\x01\x02\x01b\x02junk\x02") == {}


def test_a_property_is_found_without_parsing_the_rest() -> None:
    """
    `find_property` finds a property by its whole name, and the last one of several.
    """
    raw = b"MYTAGS\x01no\x02TAGS\x01yes\x02KEYS\x01k1 k2  k3\x02UNIQ_KEY\x01id"

    assert find_property(raw, b"TAGS") == b"yes"
    assert find_property(raw, b"UNIQ_KEY") == b"id"
    assert find_property(raw, b"MISSING") is None
    assert find_property(b"TAGS\x01a\x02TAGS\x01b", b"TAGS") == b"b", "the last one counts"
    assert index_keys(raw) == [b"id", b"k1", b"k2", b"k3"]


@pytest.mark.parametrize(
    "text, code",
    [
        ("TagA", 2598919),
        ("TagB", 2598920),
        ("标签", 857175),
        ("a very long tag name", -1611694806),
        ("", 0),
        ("polygenelubricants", -(1 << 31)),
    ],
)
def test_the_hash_is_javas(text: str, code: int) -> None:
    """
    The hash of a text and of its bytes is that of Java's String.hashCode.
    """
    assert java_hash(text) == java_hash(text.encode()) == code


@given(st.lists(st.text(max_size=40), max_size=40))
def test_hashing_many_keys_equals_hashing_each(keys: list[str]) -> None:
    """Keys of one length are hashed together; the result does not show it."""
    encoded = [key.encode("utf-8", "replace") for key in keys] + [b"x" * 32] * 9
    plain = [abs(java_hash(key)) if java_hash(key) > -(1 << 31) else 0 for key in encoded]

    assert hash_keys(encoded) == plain


def entries(*rows: tuple[int, int, int]) -> bytes:
    return b"".join(struct.pack(">qiq", *row) for row in rows)


def test_adjacent_records_become_one_stretch() -> None:
    """
    Adjacent selected records become one stretch to read.
    """
    data = entries((100, 50, 1), (150, 10, 1), (500, 20, 1), (520, 20, 2))

    assert select_entries(data, None, 32, 1 << 20, 0) == ([(100, 60), (500, 40)], 4, 4, 0)
    assert select_entries(data, frozenset({2}), 32, 1 << 20, 0) == ([(520, 20)], 1, 4, 0)
    assert select_entries(data, frozenset({9}), 32, 1 << 20, 0) == ([], 0, 4, 0)
    assert select_entries(data, None, 2, 1 << 20, 0) == ([(100, 60)], 2, 2, 0)


def test_the_first_record_is_taken_whatever_its_size() -> None:
    """
    The first record is selected even if it is larger than the limit of bytes.
    """
    data = entries((0, 5000, 0), (5000, 10, 0))

    assert select_entries(data, None, 32, 100, 0).runs == [(0, 5000)]
    assert select_entries(data, None, 32, 100, 1) == ([(5000, 10)], 1, 2, 1)
    assert select_entries(entries((0, 0x7FFFFFFF, 0)), None, 32, 100, 0).gone == 1
