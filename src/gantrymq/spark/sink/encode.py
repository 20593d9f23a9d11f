"""Rows to messages: Arrow batches to the bodies of batch sends, column by column.

No step is done row by row in Python. A row that brokers would refuse is marked with a reason and
takes no place in the result.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gantrymq.message_fields import RESERVED
from gantrymq.protocol import properties

MESSAGE_BYTES_MAX: Final = 4 * 1024 * 1024
"""What brokers take unless told otherwise (maxMessageSize), a send's other bytes included."""
HEAD_BYTES: Final = 20
FIXED_BYTES: Final = 22
PROPERTIES_BYTES_MAX: Final = properties.BYTES_MAX - properties.WAITING_BYTES

OWN_NAMES: Final = tuple(
    sorted(
        RESERVED
        | {
            properties.SHARDING_KEY,
            properties.TIMER_DELIVER_MS,
            properties.TIMER_DELAY_SEC,
            properties.TIMER_DELAY_MS,
            properties.TIMER_OUT_MS,
            properties.TIMER_ENQUEUE_MS,
            properties.TIMER_DEQUEUE_MS,
            properties.TIMER_ROLL_TIMES,
            properties.POP_CHECKPOINT,
            properties.FIRST_POP_TIME,
        }
    )
)
"""Names in `properties` that are left out: the system gives them a meaning, columns a value."""

GOOD, NO_BODY, LARGE_BODY, SEPARATOR, LARGE_PROPERTIES, TWO_DELAYS, BAD_DELAY = range(7)
NO_TOPIC, NO_QUEUE = 7, 8
REASONS: Final = (
    "",
    "its body is empty",
    f"it has more than {MESSAGE_BYTES_MAX} bytes",
    "a tag, key or property contains a byte that separates them (0x00, 0x01 or 0x02)",
    f"its tags, keys and properties need more than {PROPERTIES_BYTES_MAX} bytes",
    "it has more than one of delayLevel, delaySeconds and deliverTime",
    "its delay is below 0",
    "its topic does not exist",
    "its topic has no such queue",
)
"""What is wrong with a row, by number."""

_HEX = np.frombuffer(b"0123456789ABCDEF", np.uint8)
_BINARY = pa.large_binary()


@dataclass(frozen=True, slots=True)
class Encoded:
    """Messages as a batch send carries them, one a row; those of bad rows must not be used."""

    messages: Any
    """A `pyarrow.LargeBinaryArray`."""
    ids: Any
    """Their ids, as `numpy` bytes of 32 characters."""
    faults: Any
    """Why a row cannot be sent, as numbers of `REASONS`."""
    timed: Any
    """Whether a row asks for a delay or a time."""


def encode(batch: Any, prefix: str, first: int) -> Encoded:
    """Encode a `pyarrow.RecordBatch`; ids are made of a prefix and the rows' numbers."""
    count = batch.num_rows
    columns = {name: batch.column(at) for at, name in enumerate(batch.schema.names)}
    faults = np.zeros(count, np.int8)
    body = _bytes(columns["body"])
    ids = stable_ids(prefix, first, count)
    texts = [_constant(b"UNIQ_KEY\x01", count), _fixed(ids), _constant(b"\x02", count)]
    for name, entry in (("tags", b"TAGS"), ("keys", b"KEYS"), ("shardingKey", b"__SHARDINGKEY")):
        if name in columns:
            texts.append(_entry(entry, _words(columns[name]), faults))
    if "properties" in columns:
        texts.append(_map(columns["properties"], faults))
    timed = _add_delays(columns, texts, faults)
    text = pc.binary_join_element_wise(*texts, _scalar(b""))
    sizes, text_sizes = _sizes(body), _sizes(text)
    flags = _numbers(columns.get("flag"), count)
    _mark(faults, sizes < 1, NO_BODY)
    _mark(faults, FIXED_BYTES + sizes + text_sizes > MESSAGE_BYTES_MAX, LARGE_BODY)
    _mark(faults, text_sizes > PROPERTIES_BYTES_MAX, LARGE_PROPERTIES)
    head = np.zeros((count, 5), ">i4")
    head[:, 0] = np.minimum(FIXED_BYTES + sizes + text_sizes, 0x7FFFFFFF)
    head[:, 3], head[:, 4] = flags, np.minimum(sizes, 0x7FFFFFFF)
    lengths = np.minimum(text_sizes, 32767).astype(">i2")
    messages = pc.binary_join_element_wise(
        _fixed(head.view(np.uint8).reshape(count, HEAD_BYTES)),
        pc.fill_null(body, _scalar(b"")),
        _fixed(lengths.view(np.uint8).reshape(count, 2)),
        text,
        _scalar(b""),
    )
    return Encoded(messages, ids, faults, timed)


