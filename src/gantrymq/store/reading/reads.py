"""Reading: pulls by queue offset, single records, searches by time and by key."""

import struct
from collections.abc import AsyncIterator, Awaitable
from typing import NamedTuple

from gantrymq.base.offload import Offload
from gantrymq.base.watermark import Watermark
from gantrymq.kernel import (
    ENTRY,
    Buffer,
    Selected,
    hash_keys,
    index_keys,
    select_entries,
    store_ms_of,
    walk_records,
)
from gantrymq.protocol.record import BLANK_BYTES, RECORD_BYTES_MIN
from gantrymq.store.append import QueryResult, ReadResult, ReadStatus
from gantrymq.store.index.key_index import ChainStart
from gantrymq.store.log.commitlog import CommitLog, Place, read_back
from gantrymq.store.log.scan import Chunk, scan
from gantrymq.store.queues.consumequeue import ConsumeQueue
from gantrymq.store.queues.queueext import Unit
from gantrymq.store.reading.entry_filter import EntryFilter, FilteredReads
from gantrymq.store.shared import StoreFiles

SCAN_ENTRIES_MIN = 800
"""How many entries a filtered pull looks at, at least; RocketMQ's 16,000 bytes."""

HEAD_BYTES = 76
"""Enough of a record to know when it was stored."""


class StoredEntry(NamedTuple):
    """An entry of a consume queue as it is stored."""

    position: int
    size: int
    code: int
    """The hash of the tag, or the address of the unit."""
    unit: Unit | None

    @property
    def tag_code(self) -> int:
        return self.unit.tag_code if self.unit is not None else self.code


