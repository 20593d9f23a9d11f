"""The commit log: the records of all topics in one row of files of equal size.

A log offset is a byte position in the row; the file that holds it follows from the size, and its
name is the offset of its first byte. A record never spans two files: the rest of a file is closed
with a blank marker, and the next record begins the next file. Files are really allocated, so that
a full disk is an error when a file is made and not when a record is written.

What always holds:

- `min` and `end` are log offsets, and every byte between them is written.
- Each file but the last ends with a blank marker.
- What lies behind `end` in the last file is zero on disk or covered by `_scrub`. Recovery relies
  on it: it reads until a record is not whole, and old bytes must not look like a record.
- A failed write moves nothing. What it may have left behind `end` is wiped by the next one.

The log is the truth. Queues and index are derived from it (`dispatch`) and can be built anew.
"""

import contextlib
import logging
import struct
from collections.abc import Awaitable
from itertools import groupby

from gantrymq.base.disk import File, own_file
from gantrymq.base.offload import Offload
from gantrymq.base.plurals import counted
from gantrymq.kernel import read_warm
from gantrymq.protocol.record import BLANK_BYTES, MAGIC_BLANK
from gantrymq.store.errors import LayoutError
from gantrymq.store.log.segment import OpenFiles, bases_in, file_name, last_run

log = logging.getLogger(__name__)

_BLANK = struct.Struct(">ii")

Place = tuple[File, int, int]
"""File, length, position."""


