"""Work that several callers wait for: one attempt at a time for each key, its result for all."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from gantrymq.base.background import Background

T = TypeVar("T")


class SharedWork(Generic[T]):
    """The attempts under way, by key. They outlive a caller that is cancelled, not their owner."""

    def __init__(self, owner: str) -> None:
        self._background = Background(owner)
        self._results: dict[str, asyncio.Future[T]] = {}

    async def run(self, key: str, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The result of the attempt for `key` that is under way, or of `work`, started now."""
        result = self._results.get(key)
        if result is None:
            result = self._results[key] = asyncio.get_running_loop().create_future()
            self._background.spawn(self._settle(key, result, work))
        # Shielded: a caller that is cancelled must not cancel the attempt of the others.
        return await asyncio.shield(result)

    async def _settle(
        self, key: str, result: asyncio.Future[T], work: Callable[[], Coroutine[Any, Any, T]]
    ) -> None:
        try:
            found = await work()
        except Exception as error:
            result.set_exception(error)
            result.exception()  # marks it as seen: all callers may be cancelled
        else:
            result.set_result(found)
        finally:
            del self._results[key]
            result.cancel()  # of no effect unless this task was cancelled

    async def close(self) -> None:
        """Cancel the attempts; their callers are cancelled as well."""
        await self._background.close()
        for result in self._results.values():  # of attempts that had not begun
            result.cancel()
        self._results.clear()
