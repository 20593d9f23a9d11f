"""The key index: which log offsets a key was stored at, in hash files of RocketMQ's layout.

A file is a header of 40 bytes, then hash slots (each the number of the newest entry of its chain),
then entries that point back along their chain. Entries are numbered from 1. The slots of the file
being filled live in memory; they reach the disk with a checkpoint and can be rebuilt from the
entries at any time. Nothing here is on the way of a send or a pull: keys are collected and
indexed many at a time.
"""

import logging
from datetime import datetime
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gantrymq.base.disk import Disk, File
from gantrymq.base.layout import I32, I64, byte_fields, byte_layout
from gantrymq.kernel import KeyRows

log = logging.getLogger(__name__)

Rows = npt.NDArray[np.void]
Numbers = npt.NDArray[np.int32]
BigNumbers = npt.NDArray[np.int64]


class IndexHeader(NamedTuple):
    """The first 40 bytes of an index file."""

    begin_ms: I64
    """Store time of the first record that has an entry here."""
    end_ms: I64
    """Store time of the last one."""
    begin_offset: I64
    """Log offset of the first one."""
    end_offset: I64
    """Log offset of the last one."""
    slots_used: I32
    """Slots that are not 0."""
    next_entry: I32
    """The number that the next entry gets; 1 in an empty file."""


class IndexEntry(NamedTuple):
    """One key of one record."""

    hash: I32
    """Java's hash of `topic#key` without its sign."""
    at: I64
    """The log offset of the record."""
    seconds: I32
    """Store time, in whole seconds behind the file's `begin_ms`."""
    previous: I32
    """The number of the entry that the slot named before; 0 ends the chain."""


HEADER = byte_layout(IndexHeader)
SLOT_BYTES = 4
"""A slot is an i32: the number of the newest entry whose hash leads to it, or 0."""
ENTRY_DTYPE = np.dtype([(field.name, f">{field.format}") for field in byte_fields(IndexEntry)])
ENTRY_BYTES = ENTRY_DTYPE.itemsize


def columns_of(rows: KeyRows, count: int) -> tuple[Numbers, BigNumbers, BigNumbers]:
    """Hash, log offset and store time of the first keys that wait."""
    hashes, offsets, times = rows.columns(count)
    return (
        np.frombuffer(hashes, np.int32),
        np.frombuffer(offsets, np.int64),
        np.frombuffer(times, np.int64),
    )


def link(slots: Numbers, places: npt.NDArray[np.int64], first: int) -> Numbers:
    """Chain entries `first`, `first + 1`, ... into their slots; return each one's predecessor."""
    numbers = np.arange(first, first + len(places), dtype=np.int32)
    previous = slots[places]
    order = np.argsort(places, kind="stable")
    repeated = places[order[1:]] == places[order[:-1]]
    previous[order[1:][repeated]] = numbers[order[:-1][repeated]]
    slots[places] = numbers  # of several entries for one slot the last one stays
    return previous


