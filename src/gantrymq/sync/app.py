"""The blocking app: handlers are plain functions that run on threads.

from gantrymq.sync import App

app = App("localhost:9876", group="billing")

@app.on("orders")
def paid(order: Order) -> None: ...

app.run_forever()
"""

import concurrent.futures
import signal
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Any, ClassVar, NamedTuple, TypeVar, overload

from gantrymq.app.app import BaseApp, CallNext
from gantrymq.client.consume.handling.handler_check import check_handler, check_kind
from gantrymq.client.core.errors import ForkedError, NotStarted
from gantrymq.client.messages.delivery import Delivery as AsyncDelivery
from gantrymq.sync.consumer import Delivery
from gantrymq.sync.on_threads import BlockingTransaction, on_thread
from gantrymq.sync.portal import BlockingClient, Portal, arguments_of, forwarded
from gantrymq.sync.producer import Producer

Middleware = Callable[[Delivery, Callable[[Delivery], None]], None]
M = TypeVar("M", bound=Middleware)


class HandlerThreads(NamedTuple):
    """The threads that an app's functions run on, and the way back to its loop."""

    pool: concurrent.futures.Executor
    portal: Portal


class ThreadedApp(BaseApp[Delivery, None]):
    """An app on an event loop whose functions run on threads of a pool."""

    blocking: ClassVar = True
    threads: HandlerThreads | None = None
    """Where its functions run; None while it does not run."""

    @property
    def _running_threads(self) -> HandlerThreads:
        if self.threads is None:
            raise NotStarted("the app is not running: its functions have no threads")
        return self.threads

    async def start(self) -> None:
        """Start producer and consumers."""
        await self.__aenter__()

    async def close(self) -> None:
        """Wait for running handlers, and leave the groups."""
        await self.__aexit__()

    @property
    def threads_max(self) -> int:
        """One thread for each handler and middleware call that can run at once, one for hooks."""
        return sum(each.concurrency for each in self._handlers) * (1 + len(self._middleware)) + 1

    def _check_function(self, function: Callable[..., Any]) -> None:
        check_kind(getattr(function, "__qualname__", repr(function)), function, may_wait=False)

    async def _invoke(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        return await on_thread(self._running_threads.pool, lambda: function(*arguments, **named))()

    def _shown(self, message: AsyncDelivery) -> Any:
        return Delivery(message, self._running_threads.portal)

    def _shown_transaction(self, transaction: tuple[Any, ...]) -> tuple[Any, ...]:
        portal = self._running_threads.portal
        return tuple(BlockingTransaction(each, portal) for each in transaction)

    def _shown_producer(self) -> Any:
        return Producer.over(self.producer, self._running_threads.portal)

    def middleware(self, function: M) -> M:
        """Run `function(message, call_next)` around every handler; the first one is outermost.

        `call_next(message)` reads the body, runs the handler and publishes its result; it raises
        what the handler raises. What `function` raises counts as the handler's exception.
        """
        names = ("message", "call_next")
        check_handler(function, arguments=names, given=Delivery, may_wait=False)

        async def layer(message: AsyncDelivery, call_next: CallNext) -> None:
            async def go_on() -> None:
                await call_next(message)

            def call(_: object) -> None:
                self._running_threads.portal.run(go_on())

            await self._invoke(function, self._shown(message), call)

        self._middleware.append(layer)
        return function


class App(BlockingClient[ThreadedApp]):
    """Handlers, the consumers that feed them (one for each group), and a producer."""

    @overload
    @arguments_of(ThreadedApp)
    def __init__(self) -> None: ...

    @overload
    def __init__(self, *given: Any, portal: Portal | None, **named: Any) -> None: ...

    def __init__(self, *given: Any, portal: Portal | None = None, **named: Any) -> None:
        super().__init__(partial(ThreadedApp, *given, **named), portal)
        self.group = self._target.group
        self._open = ExitStack()

    on = forwarded(ThreadedApp.on)
    publish = forwarded(ThreadedApp.publish)
    middleware = forwarded(ThreadedApp.middleware)
    on_start = forwarded(ThreadedApp.on_start)
    on_stop = forwarded(ThreadedApp.on_stop)

    @contextmanager
    def _threads(self) -> Generator[None, None, None]:
        target = self._current()
        count = target.threads_max
        with concurrent.futures.ThreadPoolExecutor(count, "gantrymq-handler") as pool:
            target.threads = HandlerThreads(pool, self._portal)
            yield

    def start(self) -> None:
        """Start producer and consumers; `with` does the same."""
        with ExitStack() as opening:
            opening.enter_context(self._threads())
            super().start()
            self._open = opening.pop_all()

    def close(self) -> None:
        """Wait for running handlers, store the progress, leave the groups."""
        try:
            super().close()
        finally:
            self._open.close()

    def run(self) -> None:
        """Handle messages until `stop`; raises the error of a consumer that fails."""
        with self._threads():
            self._run(lambda target: target.run())

    def stop(self) -> None:
        """End `run` after the running handlers."""
        self._portal.post(self._current().stop)

    def run_forever(self, namesrv: str | None = None) -> None:
        """Run until SIGTERM or SIGINT, with other name servers if given; for the main thread."""
        self._current().use_namesrv(namesrv)
        before = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)}
        for each in before:
            signal.signal(each, lambda *_: self.stop())
        try:
            with suppress(KeyboardInterrupt):
                self.run()
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)

    @property
    def producer(self) -> Producer:
        """The app's producer, for handlers and hooks."""
        target = self._current()
        if target._producer is None:
            raise NotStarted("the app is not running: its producer comes with it")
        return Producer.over(target.producer, self._portal)

    def _reopen(self, target: ThreadedApp) -> None:
        raise ForkedError("an app belongs to the process that made it: make it in the child")
