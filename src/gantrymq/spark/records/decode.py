"""Stored records to Arrow columns, without a step in Python per record.

The bytes of a pull reply or of a log file are never cut up. Where the records of a reply begin is
found by looking for their magic number; those of a file are known from queue entries. Fixed fields
are gathered as one table, and bodies and properties are windows on the same bytes which Arrow
copies once. Work per record is left for what is rare: packed bodies, text that is not UTF-8, a
body that contains the magic number.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Final, get_type_hints

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gantrymq.base.errors import ProtocolError
from gantrymq.model import Queue
from gantrymq.protocol.compression import COMPRESSED, decompress
from gantrymq.protocol.ids import decode_host
from gantrymq.protocol.properties import KEYS, TAGS, UNIQ_KEY
from gantrymq.protocol.record import (
    AT_MAGIC,
    BORN_V6,
    I32_LEN,
    LAYOUTS,
    MAGIC_V1,
    MAGIC_V2,
    RECORD_BYTES_MIN,
    STORE_V6,
    RecordHead,
)
from gantrymq.spark.options.kafka_names import LOG_APPEND_TIME
from gantrymq.spark.records.properties import Entries, windows
from gantrymq.store.files.mapped import Bytes, Ints, gather

HOST_BITS: Final = BORN_V6 | STORE_V6
TIME_MS_MIN, TIME_MS_MAX = -62_135_596_800_000, 253_402_300_799_999
"""The years 1 to 9999: producers choose their timestamps, and Spark refuses others."""

_MAGICS = [I32_LEN.pack(magic) for magic in (MAGIC_V1, MAGIC_V2)]
_HEX = np.frombuffer(b"".join(b"%02X" % byte for byte in range(256)), np.uint16)


def _head_type(host_bits: int) -> np.dtype[np.void]:
    """The record head as a table row; the same declaration that the byte codec is made from."""
    born, store = ("V20" if host_bits & bit else "V8" for bit in (BORN_V6, STORE_V6))
    kinds = {"i": ">i4", "q": ">i8", "born": born, "store": store}
    hints = get_type_hints(RecordHead, include_extras=True)
    return np.dtype([(name, kinds[hint.__metadata__[0]]) for name, hint in hints.items()])


HEAD_TYPES: Final = {bits: _head_type(bits) for bits in LAYOUTS}
assert all(HEAD_TYPES[bits].itemsize == layout.size for bits, layout in LAYOUTS.items())


# where records begin


def record_starts(data: bytes) -> Ints:
    """Where each record begins, in bytes that hold records back to back."""
    view = np.frombuffer(data, np.uint8)
    starts = _magic_places(view) - AT_MAGIC
    if starts.size and starts[0] == 0:
        ends = starts + gather(view, starts, ">i4")
        if ends[-1] == view.size and np.array_equal(ends[:-1], starts[1:]):
            return starts
    return _walk(data)


def _magic_places(view: Bytes) -> Ints:
    """Every place of a magic number; its first byte is rare in text, so it is searched first."""
    places = np.flatnonzero(view[: view.size - 3] == _MAGICS[0][0])
    tail = _gather(view, places, 4)
    hits = np.zeros(places.size, bool)
    for magic in _MAGICS:
        hits |= (tail == np.frombuffer(magic, np.uint8)).all(axis=1)
    return places[hits & (places >= AT_MAGIC)]


def _walk(data: bytes) -> Ints:
    """Step from record to record by size: for bodies that contain the magic number."""
    starts, at = [], 0
    while at < len(data):
        size, magic = data[at : at + 4], data[at + 4 : at + 8]
        if magic not in _MAGICS:
            raise ProtocolError(f"what stands at byte {at} of {len(data)} is no record")
        starts.append(at)
        step = int.from_bytes(size, "big", signed=True)
        if not RECORD_BYTES_MIN <= step <= len(data) - at:
            raise ProtocolError(f"the record at byte {at} of {len(data)} says it has {step} bytes")
        at += step
    return np.array(starts, np.int64)


def _gather(view: Bytes, places: Ints, width: int) -> Bytes:
    """`width` bytes from each place, as rows of a table."""
    if not places.size:
        return np.empty((0, width), np.uint8)
    found: Bytes = gather(view, places, f"V{width}").view(np.uint8).reshape(-1, width)
    return found


# records as columns


class Records:
    """Records of one queue, seen column by column; each part is found when first asked for."""

    def __init__(self, data: Bytes, starts: Ints, queue: Queue) -> None:
        """`starts` are ascending places in `data`, each of a record that is there as a whole.

        `data` has less than 2 GiB: Arrow's arrays of bytes count with 32 bits.
        """
        self.queue = queue
        self._buffer, self._view = pa.py_buffer(data), data
        self._starts = starts
        self.count = starts.size
        self._table = gather(data, starts, HEAD_TYPES[0])
        self._flags = self._table["sys_flag"].astype(np.int64)
        kinds = self._flags & HOST_BITS
        self._other_kinds = np.unique(kinds[kinds != 0]) if kinds.any() else kinds[:0]
        self._extra_born = np.where(self._flags & BORN_V6, 12, 0)
        self._extra_store = np.where(self._flags & STORE_V6, 12, 0)
        self._body_start = starts + HEAD_TYPES[0].itemsize + self._extra_born + self._extra_store
        self._ends = starts + self._table["total_size"]
        self._known: dict[str, Ints] = {}
        if self._other_kinds.size:
            self._check(self._body_start + 3 <= self._ends)

    def _numbers(self, name: str) -> Ints:
        """A fixed number of every record. Records with other kinds of hosts have other layouts."""
        found = self._known.get(name)
        if found is None:
            found = self._table[name].astype(np.int64)
            for bits in self._other_kinds.tolist():
                rows = np.flatnonzero(self._flags & HOST_BITS == bits)
                found[rows] = gather(self._view, self._starts[rows], HEAD_TYPES[bits])[name]
            self._known[name] = found
        return found

    def ints(self, name: str, kind: Any) -> pa.Array:
        """A fixed number of every record."""
        return pa.array(self._numbers(name).astype(kind.to_pandas_dtype()), kind)

    def times(self, name: str) -> pa.Array:
        """Milliseconds as a timestamp."""
        milliseconds = np.clip(self._numbers(name), TIME_MS_MIN, TIME_MS_MAX)
        return pa.array(milliseconds * 1000).cast(pa.timestamp("us", "UTC"))

    # variable parts

    def windows(self, starts: Ints, ends: Ints) -> pa.Array:
        """The bytes between each start and end, in ascending order."""
        return windows(self._buffer, starts, ends, pa.binary())

    def bodies(self) -> pa.Array:
        """What was sent, unpacked where the producer had packed it."""
        bodies = self.windows(self._body_start, self._body_ends)
        packed = np.flatnonzero(self._flags & COMPRESSED)
        if not packed.size:
            return bodies
        unpacked = [self._unpack(bodies[row].as_py(), row) for row in packed.tolist()]
        mask = pa.array((self._flags & COMPRESSED).astype(bool))
        return pc.replace_with_mask(bodies, mask, pa.array(unpacked, pa.binary()))

    def _unpack(self, body: bytes, row: int) -> bytes:
        try:
            return decompress(body, int(self._flags[row]))
        except ProtocolError as error:
            offset = self._numbers("queue_offset")[row]
            raise ProtocolError(f"message {offset} of {self.queue}: {error}") from error

    @property
    def _body_ends(self) -> Ints:
        ends = self._body_start + self._numbers("body_size")
        # Checked before anything behind a body is looked at: a size may be anything.
        self._check((self._numbers("body_size") >= 0) & (ends + 3 <= self._ends))
        return ends

    @cached_property
    def _property_starts(self) -> Ints:
        """Behind the body lie the topic and the properties, each behind its length."""
        view, at = self._view, self._body_ends
        is_v2 = self._numbers("magic") == MAGIC_V2
        topic_size = view[at].astype(np.int64)
        topic_size = np.where(is_v2, topic_size << 8 | view[at + 1], topic_size)
        at = at + np.where(is_v2, 2, 1) + topic_size
        self._check(at + 2 <= self._ends)
        sizes = view[at].astype(np.int64) << 8 | view[at + 1]
        self._check(at + 2 + sizes == self._ends)
        return at + 2

    def _check(self, sane: npt.NDArray[np.bool_]) -> None:
        if not sane.all():
            offset = self._numbers("queue_offset")[int(np.argmin(sane))]
            raise ProtocolError(f"message {offset} of {self.queue} has parts of impossible sizes")

    # properties

    def raw_properties(self) -> list[bytes]:
        """The properties of each record as stored, for an SQL condition."""
        found: list[bytes] = self.windows(self._property_starts, self._ends).to_pylist()
        return found

    @cached_property
    def entries(self) -> Entries:
        """The names and values of all properties."""
        return Entries(_text(self.windows(self._property_starts, self._ends)))

    # hosts and ids

    @property
    def _born_host_start(self) -> Ints:
        return self._starts + HEAD_TYPES[0].fields["born_host"][1]  # type: ignore[index]

    @property
    def _store_host_start(self) -> Ints:
        return self._starts + HEAD_TYPES[0].fields["store_host"][1] + self._extra_born  # type: ignore[index]

    def born_hosts(self) -> pa.Array:
        start = self._born_host_start
        return _host_text(self.windows(start, start + 8 + self._extra_born))

    def store_hosts(self) -> pa.Array:
        start = self._store_host_start
        return _host_text(self.windows(start, start + 8 + self._extra_store))

    def offset_ids(self) -> pa.Array:
        """The offset message id: store host and log offset in hexadecimal."""
        log_offset = HEAD_TYPES[0].fields["physical_offset"][1]  # type: ignore[index]
        parts, order = [], []
        for extra in np.unique(self._extra_store):
            rows = np.flatnonzero(self._extra_store == extra)
            host = _gather(self._view, self._store_host_start[rows], 8 + int(extra))
            offset = _gather(self._view, self._starts[rows] + log_offset, 8)
            parts.append(_hex(np.concatenate([host, offset], axis=1)))
            order.append(rows)
        ids = pa.concat_arrays(parts)
        return ids if len(parts) == 1 else ids.take(pa.array(np.argsort(np.concatenate(order))))

    def ids(self) -> pa.Array:
        """The id that the producer gave; the offset message id where it gave none."""
        given = self.entries.one(UNIQ_KEY)
        return pc.coalesce(given, self.offset_ids()) if given.null_count else given


def _text(binary: pa.Array) -> pa.Array:
    """Bytes as text; what is not UTF-8 is replaced, never an error."""
    try:
        return binary.cast(pa.string())
    except pa.ArrowInvalid:
        texts = [value.decode("utf-8", "replace") for value in binary.to_pylist()]
        return pa.array(texts, pa.string())


def _host_text(packed: pa.Array) -> pa.Array:
    """Addresses as text. They repeat, so each is written once."""
    encoded = packed.dictionary_encode()
    hosts = (decode_host(value) for value in encoded.dictionary.to_pylist())
    texts = [f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in hosts]
    return pa.array(texts, pa.string()).take(encoded.indices)


def _hex(table: Bytes) -> pa.Array:
    """Each row of bytes in upper-case hexadecimal."""
    digits = _HEX[table]
    offsets = np.arange(len(table) + 1, dtype=np.int32) * (2 * table.shape[1])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(digits))]
    return pa.Array.from_buffers(pa.string(), len(table), buffers)


Make = Callable[[Records], Any]

MAKERS: Final[dict[str, Make]] = {
    "topic": lambda records: pa.repeat(pa.scalar(records.queue.topic), records.count),
    "brokerName": lambda records: pa.repeat(pa.scalar(records.queue.broker_name), records.count),
    "queueId": lambda records: records.ints("queue_id", pa.int32()),
    "queueOffset": lambda records: records.ints("queue_offset", pa.int64()),
    "commitLogOffset": lambda records: records.ints("physical_offset", pa.int64()),
    "storeSize": lambda records: records.ints("total_size", pa.int32()),
    "msgId": Records.ids,
    "offsetMsgId": Records.offset_ids,
    "keys": lambda records: records.entries.one(KEYS),
    "tags": lambda records: records.entries.one(TAGS),
    "properties": lambda records: records.entries.maps(),
    "body": Records.bodies,
    "flag": lambda records: records.ints("flag", pa.int32()),
    "sysFlag": lambda records: records.ints("sys_flag", pa.int32()),
    "reconsumeTimes": lambda records: records.ints("reconsume_times", pa.int32()),
    "bornTimestamp": lambda records: records.times("born_ms"),
    "bornHost": Records.born_hosts,
    "storeTimestamp": lambda records: records.times("store_ms"),
    "storeHost": Records.store_hosts,
    "preparedTransactionOffset": lambda records: records.ints("prepared_offset", pa.int64()),
    "bodyCRC": lambda records: records.ints("body_crc", pa.int32()),
    "key": lambda records: records.entries.one(KEYS).cast(pa.binary()),
    "value": Records.bodies,
    "partition": lambda records: records.ints("queue_id", pa.int32()),
    "offset": lambda records: records.ints("queue_offset", pa.int64()),
    "timestamp": lambda records: records.times("store_ms"),
    "timestampType": lambda records: pa.repeat(
        pa.scalar(LOG_APPEND_TIME, pa.int32()), records.count
    ),
    "headers": lambda records: records.entries.lists(),
}
"""How each column is made."""


def decode(data: bytes, queue: Queue, columns: Sequence[str]) -> pa.RecordBatch:
    """Records that lie back to back, as a batch with these columns. There must be one at least."""
    return made(Records(np.frombuffer(data, np.uint8), record_starts(data), queue), columns)


def made(records: Records, columns: Sequence[str]) -> pa.RecordBatch:
    """These columns of the records."""
    return pa.RecordBatch.from_arrays([MAKERS[name](records) for name in columns], list(columns))
