"""The background tasks of one owner: a client, a consumer, a broker.

Every task that is not awaited belongs to a `Background`. It ends when its owner closes, and no
failure is lost: periodic work is tried again, a service is started again, and any other task that
fails is logged. An owner that must not be interrupted calls `finish` instead of `close`.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final

from gantrymq.base import upkeep

log = logging.getLogger(__name__)

AGAIN_SECONDS: Final = 1.0
"""How long a service that failed rests before it is started again."""

Work = Callable[[], Awaitable[None]]
Interval = float | Callable[[], float]
"""Seconds between two rounds of periodic work; a function is asked again after each `wake`."""


class Background:
    """The tasks of one owner; the log names the owner."""

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._wakes: dict[asyncio.Event, None] = {}
        """Each ends the pause of one periodic work."""
        self._stopped = False

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start a task that runs once."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._ended)
        return task

    def every(self, interval: Interval, work: Work, *, may_be_late: bool = False) -> None:
        """Run `work` periodically, an interval before each run; a failure does not end it.

        Rounds that may be late are upkeep (`base.upkeep`).
        """
        self.spawn(self._repeat(_as_function(interval), work, may_be_late))

    def wake(self) -> None:
        """Let all pauses look at their intervals again, which may have become shorter."""
        for wake in self._wakes:
            wake.set()

    def keep_up(self, work: Work) -> None:
        """Run a service that has no end of its own; one that fails is started again.

        Otherwise messages would wait for an ended service without any sign of it.
        """
        self.spawn(self._restart(work))

    def stop(self) -> None:
        """Begin no further round of periodic work."""
        self._stopped = True
        self.wake()

    async def finish(self) -> None:
        """Stop, and wait for what is under way instead of cancelling it; services never end."""
        self.stop()
        await asyncio.gather(*self._others(), return_exceptions=True)

    async def close(self) -> None:
        """Cancel all tasks and wait for them; a task that closes its own owner is not awaited."""
        tasks = self._others()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _others(self) -> list[asyncio.Task[None]]:
        return [task for task in self._tasks if task is not asyncio.current_task()]

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task, None)
        if not task.cancelled() and task.exception() is not None:
            log.error("background work of %s ended", self._owner, exc_info=task.exception())

    async def _repeat(self, interval: Callable[[], float], work: Work, may_be_late: bool) -> None:
        wake = asyncio.Event()
        self._wakes[wake] = None
        try:
            while await self._pause(interval, wake, may_be_late):
                try:
                    await work()
                except Exception:
                    seconds = interval()
                    log.exception("periodic work of %s failed; next in %g s", self._owner, seconds)
        finally:
            del self._wakes[wake]

    async def _pause(
        self, interval: Callable[[], float], wake: asyncio.Event, may_be_late: bool
    ) -> bool:
        """Sleep for the interval, as it is when the pause ends; False when work is stopped."""
        loop = asyncio.get_running_loop()
        call_at = upkeep.call_at if may_be_late else loop.call_at
        began = loop.time()
        due = began + interval()
        while not self._stopped:
            wake.clear()
            timer = call_at(due, wake.set)
            try:
                await wake.wait()
            finally:
                timer.cancel()
            due = began + interval()
            if due <= loop.time():
                break
        return not self._stopped

    async def _restart(self, work: Work) -> None:
        while True:
            try:
                await work()
                return
            except Exception:
                log.exception(
                    "background work of %s failed, beginning again in %g s",
                    self._owner,
                    AGAIN_SECONDS,
                )
                await asyncio.sleep(AGAIN_SECONDS)


def _as_function(interval: Interval) -> Callable[[], float]:
    return interval if callable(interval) else lambda: interval
