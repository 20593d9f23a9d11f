"""One consume queue: which records belong to it, in order, as entries of twenty bytes.

An entry is the log offset of a record, its size and the hash of its tag. Entry `n` lies at byte
`20 * n` of the row of files, so a queue offset needs no search. The tag's hash lets a pull pass
over records without reading them; clients compare the tag itself, because hashes collide.

A broker has thousands of queues, so one must cost little:

- The newest entries live in memory (`tail`) and are written to sparse files now and then.
  Descriptors come and go with `OpenFiles`.
- Nothing syncs a single queue. A checkpoint writes the tails, syncs the file system once and
  records the log offset up to which queues can be trusted; behind it they are derived again.

What always holds: entries are in the order of their records; `max_offset` is behind the last
entry that readers may see, and only `publish` moves it; an entry names a record that is in the
log, unless retention has just deleted it.
"""

import logging
from typing import NamedTuple

import numpy as np

from gantrymq.base.disk import Disk, File, delete_tree
from gantrymq.base.watermark import Watermark
from gantrymq.kernel import ENTRY, FILLER_SIZE, QueueTail
from gantrymq.protocol.record import record_size
from gantrymq.store.errors import LayoutError
from gantrymq.store.log.segment import OpenFiles, bases_in, file_name, last_run
from gantrymq.store.queues.queueext import QueueExt, is_address

log = logging.getLogger(__name__)

ENTRY_BYTES = ENTRY.size
ENTRY_TYPE = np.dtype([("position", ">i8"), ("size", ">i4"), ("code", ">i8")])
"""The same bytes as a row of an array."""
assert ENTRY_TYPE.itemsize == ENTRY_BYTES
FILLER = ENTRY.pack(0, FILLER_SIZE, 0)
"""Stands for entries that are not there, in front of the first one of a queue that starts late. In
the middle of a queue it has the log offset of the record before it: searches go by log offsets."""


LAST_ENTRIES = 64
"""How many entries a start reads backwards to find the last unit of a queue."""


