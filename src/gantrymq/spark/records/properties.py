"""The properties of many records, cut into names and values without a step in Python for each."""

from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gantrymq.protocol.properties import ENTRY_END, NAME_END
from gantrymq.store.files.mapped import Bytes, Ints

Bools = npt.NDArray[np.bool_]

SEATS_MAX = 1 << 22
"""Rows times distinct names up to which duplicates are found with a table instead of a sort."""

_END, _BETWEEN = ord(ENTRY_END), ord(NAME_END)


class Pairs(NamedTuple):
    """Names and values in the order of the text."""

    rows: Ints
    """Which record each belongs to, ascending."""
    names: pa.Array
    values: pa.Array


class Entries:
    """All properties of all records; the last one counts if a record has a name twice."""

    def __init__(self, texts: pa.Array) -> None:
        self._count = len(texts)
        pairs = _cut_evenly(texts) or _cut_anyhow(texts)
        encoded = pairs.names.dictionary_encode()
        codes = encoded.indices.to_numpy().astype(np.int64)
        filled = (_lengths(pairs.names) > 0) & (_lengths(pairs.values) > 0)
        keep = filled & _is_last(pairs.rows, codes, filled)
        if not keep.all():
            index = pa.array(np.flatnonzero(keep))
            pairs = Pairs(pairs.rows[keep], pairs.names.take(index), pairs.values.take(index))
            codes = codes[keep]
        self._pairs, self._codes, self._dictionary = pairs, codes, encoded.dictionary

    @cached_property
    def _code_of(self) -> dict[str, int]:
        return {name: code for code, name in enumerate(self._dictionary.to_pylist())}

    def one(self, name: str) -> pa.Array:
        """One property of every record; null where it has none."""
        at = np.flatnonzero(self._codes == self._code_of.get(name, -1))
        if at.size == self._count:
            return self._pairs.values.take(pa.array(at))
        index = np.full(self._count, -1, np.int64)
        index[self._pairs.rows[at]] = at
        return self._pairs.values.take(pa.array(index, mask=index < 0))

    def maps(self) -> pa.Array:
        """All properties, one map a record."""
        rows, names, values = self._pairs
        ends = np.cumsum(np.bincount(rows, minlength=self._count))
        offsets = np.concatenate([[0], ends]).astype(np.int32)
        return pa.MapArray.from_arrays(pa.array(offsets), names, values)

    def lists(self) -> pa.Array:
        """All properties as Kafka's headers: lists of names and bytes."""
        maps = self.maps()
        pairs = pa.StructArray.from_arrays(
            [maps.keys, maps.items.cast(pa.binary())], names=["key", "value"]
        )
        return pa.ListArray.from_arrays(maps.offsets, pairs)


def windows(buffer: pa.Buffer, starts: Ints, ends: Ints, kind: pa.DataType) -> pa.Array:
    """The bytes between each start and end, in ascending order.

    Arrow's arrays have no gaps, so the gaps become elements too, and every other one is taken.
    """
    if not starts.size:
        return pa.array([], kind)
    edges = np.empty(2 * starts.size, np.int32)
    edges[0::2], edges[1::2] = starts, ends
    with_gaps = pa.Array.from_buffers(kind, edges.size - 1, [None, pa.py_buffer(edges), buffer])
    return with_gaps.take(pa.array(np.arange(0, edges.size - 1, 2)))


def _cut_evenly(texts: pa.Array) -> Pairs | None:
    """The fast path: every entry is a name, a separator and a value, as brokers write it."""
    _, places, buffer = texts.buffers()
    offsets = np.frombuffer(places, np.int32)[texts.offset :][: len(texts) + 1].astype(np.int64)
    data: Bytes = np.frombuffer(buffer, np.uint8) if buffer is not None else np.empty(0, np.uint8)
    data = data[: offsets[-1]]
    between = offsets[0] + np.flatnonzero(data[offsets[0] :] == _BETWEEN)
    ends = offsets[0] + np.flatnonzero(data[offsets[0] :] == _END)
    filled = offsets[1:] > offsets[:-1]
    lasts = offsets[1:][filled]
    open_ends = lasts[data[lasts - 1] != _END]  # the last entry may lack its end mark
    if open_ends.size:
        ends = np.sort(np.concatenate([ends, open_ends]))
    if ends.size != between.size:
        return None
    starts = np.empty_like(ends)
    starts[:1] = offsets[0]
    closed = np.ones(ends.size, bool)
    closed[np.searchsorted(ends, open_ends)] = False
    starts[1:] = (ends + closed)[:-1]
    if not ((starts <= between) & (between < ends)).all():
        return None
    rows = np.searchsorted(offsets, between, side="right") - 1
    names = windows(buffer, starts, between, pa.string())
    return Pairs(rows, names, windows(buffer, between + 1, ends, pa.string()))


def _cut_anyhow(texts: pa.Array) -> Pairs:
    """The same for any text; a name without a value is dropped, as RocketMQ does."""
    split = pc.split_pattern(texts, ENTRY_END)
    rows = pc.list_parent_indices(split).to_numpy()
    pairs = pc.split_pattern(pc.list_flatten(split), NAME_END, max_splits=1)
    sizes = np.diff(pairs.offsets.to_numpy())
    whole = np.flatnonzero(sizes == 2)
    at = pairs.offsets.to_numpy()[whole]
    names, values = pairs.values.take(pa.array(at)), pairs.values.take(pa.array(at + 1))
    return Pairs(rows[whole], names, values)


def _lengths(texts: pa.Array) -> Ints:
    lengths: Ints = pc.binary_length(texts).to_numpy()
    return lengths


def _is_last(rows: Ints, codes: Ints, filled: Bools) -> Bools:
    """Whether no later filled entry of the same row has the same name."""
    pair = rows * (codes.max(initial=0) + 1) + codes
    if pair.size and pair[-1] > SEATS_MAX:
        _, pair = np.unique(pair, return_inverse=True)
    seats = np.full(pair.max(initial=0) + 1, -1, np.int64)
    number = np.arange(pair.size)
    seats[pair[filled]] = number[filled]  # of equal pairs the last one stays
    last: Bools = seats[pair] == number
    return last
