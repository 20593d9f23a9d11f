"""Event loops whose time is ours: one fully virtual, one real that can be pushed forward."""

import asyncio
import selectors
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

QUIET_TURNS = 3
"""Turns in a row with nothing to do after which a moved loop counts as settled."""
SETTLE_TURNS_MAX = 10_000
STUCK_TURNS_MAX = 1_000


class Stuck(RuntimeError):
    """Everything waits and no timer is set: the simulation would wait for ever."""


class _InstantSelector(selectors.SelectSelector):
    """Instead of sleeping until the next timer, it moves the loop's clock there."""

    loop: "VirtualLoop"
    idle = 0

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            self.idle += 1
            if self.idle > STUCK_TURNS_MAX:
                raise Stuck("no task can go on and no timer is set")
        else:
            self.idle = 0
            if timeout > 0:
                self.loop.now += timeout
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """Time passes only when nothing else can happen, and then at once."""

    def __init__(self) -> None:
        selector = _InstantSelector()
        self.now = 0.0
        super().__init__(selector)
        selector.loop = self
        # Timers within a nanosecond of each other are due together on a real loop as well.
        self._clock_resolution = 1e-9

    def time(self) -> float:
        return self.now


class MovableLoop(asyncio.SelectorEventLoop):
    """A real loop on real sockets whose time can be pushed forward."""

    def __init__(self) -> None:
        self._shift = 0.0
        super().__init__()

    def time(self) -> float:
        return super().time() + self._shift

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000 + int(self._shift * 1000)

    async def advance(self, seconds: float) -> None:
        """Go forward timer by timer, so that what each one starts can finish before the next."""
        if seconds < 0:
            raise ValueError("time goes forward only")
        end = self.time() + seconds
        await self._settle()
        while True:
            due = [handle.when() for handle in self._timers() if not handle.cancelled()]
            upcoming = min(due, default=end)
            if upcoming >= end:
                break
            self._shift += max(0.0, upcoming - self.time())
            await self._settle()
        self._shift += max(0.0, end - self.time())
        await self._settle()

    def _timers(self) -> list[asyncio.TimerHandle]:
        return list(getattr(self, "_scheduled", []))

    async def _settle(self) -> None:
        """Let everything that is due run, including what arrives over our own sockets."""
        ready = getattr(self, "_ready", ())
        quiet = 0
        for _ in range(SETTLE_TURNS_MAX):
            await asyncio.sleep(0)
            quiet = quiet + 1 if not ready else 0
            if quiet == QUIET_TURNS:
                return


def simulate(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine function in virtual time, to its end."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work())
