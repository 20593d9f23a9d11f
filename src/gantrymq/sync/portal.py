"""Lets blocking callers use asynchronous objects, by one background thread with a loop."""

import asyncio
import concurrent.futures
import functools
import inspect
import os
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, Final, Generic, ParamSpec, Protocol, Self, TypeVar, get_args

from gantrymq.base.errors import GantryError

START_SECONDS_MAX: Final = 10.0

P = ParamSpec("P")
T = TypeVar("T")


class Openable(Protocol):
    """The asynchronous object that a portal opens and closes."""

    async def start(self) -> None:
        """Open it."""

    async def close(self) -> None:
        """Close it."""


A = TypeVar("A", bound=Openable)


class Portal:
    """A background thread with an event loop, on which blocking callers run coroutines."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="gantrymq", daemon=True)
        self._thread.start()
        if not self._ready.wait(START_SECONDS_MAX):
            raise GantryError(f"the client's thread did not start in {START_SECONDS_MAX:g} s")

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.call_soon(self._ready.set)
        self._loop.run_forever()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine and return its result; an interrupted caller cancels it."""
        if threading.current_thread() is self._thread:
            work.close()
            raise GantryError("a blocking client cannot be used on its own event loop")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def submit(self, work: Coroutine[Any, Any, T]) -> "concurrent.futures.Future[T]":
        """Start a coroutine and return at once."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def post(self, function: Callable[..., object], *args: object) -> None:
        """Call a function on the loop soon, in order, without waiting."""
        self._loop.call_soon_threadsafe(function, *args)

    def close(self) -> None:
        """Stop the loop and end the thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class _Shared:
    """The default portal of this process."""

    def __init__(self) -> None:
        self.forked()

    def forked(self) -> None:
        """In a forked child the thread is gone, and another thread may have held the lock."""
        self._lock = threading.Lock()
        self._portal: Portal | None = None

    def get(self) -> Portal:
        with self._lock:
            if self._portal is None or self._portal.pid != os.getpid():
                self._portal = Portal()
            return self._portal


_shared = _Shared()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_shared.forked)


class BlockingClient(Generic[A]):
    """An asynchronous object behind a portal, made again in a forked child.

    A class names the asynchronous one in its base: `class Producer(BlockingClient[AsyncProducer])`.
    Its constructor takes the same arguments, and `portal`. A type checker knows them from
    `arguments_of`; as a keyword cannot be added to them, they are not checked beside a `portal`.
    """

    def __init_subclass__(cls) -> None:
        """Show a reader of `help` the arguments that the class takes."""
        if BlockingClient not in cls.__bases__:
            return  # a user's class
        target = get_args(cls.__orig_bases__[0])[0]  # type: ignore[attr-defined]
        taken = list(inspect.signature(target.__init__).parameters.values())
        extra = inspect.Parameter(
            "portal", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Portal | None
        )
        cls.__init__.__signature__ = inspect.Signature([*taken, extra])  # type: ignore[attr-defined]

    def __init__(self, make: Callable[[], A], portal: Portal | None) -> None:
        self._make, self._own_portal = make, portal
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._started = False
        self._target = make()

    @property
    def _portal(self) -> Portal:
        own = self._own_portal
        return own if own is not None and own.pid == os.getpid() else _shared.get()

    def start(self) -> None:
        """Open it; `with` does the same."""
        self._started = True
        self._run(lambda target: target.start())

    def close(self) -> None:
        """Close the object; a forked child closes only what it opened itself."""
        if os.getpid() == self._pid:
            self._started = False
            self._run(lambda target: target.close())

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, work: Callable[[A], Coroutine[Any, Any, T]]) -> T:
        target = self._current()
        return self._portal.run(work(target))

    def _do(self, work: Callable[[A], T]) -> T:
        """Call a plain function on the loop, because the object may only be used there."""

        async def run(target: A) -> T:
            return work(target)

        return self._run(run)

    def _current(self) -> A:
        """The object of this process; the first use after a fork makes a new one."""
        if os.getpid() != self._pid:
            with self._lock:
                if os.getpid() != self._pid:
                    target = self._make()
                    self._reopen(target)
                    self._target, self._pid = target, os.getpid()
        return self._target

    def _reopen(self, target: A) -> None:
        if self._started:
            self._portal.run(target.start())


def arguments_of(
    target: Callable[P, object],
) -> Callable[[Callable[..., None]], Callable[Concatenate[Any, P], None]]:
    """Declares a constructor that takes the arguments of `target`; for type checkers."""
    return lambda constructor: constructor


def blocking(
    method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Any, P], T]:
    """The method as a blocking one."""

    @functools.wraps(method)
    def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        result: T = self._run(lambda target: method(target, *args, **kwargs))
        return result

    return call


def forwarded(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], T]:
    """The method of the object behind the portal, called directly: it needs no loop."""

    @functools.wraps(method)
    def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return method(self._current(), *args, **kwargs)

    return call
