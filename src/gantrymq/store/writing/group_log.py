"""The log of a member of a raft group: who writes it, how it is cut, what of it readers see.

The leader appends through `Writer`, as any broker does. Followers write the bytes that the leader
sends, at the same log offsets. Both show a record only when the group has committed it: until then
it is in the log, but in no queue, and may be cut off again.

What always holds: nothing is dispatched that is not committed, so a cut never reaches behind
`dispatched`. Ranges of bytes begin and end at record boundaries; the blank end of a file counts as
one record.
"""

from collections.abc import Awaitable

from gantrymq.base.clock import WallClock
from gantrymq.base.offload import Offload
from gantrymq.kernel import STOP_BLANK, STOP_PARTIAL, encode_records, walk_records
from gantrymq.protocol.record import BLANK_BYTES, TRANSACTION_ROLLBACK
from gantrymq.store.errors import StoreError
from gantrymq.store.log.flush import Flusher
from gantrymq.store.shared import StoreFiles
from gantrymq.store.writing.dispatch import Dispatcher
from gantrymq.store.writing.log_copy import LogCopy

SLICE_BYTES = 1 << 20
"""How much is dispatched before others may run."""
LEADER_TOPIC = b"RMQ_SYS_RAFT_LEADER"
"""The topic of leader records. They are rollback records, which no queue and no index has."""


class GroupLog:
    """Reads, writes, cuts and dispatches the log by order of the raft group."""

    def __init__(
        self,
        files: StoreFiles,
        copy: LogCopy,
        dispatcher: Dispatcher,
        flusher: Flusher,
        clock: WallClock,
        offload: Offload,
        store_host: bytes,
    ) -> None:
        self._log, self._queues, self._index = files
        self._copy, self._dispatcher, self.flusher = copy, dispatcher, flusher
        self._clock, self._offload, self._store_host = clock, offload, store_host
        self.cuts = 0
        """How often the end of the log was cut off."""

    @property
    def first(self) -> int:
        """The first log offset that can be read."""
        return self._log.min

    @property
    def end(self) -> int:
        """Where the next record goes."""
        return self._log.end

    @property
    def dispatched(self) -> int:
        """Up to where queues and index have followed."""
        return self._dispatcher.dispatched.value

    # Reading

    def read(self, start: int, size: int) -> bytes:
        """Bytes of the log, across files."""
        parts = []
        while size > 0:
            part = self._log.read(min(size, self._log.rest_of_file(start)), start)
            if not part:
                raise StoreError(f"log offset {start} cannot be read")
            parts.append(part)
            start, size = start + len(part), size - len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def read_warm(self, start: int, size: int) -> bytes | None:
        """Bytes of the log, across files; None if that would wait for the disk, or is deleted."""
        parts = []
        while size > 0:
            piece = min(size, self._log.rest_of_file(start))
            found = self._log.locate(start)
            part = found[0].pread_warm(piece, found[1]) if found is not None else None
            if part is None:
                return None
            parts.append(part)
            start, size = start + piece, size - piece
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def read_or_fetch(self, start: int, size: int) -> bytes | Awaitable[bytes]:
        """Bytes of one file of the log, up to so many; an awaitable if the disk is asked."""
        return self._log.read_or_fetch(
            min(size, self._log.rest_of_file(start)), start, self._offload
        )

    def boundary_bytes(self, start: int, limit: int) -> int:
        """How many bytes from `start` on have to be seen to find a boundary up to `limit`."""
        return min(max(limit - start, BLANK_BYTES), self._log.rest_of_file(start))

    def boundary_in(self, start: int, data: bytes) -> int:
        """The last record boundary in these bytes; at least one record behind `start`."""
        rest = self._log.rest_of_file(start)
        _, end, stop = walk_records(data, start, rest, False)
        if end > start:
            return end
        return start + (rest if stop == STOP_BLANK else int.from_bytes(data[:4], "big"))

    def verify(self, start: int, data: bytes) -> None:
        """StoreError if the bytes from `start` on are not whole records."""
        while data:
            rest = self._log.rest_of_file(start)
            part = data[:rest]
            _, end, stop = walk_records(part, start, rest, True)
            if end < start + len(part) and stop != STOP_BLANK:
                raise StoreError(f"its log is damaged at {end}")
            start, data = start + len(part), data[len(part) :]

    # Writing

    async def write(self, at: int, data: bytes) -> None:
        """Write bytes of the leader's log, making files as they are needed."""
        if at != self._log.end:
            raise StoreError(f"the leader's bytes begin at {at}, but this log ends at {self.end}")
        while data:
            if not self._copy.has_room():
                await self._copy.make_room(self._log.end)
            piece = data[: self._log.limit - self._log.end]
            self._log.extend(piece)
            data = data[len(piece) :]

    async def write_leader_record(self, term: int) -> None:
        """Write the first record of a new leader's term."""
        now_ms = max(self._clock.now_ms(), self._dispatcher.last_store_ms)
        body = str(term).encode()
        host = bytes(8)
        item = (LEADER_TOPIC, 0, 0, 0, TRANSACTION_ROLLBACK, now_ms, host, 0, 0, body, b"")
        size = len(encode_records([item], self._log.end, now_ms, self._store_host)[0])
        if self._log.room < size:
            await self._copy.make_room(self._log.end)
        self._log.append(encode_records([item], self._log.end, now_ms, self._store_host)[0])

    def cut(self, end: int) -> None:
        """Cut off what was written but never committed; durable when this returns."""
        if end < self.dispatched:
            raise StoreError(f"the log cannot be cut at {end}: {self.dispatched} is committed")
        self.cuts += 1
        self._log.cut_back(end)
        self.flusher.cut(end)

    def begin_anew(self, first: int) -> list[str]:
        """Delete log, queues and index, and begin at `first`; returns folders to delete.

        OSError before anything else is changed if the log's files cannot be deleted.
        """
        self.cuts += 1
        self._log.begin_anew(first)
        topics = dict.fromkeys(queue.topic for queue in self._queues.known())
        folders = [folder for topic in topics for folder in self._queues.delete_topic(topic)]
        self.flusher.begin_anew(first)
        self._dispatcher.dispatched.advance(first)
        if self._index is not None:
            self._index.trim(first)
        return folders

    # Dispatching

    def dispatch(self, upto: int) -> bool:
        """Dispatch a slice of what is committed; False when nothing is left."""
        start = self.dispatched
        if start >= upto:
            return False
        rest, size = self._log.rest_of_file(start), SLICE_BYTES
        while True:
            data = self._log.read(min(size, rest, upto - start), start)
            records, end, stop = walk_records(data, start, rest, False)
            if stop == STOP_BLANK:
                end = start + rest
            if end > start:
                break
            if stop != STOP_PARTIAL or size >= rest:
                raise StoreError(f"there is no record at log offset {start}, which is committed")
            size *= 2
        self._dispatcher.feed(records, end)
        return end < upto
