"""Hot loops over records and queue entries, batch by batch, on plain buffers.

This is the readable twin of the compiled module; it uses no file, no clock and no object of the
store.
"""

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol, cast
from zlib import crc32

from gantrymq.base.layout import I32, I64, byte_layout
from gantrymq.protocol.record import (
    AT_SYS_FLAG,
    BLANK_BYTES,
    BORN_V6,
    HEAD,
    LAYOUTS,
    MAGIC_BLANK,
    MAGIC_V1,
    MAGIC_V2,
    RECORD_BYTES_MIN,
    STORE_V6,
    version_of,
)

Buffer = bytes | bytearray | memoryview

RecordItem = tuple[bytes, int, int, int, int, int, bytes, int, int, bytes, bytes]
"""Topic, queue id, queue offset, flag, sys flag, born ms, born host, reconsume times, prepared
offset, body, properties."""

Walked = tuple[bytes, int, int, int, int, int, int, int, bytes]
"""Topic, queue id, queue offset, log offset, size, sys flag, tag code, store ms, properties."""


class QueueEntry(NamedTuple):
    """One entry of a consume queue."""

    position: I64
    """The log offset of the record."""
    size: I32
    """Bytes of the record."""
    tag_code: I64
    """Java's hash of the tag, 0 for none; or the address of a unit of `consumequeue_ext`."""


ENTRY: Final = byte_layout(QueueEntry)

FILLER_SIZE = 0x7FFFFFFF
"""The size in a queue entry that stands for no record."""

SECTOR = 512
"""What a disk writes whole or not at all."""

_HOST_BITS = BORN_V6 | STORE_V6
_PREFIX = struct.Struct(">ii")
_I32 = struct.Struct(">i")
_I16 = struct.Struct(">h")
_U16 = [number.to_bytes(2, "big") for number in range(1024)]
_TAGS = b"TAGS\x01"
_NEXT_TAGS = b"\x02TAGS\x01"


class ItemRun(Protocol):
    """Several records in one item, such as a `SendRun`."""

    def record_items(self) -> list[RecordItem]: ...

    def lie_at(self, position: int) -> None: ...


def encode_records(
    items: Sequence[RecordItem | ItemRun], base: int, store_ms: int, store_host: bytes
) -> tuple[bytes, list[int]]:
    """Lay records back to back from log offset `base`; return the bytes and each item's size."""
    if all(isinstance(item, tuple) for item in items):
        return _encode_records(cast(Sequence[RecordItem], items), base, store_ms, store_host)
    data, sizes = b"", []
    for item in items:
        at = base + len(data)
        if not isinstance(item, tuple):
            item.lie_at(at)
        single = [item] if isinstance(item, tuple) else item.record_items()
        encoded, _ = _encode_records(single, at, store_ms, store_host)
        sizes.append(len(encoded))
        data += encoded
    return data, sizes


def _encode_records(
    items: Sequence[RecordItem], base: int, store_ms: int, store_host: bytes
) -> tuple[bytes, list[int]]:
    parts: list[bytes] = []
    sizes: list[int] = []
    store_bit = STORE_V6 if len(store_host) == 20 else 0
    at = base
    for item in items:
        topic, queue_id, queue_offset, flag, sys_flag, born_ms, born_host = item[:7]
        reconsume_times, prepared_offset, body, properties = item[7:]
        host_bits = store_bit | (BORN_V6 if len(born_host) == 20 else 0)
        layout = LAYOUTS[host_bits]
        count = len(properties)
        magic, width = version_of(topic)
        size = layout.size + len(body) + width + len(topic) + 2 + count
        head = layout.pack(
            size,
            magic,
            crc32(body) & 0x7FFFFFFF,
            queue_id,
            flag,
            queue_offset,
            at,
            sys_flag & ~_HOST_BITS | host_bits,
            born_ms,
            born_host,
            store_ms,
            store_host,
            reconsume_times,
            prepared_offset,
            len(body),
        )
        length = _U16[count] if count < 1024 else count.to_bytes(2, "big")
        parts += (head, body, len(topic).to_bytes(width, "big"), topic, length, properties)
        sizes.append(size)
        at += size
    return b"".join(parts), sizes


class Walk(NamedTuple):
    """What `walk_records` found."""

    records: list[Walked]
    end: int
    """Log offset behind the last whole record."""
    stop: int
    """Why it ended: one of the four reasons below."""