class CommitLog:
    """The row of log files and the position where the next record goes."""

    def __init__(self, files: OpenFiles, directory: str, segment_bytes: int) -> None:
        self.directory, self.segment_bytes = directory, segment_bytes
        self._files, self._disk = files, files.disk
        self.bases: list[int] = []
        self.end = 0
        self.spare: File | None = None
        self._dirty: dict[int, File] = {}
        self._scrub = 0

    @property
    def min(self) -> int:
        """The first offset that can still be read."""
        return self.bases[0] if self.bases else self.end

    @property
    def limit(self) -> int:
        """Where the last file ends."""
        return self.bases[-1] + self.segment_bytes if self.bases else self.end

    @property
    def room(self) -> int:
        """How many bytes of records the last file can still take."""
        return max(0, self.limit - self.end - BLANK_BYTES)

    def path(self, base: int) -> str:
        """The file that begins at `base`."""
        return f"{self.directory}/{file_name(base)}"

    def load(self, *, made_by_us: bool) -> None:
        """Find the files. Until recovery says otherwise, all of them count as written."""
        bases = bases_in(self._disk, self.directory)
        self.bases = last_run(bases, self.segment_bytes)
        if len(self.bases) < len(bases):
            log.error(
                "the commit log has a gap before %s: what lies before it is not read. Stop the "
                "broker and run gantry store repair",
                self.path(self.bases[0]),
            )
        for base in self.bases:
            self._check_size(base, made_by_us and base == self.bases[-1])
        self.end = self.limit

    def _check_size(self, base: int, may_be_short: bool) -> None:
        """Raise unless the file has the configured size; a crash may leave the last one shorter."""
        size = self.file(base).size()
        if size == self.segment_bytes or (base == self.bases[-1] and size == 0):
            return
        if may_be_short and size < self.segment_bytes:
            log.warning("%s is incomplete with %s", self.path(base), counted(size, "byte"))
            return
        raise LayoutError(
            f"{self.path(base)} has {size} bytes but segment_bytes is {self.segment_bytes}"
        )

    def make_spare(self, base: int) -> File:
        """Create, allocate and sync a file; slow, so a worker calls it. Touches no state."""
        path = self.path(base)
        file = self._disk.open(path, create=True)
        try:
            if file.size():  # left over from an earlier run
                file.truncate(0)
            file.allocate(self.segment_bytes)
            file.sync()
            self._disk.sync_dir(self.directory)
        except OSError:
            file.close()
            with contextlib.suppress(OSError):
                self._disk.delete(path)
            raise
        return file

    def roll(self) -> None:
        """Close the last file with a blank marker and go on in the spare one."""
        assert self.spare is not None, "rolling needs a spare file"
        if self.end < self.limit:
            self._write(_BLANK.pack(self.limit - self.end, MAGIC_BLANK))
        start = self.limit
        self.bases.append(start)
        self._files.put(self.spare)
        self.end, self.spare, self._scrub = start, None, 0

    def append(self, data: bytes) -> None:
        """Write records at the end; if that fails, nothing has moved."""
        assert len(data) <= self.room
        self.extend(data)

    def extend(self, data: bytes) -> None:
        """Write bytes of a copied log at the end; they may fill the file, or end in a record."""
        assert len(data) <= self.limit - self.end
        self._write(data)
        self.end += len(data)
        self._scrub = max(0, self._scrub - len(data))

    def _write(self, data: bytes) -> None:
        """Write at `end`, wiping what an earlier failed write may have left behind it.

        A failed write may have reached the disk in part. Its records were refused, so they must
        not follow a shorter record now and be found by the next recovery.
        """
        base = self.bases[-1]
        file = self.file(base)
        wipe = self._scrub - len(data)
        try:
            file.pwrite(data + bytes(wipe) if wipe > 0 else data, self.end - base)
        except OSError:
            self._scrub = max(self._scrub, len(data))
            raise
        if wipe > 0:
            self._scrub = len(data)
        self._dirty[base] = file

    def take_dirty(self) -> list[File]:
        """The files written since the last call, oldest first, for a sync."""
        files = list(self._dirty.values())
        self._dirty.clear()
        return files

    def file(self, base: int) -> File:
        """The open file that begins at `base`."""
        return self._files.get(self.path(base))

    def open_read(self, base: int) -> File:
        """The same for a worker, which must not touch the table of open files."""
        return self._disk.open_read(self.path(base))

    def locate(self, at: int) -> tuple[File, int] | None:
        """The file that holds offset `at`, and the position in it; None if it is deleted."""
        if not self.bases or not self.bases[0] <= at < self.limit:
            return None
        base = self._base_of(at)
        return self.file(base), at - base

    def places(self, runs: list[tuple[int, int]]) -> list[Place]:
        """The file and position of each (offset, length) that queue entries name."""
        places = []
        for at, size in runs:
            found = self.locate(at)
            assert found is not None, "an entry at or above the log's beginning has a file"
            places.append((found[0], size, found[1]))
        return places

    def read_warm(self, runs: list[tuple[int, int]]) -> bytes | None:
        """The bytes of all (offset, length) joined; None if that would wait for the disk.

        Those of one file are read by one call, if the file has a descriptor.
        """
        parts = []
        for base, of_file in groupby(runs, lambda run: self._base_of(run[0])):
            file, stretches = self.file(base), list(of_file)
            part = read_warm(file.fileno(), stretches, base) if file.fileno() >= 0 else None
            if part is None:
                part = _one_by_one(file, stretches, base)
            if part is None:
                return None
            parts.append(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _base_of(self, at: int) -> int:
        return at - (at - self.bases[0]) % self.segment_bytes

    def read(self, size: int, at: int) -> bytes:
        """Read within one file, waiting for the disk; empty if `at` is deleted."""
        found = self.locate(at)
        return found[0].pread(size, found[1]) if found else b""

    def read_or_fetch(self, size: int, at: int, offload: Offload) -> bytes | Awaitable[bytes]:
        """Read within one file, on the loop if the bytes are in memory, else by a worker.

        Empty if `at` is deleted.
        """
        found = self.locate(at)
        if found is None or size <= 0:
            return b""
        file, position = found
        warm = file.pread_warm(size, position)
        return warm if warm is not None else offload.run(file.pread, size, position)

    def rest_of_file(self, at: int) -> int:
        """How many bytes the file that holds `at` has from there on."""
        return self.segment_bytes - (at - self.bases[0]) % self.segment_bytes

    def cut(self, end: int) -> None:
        """Make `end` the end: delete later files, and fill the rest of the last one with zeros.

        Otherwise a later, shorter write could be followed by old bytes that look like records. The
        last file goes first, each for good before the next: a gap would hide all before it.
        """
        if self.bases and end < self.bases[-1]:
            self._drop_spare()
        self._disk.sync_dir(self.directory)
        while self.bases and self.bases[-1] > end:
            self._delete(self.bases[-1])
            self.bases.pop()
            self._disk.sync_dir(self.directory)
        if self.bases:
            # A copied log may end with its last file: the next one begins with the next byte.
            assert end <= self.limit, "the log ends in its last file"
            self._zero_behind(end)
        self.end = end

    def cut_back(self, end: int) -> None:
        """The same as `cut` for a log that is in use, where only written bytes are not zero.

        A cut reads the rest of the file to find out; here it is known where the written part ends.
        One that failed can be tried again: its zeros are written once more, because what a failed
        sync leaves behind is not known.
        """
        written = min(self.end + self._scrub, self.limit)
        if end < self.bases[-1]:
            self.cut(end)
            return
        base, file = self.bases[-1], self.file(self.bases[-1])
        for at in range(end, written, 1 << 20):
            file.pwrite(bytes(min(1 << 20, written - at)), at - base)
        file.sync()
        self.end, self._scrub = end, 0

    def begin_anew(self, start: int) -> None:
        """Delete all files, the oldest first; the next one will begin at `start`."""
        self._drop_spare()
        while self.bases:
            self._delete(self.bases[0])
            self.bases.pop(0)
        self._disk.sync_dir(self.directory)
        self.end, self._scrub = start, 0

    def _drop_spare(self) -> None:
        """Delete the file that was made to follow the last one, which is about to go."""
        if self.spare is not None:
            self.spare.close()
            self._disk.delete(self.path(self.limit))
            self.spare = None

    def _zero_behind(self, end: int) -> None:
        base = self.bases[-1]
        if own_file(self._disk, self.path(base)):  # a snapshot has it, too
            self._files.drop(self.path(base))
        file = self.file(base)
        if file.size() < self.segment_bytes:
            file.allocate(self.segment_bytes)
        at = end - base
        while chunk := file.pread(1 << 20, at):
            if chunk.count(0) != len(chunk):
                file.pwrite(bytes(len(chunk)), at)
            at += len(chunk)
        file.sync()

    def rewrite(self, start: int) -> None:
        """Write the bytes from `start` on again, because a sync of them failed.

        The pages may be in memory, marked clean, and not on disk; writing makes them dirty again.
        """
        at = start
        while at < self.end:
            found = self.locate(at)
            assert found is not None
            file, position = found
            size = min(self.end - at, self.rest_of_file(at), 1 << 20)
            file.pwrite(file.pread(size, position), position)
            at += size

    def sync_from(self, start: int) -> None:
        """Make everything from `start` on durable."""
        for base in self.bases:
            if base + self.segment_bytes > start:
                self.file(base).sync()

    def drop_first(self) -> str:
        """Remove the oldest file from the log; returns its path, which a worker deletes."""
        assert len(self.bases) > 1, "the file being written is never deleted"
        return self._forget(self.bases.pop(0))

    def _delete(self, base: int) -> None:
        self._disk.delete(self._forget(base))

    def _forget(self, base: int) -> str:
        self._dirty.pop(base, None)
        self._files.drop(self.path(base))
        return self.path(base)


def _one_by_one(file: File, stretches: list[tuple[int, int]], base: int) -> bytes | None:
    """Read each part by its own call, for files and systems without the joined read."""
    parts = []
    for at, size in stretches:
        part = file.pread_warm(size, at - base)
        if part is None:
            return None
        parts.append(part)
    return b"".join(parts)


def read_back(files: list[Place]) -> bytes:
    """Read several parts in order, waiting for the disk; a worker calls it for a cold pull."""
    return b"".join([file.pread(size, at) for file, size, at in files])
