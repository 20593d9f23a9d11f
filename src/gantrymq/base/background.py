"""The background tasks of one owner: a client, a consumer, a broker.

Every task that is not awaited belongs to a `Background`. It ends when its owner closes, and no
failure is lost: periodic work is tried again, a service is started again, and any other task that
fails is logged.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final

log = logging.getLogger(__name__)

AGAIN_SECONDS: Final = 1.0
"""How long a service that failed rests before it is started again."""

Work = Callable[[], Awaitable[None]]
Pause = Callable[[float], Awaitable[None]]


class Background:
    """The tasks of one owner; the log names the owner."""

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._tasks: dict[asyncio.Task[None], None] = {}

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start a task that runs once."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._ended)
        return task

    def every(self, seconds: float, work: Work, pause: Pause = asyncio.sleep) -> None:
        """Run `work` periodically, `seconds` before each run; a failure does not end it."""
        self.spawn(self._repeat(seconds, work, pause))

    def keep_up(self, work: Work) -> None:
        """Run a service that has no end of its own; one that fails is started again.

        Otherwise messages would wait for an ended service without any sign of it.
        """
        self.spawn(self._restart(work))

    async def close(self) -> None:
        """Cancel all tasks and wait for them; a task that closes its own owner is not awaited."""
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task, None)
        if not task.cancelled() and task.exception() is not None:
            log.error("background work of %s ended", self._owner, exc_info=task.exception())

    async def _repeat(self, seconds: float, work: Work, pause: Pause) -> None:
        while True:
            await pause(seconds)
            try:
                await work()
            except Exception:
                log.exception("periodic work of %s failed; next in %g s", self._owner, seconds)

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
