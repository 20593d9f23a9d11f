"""Runs blocking handlers on threads, for a consumer on an event loop."""

import asyncio
import concurrent.futures
import contextvars
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from gantrymq.sync.portal import Portal

THREADS: Final = 20
"""As many as RocketMQ's push consumer has."""

_inside = threading.local()


def current_task() -> "asyncio.Task[Any] | None":
    """The task that waits for the handler on this thread; None outside of handlers."""
    return getattr(_inside, "task", None)


@contextmanager
def _remembered(task: "asyncio.Task[Any] | None") -> Iterator[None]:
    _inside.task = task
    try:
        yield
    finally:
        _inside.task = None


def on_thread(
    pool: concurrent.futures.Executor, function: Callable[..., Any]
) -> Callable[..., Awaitable[Any]]:
    """A coroutine function that runs a blocking one on a thread of the pool."""

    async def run(*arguments: Any) -> Any:
        context, task = contextvars.copy_context(), asyncio.current_task()

        def call() -> Any:
            with _remembered(task):
                return context.run(function, *arguments)

        return await asyncio.get_running_loop().run_in_executor(pool, call)

    return run


class BlockingTransaction:
    """The transaction of `once` for a thread: calls of its coroutine methods block."""

    def __init__(self, inner: Any, portal: Portal) -> None:
        self._inner, self._portal = inner, portal

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if not callable(found):
            return found

        async def call(arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
            result = found(*arguments, **named)
            return await result if hasattr(result, "__await__") else result

        return lambda *arguments, **named: self._portal.run(call(arguments, named))
