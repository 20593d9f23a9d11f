"""Group commit: one sync after the other, each for everything written before it began.

A request that must be durable parks on the mark `flushed` and asks for a sync. While one runs,
what is written meanwhile waits for the next; when it ends, the next one starts at once and then
all who waited for the first are answered. So the number of syncs follows the disk, not the load:
with sixty requests in flight a sync serves about thirty.

The sync itself runs outside the event loop and without the interpreter's lock (`syncer`), because
a worker thread would wait for the lock under load.

What always holds: the mark never passes a byte that a finished sync did not cover, and a sync
that failed is final (`Flusher`).
"""

import asyncio
from collections.abc import Callable

from gantrymq.base.histogram import Histogram
from gantrymq.base.watermark import Watermark
from gantrymq.store.log.commitlog import CommitLog
from gantrymq.store.log.syncer import Syncer

PAGE = 4096
FLUSH_BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class Flusher:
    """Moves the flushed mark up to the end of the log.

    A failed sync is final: the pages may be marked clean without being on disk, so another try
    would prove nothing. `on_failure` is called once, and nothing is flushed any more.
    """

    def __init__(self, log: CommitLog, syncer: Syncer, on_failure: Callable[[], None]) -> None:
        self._log, self._syncer, self._on_failure = log, syncer, on_failure
        self.flushed = Watermark(log.end)
        self._target: int | None = None
        self._wanted = log.end
        self._cuts = 0
        """How often the log was cut back."""
        self.seconds = Histogram(FLUSH_BOUNDS)
        """How long syncs took."""
        self._began = 0.0
        self._settled: list[asyncio.Future[None]] = []
        self.failure = ""
        """What made the log read-only; empty as long as no sync has failed."""

    def request(self, upto: int) -> None:
        """Request that the log be durable up to `upto`; the mark `flushed` says when it is."""
        if upto > self._wanted:
            self._wanted = upto
        if self._target is None:
            self._begin()

    def _begin(self) -> None:
        if not self.failure and self._wanted > self.flushed.value:
            self._start()

    def _start(self) -> None:
        self._target, self._began = self._log.end, asyncio.get_running_loop().time()
        self._syncer.sync(self._log.take_dirty(), self._on_done)

    def _on_done(self, error: OSError | None) -> None:
        target, self._target = self._target, None
        self.seconds.observe(asyncio.get_running_loop().time() - self._began)
        for future in self._settled:
            if not future.done():
                future.set_result(None)
        self._settled.clear()
        if self.failure or target is None:
            return
        if error is not None:
            at = self.flushed.value
            self.failure = f"the log could not be synced behind offset {at}: {error}"
            self._on_failure()
            return
        # The next sync starts first, so that it runs while the waiting requests are answered.
        done = max(target, self.flushed.value)
        if self._wanted > done:
            self._start()
        self.flushed.advance(done)

    def cut(self, end: int) -> None:
        """Note that the log was cut back: what is written behind `end` now is not flushed."""
        self._cuts += 1
        self.flushed.lower(min(end, self.flushed.value))
        self._wanted = min(self._wanted, end)
        if self._target is not None:
            self._target = min(self._target, end)

    def begin_anew(self, start: int) -> None:
        """Note that the log was deleted and begins at `start`, behind everything it had."""
        self._wanted = max(self._wanted, start)
        if self.flushed.value < start:
            self.flushed.advance(start)

    async def reach(self, upto: int) -> None:
        """Wait until the log is durable up to an offset; OSError if a sync failed.

        Also if the log was cut meanwhile: what stood there will never be flushed.
        """
        cuts = self._cuts
        self.request(upto)
        while self.flushed.value < upto:
            if self.failure:
                raise OSError(self.failure)
            if cuts != self._cuts:
                raise OSError("the end of the log was cut off before it was flushed")
            await self._end_of_sync()

    async def _end_of_sync(self) -> None:
        """Wait until the running sync has ended, with success or not."""
        if self._target is not None:
            future = asyncio.get_running_loop().create_future()
            self._settled.append(future)
            await future

    def is_worth_it(self, least_pages: int) -> bool:
        """Whether enough pages are dirty for an asynchronous flush."""
        return self._log.end // PAGE - self.flushed.value // PAGE >= least_pages
