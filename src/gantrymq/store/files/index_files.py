"""A store's key index, read by other programs as arrays.

Hash slots are not used: comparing the hash of every entry at once is faster than following chains,
and the slots of the file that is being filled are only in the broker's memory.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from gantrymq.base.disk import OsDisk
from gantrymq.kernel import hash_keys
from gantrymq.store.files.mapped import Bools, Bytes, Ints, map_file
from gantrymq.store.index.index_file import ENTRY_BYTES, ENTRY_DTYPE, HEADER, IndexHeader, Rows
from gantrymq.store.recovery import checkpoint

JAVA_SLOTS: Final = 5_000_000
ENTRIES_A_SLOT: Final = 4
"""RocketMQ's files hold four entries a slot."""


class IndexView(NamedTuple):
    """One index file."""

    path: str
    header: IndexHeader
    slots: int
    rows: Rows
    """Its entries from number 1 on."""
    data: Bytes


class FoundAt(NamedTuple):
    """Where keys may be: at these log offsets, and anywhere that the index does not cover."""

    positions: Ints
    covered: list[tuple[int, int]]
    """Log offsets between which, both excluded, a file of the index has every key. A file that is
    missing or damaged leaves a gap."""

    def may_hold(self, positions: Ints) -> Bools:
        """Which of these log offsets may have one of the keys."""
        found: Bools = np.isin(positions, self.positions)
        known = np.zeros(positions.size, bool)
        for first, last in self.covered:
            known |= (positions > first) & (positions < last)
        return found | ~known


def index_files(directory: str) -> list[IndexView]:
    """The index files of a store, oldest first; those of unknown layout are left out."""
    known = checkpoint.load(OsDisk(), f"{directory}/checkpoint")
    slots = known.sizes[2] if known is not None and known.sizes is not None else None
    names = [name for name in OsDisk().list(f"{directory}/index") if name.isdigit()]
    found = (_view(f"{directory}/index/{name}", slots) for name in names)
    return [view for view in found if view is not None]


def _view(path: str, slots: int | None) -> IndexView | None:
    if not Path(path).is_file():
        return None
    data = map_file(path)
    if data.size < HEADER.size:
        return None
    header = IndexHeader._make(HEADER.unpack(data[: HEADER.size].tobytes()))
    guesses = [slots] if slots else [JAVA_SLOTS, (data.size - HEADER.size) // (4 + 4 * ENTRY_BYTES)]
    for guess in guesses:
        first = HEADER.size + guess * 4 + ENTRY_BYTES
        if first > data.size:
            continue
        count = min(max(0, header.next_entry - 1), (data.size - first) // ENTRY_BYTES)
        rows = np.frombuffer(data, ENTRY_DTYPE, count, first if count else 0)
        if slots or header.next_entry <= 1 or (count and rows["at"][0] == header.begin_offset):
            return IndexView(path, header, guess, rows, data)
    return None


def find_keys(directory: str, topic: str, keys: Iterable[str]) -> FoundAt:
    """Where messages of a topic with one of these keys may be, by the index alone."""
    wanted = np.array(hash_keys([f"{topic}#{key}".encode() for key in keys]), np.int64)
    views = [view for view in index_files(directory) if view.rows.size]
    places = [view.rows["at"][np.isin(view.rows["hash"], wanted)] for view in views]
    found = np.unique(np.concatenate([np.empty(0, np.int64), *places]).astype(np.int64))
    return FoundAt(found, [_covered(view) for view in views])


def _covered(view: IndexView) -> tuple[int, int]:
    """The log offsets of the first and the last record of a file.

    Some keys of these two records may be in the files before and after it.
    """
    places = view.rows["at"]
    first, last = int(places[0]), int(places[-1])
    is_sound = bool((places >= first).all() and (places <= last).all())
    return (first, last) if is_sound else (first, first)
