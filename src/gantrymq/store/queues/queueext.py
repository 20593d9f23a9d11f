"""Units beside the entries of a queue (RocketMQ's `consumequeue_ext`): one a message.

An entry with a unit carries its address in place of the tag code; the unit has the tag code, the
store time and a bitmap of the groups whose conditions the message matched. Units only save reading
records: one that cannot be read changes no result.

Behind the bitmap, where RocketMQ does not look, our units name their record's log offset. So a
lost, torn or overwritten unit is never used for another message, and units need no repair after a
crash. Units are written before the entries that refer to them.
"""

import logging
import struct
from typing import NamedTuple

from gantrymq.base.disk import File, delete_tree
from gantrymq.base.layout import I16, I64, byte_layout
from gantrymq.kernel import ENTRY
from gantrymq.store.log.segment import OpenFiles, bases_in, file_name

log = logging.getLogger(__name__)


class UnitHead(NamedTuple):
    """The first fields of a unit; the bitmap follows, and in our units the log offset."""

    size: I16
    """The whole unit in bytes, this field included."""
    tag_code: I64
    """Java's hash of the tag, 0 for none."""
    store_ms: I64
    """When the message was stored."""
    bitmap_size: I16
    """Bytes of the bitmap."""


UNIT = byte_layout(UnitHead)
POSITION = struct.Struct(">q")
"""Log offset of the record, behind the bitmap."""
ADDRESS_ZERO = -(1 << 63)
ADDRESS_MAX = -(1 << 31) - 1
"""Tag codes are 32-bit numbers, so that everything below is an address."""
FILE_END = b"\xff\xff"
END_BYTES = 4
"""Always left at the end of a file for its end mark."""
BITMAP_BYTES_MAX = 4096
STRETCH_BYTES_MAX = 1 << 20
"""The most bytes that are read for one batch of entries."""


class Unit(NamedTuple):
    tag_code: int
    store_ms: int
    bitmap: bytes
    position: int | None
    """Where its record is; None in units that RocketMQ wrote."""


class Mark(NamedTuple):
    """The bits of a group's condition, and since when they are set."""

    mask: int
    size: int
    """Bytes of a bitmap of this kind."""
    born_ms: int
    born_position: int
    """Records before this log offset were not asked for the condition."""


def is_address(code: int) -> bool:
    return code <= ADDRESS_MAX