STOP_PARTIAL = 0
"""The buffer ends, possibly inside a record; more bytes may tell."""
STOP_BLANK = 1
"""The rest of this log file is unused; the next record is in the next file."""
STOP_INVALID = 2
"""What stands here is not a record: the end of valid data."""
STOP_ZERO = 3
"""Nothing was ever written here: the usual end of valid data."""


def walk_records(buffer: Buffer, base: int, room: int, check: bool) -> Walk:
    """List the records that lie back to back in `buffer`, whose first byte is log offset `base`.

    `room` is how many bytes the log file has left from `base` on: a record larger than that is
    none. With `check` each record's checksum is verified and traces of a torn write are looked
    for, which only recovery needs.
    """
    view = memoryview(buffer)
    length = len(view)
    records: list[Walked] = []
    at = 0
    while True:
        if length - at < BLANK_BYTES:
            return Walk(records, base + at, STOP_PARTIAL)
        size, magic = _PREFIX.unpack_from(view, at)
        if magic == MAGIC_BLANK and size == room - at:
            return Walk(records, base + at, STOP_BLANK)
        if magic not in (MAGIC_V1, MAGIC_V2) or not RECORD_BYTES_MIN <= size <= room - at - 8:
            return Walk(records, base + at, STOP_INVALID if size or magic else STOP_ZERO)
        if size > length - at:
            return Walk(records, base + at, STOP_PARTIAL)
        record = _walk_one(view, at, base + at, magic, size, check)
        if record is None:
            return Walk(records, base + at, STOP_INVALID)
        records.append(record)
        at += size


def _walk_one(
    view: memoryview, at: int, position: int, magic: int, size: int, check: bool
) -> Walked | None:
    """The record at `at`, or None if its parts contradict each other."""
    layout = HEAD
    head = layout.unpack_from(view, at)
    sys_flag = head[7]
    if sys_flag & _HOST_BITS:
        layout = LAYOUTS[sys_flag & _HOST_BITS]
        if layout.size + 3 > size:
            return None
        head = layout.unpack_from(view, at)
    body_at = at + layout.size
    body_size = head[14]
    end = at + size
    if head[6] != position or not 0 <= body_size <= end - body_at - 3:
        return None
    topic_at = body_at + body_size + 1
    topic_size = view[topic_at - 1]
    if magic == MAGIC_V2:
        topic_size = topic_size << 8 | view[topic_at]
        topic_at += 1
    topic_end = topic_at + topic_size
    if topic_size == 0 or topic_end + 2 > end:
        return None
    if topic_end + 2 + _I16.unpack_from(view, topic_end)[0] != end:
        return None
    topic = bytes(view[topic_at:topic_end])
    properties = bytes(view[topic_end + 2 : end])
    if check:
        crc = crc32(view[body_at : body_at + body_size]) & 0x7FFFFFFF
        if (body_size and crc != head[2]) or is_torn(topic, properties, position + size):
            return None
    found = properties.rfind(_NEXT_TAGS)
    if found >= 0:
        tag_code = tag_code_of(properties[found + 6 :].partition(b"\x02")[0])
    elif properties.startswith(_TAGS):
        tag_code = tag_code_of(properties[5:].partition(b"\x02")[0])
    else:
        tag_code = 0
    return (
        topic,
        head[3],
        head[5],
        position,
        size,
        sys_flag,
        tag_code,
        head[10],
        properties,
    )


def is_torn(topic: bytes, properties: bytes, end: int) -> bool:
    """Whether a record that ends at log offset `end` lost a sector behind its body.

    No checksum covers topic and properties. But a sector that never reached the disk reads as
    zeros, because log files are zeroed before they are used, so a torn record shows a sector
    whose share of these bytes is all zero.
    """
    if 0 in topic:
        return True
    if 0 not in properties:
        return False
    start = end - len(properties)
    while start < end:
        stop = min(end, start - start % SECTOR + SECTOR)
        if not any(properties[len(properties) - (end - start) : len(properties) - (end - stop)]):
            return True
        start = stop
    return False


def store_ms_of(head: Buffer) -> int:
    """When a record was stored, given at least its first 76 bytes."""
    (sys_flag,) = _I32.unpack_from(head, AT_SYS_FLAG)
    at = 68 if sys_flag & BORN_V6 else 56
    return int.from_bytes(head[at : at + 8], "big", signed=True)


