"""One idea for three needs: flushed, replicated and dispatched offsets that others wait for."""

import asyncio
import heapq
from collections.abc import Callable
from itertools import count


class Parked:
    """A callback that waits for a watermark; `cancel` makes it a no-op."""

    __slots__ = ("callback",)

    def __init__(self, callback: Callable[[], None] | None) -> None:
        self.callback = callback

    def cancel(self) -> None:
        self.callback = None


class Watermark:
    """An offset that only rises, and that callbacks and tasks can wait for."""

    __slots__ = ("_serial", "_waiting", "value")

    def __init__(self, value: int = 0) -> None:
        self.value = value
        self._waiting: list[tuple[int, int, Parked]] = []
        self._serial = count()

    def advance(self, value: int) -> None:
        """Raise the mark and run, lowest target first, every callback that it has reached."""
        assert value >= self.value, f"a watermark never falls: {self.value} to {value}"
        self.value = value
        waiting = self._waiting
        while waiting and waiting[0][0] <= value:
            callback = heapq.heappop(waiting)[2].callback
            if callback is not None:
                callback()

    def park(self, target: int, callback: Callable[[], None]) -> Parked:
        """Call back as soon as the mark reaches `target`; at once if it already has."""
        parked = Parked(callback)
        if self.value >= target:
            callback()
        else:
            heapq.heappush(self._waiting, (target, next(self._serial), parked))
        return parked

    @property
    def waiting(self) -> int:
        """How many callbacks are still wanted."""
        return sum(1 for _, _, parked in self._waiting if parked.callback is not None)

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