class QueueExt:
    """The units of one queue, in files of one size."""

    def __init__(self, files: OpenFiles, directory: str, file_bytes: int) -> None:
        self._files, self._directory, self._file_bytes = files, directory, file_bytes
        self._bases: list[int] = []
        self._tail = bytearray()
        """Units that are not in a file yet."""
        self._tail_start = 0

    # Building

    def add(self, position: int, tag_code: int, store_ms: int, bitmap: bytes) -> int:
        """Append the unit of a record; returns the address for its entry."""
        size = UNIT.size + len(bitmap) + POSITION.size
        at = self._tail_start + len(self._tail)
        room = self._file_bytes - at % self._file_bytes
        if size > room - END_BYTES:
            self._tail += FILE_END + bytes(room - len(FILE_END))
            at += room
        self._tail += UNIT.pack(size, tag_code, store_ms, len(bitmap)) + bitmap
        self._tail += POSITION.pack(position)
        return at + ADDRESS_ZERO

    def write_tail(self) -> None:
        """Write the units in memory to the files; on failure they stay in memory."""
        data, done = memoryview(bytes(self._tail)), 0
        while done < len(data):
            at = self._tail_start + done
            base = at - at % self._file_bytes
            piece = data[done : done + base + self._file_bytes - at]
            self._file_for(base).pwrite(piece, at - base)
            done += len(piece)
        self._tail_start += done
        del self._tail[:done]

    def _file_for(self, base: int) -> File:
        path = self._path(base)
        if base in self._bases[-2:]:
            return self._files.get(path)
        if not self._bases:
            self._files.disk.make_dirs(self._directory)
        file = self._files.get(path, create=True)
        if file.size() != self._file_bytes:
            file.truncate(self._file_bytes)
        self._bases.append(base)
        return file

    def _path(self, base: int) -> str:
        return f"{self._directory}/{file_name(base)}"

    # Asking

    def plain(self, entries: bytes, wanted: frozenset[int]) -> bytes:
        """The same entries with tag codes; an entry without a readable unit counts as wanted.

        The client compares the text of the tag in any case.
        """
        units = self.units(entries)
        unknown = next(iter(wanted))
        out = bytearray()
        for position, size, code in ENTRY.iter_unpack(entries):
            unit = units.get(code)
            tag_code = unit.tag_code if unit is not None else unknown
            out += ENTRY.pack(position, size, tag_code if is_address(code) else code)
        return bytes(out)

    def marked(self, entries: bytes, mark: Mark) -> bytes:
        """The same entries with code 0 where the bitmap rules the record out, else 1."""
        units = self.units(entries)
        out = bytearray()
        for position, size, code in ENTRY.iter_unpack(entries):
            unit = units.get(code)
            no = unit is not None and position >= mark.born_position and _says_no(unit, mark)
            out += ENTRY.pack(position, size, 0 if no else 1)
        return bytes(out)

    def units(self, entries: bytes) -> dict[int, Unit]:
        """The units of these entries by address, without those that would wait for the disk."""
        places = {c: position for position, _, c in ENTRY.iter_unpack(entries) if is_address(c)}
        if not places:
            return {}
        first, last = min(places) - ADDRESS_ZERO, max(places) - ADDRESS_ZERO
        size = last - first + UNIT.size + BITMAP_BYTES_MAX
        data = self._stretch(first, size) if size <= STRETCH_BYTES_MAX else b""
        found = {}
        for address, position in places.items():
            unit = unit_at(data, address - ADDRESS_ZERO - first)
            if unit is not None and unit.position in (None, position):
                found[address] = unit
        return found

    def _stretch(self, at: int, size: int) -> bytes:
        """Bytes from a position on, up to the first that would wait for the disk."""
        parts: list[bytes] = []
        end = min(at + size, self._tail_start + len(self._tail))
        while at < end:
            if at >= self._tail_start:
                parts.append(bytes(self._tail[at - self._tail_start : end - self._tail_start]))
                break
            base = at - at % self._file_bytes
            stop = min(end, base + self._file_bytes, self._tail_start)
            part = None
            if base in self._bases:
                try:
                    part = self._files.get(self._path(base)).pread_warm(stop - at, at - base)
                except OSError as error:
                    log.error("units are not read, the records are asked instead: %s", error)
            if part is None or len(part) < stop - at:
                break
            parts.append(part)
            at = stop
        return b"".join(parts)

    # Loading, trimming

    def attach(self, last_address: int | None) -> None:
        """Find the files and continue behind the last entry's unit; without one, in a new file.

        Units behind it belong to entries that were cut.
        """
        self._bases = bases_in(self._files.disk, self._directory)
        if not self._bases:
            return
        if len(self._bases) > 1:
            self._file_bytes = self._bases[1] - self._bases[0]
        for base in self._bases:
            file = self._files.get(self._path(base))
            if file.size() < self._file_bytes:  # a power cut lost its size
                file.truncate(self._file_bytes)
        self._tail_start = self._bases[-1] + self._file_bytes
        if last_address is None:
            return
        at = last_address - ADDRESS_ZERO
        base = at - at % self._file_bytes
        if base == self._bases[-1]:
            head = self._files.get(self._path(base)).pread(2, at - base)
            size = int.from_bytes(head, "big", signed=True)
            if size >= UNIT.size and at - base + size <= self._file_bytes - END_BYTES:
                self._tail_start = at + size

    def trim(self, first_address: int) -> None:
        """Delete the files before the one with the first entry's unit."""
        first = first_address - ADDRESS_ZERO
        while len(self._bases) > 1 and self._bases[1] <= first:
            path = self._path(self._bases.pop(0))
            self._files.drop(path)
            self._files.disk.delete(path)

    def remove(self) -> None:
        """Delete all units and files."""
        self._bases.clear()
        self._tail.clear()
        self._tail_start = 0
        self._files.drop_below(self._directory)
        if self._files.disk.exists(self._directory):
            delete_tree(self._files.disk, self._directory)


def unit_at(data: bytes, at: int) -> Unit | None:
    """The unit that begins at a place; None if none does."""
    if at + UNIT.size > len(data):
        return None
    size, tag_code, store_ms, bitmap_size = UNIT.unpack_from(data, at)
    end = at + UNIT.size + bitmap_size
    if bitmap_size < 0 or at + size > len(data):
        return None
    position = None
    if size == UNIT.size + bitmap_size + POSITION.size:
        (position,) = POSITION.unpack_from(data, end)
    elif size != UNIT.size + bitmap_size:
        return None
    return Unit(tag_code, store_ms, data[at + UNIT.size : end], position)


def _says_no(unit: Unit, mark: Mark) -> bool:
    if len(unit.bitmap) != mark.size or unit.store_ms <= mark.born_ms:
        return False
    return int.from_bytes(unit.bitmap, "little") & mark.mask != mark.mask