class Reads:
    """All reads of a store. Data in memory is answered at once, the rest by a worker."""

    def __init__(self, files: StoreFiles, dispatched: Watermark, offload: Offload) -> None:
        self._log, self._queues, self._index = files
        self._dispatched, self._offload = dispatched, offload
        self._filtered = FilteredReads(files.log, offload)

    # By offset

    def pull(
        self,
        topic: str,
        queue_id: int,
        offset: int,
        max_count: int,
        max_bytes: int,
        tag_codes: frozenset[int] | None = None,
        entry_filter: EntryFilter | None = None,
    ) -> ReadResult | Awaitable[ReadResult]:
        """Read raw records from a queue offset on, filtered by tag or by their properties.

        Returns the result at once if the data is in memory; otherwise an awaitable, while a worker
        reads.
        """
        queue = self._queues.get(topic, queue_id)
        if queue is None:
            return ReadResult(ReadStatus.NO_MATCHED_LOGIC_QUEUE, 0, 0, 0)
        off = _out_of_range(queue, offset)
        if off is not None:
            return off
        if entry_filter is not None:
            return self._filtered.pull(queue, offset, max_count, max_bytes, entry_filter)
        window = max_count if tag_codes is None else max(SCAN_ENTRIES_MIN, max_count)
        entries = queue.tail_from(offset, window)
        if entries is None:
            place = queue.locate(offset, window)
            if place is None:
                return _answer(ReadStatus.OFFSET_FOUND_NULL, queue, queue.after_file(offset))
            entries = place[0].pread_warm(place[1], place[2])
            if entries is None:
                return self._pull_cold(queue, offset, max_count, max_bytes, tag_codes, place)
        if tag_codes is not None and queue.ext is not None:
            entries = queue.ext.plain(entries, tag_codes)
        chosen = select_entries(entries, tag_codes, max_count, max_bytes, self._log.min)
        if not chosen.records:
            return _nothing(queue, offset, chosen)
        body = self._log.read_warm(chosen.runs)
        if body is None:
            return self._read_cold(queue, offset, chosen, self._log.places(chosen.runs))
        return _found(queue, offset, chosen, body)

    async def _pull_cold(
        self,
        queue: ConsumeQueue,
        offset: int,
        max_count: int,
        max_bytes: int,
        tag_codes: frozenset[int] | None,
        place: Place,
    ) -> ReadResult:
        entries = await self._offload.run(place[0].pread, place[1], place[2])
        if tag_codes is not None and queue.ext is not None:
            entries = queue.ext.plain(entries, tag_codes)
        chosen = select_entries(entries, tag_codes, max_count, max_bytes, self._log.min)
        if not chosen.records:
            return _nothing(queue, offset, chosen)
        return await self._read_cold(queue, offset, chosen, self._log.places(chosen.runs))

    async def _read_cold(
        self, queue: ConsumeQueue, offset: int, chosen: Selected, places: list[Place]
    ) -> ReadResult:
        return _found(queue, offset, chosen, await self._offload.run(read_back, places))

    async def message_at(self, position: int) -> bytes | None:
        """The record that begins at a log offset; None if none does or it is not visible yet."""
        if not self._log.min <= position < self._dispatched.value:
            return None
        head = await self._read(BLANK_BYTES, position)
        size = int.from_bytes(head[:4], "big")
        room = min(self._log.rest_of_file(position), self._dispatched.value - position)
        if not RECORD_BYTES_MIN <= size <= room:
            return None
        data = await self._read(size, position)
        walk = walk_records(data, position, size + BLANK_BYTES, False)
        return data if walk.records else None

    def scan(self, position: int) -> AsyncIterator[Chunk]:
        """Every record from a log offset on, up to the current end; see `log.scan`."""
        return scan(self._log, self._offload, position, self._log.end)

    async def entries(
        self, topic: str, queue_id: int, offset: int, count: int
    ) -> list[StoredEntry] | None:
        """Entries of a queue from an offset on; None if the offset is not in the queue."""
        queue = self._queues.get(topic, queue_id)
        if queue is None or not queue.min_offset <= offset < queue.max_offset:
            return None
        found: list[StoredEntry] = []
        while len(found) < count and offset + len(found) < queue.max_offset:
            at = offset + len(found)
            place = None if queue.tail_from(at, 1) is not None else queue.locate(at, count)
            if place is not None and place[0].pread_warm(place[1], place[2]) is None:
                await self._offload.run(place[0].pread, place[1], place[2])
            data = queue.read(at, count - len(found))
            if not data:  # retention was faster
                break
            units = queue.ext.units(data) if queue.ext is not None else {}
            found += [
                StoredEntry(position, size, code, units.get(code))
                for position, size, code in ENTRY.iter_unpack(data)
            ]
        return found

    async def first_offset_at(self, topic: str, queue_id: int, position: int) -> int:
        """The first offset of a queue whose record is not below a log offset."""
        queue = self._queues.get(topic, queue_id)
        if queue is None:
            return 0
        first = await self._offload.run(queue.on_disk().first_at_or_above, position)
        return queue.first_at_or_above(position, first)

    async def _read(self, size: int, position: int) -> bytes:
        found = self._log.locate(position)
        if found is None:
            return b""
        file, at = found
        data = file.pread_warm(size, at)
        return data if data is not None else await self._offload.run(file.pread, size, at)

    # By time

    async def store_ms_at(self, topic: str, queue_id: int, offset: int) -> int:
        """When the message at a queue offset was stored; -1 if it cannot be read."""
        queue = self._queues.get(topic, queue_id)
        if queue is None or not queue.min_offset <= offset < queue.max_offset:
            return -1
        return await self._store_ms(queue, offset)

    async def earliest_store_ms(self, topic: str, queue_id: int) -> int:
        """When the first readable message of a queue was stored; -1 if there is none."""
        first = self._queues.min_offset(topic, queue_id)
        return await self.store_ms_at(topic, queue_id, first)

    async def _store_ms(self, queue: ConsumeQueue, offset: int) -> int:
        entry = await self._entry(queue, offset)
        if entry is None or entry[0] < self._log.min:
            return -1
        head = await self._read(HEAD_BYTES, entry[0])
        return store_ms_of(head) if len(head) == HEAD_BYTES else -1

    async def _entry(self, queue: ConsumeQueue, offset: int) -> tuple[int, int, int] | None:
        place = None if queue.tail_from(offset, 1) is not None else queue.locate(offset, 1)
        if place is not None and place[0].pread_warm(place[1], place[2]) is None:
            await self._offload.run(place[0].pread, place[1], place[2])
        return queue.entry(offset)

    async def offset_by_time(
        self, topic: str, queue_id: int, ms: int, boundary: str = "LOWER"
    ) -> int:
        """The first offset stored at `ms` or later; with UPPER the last at `ms` or earlier.

        A time before the first message gives the first offset. A time after the last one gives the
        end of the queue, or with UPPER the last offset.
        """
        queue = self._queues.get(topic, queue_id)
        if queue is None:
            return 0
        upper = boundary.upper() == "UPPER"
        low, high = queue.min_offset, queue.max_offset
        while low < high:
            middle = (low + high) // 2
            stored = await self._store_ms(queue, middle)
            # Records that retention deleted meanwhile count as older.
            if stored < 0 or stored < ms or (upper and stored == ms):
                low = middle + 1
            else:
                high = middle
        return max(queue.min_offset, low - 1) if upper else low

    # By key

    async def query(
        self, topic: str, key: str, max_count: int, begin_ms: int, end_ms: int
    ) -> QueryResult:
        """The newest `max_count` records that have this key, in log order."""
        index = self._index
        if index is None:
            return QueryResult([], 0, 0)
        index.build()
        text = f"{topic}#{key}".encode()
        key_hash = hash_keys([text])[0]
        starts = index.chains(key_hash)
        found = await self._offload.run(
            self._search, starts, text, key_hash, max_count, (begin_ms, end_ms), self._snapshot()
        )
        return QueryResult(found, index.end_ms, max(0, index.end_offset))

    def _snapshot(self) -> "LogFiles":
        return LogFiles(self._log)

    def _search(
        self,
        starts: list[ChainStart],
        key: bytes,
        key_hash: int,
        max_count: int,
        window: tuple[int, int],
        files: "LogFiles",
    ) -> list[bytes]:
        """Follow the chains and read their records; runs in a worker."""
        assert self._index is not None
        found: dict[int, bytes] = {}
        for position in self._index.search(starts, key_hash, *window):
            if len(found) >= max_count:
                break
            if position in found:
                continue
            record = files.record_at(position)
            if record is not None and _has_key(record, position, key, window):
                found[position] = record
        return [found[position] for position in sorted(found)]


