"""Clocks for tests: they show the loop's time, so moving one moves the other."""

import asyncio

EPOCH_MS = 1_700_000_000_000
"""Where virtual calendars begin: a fixed day, so that runs repeat to the byte."""


class LoopClock:
    """A wall clock that follows its event loop's (virtual) time."""

    def __init__(self, loop: asyncio.AbstractEventLoop, epoch_ms: int = EPOCH_MS) -> None:
        self._loop, self._epoch_ms = loop, epoch_ms

    def now_ms(self) -> int:
        return self._epoch_ms + int(self._loop.time() * 1000)


class MovableClock:
    """The calendar of a cluster under test. `advance` returns when all due work is done."""

    def __init__(self, loop: "asyncio.AbstractEventLoop | None" = None) -> None:
        from gantrymq.testing.loop import MovableLoop

        loop = loop or asyncio.get_running_loop()
        assert isinstance(loop, MovableLoop), "the cluster's loop cannot be moved"
        self._loop = loop

    def now_ms(self) -> int:
        return self._loop.wall_ms()

    async def advance_here(self, seconds: float) -> None:
        """Move time forward, from a coroutine on the cluster's own loop."""
        await self._loop.advance(seconds)

    def advance(self, seconds: float, timeout: float = 30.0) -> None:
        """Move time forward, from any other thread."""
        work = asyncio.run_coroutine_threadsafe(self._loop.advance(seconds), self._loop)
        work.result(timeout)
