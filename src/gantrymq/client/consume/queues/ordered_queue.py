"""The process queue of an ordered consumer: locked at the broker, one batch at a time."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Final

from gantrymq.base.errors import GantryError
from gantrymq.base.plurals import counted
from gantrymq.client.consume.membership.retry_log import log_retry_in_place
from gantrymq.client.consume.queues.process_queue import ProcessQueue, SendBack
from gantrymq.client.consume.queues.ready_queues import ReadyQueues
from gantrymq.client.messages.delivery import DEAD_LEVEL, Delivery
from gantrymq.client.messages.failures import Failure
from gantrymq.model import Queue

log = logging.getLogger(__name__)

LOCK_SECONDS_MAX: Final = 30.0
"""Half of what the broker grants: from here on a lock that was not renewed counts as lost."""


class OrderedProcessQueue(ProcessQueue):
    """A process queue in order: one batch is out at a time, and failures are retried in place."""

    def __init__(
        self,
        queue: Queue,
        start: int,
        ready: ReadyQueues,
        send_back: SendBack | None,
        *,
        retries_max: int | None,
        pause_seconds: float,
        connected: Callable[[], bool] | None = None,
    ) -> None:
        super().__init__(queue, start, ready, send_back)
        self._connected = connected
        """Whether the connection is open on which the lock was granted; None: no lock is needed."""
        self._retries_max, self._pause_seconds = retries_max, pause_seconds
        self._out = 0
        self._failed: list[Delivery] = []
        self._paused_until = 0.0
        self._idle = asyncio.Event()
        self._idle.set()
        self.locked_at = self._loop.time()

    def is_locked(self, now: float) -> bool:
        """Whether the lock is still valid; without it the queue hands out nothing."""
        if self._connected is None:
            return True
        return now - self.locked_at < LOCK_SECONDS_MAX and self._connected()

    def relocked(self) -> None:
        """The broker has renewed the lock."""
        self.locked_at = self._loop.time()
        self._ready.offer(self)

    def offers(self, now: float) -> bool:
        free = not self._out and now >= self._paused_until
        return free and super().offers(now) and self.is_locked(now)

    def take(self, count: int, now: float) -> list[Delivery]:
        if not self.offers(now):
            return []
        batch = super().take(count, now)
        self._out = len(batch)
        self._idle.clear()
        return batch

    def take_one(self, now: float) -> Delivery | None:
        batch = self.take(1, now)
        return batch[0] if batch else None

    def still_counts(self, message: Delivery) -> bool:
        """True also for a batch that is out after the drop: the lock is kept until it ends."""
        counts = super().still_counts(message)
        return counts or not self._idle.is_set()

    def finish(self, message: Delivery) -> None:
        super().finish(message)
        self._one_back()

    async def sent_back(self, message: Delivery, delay_level: int) -> None:
        if not self.still_counts(message):
            return
        self.stats.went_wrong(self._loop.time())
        limit = self._retries_max
        exhausted = limit is not None and message.reconsume_times >= limit
        if delay_level != DEAD_LEVEL and not exhausted:
            log_retry_in_place(message, limit, self._pause_seconds)
            self._failed.append(message)
            self._one_back()
        elif self._send_back is None:
            log.warning("%r failed for good; broadcasting has no dead letters", message)
            self.finish(message)
        else:
            if exhausted:
                failure = message.failure or Failure()
                tries = f"failed {counted(message.reconsume_times + 1, 'time')} in place"
                message.failure = failure._replace(reason=failure.reason or tries)
            await self._to_dead_letters(message, self._send_back)

    async def _to_dead_letters(self, message: Delivery, send_back: SendBack) -> None:
        try:
            await send_back(message, DEAD_LEVEL)
        except BaseException as error:
            # Also after a cancellation: the queue must not wait for this message for ever.
            self._failed.append(message)
            self._one_back()
            if not isinstance(error, GantryError):
                raise
            log.warning("%r not sent to the dead letters, the queue waits: %s", message, error)
        else:
            self.finish(message)

    async def expired(self, message: Delivery) -> None:
        message.expire()
        self._failed.append(message)
        self._one_back()

    def _one_back(self) -> None:
        """Count a message as back; after the whole batch continue, with a pause if one failed."""
        self._out -= 1
        if self._out > 0:
            return
        self._idle.set()
        failed, self._failed = self._failed, []
        if self.dropped:
            return
        if failed:
            self._put_back(failed)
            self._paused_until = self._loop.time() + self._pause_seconds
            self._loop.call_later(self._pause_seconds, self._go_on)
        else:
            self._ready.offer(self)

    def _put_back(self, failed: Iterable[Delivery]) -> None:
        for message in sorted(failed, key=lambda message: message.offset, reverse=True):
            again = message.again()
            self.progress.replace(message.offset, again)
            self.waiting.appendleft(again)

    def _go_on(self) -> None:
        self._paused_until = 0.0
        if not self.dropped:
            self._ready.offer(self)

    async def drain(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        except TimeoutError:
            return False
        return True