class IndexFile:
    """The index file that is being filled."""

    def __init__(self, file: File, name: str, slots: int, entries: int) -> None:
        self.file, self.name = file, name
        self._slot_count, self._capacity = slots, entries
        self.slots: Numbers = np.zeros(slots, np.int32)
        self.begin_ms = self.end_ms = self.begin_offset = self.end_offset = 0
        self.next_entry = 1
        self._unwritten: list[Rows] = []
        self._written = 1
        self._dirty = False

    @property
    def entries_at(self) -> int:
        """The byte position of entry 0, which is never used."""
        return HEADER.size + self._slot_count * SLOT_BYTES

    @property
    def room(self) -> int:
        """How many more entries fit."""
        return self._capacity - self.next_entry

    def add(self, hashes: Numbers, offsets: BigNumbers, times_ms: BigNumbers) -> None:
        """Append entries, in log order."""
        if self.next_entry == 1:
            self.begin_ms, self.begin_offset = int(times_ms[0]), int(offsets[0])
        rows = np.empty(len(hashes), ENTRY_DTYPE)
        rows["hash"], rows["at"] = hashes, offsets
        seconds = (times_ms - self.begin_ms) // 1000
        rows["seconds"] = seconds.clip(0, 0x7FFFFFFF)
        places = hashes.astype(np.int64) % self._slot_count
        rows["previous"] = link(self.slots, places, self.next_entry)
        self.next_entry += len(hashes)
        self.end_ms, self.end_offset = int(times_ms[-1]), int(offsets[-1])
        self._unwritten.append(rows)
        self._dirty = True

    def write_entries(self) -> None:
        """Write new entries to the file."""
        if self._unwritten:
            data = b"".join([rows.tobytes() for rows in self._unwritten])
            self.file.pwrite(data, self.entries_at + self._written * ENTRY_BYTES)
            self._written = self.next_entry
            self._unwritten.clear()

    def write_header(self) -> None:
        """Write new entries and the header to the file; slots can be rebuilt from them."""
        self.write_entries()
        if self._dirty:
            self.file.pwrite(self.header(), 0)

    def write_all(self) -> None:
        """Write entries, header and slots to the file, for the next start or for readers."""
        self.write_header()
        if self._dirty:
            self.file.pwrite(self.slots.astype(">i4").tobytes(), HEADER.size)
            self._dirty = False

    def header(self) -> bytes:
        """The header that describes the entries in memory."""
        used = int(np.count_nonzero(self.slots))
        return HEADER.pack(
            self.begin_ms, self.end_ms, self.begin_offset, self.end_offset, used, self.next_entry
        )

    def load(self, below: int, count: int | None, *, clean: bool) -> None:
        """Keep the entries of records below log offset `below`, and at most `count` of them.

        After a clean stop header and slots are taken as they are. Otherwise both are computed from
        the entries, except for the store time of the first one, which is read from the header: it
        is on disk before any checkpoint covers an entry.
        """
        stated = self.stated()
        if clean and stated.next_entry == count:
            self._take(stated)
            return
        limit = self._capacity if count is None else min(count, self._capacity)
        rows = read_rows(self.file, self.entries_at, limit)
        keep = count_below(rows, below)
        rows = rows[:keep]
        self.next_entry = self._written = 1 + keep
        if keep:
            self.begin_ms, self.begin_offset = stated.begin_ms, int(rows["at"][0])
            self.end_offset = int(rows["at"][-1])
            # Entries store whole seconds, so this may be up to 1 s late, which harms no search.
            self.end_ms = self.begin_ms + int(rows["seconds"][-1]) * 1000 + 999
            if stated.next_entry == self.next_entry:
                self.end_ms = stated.end_ms
            link(self.slots, rows["hash"].astype(np.int64) % self._slot_count, 1)
        self._dirty = True

    def stated(self) -> IndexHeader:
        """The header as it is on disk."""
        return IndexHeader._make(HEADER.unpack(self.file.pread(HEADER.size, 0)))

    def _take(self, stated: IndexHeader) -> None:
        self.begin_ms, self.end_ms, self.begin_offset, self.end_offset = stated[:4]
        self.next_entry = self._written = stated.next_entry
        raw = self.file.pread(self._slot_count * SLOT_BYTES, HEADER.size)
        self.slots = np.frombuffer(raw, ">i4").astype(np.int32)

    def head_of_chain(self, key_hash: int) -> int:
        """The newest entry of the chain a hash belongs to; 0 for none."""
        return int(self.slots[key_hash % self._slot_count])


def read_rows(file: File, entries_at: int, limit: int) -> Rows:
    """Entries from number 1 on, up to number `limit` exclusive."""
    data = file.pread((limit - 1) * ENTRY_BYTES, entries_at + ENTRY_BYTES)
    return np.frombuffer(data, ENTRY_DTYPE, len(data) // ENTRY_BYTES)


def count_below(rows: Rows, below: int) -> int:
    """How many entries at the beginning are valid, in log order and of records below `below`."""
    if not len(rows):
        return 0
    at = rows["at"].astype(np.int64)
    good = (at >= 0) & (at < below) & (rows["previous"] >= 0)
    good &= rows["previous"] < np.arange(1, len(rows) + 1)
    good[1:] &= at[1:] >= at[:-1]
    empty = (at == 0) & (rows["hash"] == 0) & (rows["previous"] == 0) & (rows["seconds"] == 0)
    good[1:] &= ~empty[1:]
    good[0] &= not (empty[0] and below == 0)
    bad = np.flatnonzero(~good)
    return int(bad[0]) if len(bad) else len(rows)


def next_name(now_ms: int, last: str) -> str:
    """The name of a new file: local time to the millisecond, but later than the last name."""
    name = _time_name(now_ms)
    while name <= last:
        now_ms += 1
        name = _time_name(now_ms)
    return name


def _time_name(now_ms: int) -> str:
    moment = datetime.fromtimestamp(now_ms / 1000)  # noqa: DTZ006 (RocketMQ names files by local time)
    return moment.strftime("%Y%m%d%H%M%S") + f"{now_ms % 1000:03d}"


def create(disk: Disk, path: str, name: str, slots: int, entries: int) -> IndexFile:
    """Create an index file with all its blocks; a full disk raises and leaves no file."""
    file = disk.open(path, create=True)
    try:
        file.allocate(HEADER.size + slots * SLOT_BYTES + entries * ENTRY_BYTES)
    except OSError:
        file.close()
        disk.delete(path)
        raise
    return IndexFile(file, name, slots, entries)
