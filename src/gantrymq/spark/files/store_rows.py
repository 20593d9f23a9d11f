"""Rows straight from the files of a store: no broker is asked and nothing is written.

Queue entries say where each record lies, so records are taken from the mapped log by the thousand
and become Arrow batches without a step in Python per record. A record is accepted only if it
stands where its entry says, with the size, the queue and the offset that belong to it.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from gantrymq.base.errors import GantryError, ProtocolError
from gantrymq.base.java_hash import java_hash
from gantrymq.filter import condition
from gantrymq.kernel import FILLER_SIZE
from gantrymq.model import Queue
from gantrymq.model.offset_ranges import OffsetRange, QueueOffsets
from gantrymq.spark.closeable import Closeable
from gantrymq.spark.records.decode import Records, made
from gantrymq.spark.records.fetch import Lost
from gantrymq.store.files.folder import StoreFolder
from gantrymq.store.files.index_files import FoundAt, find_keys
from gantrymq.store.files.mapped import Bools, Bytes, Entries, Ints, QueueFiles, fitting
from gantrymq.store.queues.queueext import ADDRESS_MAX
from gantrymq.store.writing.dispatch import SCHEDULE_TOPIC

log = logging.getLogger(__name__)

ENTRIES_PER_READ: Final = 1 << 16
BATCH_BYTES: Final = 4 << 20
WINDOW_BYTES_MAX: Final = 1 << 30
"""How far the records of one batch may lie apart; Arrow counts bytes with 32 bits."""
UNREADABLE: Final = (ProtocolError, IndexError)
"""What a record with damaged sizes or a damaged body ends in."""
TAIL_ENTRIES: Final = 1 << 12
"""How many entries at a queue's end are held against the log at a time."""


class StoreDamaged(GantryError):
    """The files do not hold what a queue entry says."""

    def __init__(self, queue: Queue, offset: int, reason: str) -> None:
        super().__init__(
            f"message {offset} of {queue.text} cannot be read: {reason}. See what is damaged "
            "with `gantry pipeline audit`; to read what is left set failOnDataLoss=false"
        )
        self.queue, self.offset = queue, offset


class RecordFilter(NamedTuple):
    """Which messages of a range to read; a field that is not set lets every message through."""

    tags: Sequence[str] = ()
    keys: Sequence[str] = ()
    sql: str | None = None


EVERYTHING: Final = RecordFilter()


