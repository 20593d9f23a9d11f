"""Process queues with messages for a handler: they take turns, waiters are woken in a chain.

A waiter that takes messages wakes the next one only if more are there, and only one wake-up is
under way at a time. With a handler that never awaits, only one worker runs; with a handler that
does, all workers run after a few turns of the event loop.
"""

import asyncio
from collections import deque
from typing import Final, Protocol

from gantrymq.client.messages.delivery import Delivery
from gantrymq.client.sending.trace_sink import HandOutSink

TURN_SECONDS_MAX: Final = 0.005
"""How long messages may be handed out without a pause before the loop gets its turn."""


class QueueSource(Protocol):
    """A process queue, as far as its turns need it."""

    queued: bool
    """Whether it stands in line already; kept by ReadyQueues."""

    def offers(self, now: float) -> bool:
        """Whether `take` would return a message."""

    def take(self, count: int, now: float) -> list[Delivery]:
        """Up to `count` messages, oldest first."""

    def take_one(self, now: float) -> Delivery | None:
        """The oldest message."""


class ReadyQueuesClosed(Exception):
    """The consumer closes or has failed: no more messages will come."""


class ReadyQueues:
    """The process queues that have messages to hand out, and the workers that wait for them."""

    def __init__(self, trace: HandOutSink | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._line: deque[QueueSource] = deque()
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._waking = False
        self._held_until = 0.0
        self._rested = self._loop.time()
        self.closed = False
        self._trace = trace

    def offer(self, source: QueueSource) -> None:
        """Add a process queue that has messages to hand out."""
        if not source.queued and source.offers(self._loop.time()):
            source.queued = True
            self._line.append(source)
            self._wake_one()

    def _wake_one(self) -> None:
        if self._waking:
            return
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                self._waking = True
                waiter.set_result(None)
                return

    def take(self, count: int) -> list[Delivery]:
        """Up to `count` messages of the next queue in line; [] when no queue has any."""
        now = self._loop.time()
        if now < self._held_until:
            return []
        line = self._line
        while line:
            source = line.popleft()
            source.queued = False
            found = source.take(count, now)
            if source.offers(now):
                source.queued = True
                line.append(source)
            if found:
                if line:
                    self._wake_one()
                for message in found:
                    message.started = now
                if self._trace is not None:
                    self._trace.handed_out(found)
                return found
        return []

    def take_one(self) -> Delivery | None:
        """The next message; None without one, or when the event loop must have its turn."""
        now = self._loop.time()
        if now - self._rested > TURN_SECONDS_MAX or now < self._held_until:
            return None
        line = self._line
        while line:
            source = line[0]
            message = source.take_one(now)
            if source.offers(now):
                line.rotate(-1)
            else:
                line.popleft()
                source.queued = False
            if message is not None:
                if line and self._waiters:
                    self._wake_one()
                message.started = now
                if self._trace is not None:
                    self._trace.handed_out([message])
                return message
        return None

    async def next(self, count: int = 1) -> list[Delivery]:
        """Wait for messages. Yields to the event loop after TURN_SECONDS_MAX without a pause."""
        loop = self._loop
        if loop.time() - self._rested > TURN_SECONDS_MAX:
            await asyncio.sleep(0)
            self._rested = loop.time()
        while not self.closed:
            found = self.take(count)
            if found:
                return found
            await self._wait()
            self._rested = loop.time()
        raise ReadyQueuesClosed

    async def _wait(self) -> None:
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                # Woken and cancelled in the same turn: pass the wake-up on to another waiter.
                self._waking = False
                self._wake_one()
            raise
        self._waking = False

    def hold(self, seconds: float) -> None:
        """Hand out no messages for `seconds`; those already handed out are not affected."""
        self._held_until = self._loop.time() + seconds
        self._loop.call_later(seconds, self._resume)

    def release(self) -> None:
        """End a hold."""
        self._held_until = 0.0
        self._resume()

    @property
    def held(self) -> bool:
        return self._loop.time() < self._held_until

    def _resume(self) -> None:
        if self._line and not self.held:
            self._wake_one()

    def close(self) -> None:
        """Close it; every waiter gets ReadyQueuesClosed."""
        self.closed = True
        self._line.clear()
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()
