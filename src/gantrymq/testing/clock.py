"""Clocks for tests: they follow the event loop's time, so both move together."""

import asyncio
import concurrent.futures
from collections.abc import Awaitable, Generator
from typing import Final

from gantrymq.base.clock import WallClock

ADVANCE_SECONDS_MAX: Final = 30.0
EPOCH_MS = 1_700_000_000_000
"""Where virtual calendars begin: a fixed day, so that runs repeat to the byte."""


class LoopClock:
    """A wall clock that follows its event loop's (virtual) time."""

    def __init__(self, loop: asyncio.AbstractEventLoop, epoch_ms: int = EPOCH_MS) -> None:
        self._loop, self._epoch_ms = loop, epoch_ms

    def now_ms(self) -> int:
        return self._epoch_ms + int(self._loop.time() * 1000)


class ShiftedClock:
    """The wall clock of one machine, which may be wrong."""

    def __init__(self, right: WallClock) -> None:
        self._right = right
        self.shift_ms = 0
        """By how much it is ahead."""

    def now_ms(self) -> int:
        return self._right.now_ms() + self.shift_ms


class MovableClock:
    """The wall clock of a cluster under test. `advance` returns when all due work is done."""

    def __init__(self, loop: "asyncio.AbstractEventLoop | None" = None) -> None:
        from gantrymq.testing.loop import MovableLoop

        loop = loop or asyncio.get_running_loop()
        assert isinstance(loop, MovableLoop), "the cluster's loop cannot be moved"
        self._loop = loop

    def now_ms(self) -> int:
        return self._loop.wall_ms()

    def advance(self, seconds: float, timeout: float = ADVANCE_SECONDS_MAX) -> Awaitable[None]:
        """Move time forward.

        In a coroutine await it, `await clock.advance(3600)`; the test's own event loop runs
        meanwhile. Without a running event loop the call blocks, up to `timeout` seconds.
        """
        try:
            here = asyncio.get_running_loop()
        except RuntimeError:
            self._begin(seconds).result(timeout)
            return _Done()
        if here is self._loop:
            return self._loop.advance(seconds)
        return self._across(seconds, timeout)

    async def advance_here(self, seconds: float) -> None:
        """Move time forward, from a coroutine on the cluster's own loop."""
        await self._loop.advance(seconds)

    async def _across(self, seconds: float, timeout: float) -> None:
        async with asyncio.timeout(timeout):
            await asyncio.wrap_future(self._begin(seconds))

    def _begin(self, seconds: float) -> "concurrent.futures.Future[None]":
        return asyncio.run_coroutine_threadsafe(self._loop.advance(seconds), self._loop)


class _Done:
    """An awaitable that is done."""

    def __await__(self) -> Generator[None, None, None]:
        return
        yield