class ConsumeQueue(QueueTail):
    """The entries of one queue of one topic."""

    __slots__ = (
        "_bases",
        "_file_bytes",
        "_files",
        "directory",
        "ext",
        "min_offset",
        "queue_id",
        "tail_start",
        "topic",
        "topic_bytes",
        "topic_extra_bytes",
    )

    def __init__(
        self, files: OpenFiles, directory: str, topic: str, queue_id: int, file_entries: int
    ) -> None:
        self._files, self.directory = files, directory
        self.topic, self.topic_bytes, self.queue_id = topic, topic.encode(), queue_id
        self.topic_extra_bytes = record_size(len(self.topic_bytes), 0, 0) - record_size(0, 0, 0)
        """What the topic adds to the size of each record."""
        self._file_bytes = file_entries * ENTRY_BYTES
        self._bases: list[int] = []
        self.ext: QueueExt | None = None
        """Bitmaps beside the entries; None if the store never evaluated conditions for them."""
        self.min_offset = 0
        self.end: Watermark = Watermark()  # long polls park on it
        self.next = self.stop = 0
        self.tail = bytearray()
        self.tail_start = 0
        """The offset of the first entry in memory."""

    @property
    def max_offset(self) -> int:
        """The offset behind the last visible entry."""
        return self.end.value

    @property
    def is_known(self) -> bool:
        """Whether the queue ever held an entry."""
        return self.stop > 0

    # Building

    def add(self, queue_offset: int, position: int, size: int, tag_code: int) -> None:
        """Append an entry with any offset; the dispatcher adds the usual next one itself."""
        if queue_offset > self.stop:
            # Retention deleted the records between with their log files, or they were damaged.
            if not self.is_known:
                self._start_at(queue_offset)
            self.tail += self._filler() * (queue_offset - self.stop)
        elif queue_offset < self.stop:
            if position < self.last_position():
                return  # is in the queue already
            # It lies later in the log, so the topic was deleted and created again.
            self.restart()
            self._start_at(queue_offset)
            self.tail += FILLER * (queue_offset - self.stop)
        self.tail += ENTRY.pack(position, size, tag_code)
        self.stop = queue_offset + 1

    def _filler(self) -> bytes:
        before = self._built_entry(self.stop - 1) if self.stop > self.min_offset else None
        return ENTRY.pack(before[0], FILLER_SIZE, 0) if before is not None else FILLER

    def fill_up(self, stop: int) -> None:
        """Continue at offset `stop`: retention deleted the records before it."""
        if not self.is_known:
            self._start_at(stop - 1)
        self.tail += FILLER * (stop - self.stop)
        self.stop = stop

    def _start_at(self, queue_offset: int) -> None:
        """Start an empty queue at this offset, at the beginning of its file."""
        per_file = self._file_bytes // ENTRY_BYTES
        self.tail_start = self.stop = queue_offset - queue_offset % per_file
        self.min_offset = queue_offset

    def restart(self) -> None:
        """Delete all entries and files; only while no reader uses the queue."""
        self._remove_files()
        if self.ext is not None:
            self.ext.remove()
        self.tail.clear()
        self.min_offset = self.stop = self.tail_start = self.next = 0
        self.end = Watermark()

    def write_tail(self) -> None:
        """Write the entries in memory to the files; on failure they stay in memory."""
        if self.ext is not None:
            self.ext.write_tail()
        at, data = self.tail_start * ENTRY_BYTES, memoryview(bytes(self.tail))
        done = 0
        while done < len(data):
            position = at + done
            base = position - position % self._file_bytes
            piece = data[done : done + base + self._file_bytes - position]
            self._file_for(base).pwrite(piece, position - base)
            done += len(piece)
        self.tail_start += done // ENTRY_BYTES
        del self.tail[:done]

    def _file_for(self, base: int) -> File:
        path = self._path(base)
        if base in self._bases[-2:]:
            return self._files.get(path)
        if not self._bases:
            self._files.disk.make_dirs(self.directory)
        file = self._files.get(path, create=True)
        if file.size() != self._file_bytes:
            file.truncate(self._file_bytes)
        self._bases.append(base)
        return file

    # Reading

    def tail_from(self, offset: int, count: int) -> bytes | None:
        """Entries from memory; None when `offset` is older than what memory holds."""
        start = (offset - self.tail_start) * ENTRY_BYTES
        if start < 0:
            return None
        visible = (self.end.value - self.tail_start) * ENTRY_BYTES
        return bytes(self.tail[start : min(visible, start + count * ENTRY_BYTES)])

    def locate(self, offset: int, count: int) -> tuple[File, int, int] | None:
        """File, length and position of up to `count` entries that lie in one file."""
        position = offset * ENTRY_BYTES
        base = position - position % self._file_bytes
        if base not in self._bases:
            return None
        stop = min(self.tail_start, self.end.value, offset + count) * ENTRY_BYTES
        size = min(stop, base + self._file_bytes) - position
        return self._files.get(self._path(base)), size, position - base

    def after_file(self, offset: int) -> int:
        """The first offset behind the file that holds `offset`."""
        per_file = self._file_bytes // ENTRY_BYTES
        return offset - offset % per_file + per_file

    def read(self, offset: int, count: int) -> bytes:
        """Entries from memory or file, waiting for the disk if need be."""
        entries = self.tail_from(offset, count)
        if entries is not None:
            return entries
        found = self.locate(offset, count)
        return found[0].pread(found[1], found[2]) if found else b""

    def entry(self, offset: int) -> tuple[int, int, int] | None:
        """One entry: log offset, size, tag code."""
        data = self.read(offset, 1)
        return ENTRY.unpack(data) if data else None

    # Loading, cutting, trimming

    def _path(self, base: int) -> str:
        return f"{self.directory}/{file_name(base)}"

    def attach(self, below: int) -> list[int]:
        """Find the files and the entries of records below log offset `below`; change nothing.

        Entries below a checkpoint are all there and in order, so their end is found by bisection;
        what lies behind them may be anything.
        Returns the files behind that end.
        """
        found = bases_in(self._files.disk, self.directory)
        self._bases = last_run(found, self._file_bytes)
        if len(self._bases) < len(found):
            log.error(
                "%s has a gap before %s: messages before it are not delivered. Stop the broker and "
                "run gantry store repair",
                self.directory,
                file_name(self._bases[0]),
            )
        behind: list[int] = []
        while self._bases and not self._holds(self._bases[-1], 0, below):
            behind.append(self._bases.pop())
        if self._bases:
            last = self._bases[-1]
            self._check_sizes(self._bases[:-1])
            self.stop = last // ENTRY_BYTES + self._count_below(last, below)
            self.tail_start = self.next = self.stop
            self.min_offset = self._bases[0] // ENTRY_BYTES
            self.end = Watermark(self.stop)
        return behind

    def load(self, below: int, *, clean: bool) -> None:
        """Attach, and wipe everything behind the last entry, written or torn.

        After a clean stop that is empty, and checking the first entry is enough.
        """
        for base in self.attach(below):
            self._delete(base)
        if self._bases:
            last = self._bases[-1]
            self._wipe_behind(last, self.stop * ENTRY_BYTES - last, clean)

    def _check_sizes(self, bases: list[int]) -> None:
        for base in bases:
            size = self._files.get(self._path(base)).size()
            if size != self._file_bytes:
                raise LayoutError(
                    f"{self._path(base)} has {size} bytes but a queue file has {self._file_bytes}"
                )

    def _holds(self, base: int, index: int, cut_at: int) -> bool:
        data = self._files.get(self._path(base)).pread(ENTRY_BYTES, index * ENTRY_BYTES)
        if len(data) < ENTRY_BYTES:
            return False
        position, size, _ = ENTRY.unpack(data)
        return bool(size > 0 and 0 <= position < cut_at)

    def _follows(self, base: int, index: int, cut_at: int) -> bool:
        """Whether the entry is one of a record below `cut_at`, and so is the one before it.

        Behind the last such entry a power cut may have torn what was written later. An entry that
        lies across two sectors may then have a size and no log offset, or a part of it, and look
        like an old one. Its neighbours lie in one of these sectors: they are new, or missing.
        """
        if not self._holds(base, index, cut_at):
            return False
        if index == 0:
            return True
        file = self._files.get(self._path(base))
        before, here = ENTRY.iter_unpack(file.pread(2 * ENTRY_BYTES, (index - 1) * ENTRY_BYTES))
        if FILLER_SIZE in (before[1], here[1]):
            return self._holds(base, index - 1, cut_at)
        return self._holds(base, index - 1, cut_at) and before[0] < here[0]

    def _count_below(self, base: int, cut_at: int) -> int:
        low, high = 0, self._file_bytes // ENTRY_BYTES
        while low < high:
            middle = (low + high) // 2
            if self._follows(base, middle, cut_at):
                low = middle + 1
            else:
                high = middle
        return low

    def _wipe_behind(self, base: int, at: int, clean: bool) -> None:
        file = self._files.get(self._path(base))
        right_size = file.size() == self._file_bytes
        if clean and right_size and not any(file.pread(ENTRY_BYTES, at)):
            return
        file.truncate(at)
        file.truncate(self._file_bytes)

    def on_disk(self) -> "EntriesOnDisk":
        """The readable entries that are in files, for a worker to search."""
        return EntriesOnDisk(
            self._files.disk, self.directory, self._file_bytes, self.min_offset, self.tail_start
        )

    def first_at_or_above(self, log_min: int, from_offset: int | None = None) -> int:
        """The first offset whose record is not below `log_min`.

        `from_offset` is what a worker found in the files (`EntriesOnDisk`).
        """
        if from_offset is None:
            from_offset = self.on_disk().first_at_or_above(log_min)
        if from_offset < self.tail_start:
            return from_offset
        low = max(from_offset, self.min_offset)
        while low < self.stop and _is_gone(self._built_entry(low), log_min):
            low += 1
        return low

    def _built_entry(self, offset: int) -> tuple[int, int, int] | None:
        start = (offset - self.tail_start) * ENTRY_BYTES
        if start >= 0:
            return ENTRY.unpack_from(self.tail, start)
        return self.entry(offset)

    def last_position(self) -> int:
        """The log offset behind the newest record of this queue; 0 if it has none."""
        if not self.stop > self.min_offset:
            return 0
        entry = self._built_entry(self.stop - 1)
        return entry[0] + entry[1] if entry is not None else 0

    def trim(self, log_min: int, from_offset: int | None = None) -> None:
        """Move the beginning to the first record still in the log; drop files before it."""
        self.min_offset = max(self.min_offset, self.first_at_or_above(log_min, from_offset))
        while len(self._bases) > 1 and self._bases[1] <= self.min_offset * ENTRY_BYTES:
            self._delete(self._bases.pop(0))
        if self.ext is not None:
            first = self._warm_entry(self.min_offset)
            if first is not None and is_address(first[2]):
                self.ext.trim(first[2])

    def _warm_entry(self, offset: int) -> tuple[int, int, int] | None:
        """One entry; None if that would wait for the disk."""
        data = self.tail_from(offset, 1)
        if data is None:
            found = self.locate(offset, 1)
            data = found[0].pread_warm(found[1], found[2]) if found is not None else None
        return ENTRY.unpack(data) if data else None

    def last_address(self) -> int | None:
        """The address of the newest unit that the last entries name; None if they name none."""
        per_file = self._file_bytes // ENTRY_BYTES
        last = self.stop - 1
        start = max(self.min_offset, self.stop - LAST_ENTRIES, last - last % per_file)
        entries = self.read(start, self.stop - start) if self.stop > start else b""
        codes = [code for _, _, code in ENTRY.iter_unpack(entries) if is_address(code)]
        return codes[-1] if codes else None

    def _delete(self, base: int) -> None:
        self._files.drop(self._path(base))
        self._files.disk.delete(self._path(base))

    def _remove_files(self) -> None:
        self._bases.clear()
        self._files.drop_below(self.directory)
        if self._files.disk.exists(self.directory):
            delete_tree(self._files.disk, self.directory)


class EntriesOnDisk(NamedTuple):
    """The entries of a queue in files, opened by path, independent of the loop's descriptors."""

    disk: Disk
    directory: str
    file_bytes: int
    first: int
    stop: int

    def first_at_or_above(self, log_min: int) -> int:
        """The first offset whose record is not below `log_min`; waits for the disk."""
        low, high = self.first, self.stop
        while low < high:
            middle = (low + high) // 2
            if _is_gone(self._entry(middle), log_min):
                low = middle + 1
            else:
                high = middle
        return low

    def _entry(self, offset: int) -> tuple[int, int, int] | None:
        position = offset * ENTRY_BYTES
        base = position - position % self.file_bytes
        try:
            file = self.disk.open_read(f"{self.directory}/{file_name(base)}")
        except FileNotFoundError:  # the topic was deleted meanwhile
            return None
        data = file.pread(ENTRY_BYTES, position - base)
        file.close()
        return ENTRY.unpack(data) if len(data) == ENTRY_BYTES else None


def _is_gone(entry: tuple[int, int, int] | None, log_min: int) -> bool:
    return entry is not None and (entry[0] < log_min or entry[:2] == (0, FILLER_SIZE))
