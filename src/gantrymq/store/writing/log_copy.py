"""The log of a slave: bytes of its master's log, written as they come.

A master sends its log as bytes, so a piece may begin and end inside a record. The bytes are written
at once, at the same log offsets as on the master; records are dispatched when they are whole.
`Writer` takes no appends meanwhile: the two never write to one log.

What always holds: the log is a prefix of the master's. A piece that does not continue it is
refused, and so are bytes that are no records. A restart cuts the last record if it is not whole,
and the copy goes on from there.
"""

from gantrymq.base.offload import Offload
from gantrymq.base.watermark import Watermark
from gantrymq.kernel import STOP_BLANK, STOP_PARTIAL, walk_records
from gantrymq.store.errors import StoreError
from gantrymq.store.log.commitlog import CommitLog
from gantrymq.store.log.flush import Flusher
from gantrymq.store.writing.dispatch import Dispatcher


class CopyRefused(StoreError):
    """The bytes do not continue this log; the text says why, and what to do."""


class LogCopy:
    """Appends the bytes of a master's log."""

    def __init__(
        self, log: CommitLog, dispatcher: Dispatcher, flusher: Flusher, offload: Offload
    ) -> None:
        self._log, self._dispatcher = log, dispatcher
        self._flusher, self._offload = flusher, offload
        self._partial = bytearray()
        """Bytes of the last record that is not whole yet: written, not dispatched."""
        self.sync_flush = False
        """Whether every piece is flushed at once."""

    @property
    def end(self) -> int:
        """Where the next piece has to begin; may lie inside a record."""
        return self._log.end

    @property
    def flushed(self) -> Watermark:
        """Up to where the copy is durable."""
        return self._flusher.flushed

    @property
    def is_empty(self) -> bool:
        """Whether the log never had a byte, so that it may begin at any file of the master."""
        return not self._log.bases

    def tail(self, size_max: int) -> bytes:
        """The last bytes of the log, by which a master knows whether the logs are one.

        They lie in one file: the last one that has any.
        """
        end = self._log.end
        filled = [base for base in self._log.bases if base < end]
        size = min(size_max, end - filled[-1]) if filled else 0
        return self._log.read(size, end - size) if size else b""

    def has_room(self) -> bool:
        """Whether the last file can take a byte; `make_room` makes the next one."""
        return self._log.end < self._log.limit

    async def make_room(self, at: int) -> None:
        """Make the next file, or the first one of an empty log at log offset `at`."""
        log = self._log
        if self.is_empty and at != log.end:
            if at % log.segment_bytes:
                raise CopyRefused(
                    f"the master's log begins at offset {at}, which is no multiple of this "
                    f"broker's mappedFileSizeCommitLog {log.segment_bytes}: give both the same size"
                )
            log.end = at
            self._dispatcher.dispatched.advance(at)
        if log.spare is None:
            log.spare = await self._offload.run(log.make_spare, log.limit)
        log.roll()

    def append(self, at: int, data: bytes) -> int:
        """Write the beginning of `data` that fits into the last file; returns how much that is."""
        if at != self._log.end:
            raise CopyRefused(
                f"the master sent its log from offset {at} on, but this log ends at {self._log.end}"
            )
        piece = data[: self._log.limit - self._log.end]
        self._log.extend(piece)
        self._partial += piece
        self._dispatch()
        if self.sync_flush:
            self._flusher.request(self._log.end)
        return len(piece)

    def _dispatch(self) -> None:
        """Dispatch the records that are whole."""
        dispatched = self._dispatcher.dispatched
        start = dispatched.value
        records, end, stop = walk_records(
            self._partial, start, self._log.rest_of_file(start), False
        )
        if end > start:
            self._dispatcher.feed(records, end)
            del self._partial[: end - start]
        if stop == STOP_BLANK:
            if self._log.end == self._log.limit:
                self._dispatcher.feed([], self._log.limit)
                self._partial.clear()
        elif stop != STOP_PARTIAL:
            self._cut_at(end)
            raise CopyRefused(
                f"what the master sent at log offset {end} is no record: its log is damaged there, "
                "or it has another mappedFileSizeCommitLog"
            )

    def _cut_at(self, end: int) -> None:
        """Forget the bytes behind the last whole record."""
        self._partial.clear()
        self._log.cut(end)