class StoreRows(Closeable):
    """The rows of one store."""

    def __init__(
        self,
        folder: StoreFolder,
        broker_name: str,
        wanted: RecordFilter = EVERYTHING,
        *,
        strict: bool = True,
    ) -> None:
        self.folder, self.broker_name = folder, broker_name
        self._wanted, self._strict = wanted, strict
        self._condition = condition(wanted.sql) if wanted.sql is not None else None
        self._found: dict[str, FoundAt] = {}
        self.skipped = 0
        """Messages that were passed over because they are damaged."""

    def close(self) -> None:
        self.folder.close()

    # what there is

    def refresh(self) -> None:
        """Look for files that have come or gone."""
        self.folder.refresh()
        self._found.clear()

    def queues(self, topic: str) -> list[Queue]:
        """The queues of a topic in this store."""
        return [Queue(topic, self.broker_name, number) for number in self.folder.queue_ids(topic)]

    def bounds_of(self, queues: Sequence[Queue]) -> tuple[QueueOffsets, QueueOffsets]:
        """The first and the next offset of each queue."""
        highs = {queue: self._end(queue) for queue in queues}
        lows = {
            queue: self._files(queue).first_at(self.folder.log.min, high)
            for queue, high in highs.items()
        }
        return lows, highs

    def _files(self, queue: Queue) -> QueueFiles:
        return self.folder.queue(queue.topic, queue.queue_id)

    def _end(self, queue: Queue) -> int:
        """The offset after the last entry that has its record.

        Entries that a crash left beyond the end of the log, and an entry that is just being
        written, do not count. Damage before the last good entry does: it is found when it is read.
        """
        files = self._files(queue)
        stop = files.written()
        while stop > files.begin:
            start = max(files.file_begin(stop - 1), stop - TAIL_ENTRIES)
            entries = files.read(start, stop)
            gone = _is_gone(entries, self.folder.log.min)
            good = np.flatnonzero(self._fitting(queue, entries, start) | gone)
            if good.size:
                return start + int(good[-1]) + 1
            stop = start
        return stop

    def offset_at(self, queue: Queue, ms: int) -> int:
        """The first offset that was stored at a time or later, by bisection."""
        lows, highs = self.bounds_of([queue])
        low, high, files = lows[queue], highs[queue], self._files(queue)
        while low < high:
            middle = (low + high) // 2
            entry = files.read(middle, middle + 1)
            if entry.size and self.folder.log.store_ms(int(entry["position"][0])) < ms:
                low = middle + 1
            else:
                high = middle
        return low

    # reading

    def batches(self, wanted: OffsetRange, columns: Sequence[str], lost: Lost) -> Iterator[Any]:
        """The rows of a range as Arrow batches of a few MiB, in order of offset."""
        files, at, excused = self._files(wanted.queue), wanted.start, wanted.is_new
        while at < wanted.end:
            entries = files.read(at, min(wanted.end, at + ENTRIES_PER_READ))
            if not entries.size:
                at = self._behind_gap(wanted, at, lost, excused=excused)
                continue
            gone = _is_gone(entries, self.folder.log.min)
            if gone.any():
                _tell(wanted.queue, at, gone, lost, excused=excused)
            excused = excused and bool(gone.all())
            for rows in self._cut(entries, np.flatnonzero(~gone & self._mask(wanted, entries))):
                yield from self._decoded(wanted.queue, entries, rows, at, columns, lost)
            at += entries.size

    def _behind_gap(self, wanted: OffsetRange, at: int, lost: Lost, *, excused: bool) -> int:
        """Where reading goes on when a queue has no entries at an offset."""
        self.folder.refresh()
        files = self._files(wanted.queue)
        if files.begin > at:  # they expired meanwhile
            upto = min(files.begin, wanted.end)
            if not excused:
                lost(wanted.queue, at, upto)
            return upto
        upto = min(files.next_file(at) or wanted.end, wanted.end)
        reason = f"{files.place(at)[0]} is missing or ends before its entry"
        self._damaged(StoreDamaged(wanted.queue, at, reason), [(at, upto)], lost)
        return upto

    def _mask(self, wanted: OffsetRange, entries: Entries) -> Bools:
        """Which entries may be wanted, judged by tag hashes and by the key index alone."""
        mask = np.ones(entries.size, bool)
        if self._wanted.tags and wanted.queue.topic.encode() != SCHEDULE_TOPIC:
            codes = entries["code"].astype(np.int64)
            hashes = [java_hash(tag) for tag in self._wanted.tags]
            mask &= np.isin(codes, hashes) | (codes <= ADDRESS_MAX)
        if self._wanted.keys:
            topic = wanted.queue.topic
            if topic not in self._found:
                self._found[topic] = find_keys(self.folder.directory, topic, self._wanted.keys)
            mask &= self._found[topic].may_hold(entries["position"].astype(np.int64))
        return mask

    def _cut(self, entries: Entries, rows: Ints) -> Iterator[Ints]:
        """Rows in batches: of one log file, of a few MiB, not too far apart."""
        if not rows.size:
            return
        positions, sizes = _places(entries, rows)
        window = min(WINDOW_BYTES_MAX, self.folder.segment_bytes)
        file = positions // self.folder.segment_bytes
        part = positions % self.folder.segment_bytes // window
        share = np.cumsum(np.clip(sizes, 0, BATCH_BYTES)) // BATCH_BYTES
        turns = (np.diff(file) != 0) | (np.diff(part) != 0) | (np.diff(share) != 0)
        yield from np.split(rows, np.flatnonzero(turns) + 1)

    def _decoded(
        self,
        queue: Queue,
        entries: Entries,
        rows: Ints,
        first: int,
        columns: Sequence[str],
        lost: Lost,
    ) -> Iterator[Any]:
        positions, sizes = _places(entries, rows)
        base = self.folder.log.base_of(int(positions[0]))
        file = self.folder.log.file(base)
        fits = fitting(
            file,
            positions - base,
            sizes,
            position=base,
            queue_id=queue.queue_id,
            first=first + rows,
        )
        ascending = np.flatnonzero(fits)  # of entries in a wrong order those behind are refused
        ahead = np.maximum.accumulate(positions[ascending])
        fits[ascending[1:]] = positions[ascending[1:]] > ahead[:-1]
        if not fits.all():
            self._refuse(queue, first + rows[~fits], entries[rows[~fits]], lost)
            positions, sizes, rows = positions[fits], sizes[fits], rows[fits]
        starts = positions - base
        try:
            yield from self._made(queue, file, starts, sizes, columns)
        except UNREADABLE:  # some record, somewhere inside
            reasons = [
                self._wrong_with(queue, file, starts[each], sizes[each], columns)
                for each in np.split(np.arange(starts.size), starts.size)
            ]
            sound = np.array([reason is None for reason in reasons], bool)
            if sound.all():
                raise
            place, reason = next(pair for pair in zip(starts, reasons, strict=True) if pair[1])
            where = f"the record at byte {place} of {self.folder.log.path(base)}: {reason}"
            bad = first + rows[~sound]
            self._damaged(StoreDamaged(queue, int(bad[0]), where), _stretches(bad), lost)
            yield from self._made(queue, file, starts[sound], sizes[sound], columns)

    def _made(
        self, queue: Queue, file: Bytes, starts: Ints, sizes: Ints, columns: Sequence[str]
    ) -> list[Any]:
        """The records at these places of a log file as one batch; none without rows."""
        if not starts.size:
            return []
        low, high = int(starts[0]), int(starts[-1] + sizes[-1])
        starts = starts - low
        records = Records(file[low:high], starts, queue)
        if self._condition is not None:
            matches = self._condition.matches
            kept = np.array([matches(raw) for raw in records.raw_properties()], bool)
            if not kept.any():
                return []
            records = Records(file[low:high], starts[kept], queue)
        return [made(records, columns)]

    def _wrong_with(
        self, queue: Queue, file: Bytes, starts: Ints, sizes: Ints, columns: Sequence[str]
    ) -> str | None:
        """Why records cannot be decoded, if they cannot."""
        try:
            self._made(queue, file, starts, sizes, columns)
        except UNREADABLE as error:
            return str(error) or type(error).__name__
        return None

    def _fitting(self, queue: Queue, entries: Entries, first: int) -> Bools:
        """Which entries have their record, in whichever files."""
        fits = np.zeros(entries.size, bool)
        positions, sizes = _places(entries, np.arange(entries.size))
        bases = positions - positions % self.folder.segment_bytes
        for base in np.unique(bases).tolist():
            if not self.folder.log.min <= base < self.folder.log.limit:
                continue
            rows = np.flatnonzero(bases == base)
            fits[rows] = fitting(
                self.folder.log.file(base),
                positions[rows] - base,
                sizes[rows],
                position=base,
                queue_id=queue.queue_id,
                first=first + rows,
            )
        return fits

    def _refuse(self, queue: Queue, offsets: Ints, entries: Entries, lost: Lost) -> None:
        """Report records that do not match their entries: as expired, or as damaged."""
        self.folder.log.refresh()
        expired, positions = _is_gone(entries, self.folder.log.min), entries["position"]
        for start, end in _stretches(offsets[expired]):
            lost(queue, start, end)
        if expired.all():
            return
        offset, position = int(offsets[~expired][0]), int(positions[~expired][0])
        base = self.folder.log.base_of(position)
        reason = (
            f"its entry in {self._files(queue).place(offset)[0]} and the record at byte "
            f"{position - base} of {self.folder.log.path(base)} do not fit"
        )
        self._damaged(StoreDamaged(queue, offset, reason), _stretches(offsets[~expired]), lost)

    def _damaged(self, error: StoreDamaged, parts: Iterable[tuple[int, int]], lost: Lost) -> None:
        """Raise the error, or leave the messages out and count them."""
        if self._strict:
            raise error
        count = 0
        for start, end in parts:
            lost(error.queue, start, end)
            count += end - start
        self.skipped += count
        log.warning("%d messages are left out. %s", count, error)


def _places(entries: Entries, rows: Ints) -> tuple[Ints, Ints]:
    return entries["position"][rows].astype(np.int64), entries["size"][rows].astype(np.int64)


def _is_gone(entries: Entries, log_min: int) -> Bools:
    """Which entries belong to records that were deleted with their log files."""
    deleted = (entries["size"] == FILLER_SIZE) | (entries["position"] < log_min)
    gone: Bools = deleted & (entries["size"] != 0)
    return gone


def _stretches(offsets: Ints) -> list[tuple[int, int]]:
    """Offsets that follow each other as pairs of first and end."""
    edges = np.flatnonzero(np.diff(offsets) != 1) + 1
    return [(int(part[0]), int(part[-1]) + 1) for part in np.split(offsets, edges) if part.size]


def _tell(queue: Queue, first: int, gone: Bools, lost: Lost, *, excused: bool) -> None:
    """Report stretches of deleted messages; those before a new queue's first one are no loss."""
    for start, end in _stretches(first + np.flatnonzero(gone)):
        if not (excused and start == first):
            lost(queue, start, end)
