"""All index files of a store: collects records, fills and rolls files, finds keys."""

import logging
import struct
from collections.abc import Iterator
from typing import NamedTuple

from gantrymq.base.clock import WallClock
from gantrymq.base.disk import Disk, File
from gantrymq.base.layout import byte_layout
from gantrymq.kernel import KeyRows
from gantrymq.store.errors import LayoutError
from gantrymq.store.index.index_file import (
    ENTRY_BYTES,
    HEADER,
    SLOT_BYTES,
    IndexEntry,
    IndexFile,
    IndexHeader,
    columns_of,
    create,
    next_name,
)

log = logging.getLogger(__name__)

PENDING_MAX = 512
"""Keys are indexed at the latest when this many wait."""

_ENTRY = byte_layout(IndexEntry)
_SLOT = struct.Struct(">i")
assert _SLOT.size == SLOT_BYTES


class SealedFile(NamedTuple):
    """An index file that is full."""

    name: str
    header: IndexHeader


class ChainStart(NamedTuple):
    """The start of a key's chain in one file; a worker follows it."""

    file: File
    header: IndexHeader
    head: int | None
    """The newest entry of the chain; None if it has to be read from the slot on disk."""


class KeyIndex:
    """The row of index files, newest last."""

    def __init__(
        self, disk: Disk, clock: WallClock, directory: str, slots: int, entries: int
    ) -> None:
        self._disk, self._clock, self.directory = disk, clock, directory
        self._slots, self._entries = slots, entries
        self.sealed: list[SealedFile] = []
        self.current: IndexFile | None = None
        self.waiting = KeyRows()
        """Keys that `build` writes with the next batch."""

    # Filling

    @property
    def is_due(self) -> bool:
        """Whether enough keys wait."""
        return len(self.waiting) >= PENDING_MAX

    def build(self) -> None:
        """Index the waiting keys.

        If a new file cannot be made, the rest waits and the error is raised.
        """
        while len(self.waiting):
            file = self._file_with_room()
            count = min(file.room, len(self.waiting))
            file.add(*columns_of(self.waiting, count))
            self.waiting.drop(count)

    def _file_with_room(self) -> IndexFile:
        if self.current is not None and self.current.room > 0:
            return self.current
        last = self.current.name if self.current else self._last_name()
        name = next_name(self._clock.now_ms(), last)
        self._disk.make_dirs(self.directory)
        fresh = create(self._disk, self._path(name), name, self._slots, self._entries)
        if self.current is not None:
            self._seal(self.current)
        self.current = fresh
        return fresh

    def _seal(self, file: IndexFile) -> None:
        file.write_all()
        header = IndexHeader._make(HEADER.unpack(file.header()))
        self.sealed.append(SealedFile(file.name, header))

    def _last_name(self) -> str:
        return self.sealed[-1].name if self.sealed else ""

    def write(self, *, slots: bool) -> None:
        """Write entries and header to the current file; the slots only before a stop."""
        if self.current is not None:
            if slots:
                self.current.write_all()
            else:
                self.current.write_header()

    def sync(self) -> None:
        """Make the current file durable; a worker calls it."""
        if self.current is not None:
            self.current.file.sync()

    @property
    def position(self) -> tuple[str, int]:
        """The current file's name and the number of its next entry."""
        return (self.current.name, self.current.next_entry) if self.current else ("", 0)

    @property
    def sealed_ms(self) -> int:
        """The store time up to which full files have all keys; a Java broker relies on it."""
        return self.sealed[-1].header.end_ms if self.sealed else 0

    @property
    def end_offset(self) -> int:
        """The log offset of the last indexed record; -1 before the first."""
        if self.current is not None and self.current.next_entry > 1:
            return self.current.end_offset
        return self.sealed[-1].header.end_offset if self.sealed else -1

    @property
    def end_ms(self) -> int:
        """The store time of the last indexed record."""
        if self.current is not None and self.current.next_entry > 1:
            return self.current.end_ms
        return self.sealed[-1].header.end_ms if self.sealed else 0

    # Loading and trimming

    def _path(self, name: str) -> str:
        return f"{self.directory}/{name}"

    def _file_bytes(self) -> int:
        return HEADER.size + self._slots * SLOT_BYTES + self._entries * ENTRY_BYTES

    def load(self, below: int, position: tuple[str, int] | None, *, clean: bool) -> None:
        """Find the files; drop files newer than `position` and entries not below `below`.

        `position` comes from the checkpoint; None if another program wrote the store last.
        """
        names = [name for name in self._disk.list(self.directory) if name.isdigit()]
        if position is not None:
            names = self._drop_newer(names, position[0])
        while names:
            file = self._open(names[-1])
            is_stated = position is not None and position[0] == file.name
            count = position[1] if position is not None and is_stated else None
            file.load(below, count, clean=clean)
            if file.next_entry > 1 or len(names) == 1:
                self.current = file
                break
            self._disk.delete(self._path(names.pop()))
        for name in names[:-1]:
            self.sealed.append(SealedFile(name, self._open(name).stated()))

    def _drop_newer(self, names: list[str], last: str) -> list[str]:
        for name in names:
            if name > last:
                self._disk.delete(self._path(name))
        return [name for name in names if name <= last]

    def _open(self, name: str) -> IndexFile:
        file = self._disk.open(self._path(name))
        if file.size() != self._file_bytes():
            raise LayoutError(
                f"{self._path(name)} has {file.size()} bytes but {self._slots} slots and "
                f"{self._entries} entries make {self._file_bytes()}"
            )
        return IndexFile(file, name, self._slots, self._entries)

    def trim(self, log_min: int) -> None:
        """Delete full files whose records are all deleted."""
        while self.sealed and self.sealed[0].header.end_offset < log_min:
            self._disk.delete(self._path(self.sealed.pop(0).name))

    # Finding

    def chains(self, key_hash: int) -> list[ChainStart]:
        """Where a key may be found, newest file first."""
        starts: list[ChainStart] = []
        if self.current is not None:
            self.current.write_entries()
            header = IndexHeader._make(HEADER.unpack(self.current.header()))
            starts.append(
                ChainStart(self.current.file, header, self.current.head_of_chain(key_hash))
            )
        for sealed in reversed(self.sealed):
            file = self._disk.open_read(self._path(sealed.name))
            starts.append(ChainStart(file, sealed.header, None))
        return starts

    def search(
        self, starts: list[ChainStart], key_hash: int, begin_ms: int, end_ms: int
    ) -> Iterator[int]:
        """The log offsets of entries with this hash, newest first; runs in a worker."""
        for start in starts:
            if start.header.begin_ms > end_ms or start.header.end_ms < begin_ms:
                continue
            yield from self._follow(start, key_hash, begin_ms, end_ms)

    def _follow(
        self, start: ChainStart, key_hash: int, begin_ms: int, end_ms: int
    ) -> Iterator[int]:
        file, header, number = start
        if number is None:
            at = HEADER.size + key_hash % self._slots * SLOT_BYTES
            (number,) = _SLOT.unpack(file.pread(_SLOT.size, at))
        before = header.next_entry
        while 0 < number < before:
            at = HEADER.size + self._slots * SLOT_BYTES + number * ENTRY_BYTES
            found_hash, offset, seconds, previous = _ENTRY.unpack(file.pread(ENTRY_BYTES, at))
            # Entries store whole seconds, rounded down: the time may be up to 999 ms later.
            earliest = header.begin_ms + seconds * 1000
            if seconds < 0 or earliest + 999 < begin_ms:
                return
            if found_hash == key_hash and earliest <= end_ms:
                yield offset
            before, number = number, previous
