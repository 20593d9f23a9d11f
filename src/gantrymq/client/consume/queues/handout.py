"""Where pulled messages wait for whoever is free: queues take turns, waiters are woken in a chain.

A waiter that takes something wakes the next one only if more is there, and only one wake-up is
under way at a time. Workers whose handler never waits thus stay with one running worker, and
workers whose handler does wait are all running after a few turns of the loop.
"""

import asyncio
from collections import deque
from typing import Final, Protocol

from gantrymq.client.messages.delivery import Delivery
from gantrymq.client.sending.trace_sink import TraceSink

TURN_SECONDS_MAX: Final = 0.005
"""How long messages may be handed out without a pause before the loop gets its turn."""


class QueueSource(Protocol):
    """One queue's share: what it has to offer right now."""

    queued: bool
    """Whether it stands in line already; kept by the handout."""

    def offers(self, now: float) -> bool:
        """Whether `take` would give anything."""

    def take(self, count: int, now: float) -> list[Delivery]:
        """Up to `count` messages, oldest first."""


class HandoutClosed(Exception):
    """No more messages will come; ends whoever waits for one."""


class Handout:
    """The line of queues that have something to hand out, and of those who want it."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._line: deque[QueueSource] = deque()
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._waking = False
        self._held_until = 0.0
        self._rested = self._loop.time()
        self.closed = False
        self.trace: TraceSink | None = None

    def offer(self, source: QueueSource) -> None:
        """A queue got something new, or may go on."""
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
        """What the next queue in line has, at most `count`; nothing when there is nothing."""
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
                if self.trace is not None:
                    self.trace.handed_out(found)
                return found
        return []

    async def next(self, count: int = 1) -> list[Delivery]:
        """Wait for messages. Also lets the loop turn when this was called for too long at once."""
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
        raise HandoutClosed

    async def _wait(self) -> None:
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                # Woken and cancelled in the same turn: the wake-up belongs to somebody else.
                self._waking = False
                self._wake_one()
            raise
        self._waking = False

    def hold(self, seconds: float) -> None:
        """Hand nothing out for a time; what is out already is not touched."""
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
        """End everybody who waits."""
        self.closed = True
        self._line.clear()
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()
