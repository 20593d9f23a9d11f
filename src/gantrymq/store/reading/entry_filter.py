"""Pulls with a condition on properties: reads entries and records, and keeps matching ones.

One pull reads a limited number of entries and bytes; it answers what it found by then, and the next
pull goes on behind. It begins with a few entries, because most filters let many through.
"""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from gantrymq.base.offload import Offload
from gantrymq.kernel import ENTRY, Selected, select_entries, walk_records
from gantrymq.protocol.record import BLANK_BYTES
from gantrymq.store.append import ReadResult, ReadStatus
from gantrymq.store.log.commitlog import CommitLog, Place, read_back
from gantrymq.store.queues.consumequeue import ENTRY_BYTES, ConsumeQueue
from gantrymq.store.queues.queueext import Mark

BATCH_ENTRIES_MIN = 64
READ_BYTES_MAX = 1 << 20
"""Records that one pull reads, wanted or not; the first one is read whatever its size."""
MARKED = frozenset({1})
"""The code of entries that the bits beside the queue did not rule out."""


class EntryFilter(NamedTuple):
    """The condition of a pull, and how much one pull may read."""

    matches: Callable[[bytes], bool]
    """Asked with the raw properties of a record."""
    entries_max: int
    """How many entries one pull looks at."""
    mark: Mark | None = None
    """Bits beside the queue that may say no without reading the record."""


class _Found:
    """The records that one pull has found, and how much more it may read."""

    def __init__(
        self, offset: int, max_count: int, max_bytes: int, entry_filter: EntryFilter
    ) -> None:
        self.matches, self.mark, self.next_offset = entry_filter.matches, entry_filter.mark, offset
        self.entries_left, self.bytes_left = entry_filter.entries_max, READ_BYTES_MAX
        self._max_count, self._max_bytes = max_count, max_bytes
        self.parts: list[bytes | memoryview] = []
        self._size = 0
        self.gone = 0
        self.full = False

    def take(self, entries: bytes, chosen: Selected, body: bytes) -> None:
        """Filter the records that were read, until the answer is full."""
        found = _properties(chosen.runs, body)
        view = memoryview(body)
        self.bytes_left -= len(body)
        self.entries_left -= chosen.scanned
        self.gone += chosen.gone
        scanned = entries[: chosen.scanned * ENTRY_BYTES]
        for position, size, _ in ENTRY.iter_unpack(scanned):
            place = found.get(position)
            if place is not None and self.matches(place[1]):
                if self.parts and self._size + size > self._max_bytes:
                    self.full = True
                    return
                self.parts.append(view[place[0] : place[0] + size])
                self._size += size
            self.next_offset += 1
            if len(self.parts) >= self._max_count:
                self.full = True
                return

    @property
    def done(self) -> bool:
        return self.full or self.entries_left <= 0 or self.bytes_left <= 0

    def answer(self, queue: ConsumeQueue) -> ReadResult:
        if self.parts:
            status = ReadStatus.FOUND
        elif self.gone:
            status = ReadStatus.MESSAGE_WAS_REMOVING
        else:
            status = ReadStatus.NO_MATCHED_MESSAGE
        return ReadResult(
            status,
            self.next_offset,
            queue.min_offset,
            queue.max_offset,
            len(self.parts),
            b"".join(self.parts),
        )


def _properties(runs: list[tuple[int, int]], body: bytes) -> dict[int, tuple[int, bytes]]:
    """Where each record begins in `body` and its properties, by log offset."""
    found: dict[int, tuple[int, bytes]] = {}
    start = 0
    view = memoryview(body)
    for at, size in runs:
        walk = walk_records(view[start : start + size], at, size + BLANK_BYTES, False)
        for record in walk.records:
            found[record[3]] = (start + record[3] - at, record[8])
        start += size
    return found


class FilteredReads:
    """Pulls through a condition. Data in memory is answered at once, the rest by a worker."""

    def __init__(self, commit_log: CommitLog, offload: Offload) -> None:
        self._log, self._offload = commit_log, offload

    def pull(
        self,
        queue: ConsumeQueue,
        offset: int,
        max_count: int,
        max_bytes: int,
        entry_filter: EntryFilter,
    ) -> ReadResult | Awaitable[ReadResult]:
        """Read from an offset that the queue has."""
        found = _Found(offset, max_count, max_bytes, entry_filter)
        batch = BATCH_ENTRIES_MIN
        while not found.done and found.next_offset < queue.max_offset:
            count = min(batch, found.entries_left)
            entries = queue.tail_from(found.next_offset, count)
            if entries is None:
                place = queue.locate(found.next_offset, count)
                if place is None:
                    break
                entries = place[0].pread_warm(place[1], place[2])
                if entries is None:
                    return found.answer(queue) if found.parts else self._cold(queue, found, place)
            chosen = self._choose(queue, entries, found)
            body = self._log.read_warm(chosen.runs) if chosen.runs else b""
            if body is None:
                if found.parts:
                    return found.answer(queue)
                places = self._log.places(chosen.runs)
                return self._cold_records(queue, found, entries, chosen, places)
            found.take(entries, chosen, body)
            batch *= 2
        if found.next_offset == offset:
            after = queue.after_file(offset)
            return ReadResult(
                ReadStatus.OFFSET_FOUND_NULL, after, queue.min_offset, queue.max_offset
            )
        return found.answer(queue)

    def _choose(self, queue: ConsumeQueue, entries: bytes, found: _Found) -> Selected:
        count, wanted = len(entries) // ENTRY_BYTES, None
        if found.mark is not None and queue.ext is not None:
            entries, wanted = queue.ext.marked(entries, found.mark), MARKED
        return select_entries(entries, wanted, count, found.bytes_left, self._log.min)

    async def _cold(self, queue: ConsumeQueue, found: _Found, place: Place) -> ReadResult:
        entries = await self._offload.run(place[0].pread, place[1], place[2])
        chosen = self._choose(queue, entries, found)
        return await self._cold_records(
            queue, found, entries, chosen, self._log.places(chosen.runs)
        )

    async def _cold_records(
        self,
        queue: ConsumeQueue,
        found: _Found,
        entries: bytes,
        chosen: Selected,
        places: list[Place],
    ) -> ReadResult:
        """Read one batch from disk and answer what it has; the next pull goes on."""
        found.take(entries, chosen, await self._offload.run(read_back, places))
        return found.answer(queue)