def stable_ids(prefix: str, first: int, count: int) -> Any:
    """The same as `client.epochs.stable_id`, for many numbers at once: rows of 32 characters."""
    numbers = np.arange(first, first + count, dtype=">u4").view(np.uint8).reshape(count, 4)
    digits = np.empty((count, 8), np.uint8)
    digits[:, 0::2], digits[:, 1::2] = _HEX[numbers >> 4], _HEX[numbers & 15]
    ids = np.full((count, 32), ord("0"), np.uint8)
    ids[:, :16] = np.frombuffer(prefix.encode(), np.uint8)
    ids[:, 16:20], ids[:, 28:] = digits[:, :4], digits[:, 4:]
    return ids


# columns


def _bytes(column: Any) -> Any:
    """A column of text or bytes as bytes with room for any size."""
    return column.cast(_BINARY)


def _words(column: Any) -> Any:
    """Text, or lists of text with blanks between."""
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        lists = column.cast(pa.list_(pa.string()))
        words = pc.fill_null(lists.values, "")
        column = pc.binary_join(pa.ListArray.from_arrays(lists.offsets, words), " ")
    return _bytes(column)


def _numbers(column: Any, count: int) -> Any:
    """Whole numbers; 0 where the row has none."""
    if column is None:
        return np.zeros(count, np.int64)
    return pc.fill_null(column.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)


def _entry(name: bytes, value: Any, faults: Any) -> Any:
    """`name value` as one property, nothing where there is no value."""
    _mark(faults, _has_separator(value), SEPARATOR)
    whole = pc.binary_join_element_wise(
        _scalar(name + b"\x01"), value, _scalar(b"\x02"), _scalar(b"")
    )
    there = pc.fill_null(pc.greater(pc.binary_length(value), 0), False)
    return pc.if_else(there, whole, _scalar(b""))


def _map(column: Any, faults: Any) -> Any:
    """A map's entries as properties; reserved names are left out."""
    offsets = np.asarray(column.offsets)
    keys = _bytes(column.keys.slice(0)).slice(offsets[0], offsets[-1] - offsets[0])
    items = _bytes(column.items).slice(offsets[0], offsets[-1] - offsets[0])
    bad = _has_separator(keys) | _has_separator(items)
    if bad.any():
        rows = np.searchsorted(offsets - offsets[0], np.flatnonzero(bad), side="right") - 1
        faults[rows[faults[rows] == GOOD]] = SEPARATOR
    own = pc.is_in(keys, value_set=pa.array([name.encode() for name in OWN_NAMES], _BINARY))
    lengths = pc.min_element_wise(
        pc.binary_length(keys), pc.fill_null(pc.binary_length(items), 0), skip_nulls=False
    )
    kept = pc.and_(pc.invert(own), pc.greater(lengths, 0))
    entries = pc.binary_join_element_wise(
        keys, _scalar(b"\x01"), items, _scalar(b"\x02"), _scalar(b"")
    )
    entries = pc.fill_null(pc.if_else(kept, entries, _scalar(b"")), _scalar(b""))
    lists = pa.LargeListArray.from_arrays(pa.array(offsets - offsets[0], pa.int64()), entries)
    return pc.binary_join(lists, _scalar(b""))


