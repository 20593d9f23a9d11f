"""Answers of clusters that several requests share for a few seconds."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")

SECONDS: Final = 5.0
KEPT_MAX: Final = 64


class Cached(Generic[K, T]):
    """What a function answers for a key, asked again when it is too old.

    Requests that come while the question is under way wait for the same answer. An error is not
    kept: the next request asks again.
    """

    def __init__(self, ask: Callable[[K], Awaitable[T]], seconds: float = SECONDS) -> None:
        self._ask, self._seconds = ask, seconds
        self._found: dict[K, tuple[float, asyncio.Task[T]]] = {}

    async def get(self, key: K) -> T:
        """The answer, at most so many seconds old."""
        now = asyncio.get_running_loop().time()
        known = self._found.get(key)
        if known is None or self._is_over(known, now):
            task = asyncio.ensure_future(self._ask(key))
            self._found[key] = known = (now, task)
            self._forget_old(now)
        # A reader who leaves must not end the question for the others.
        return await asyncio.shield(known[1])

    def _is_over(self, known: tuple[float, asyncio.Task[T]], now: float) -> bool:
        asked, task = known
        if not task.done():
            return False
        return task.cancelled() or task.exception() is not None or now - asked > self._seconds

    def _forget_old(self, now: float) -> None:
        for key in [key for key, known in self._found.items() if self._is_over(known, now)]:
            del self._found[key]
        while len(self._found) > KEPT_MAX:
            del self._found[next(iter(self._found))]

    def forget(self, key: K) -> None:
        """Ask again next time: something was changed."""
        self._found.pop(key, None)
