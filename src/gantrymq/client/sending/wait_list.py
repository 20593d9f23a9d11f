"""Work that waits, in order, for one thing to become ready: a route, a connection."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Generic, Protocol, TypeVar

from gantrymq.base.background import Background
from gantrymq.base.errors import GantryError
from gantrymq.remoting.pending_call import CallTimeout

log = logging.getLogger(__name__)


class Bounded(Protocol):
    """Work with a deadline, in the event loop's time."""

    deadline: float


W = TypeVar("W", bound=Bounded)


class Waitlist(Generic[W]):
    """For each key one attempt under way, and the work that waits for it.

    The first work of a key starts the attempt. When it succeeds all work continues in order; when
    it fails all work fails with its error. Work whose deadline passes first fails with CallTimeout.
    """

    def __init__(self, go: Callable[[W], None], fail: Callable[[W, GantryError], None]) -> None:
        self._go, self._fail = go, fail
        self._waiting: dict[str, list[W]] = {}
        self._background = Background("sends that wait")

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, key: str) -> bool:
        return key in self._waiting

    def add(self, key: str, work: W, attempt: Callable[[], Awaitable[object]]) -> None:
        """Continue `work` when `attempt`, started unless one is under way, has succeeded."""
        waiting = self._waiting.get(key)
        if waiting is not None:
            waiting.append(work)
            return
        self._waiting[key] = [work]
        self._background.spawn(self._run(key, attempt))

    async def _run(self, key: str, attempt: Callable[[], Awaitable[object]]) -> None:
        error: GantryError | None = None
        trying = asyncio.ensure_future(attempt())
        try:
            while not trying.done():
                await asyncio.wait({trying}, timeout=self._expire(key))
            trying.result()
        except GantryError as failed:
            error = failed
        except asyncio.CancelledError:
            trying.cancel()
            error = GantryError("the client was closed")
        except Exception as bug:  # a bug must not leave work waiting for ever
            log.exception("waiting for %s", key)
            error = GantryError(f"{type(bug).__name__}: {bug}")
        # New work no longer waits from here on, and follows the work that waited.
        for work in self._waiting.pop(key):
            if error is None:
                self._go(work)
            else:
                self._fail(work, error)

    def _expire(self, key: str) -> float | None:
        """Fail the work whose deadline passed; returns the seconds until the next deadline."""
        now = asyncio.get_running_loop().time()
        waiting = self._waiting[key]
        late = [work for work in waiting if work.deadline <= now]
        waiting[:] = [work for work in waiting if work.deadline > now]
        for work in late:
            self._fail(work, CallTimeout(f"{key} was not ready in time"))
        return min((work.deadline for work in waiting), default=now + 1.0) - now

    async def close(self) -> None:
        """Cancel the attempts; work that waits fails."""
        await self._background.close()