def _add_delays(columns: dict[str, Any], texts: list[Any], faults: Any) -> Any:
    """Add the properties of delays and delivery times; returns which rows have one."""
    count = len(faults)
    asked = np.zeros(count, np.int64)
    for name, entry in (
        ("delayLevel", "DELAY"),
        ("delaySeconds", "TIMER_DELAY_MS"),
        ("deliverTime", "TIMER_DELIVER_MS"),
    ):
        if name not in columns:
            continue
        numbers = _milliseconds(name, columns[name])
        value = pc.if_else(pc.greater(numbers, 0), numbers, None)
        asked += pc.is_valid(value).to_numpy(zero_copy_only=False)
        _mark(faults, pc.fill_null(pc.less(numbers, 0), False).to_numpy(False), BAD_DELAY)
        texts.append(_entry(entry.encode(), _bytes(value.cast(pa.string())), faults))
    _mark(faults, asked > 1, TWO_DELAYS)
    return asked > 0


def _milliseconds(name: str, column: Any) -> Any:
    """A delay level as it is; a delay or a time in milliseconds."""
    if name == "delaySeconds":
        seconds = column.cast(pa.float64())
        return pc.multiply(seconds, 1000.0).cast(pa.int64(), safe=False)
    if pa.types.is_timestamp(column.type):
        return pc.divide(column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64()), 1000)
    return column.cast(pa.int64())


# arrays


def _mark(faults: Any, wrong: Any, reason: int) -> None:
    faults[np.asarray(wrong) & (faults == GOOD)] = reason


def _has_separator(value: Any) -> Any:
    """Which values contain a separator byte of the properties string."""
    found = np.zeros(len(value), bool)
    for mark in ("\x00", "\x01", "\x02"):
        hit = pc.fill_null(pc.match_substring(value, mark), False)
        found |= hit.to_numpy(zero_copy_only=False)
    return found


def _sizes(value: Any) -> Any:
    return pc.fill_null(pc.binary_length(value), 0).to_numpy(zero_copy_only=False)


def _scalar(text: bytes) -> Any:
    return pa.scalar(text, _BINARY)


def _constant(text: bytes, count: int) -> Any:
    return pa.repeat(_scalar(text), count)


def _fixed(table: Any) -> Any:
    """Rows of equally many bytes as an array of bytes, nothing copied."""
    count, width = table.shape
    offsets = np.arange(0, (count + 1) * width, width, dtype=np.int64)
    data = np.ascontiguousarray(table)
    return pa.LargeBinaryArray.from_buffers(
        _BINARY, count, [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    )


# sends


@dataclass(frozen=True, slots=True)
class SendBatch:
    """One send: neighbouring messages for one queue."""

    target: int
    """Whose they are, by the numbers that `split_sends` was given."""
    body: Any
    """A buffer with the messages back to back."""
    count: int
    last_id: str


def split_sends(encoded: Encoded, targets: Any, size_max: int) -> Sequence[SendBatch]:
    """Cut messages into sends: one target each, in order, at most `size_max` bytes.

    Rows whose target is below 0 are left out.
    """
    order = np.argsort(targets, kind="stable")
    order = order[np.searchsorted(targets[order], 0) :]
    if not len(order):
        return []
    messages = encoded.messages.take(pa.array(order))
    ids, sorted_targets = encoded.ids[order], targets[order]
    _, offset_buffer, data = messages.buffers()
    offsets = np.frombuffer(offset_buffer, np.int64, len(order) + 1)
    borders = np.flatnonzero(np.diff(sorted_targets)) + 1
    found: list[SendBatch] = []
    for start, end in zip([0, *borders], [*borders, len(order)], strict=True):
        at = int(start)
        while at < end:
            # As many messages as fit, and at least one.
            fitting = int(np.searchsorted(offsets, offsets[at] + size_max, side="right")) - 1
            stop = min(max(fitting, at + 1), int(end))
            begin = int(offsets[at])
            body = data.slice(begin, int(offsets[stop]) - begin)
            last_id = ids[stop - 1].tobytes().decode()
            found.append(SendBatch(int(sorted_targets[at]), body, stop - at, last_id))
            at = stop
    return found
