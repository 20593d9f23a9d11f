"""The window of a producer: how many messages and bytes may be under way at once."""

import asyncio
from collections import deque

from gantrymq.base.plurals import counted
from gantrymq.client.core.errors import WindowFull


class SendWindow:
    """Counts pending sends; callers wait for room, or until none is pending."""

    def __init__(self, messages_max: int, bytes_max: int) -> None:
        self._messages_max, self._bytes_max = messages_max, bytes_max
        self._loop = asyncio.get_running_loop()
        self._room_waiters: deque[asyncio.Future[None]] = deque()
        self._idle: asyncio.Future[None] | None = None
        self.count = 0
        """Messages under way."""
        self.bytes = 0
        self.full = False
        """Whether the next message has to wait."""

    def enter(self, size: int) -> None:
        """Count a message of `size` bytes."""
        self.count += 1
        self.bytes += size
        self.full = self.count >= self._messages_max or self.bytes >= self._bytes_max

    def check(self) -> None:
        """Raise WindowFull if the next message has to wait."""
        if self.full:
            raise WindowFull(
                f"{counted(self.count, 'message')} ({counted(self.bytes, 'byte')}) under way, "
                "no room for more: `await producer.room()` before the next submit"
            )

    async def room(self) -> None:
        """Wait until the window has room."""
        while self.full:
            waiter: asyncio.Future[None] = self._loop.create_future()
            self._room_waiters.append(waiter)
            await waiter

    async def idle(self) -> None:
        """Wait until no send is pending; every send has a deadline, so this ends."""
        while self.count:
            if self._idle is None:
                self._idle = self._loop.create_future()
            await asyncio.shield(self._idle)

    def leave(self, size: int, count: int = 1) -> None:
        """Take settled sends of `size` bytes out, and wake who waits for that."""
        self.count -= count
        self.bytes -= size
        self.full = self.count >= self._messages_max or self.bytes >= self._bytes_max
        waiters = self._room_waiters
        # Wake one waiter for each send that ends, and all when none is pending: a woken waiter may
        # have been cancelled meanwhile. A waiter that finds the window full waits again.
        while waiters and not self.full:
            waiter = waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                count -= 1
                if self.count and not count:
                    break
        if not self.count and self._idle is not None:
            self._idle.set_result(None)
            self._idle = None
