"""A watermark: a number that grows, on which requests wait (flushed, replicated, ...)."""

import asyncio
import heapq
from collections.abc import Callable
from itertools import count
from typing import Final

WITHDRAWN_MIN: Final = 32
"""Fewer cancelled callbacks than this stay in the heap."""


class Parked:
    """A callback that waits for a watermark; `cancel` makes it a no-op."""

    __slots__ = ("_mark", "callback")

    def __init__(self, mark: "Watermark", callback: Callable[[], None] | None) -> None:
        self._mark = mark
        self.callback = callback
        """None once it was called, or is not wanted any more."""

    def cancel(self) -> None:
        if self.callback is not None:
            self.callback = None
            self._mark.withdrawn()


class Watermark:
    """An offset that rises, and that callbacks and tasks can wait for."""

    __slots__ = ("_serial", "_waiting", "_withdrawn", "value")

    def __init__(self, value: int = 0) -> None:
        self.value = value
        self._waiting: list[tuple[int, int, Parked]] = []
        self._withdrawn = 0
        """How many of them are cancelled."""
        self._serial = count()

    def advance(self, value: int) -> None:
        """Raise the mark and run every callback that it has reached, lowest target first."""
        assert value >= self.value, f"a watermark never falls: {self.value} to {value}"
        self.value = value
        waiting = self._waiting
        while waiting and waiting[0][0] <= value:
            parked = heapq.heappop(waiting)[2]
            callback, parked.callback = parked.callback, None
            if callback is not None:
                callback()
            else:
                self._withdrawn -= 1

    def lower(self, value: int) -> None:
        """Set the mark back, because what it stood for is no longer there (a log was cut).

        Callbacks that wait keep waiting for their targets.
        """
        assert value <= self.value, f"lowered from {self.value} to {value}"
        self.value = value

    def park(self, target: int, callback: Callable[[], None]) -> Parked:
        """Call back as soon as the mark reaches `target`; at once if it already has."""
        if self.value >= target:
            callback()
            return Parked(self, None)
        parked = Parked(self, callback)
        heapq.heappush(self._waiting, (target, next(self._serial), parked))
        return parked

    def withdrawn(self) -> None:
        """Count a cancelled callback; many are removed from the heap, so that it cannot grow."""
        self._withdrawn += 1
        waiting = self._waiting
        if self._withdrawn > WITHDRAWN_MIN and 2 * self._withdrawn > len(waiting):
            waiting[:] = [entry for entry in waiting if entry[2].callback is not None]
            heapq.heapify(waiting)
            self._withdrawn = 0

    @property
    def waiting(self) -> int:
        """How many callbacks wait and are not cancelled."""
        return len(self._waiting) - self._withdrawn

    async def reach(self, target: int) -> None:
        """Wait until the mark is at `target` or beyond."""
        if self.value >= target:
            return
        future = asyncio.get_running_loop().create_future()
        parked = self.park(target, lambda: None if future.done() else future.set_result(None))
        try:
            await future
        finally:
            parked.cancel()
