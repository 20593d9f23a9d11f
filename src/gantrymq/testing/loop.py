"""Event loops for tests: one with virtual time, and a real one that can be moved forward."""

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
MOMENT_TURNS_MAX = 10_000
"""After so many turns in one moment time moves a little, as it does on a machine: a program may
wait for a rest of time that is too small to be added to a clock."""
MOMENT_SECONDS = 1e-6
LOOK_OUTSIDE_TURNS = 16
"""How often a loop in virtual time looks for what comes from outside of it."""
UPKEEP_SECONDS_MAX = 80.0
"""How late upkeep may come in moved time: a name server drops a broker after 120 s of silence, and
a broker registers every 30 s, so that 110 s at most lie between two registrations."""
UPKEEP_NOTES_MAX = 1_000


class Stuck(RuntimeError):
    """All tasks wait and no timer is set: the simulation would wait for ever."""


class _InstantSelector(selectors.SelectSelector):
    """Moves the loop's clock to the next timer instead of sleeping."""

    loop: "VirtualLoop"
    idle = 0
    turns = 0
    moment, turns_then = 0.0, 0
    """When time last moved, and in which turn."""

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            self.idle += 1
            if self.idle > STUCK_TURNS_MAX:
                raise Stuck("no task can go on and no timer is set")
        else:
            self.idle = 0
            if timeout > 0:
                self.loop.now += timeout
        self.turns += 1
        if self.loop.now > self.moment:
            self.moment, self.turns_then = self.loop.now, self.turns
        elif self.turns - self.turns_then > MOMENT_TURNS_MAX:
            self.loop.now += MOMENT_SECONDS
        # In memory nothing comes from outside; a look now and then is for who uses threads.
        return super().select(0) if self.idle or self.turns % LOOK_OUTSIDE_TURNS == 0 else []


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop in virtual time: when no task can run, time jumps to the next timer."""

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
    """A real loop on real sockets whose time can be moved forward."""

    def __init__(self) -> None:
        self._shift = 0.0
        self._upkeep: dict[int, asyncio.TimerHandle] = {}
        super().__init__()

    def note_upkeep(self, handle: asyncio.TimerHandle) -> None:
        """Mark a timer as upkeep, which may run late; see `gantrymq.base.upkeep`."""
        self._upkeep[id(handle)] = handle
        if len(self._upkeep) > UPKEEP_NOTES_MAX:
            self._next_stop(0.0)

    def time(self) -> float:
        return super().time() + self._shift

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000 + int(self._shift * 1000)

    async def advance(self, seconds: float) -> None:
        """Move time forward timer by timer; work that one timer starts finishes before the next.

        Rounds of upkeep wait for the next other timer, up to UPKEEP_SECONDS_MAX: an idle cluster
        has nothing but them, a few each second.
        """
        if seconds < 0:
            raise ValueError("time goes forward only")
        end = self.time() + seconds
        await self._settle()
        while (upcoming := self._next_stop(end)) < end:
            self._shift += max(0.0, upcoming - self.time())
            await self._settle()
        self._shift += max(0.0, end - self.time())
        await self._settle()

    def _next_stop(self, end: float) -> float:
        """The next moment at which something must happen, `end` if there is none before it."""
        stop, upkeep = end, {}
        for handle in getattr(self, "_scheduled", ()):
            if handle.cancelled():
                continue
            when = handle.when()
            if id(handle) in self._upkeep:
                upkeep[id(handle)] = handle
                when += UPKEEP_SECONDS_MAX
            if when < stop:
                stop = when
        self._upkeep = upkeep  # drop timers that are over, because Python may reuse their ids
        return stop

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
