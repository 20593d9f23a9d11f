"""Writes that nobody may see and nobody is answered for yet: not flushed, or not copied.

With SYNC_FLUSH a write waits for the flushed mark, with copies for a slave, with both for one after
the other; in a raft group it waits for the committed mark, which counts flushes on all members.
Then it is dispatched and its appends are answered; appends whose time is up are answered before,
and dispatched later all the same.

What always holds: writes are dispatched in the order in which they were written, also when the
settings change between two of them. So a write never overtakes one that waits for the flush.
"""

import asyncio
from collections.abc import Callable

from gantrymq.base.watermark import Watermark
from gantrymq.store.append import PutStatus, Staged, count_of
from gantrymq.store.config import StoreConfig
from gantrymq.store.log.flush import Flusher
from gantrymq.store.writing.copies import Copies
from gantrymq.store.writing.write_counts import WriteCounts

Answer = Callable[[list[Staged], PutStatus, str], None]


class PendingWrite:
    """One write, and its appends that wait for the answer; all get the same one."""

    __slots__ = ("appends", "base", "began", "data", "end", "is_flushed", "timer")

    def __init__(
        self, data: bytes, base: int, end: int, appends: list[Staged], began: float
    ) -> None:
        self.data, self.base, self.end = data, base, end
        self.appends, self.began = appends, began
        self.is_flushed = False
        self.timer: asyncio.TimerHandle | None = None

    def cancel_timeout(self) -> None:
        if self.timer is not None:
            self.timer.cancel()


class PendingWrites:
    """Takes writes through flush and copy to their dispatch and their answer."""

    def __init__(
        self,
        config: StoreConfig,
        flusher: Flusher,
        counts: WriteCounts,
        *,
        dispatch: Callable[[bytes, int], None],
        answer: Answer,
    ) -> None:
        self._config, self._flusher, self._counts = config, flusher, counts
        self._dispatch, self._answer = dispatch, answer
        self._copies: Copies | None = None
        self.copyable = Watermark(flusher.flushed.value)
        """Up to where copies may be made of the log: written, and with SYNC_FLUSH flushed."""
        self._unflushed = self._undispatched = 0
        self._unanswered: dict[PendingWrite, None] = {}
        self._loop = asyncio.get_running_loop()
        self.take_settings()

    def take_settings(self) -> None:
        """Decide whether the next write has to wait; called again when settings change."""
        must_wait = self._waits_for_flush or self._copies is not None
        self.wait = must_wait or self._undispatched > 0

    @property
    def _waits_for_flush(self) -> bool:
        counted = self._copies is not None and self._copies.counts_flush
        return self._config.flush == "SYNC_FLUSH" and not counted

    def wait_for(self, copies: Copies) -> None:
        """Answer and dispatch from now on only what `copies` has let through."""
        self._copies = copies
        self.take_settings()

    def abandon(self, reason: str) -> None:
        """Dispatch nothing of what waits, and refuse its appends.

        For a member of a raft group that does not lead any more: whether its last writes stay in
        the log is for the next leader to decide. Their callbacks wait for a mark that nobody moves.
        """
        self._undispatched = self._unflushed = 0
        self.refuse(reason)

    def add(self, appends: list[Staged], data: bytes, base: int, began: float) -> None:
        """Dispatch and answer when the records are flushed and copied, as the settings ask."""
        patient = [append for append in appends if append.wait]
        write = PendingWrite(data, base, base + len(data), patient, began)
        self._undispatched += 1
        if patient:
            self._unanswered[write] = None
        if self._waits_for_flush or self._unflushed:
            self._unflushed += 1
            self._set_timeout(write, self._config.sync_flush_timeout_ms)
            # Readers must not see what a power cut could take back.
            self._flusher.flushed.park(write.end, lambda: self._flushed(write))
            self._flusher.request(write.end)
        else:
            self._copy(write)
        self._answer([append for append in appends if not append.wait], PutStatus.PUT_OK, "")

    def _flushed(self, write: PendingWrite) -> None:
        self._unflushed -= 1
        self._copy(write)

    def _copy(self, write: PendingWrite) -> None:
        """The records may be copied; go on when they are, if anybody asks for that."""
        write.is_flushed = True
        if self._copies is None or not self._copies.counts_flush:
            self.copyable.advance(write.end)
        if self._copies is None:
            self._finish(write)
            return
        self._copies.wrote(write.end)
        self._set_timeout(write, self._copies.timeout_ms)
        self._copies.mark.park(write.end, lambda: self._finish(write))

    def _finish(self, write: PendingWrite) -> None:
        self._dispatch(write.data, write.base)
        self._undispatched -= 1
        if not self._undispatched:
            self.take_settings()
        write.cancel_timeout()
        if write in self._unanswered:
            del self._unanswered[write]
            self._counts.took(count_of(write.appends), self._loop.time() - write.began)
            status = PutStatus.PUT_OK if self._copies is None else self._copies.status(write.end)
            self._answer(write.appends, status, "")

    def _set_timeout(self, write: PendingWrite, timeout_ms: int) -> None:
        write.cancel_timeout()
        if write in self._unanswered:
            write.timer = self._loop.call_later(timeout_ms / 1000, self._expire, write)

    def _expire(self, write: PendingWrite) -> None:
        del self._unanswered[write]
        if write.is_flushed and self._copies is not None:
            self._answer(write.appends, *self._copies.late())
        else:
            text = f"not flushed within {self._config.sync_flush_timeout_ms} ms"
            self._answer(write.appends, PutStatus.FLUSH_DISK_TIMEOUT, text)

    def refuse(self, reason: str) -> None:
        """Answer all appends that still wait: the flush or the copy will not come.

        They are written, and may be found later. So the answer is not the one of an append that was
        refused before it was written.
        """
        unanswered, self._unanswered = self._unanswered, {}
        for write in unanswered:
            write.cancel_timeout()
            self._answer(write.appends, PutStatus.UNKNOWN_ERROR, reason)
