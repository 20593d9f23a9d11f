"""Callers of a consumer that wait until it holds enough queues."""

import asyncio
from collections.abc import Callable

from gantrymq.model import Queue


class AssignmentWaiters:
    """The waiting callers of one consumer; each looks again when the held queues change."""

    def __init__(self) -> None:
        self._waiters: dict[asyncio.Event, None] = {}

    async def wait(self, count: int, held: Callable[[], list[Queue]]) -> list[Queue]:
        """Wait until `held` returns at least `count` queues; raises what `held` raises."""
        changed = asyncio.Event()
        self._waiters[changed] = None
        try:
            while len(found := held()) < count:
                await changed.wait()
                changed.clear()
        finally:
            del self._waiters[changed]
        return found

    def wake(self, _: object = None) -> None:
        """Let all look again: the held queues changed, or the consumer ends."""
        for changed in self._waiters:
            changed.set()