def find_property(properties: bytes, name: bytes) -> bytes | None:
    """The value of a property in its encoded string; the last one counts, as in Java."""
    found = properties.rfind(b"\x02" + name + b"\x01")
    if found >= 0:
        value = properties[found + len(name) + 2 :]
    elif properties.startswith(name + b"\x01"):
        value = properties[len(name) + 1 :]
    else:
        return None
    return value.partition(b"\x02")[0] or None


def index_keys(properties: bytes) -> list[bytes]:
    """The keys under which a message is indexed: its unique id, then each of its KEYS."""
    unique = find_property(properties, b"UNIQ_KEY")
    keys = find_property(properties, b"KEYS")
    found = [] if unique is None else [unique]
    if keys is not None:
        found += [key for key in keys.split(b" ") if key]
    return found


def java_hash(text: str | bytes) -> int:
    """Java's String.hashCode: signed 32 bits over UTF-16 units."""
    if isinstance(text, str):
        text = text.encode("utf-8", "surrogatepass")
    if text.isascii():
        units: Sequence[int] = text
    else:
        wide = text.decode("utf-8", "replace").encode("utf-16-be", "surrogatepass")
        units = [high << 8 | low for high, low in zip(wide[::2], wide[1::2], strict=True)]
    value = 0
    for unit in units:
        value = (value * 31 + unit) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


_tag_codes: dict[bytes, int] = {}


def tag_code_of(tags: bytes) -> int:
    """The hash that a queue entry holds for a tag; 0 without a tag. Results are cached."""
    code = _tag_codes.get(tags)
    if code is None:
        if len(_tag_codes) > 10_000:
            _tag_codes.clear()
        code = _tag_codes[tags] = java_hash(tags)
    return code


def hash_keys(keys: Sequence[bytes]) -> list[int]:
    """The index hash of each key: the absolute value of Java's hash, 0 if that overflows.

    Keys of one length are hashed together, as rows of a matrix: ids all have the same length.
    """
    by_length: dict[int, list[int]] = {}
    hashes = [0] * len(keys)
    for number, key in enumerate(keys):
        if key.isascii():
            by_length.setdefault(len(key), []).append(number)
        else:
            hashes[number] = java_hash(key)
    for length, numbers in by_length.items():
        if len(numbers) < 8 or not length:
            for number in numbers:
                hashes[number] = java_hash(keys[number])
        else:
            together = _hash_rows(b"".join([keys[number] for number in numbers]), length)
            for number, value in zip(numbers, together, strict=True):
                hashes[number] = value
    return [0 if value == -(1 << 31) else abs(value) for value in hashes]


def _hash_rows(joined: bytes, length: int) -> list[int]:
    import numpy as np  # clients hash no keys and need not load it

    rows = np.frombuffer(joined, np.uint8).reshape(-1, length).astype(np.uint32)
    powers = np.full(length, 31, np.uint32)
    powers[0] = 1
    weights = np.multiply.accumulate(powers)[::-1]
    folded: list[int] = (rows * weights).sum(axis=1, dtype=np.uint32).view(np.int32).tolist()
    return folded


class Selected(NamedTuple):
    """What `select_entries` chose."""

    runs: list[tuple[int, int]]
    """Log offset and length of each stretch of adjacent records, in order."""
    records: int
    scanned: int
    """How many entries were looked at; the next pull continues behind them."""
    gone: int
    """How many of them point below the beginning of the log."""


def select_entries(
    entries: Buffer,
    tag_codes: frozenset[int] | None,
    count_max: int,
    bytes_max: int,
    log_min: int,
) -> Selected:
    """Choose the records a pull returns; the first one is taken whatever its size."""
    runs: list[tuple[int, int]] = []
    count = scanned = gone = total = 0
    run_at = run_end = -1
    for position, size, tag_code in ENTRY.iter_unpack(entries):
        if tag_codes is not None and tag_code not in tag_codes:
            scanned += 1
            continue
        if position < log_min or size == FILLER_SIZE:
            scanned += 1
            gone += 1
            continue
        if count and (count >= count_max or total + size > bytes_max):
            break
        if position == run_end:
            run_end += size
        else:
            if count:
                runs.append((run_at, run_end - run_at))
            run_at, run_end = position, position + size
        count += 1
        total += size
        scanned += 1
    if count:
        runs.append((run_at, run_end - run_at))
    return Selected(runs, count, scanned, gone)
