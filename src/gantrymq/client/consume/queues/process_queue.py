"""A process queue: a held queue with its pulled and unfinished messages."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from gantrymq.base.errors import GantryError
from gantrymq.client.consume.membership.consume_stats import TopicStats
from gantrymq.client.consume.queue_progress import QueueProgress
from gantrymq.client.consume.queues.ready_queues import ReadyQueues
from gantrymq.client.core.errors import Closed
from gantrymq.client.messages.delivery import Delivery
from gantrymq.model import Queue

log = logging.getLogger(__name__)

REDELIVER_SECONDS: Final = 5.0
"""Pause before a message that could not be sent back is handed out again by this member."""
EXPIRED_LEVEL: Final = 3
"""Delay level (10 s) of a message that was not finished in time."""

SendBack = Callable[[Delivery, int], Awaitable[None]]


class ProcessQueue:
    """The process queue of a concurrent consumer: hands messages out as they come."""

    def __init__(self, queue: Queue, start: int, ready: ReadyQueues, send_back: SendBack | None):
        self._loop = asyncio.get_running_loop()
        self._ready, self._send_back = ready, send_back
        self.queue = queue
        self.progress: QueueProgress[Delivery] = QueueProgress(start)
        self.waiting: deque[Delivery] = deque()
        self.queued = False
        self.dropped = False
        """The member gave the queue up: results of messages that are out are ignored."""
        self.closed = False
        self.paused = False
        """Paused by the user: neither pulled nor handed out."""
        self.broker_id = 0
        """Which member of the broker to pull from, as the broker suggested."""
        self.pull_size = 0
        """How many messages the pull under way asks for, and then how many the next one should; 0
        is as many as the first time."""
        self.last_pull = self._loop.time()
        self.last_finish = 0.0
        self.room = asyncio.Event()
        """Set when a queue that was full has room again."""
        self.room_below = 0
        self.pulls: asyncio.Task[None] | None = None
        self.stats = TopicStats()

    # messages coming in and going out

    def add(self, messages: Iterable[Delivery]) -> None:
        """Add pulled messages."""
        for message in messages:
            if self.progress.take(message.offset, message, message.size):
                self.waiting.append(message)
        self._ready.offer(self)

    def offers(self, now: float) -> bool:
        return bool(self.waiting) and not self.paused

    def take(self, count: int, now: float) -> list[Delivery]:
        waiting = self.waiting
        if self.paused:
            return []
        return [waiting.popleft() for _ in range(min(count, len(waiting)))]

    def take_one(self, now: float) -> Delivery | None:
        return self.waiting.popleft() if self.waiting and not self.paused else None

    # messages coming back

    def acked(self, message: Delivery) -> None:
        if not (self.closed or self.dropped) or self.still_counts(message):
            self.finish(message)

    async def sent_back(self, message: Delivery, delay_level: int) -> None:
        if not self.still_counts(message):
            return
        self.stats.went_wrong(self._loop.time())
        if self._send_back is None:
            log.warning("%r failed; a broadcasting group has no retries, so it is lost", message)
            self.finish(message)
            return
        try:
            await self._send_back(message, delay_level)
        except BaseException as error:
            # Also after a cancellation: the message is open, and nothing else redelivers it.
            self._loop.call_later(REDELIVER_SECONDS, self.redeliver, message)
            if not isinstance(error, GantryError):
                raise
            log.warning("%r not sent back, tried again here: %s", message, error)
        else:
            self.finish(message)

    async def expired(self, message: Delivery) -> None:
        """Send back a message that was not finished in time; if broadcasting, redeliver it."""
        message.expire()
        if self._send_back is None:
            self.redeliver(message)
        else:
            await self.sent_back(message, EXPIRED_LEVEL)

    def redeliver(self, message: Delivery) -> None:
        """Hand it out again, before messages that were not handed out yet."""
        if not self.dropped:
            again = message.again()
            self.progress.replace(message.offset, again)
            self.waiting.appendleft(again)
            self._ready.offer(self)

    def finish(self, message: Delivery) -> None:
        progress = self.progress
        progress.finish(message.offset)
        started = message.started
        if started is not None:
            self.last_finish = now = self._loop.time()
            self.stats.done.add(now, 1, now - started)
        if self.room_below and progress.count < self.room_below:
            self.room.set()

    def still_counts(self, message: Delivery) -> bool:
        if self.closed:
            raise Closed(f"{message!r}: the consumer is closed, it will be delivered again")
        if self.dropped:
            log.debug("%r finished, but the queue was given away", message)
        return not self.dropped

    def resume(self) -> None:
        """End a pause."""
        self.paused = False
        self._ready.offer(self)

    # giving the queue up

    def drop(self) -> None:
        """Stop pulling and handing out; results of messages that are out are ignored."""
        self.dropped = True
        self.waiting.clear()
        if self.pulls is not None:
            self.pulls.cancel()

    async def drain(self, seconds: float) -> bool:
        """Wait until no message is out that another member must not overtake; False: timed out."""
        return True