class LogFiles:
    """The log for a worker: opened by path, independent of the loop's descriptors."""

    def __init__(self, commit_log: CommitLog) -> None:
        self._bases = list(commit_log.bases)
        self._size = commit_log.segment_bytes
        self._files = {base: commit_log.file(base) for base in self._bases[-1:]}
        self._log = commit_log

    def record_at(self, position: int) -> bytes | None:
        """The bytes of the record at `position`, unchecked; None if its size is impossible."""
        if not self._bases or position < self._bases[0]:
            return None
        base = position - (position - self._bases[0]) % self._size
        file = self._files.get(base)
        try:
            if file is None:
                file = self._files[base] = self._log.open_read(base)
        except FileNotFoundError:  # deleted meanwhile
            return None
        head = file.pread(4, position - base)
        size = struct.unpack(">i", head)[0] if len(head) == 4 else 0
        if not RECORD_BYTES_MIN <= size <= self._size:
            return None
        return file.pread(size, position - base)


def _has_key(record: Buffer, position: int, key: bytes, window: tuple[int, int]) -> bool:
    """Whether a record really has this `topic#key`: other keys may have the same hash."""
    walk = walk_records(record, position, len(record) + BLANK_BYTES, False)
    for topic, *_, store_ms, properties in walk.records:
        keys = [b"%b#%b" % (topic, one) for one in index_keys(properties)]
        return window[0] <= store_ms <= window[1] and key in keys
    return False


def _out_of_range(queue: ConsumeQueue, offset: int) -> ReadResult | None:
    low, high = queue.min_offset, queue.max_offset
    if high == 0:
        return _answer(ReadStatus.NO_MESSAGE_IN_QUEUE, queue, 0)
    if offset < low:
        return _answer(ReadStatus.OFFSET_TOO_SMALL, queue, low)
    if offset == high:
        return _answer(ReadStatus.OFFSET_OVERFLOW_ONE, queue, offset)
    if offset > high:
        return _answer(ReadStatus.OFFSET_OVERFLOW_BADLY, queue, high)
    return None


def _answer(status: ReadStatus, queue: ConsumeQueue, next_offset: int) -> ReadResult:
    return ReadResult(status, next_offset, queue.min_offset, queue.max_offset)


def _nothing(queue: ConsumeQueue, offset: int, chosen: Selected) -> ReadResult:
    gone = chosen.gone > 0
    status = ReadStatus.MESSAGE_WAS_REMOVING if gone else ReadStatus.NO_MATCHED_MESSAGE
    return _answer(status, queue, offset + chosen.scanned)


def _found(queue: ConsumeQueue, offset: int, chosen: Selected, body: bytes) -> ReadResult:
    return ReadResult(
        ReadStatus.FOUND,
        offset + chosen.scanned,
        queue.min_offset,
        queue.max_offset,
        chosen.records,
        body,
    )
