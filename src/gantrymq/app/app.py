"""An app: a program that consists of typed handlers for topics.

app = App("localhost:9876", group="billing")

@app.on("orders", tags="paid", retries=5)
async def paid(order: Order) -> None: ...

app.run_forever()        # or: gantry run module:app
"""

import asyncio
import inspect
import logging
import random
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Generic, Literal, Protocol, Self, TypeVar

from gantrymq.app.injection import ArgumentPlan, HandlerCall
from gantrymq.app.payloads import PayloadRefused
from gantrymq.app.results import ResultTopic
from gantrymq.base import arguments
from gantrymq.base.clock import WallClock
from gantrymq.base.errors import GantryError
from gantrymq.base.network import Network
from gantrymq.base.plurals import counted
from gantrymq.client.consume.handling.handler_check import check_handler
from gantrymq.client.consume.membership.setup import RETRIES_MAX_DEFAULT, check_group
from gantrymq.client.consume.membership.start_position import Start, with_start
from gantrymq.client.consume.push.consumer import Consumer
from gantrymq.client.core.consumer_errors import HandlerRefused
from gantrymq.client.core.errors import NotStarted
from gantrymq.client.core.instance import Hook
from gantrymq.client.core.options import ClientOptions, ConsumerOptions, chosen
from gantrymq.client.messages.consume_status import ConsumeStatus
from gantrymq.client.messages.delivery import Delivery
from gantrymq.client.messages.failures import failure_of
from gantrymq.client.once.guard import Once
from gantrymq.client.produce.producer import Producer
from gantrymq.model import check_topic_name

log = logging.getLogger(__name__)

ALL: Final = "*"
CONCURRENCY: Final = 20
STOP_SECONDS: Final = 30.0

F = TypeVar("F", bound=Callable[..., Any])
Shown = TypeVar("Shown")
"""What handlers and hooks are given as the message."""
Done = TypeVar("Done")
"""What hooks return: nothing, or what is waited for."""
CallNext = Callable[[Delivery], Awaitable[None]]
Middleware = Callable[[Delivery, CallNext], Awaitable[None]]
M = TypeVar("M", bound=Middleware)


class ClusterPorts(Protocol):
    """What `App.test` needs of a cluster; `gantrymq.testing.Cluster` has it."""

    network: Network
    rng: random.Random

    @property
    def namesrv(self) -> str: ...

    @property
    def clock(self) -> WallClock: ...


@dataclass(frozen=True, slots=True, eq=False)
class _Handler:
    """One handler, as it was declared."""

    name: str
    function: Callable[..., Any]
    plan: ArgumentPlan
    topic: str
    tags: tuple[str, ...]
    group: str
    retries: int | None
    concurrency: int
    ordered: bool
    dead: Callable[[Any, Exception], object] | None
    undecodable: str

    def __str__(self) -> str:
        return f"{self.name} ({self.topic}, tags {' || '.join(self.tags)})"


class BaseApp(Generic[Shown, Done]):
    """The base of both apps: functions run on the event loop, or block on threads."""

    blocking: ClassVar = False
    """Whether handlers are plain functions that run on threads."""

    def __init__(
        self,
        namesrv: str | None = None,
        *,
        group: str,
        start: Start | None = None,
        start_timeout: float | None = None,
        options: ConsumerOptions | None = None,
        client: ClientOptions | None = None,
        once: Once | None = None,
        stop_seconds: float = STOP_SECONDS,
        hooks: Sequence[Hook] = (),
        network: Network | None = None,
        clock: WallClock | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self.group = check_group(group)
        if options is not None and options.consume_batch_max != 1:
            raise HandlerRefused("handlers of an app get one message at a time")
        self._namesrv = namesrv
        self._options = with_start(chosen(ConsumerOptions, options), start)
        self._start, self._start_timeout = start, start_timeout
        self._once, self._stop_seconds = once, stop_seconds
        ports = {"network": network, "clock": clock, "rng": rng}
        self._shared: dict[str, Any] = {"client": client, "hooks": hooks, **ports}
        self._handlers: list[_Handler] = []
        self._targets: dict[Callable[..., Any], list[ResultTopic]] = {}
        self._middleware: list[Middleware] = []
        self._starters: list[Callable[[], Done]] = []
        self._stoppers: list[Callable[[], Done]] = []
        self._stack: AsyncExitStack | None = None
        self._producer: Producer | None = None
        self._consumers: list[Consumer] = []
        self._stopping = asyncio.Event()

    # declaring

    def on(
        self,
        topic: str,
        *,
        tags: str = ALL,
        group: str | None = None,
        retries: int | None = RETRIES_MAX_DEFAULT,
        concurrency: int = CONCURRENCY,
        ordered: bool = False,
        dead: Callable[[Shown, Exception], Done] | None = None,
        undecodable: Literal["dead", "retry"] = "dead",
    ) -> Callable[[F], F]:
        """Give messages of a topic, or those with some tags, to the decorated function.

        After `retries` failed retries (None: never) a message goes to the dead letters; at once if
        its body does not fit the annotation, unless `undecodable` is "retry". Before that
        `dead(message, error)` is called.
        """
        check_topic_name(topic)
        arguments.whole("concurrency", concurrency, 1)
        if retries is not None:
            arguments.whole("retries", retries, 0)
        arguments.yes_or_no("ordered", ordered)
        if undecodable not in ("dead", "retry"):
            raise HandlerRefused(f'{topic}: undecodable is "dead" or "retry", not {undecodable!r}')
        if not isinstance(tags, str):
            raise arguments.wrong_type("tags", 'one string, "a" or "a || b"', tags)
        wanted = tuple(dict.fromkeys(tag.strip() for tag in tags.split("||")))
        if "" in wanted or (ALL in wanted and len(wanted) > 1):
            raise HandlerRefused(f"{topic}: tags are `a`, `a || b` or `*`, not {tags!r}")

        if dead is not None:
            self._check_function(dead)

        def add(function: F) -> F:
            self._check_function(function)
            in_group = check_group(group or self.group)
            once = self._once_of(in_group)
            plan = ArgumentPlan(
                function,
                transaction_kind=once.transaction_kind if once else None,
                blocking=self.blocking,
            )
            self._handlers.append(
                _Handler(
                    getattr(function, "__qualname__", repr(function)),
                    function,
                    plan,
                    topic,
                    wanted,
                    in_group,
                    retries,
                    concurrency,
                    ordered,
                    dead,
                    undecodable,
                )
            )
            return function

        return add

    def publish(self, topic: str, *, tags: str | None = None) -> Callable[[F], F]:
        """Publish the result of the decorated handler to a topic, before the message is acked.

        Bytes and strings are the body, other objects become JSON; None publishes nothing. The new
        message has the keys of the handled one. If it cannot be sent, the handled one is retried.
        """
        target = ResultTopic(topic, tags)

        def add(function: F) -> F:
            self._targets.setdefault(function, []).append(target)
            return function

        return add

    def on_start(self, function: Callable[[], Done]) -> Callable[[], Done]:
        """Call the function before the first message; the producer is already started."""
        self._check_function(function)
        self._starters.append(function)
        return function

    def on_stop(self, function: Callable[[], Done]) -> Callable[[], Done]:
        """Call the function after the last message; the producer is not closed yet."""
        self._check_function(function)
        self._stoppers.append(function)
        return function

    def _groups(self) -> dict[str, list[_Handler]]:
        """Handlers by group; refuses two for the same messages, and ordered beside unordered."""
        if not self._handlers:
            raise HandlerRefused("the app has no handler: declare one with @app.on(...)")
        groups: dict[str, list[_Handler]] = {}
        for handler in self._handlers:
            for other in groups.setdefault(handler.group, []):
                if handler.ordered != other.ordered:
                    raise HandlerRefused(
                        f"{other} and {handler}: a group is ordered as a whole; "
                        f"give one of them a group of its own (group=...)"
                    )
                both = (*handler.tags, *other.tags)
                if handler.topic == other.topic and (ALL in both or len(both) > len({*both})):
                    raise HandlerRefused(f"{other} and {handler} want the same messages")
            groups[handler.group].append(handler)
            once = self._once_of(handler.group)
            if handler.plan.wants_transaction and (once is None or not once.transaction):
                raise HandlerRefused(f"{handler} wants a transaction, but its group has none")
        return groups

    # life

    async def __aenter__(self) -> Self:
        """Start producer and consumers; `run` does this itself."""
        if self._stack is not None:
            raise GantryError("the app is running already")
        groups = self._groups()
        self._stopping = asyncio.Event()
        async with AsyncExitStack() as stack:
            self._producer = Producer(self._namesrv, group=self.group, **self._shared)
            await stack.enter_async_context(self._producer)
            for function in reversed(self._stoppers):
                stack.push_async_callback(self._invoke, function)
            for function in self._starters:
                await self._invoke(function)
            self._consumers = [self._consumer(name, handlers) for name, handlers in groups.items()]
            stack.push_async_callback(self._close_consumers)
            for consumer in self._consumers:
                await consumer.start()
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Wait for running handlers, store the progress, leave the groups."""
        stack, self._stack = self._stack, None
        if stack is not None:
            await stack.aclose()

    async def _close_consumers(self) -> None:
        await asyncio.gather(*(consumer.close() for consumer in self._consumers))

    async def run(self) -> None:
        """Handle messages until `stop`; raises the error of a consumer that fails."""
        async with self:
            works: list[Awaitable[object]] = [consumer.run() for consumer in self._consumers]
            waits = [asyncio.ensure_future(work) for work in (*works, self._stopping.wait())]
            try:
                ended, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for wait in waits:
                    wait.cancel()
            for wait in ended:
                wait.result()

    def stop(self) -> None:
        """End `run` after the running handlers."""
        self._stopping.set()

    def use_namesrv(self, namesrv: str | None) -> None:
        """Replace the name server addresses before the start; None keeps them."""
        self._namesrv = namesrv or self._namesrv

    def run_forever(self, namesrv: str | None = None) -> None:
        """Run until SIGTERM or SIGINT, with other name servers if given; blocks."""
        self.use_namesrv(namesrv)

        async def main() -> None:
            loop = asyncio.get_running_loop()
            for signum in (signal.SIGTERM, signal.SIGINT):
                with suppress(NotImplementedError):  # Windows: Ctrl-C raises KeyboardInterrupt
                    loop.add_signal_handler(signum, self.stop)
            await self.run()

        with suppress(KeyboardInterrupt):
            asyncio.run(main())

    @asynccontextmanager
    async def test(self, cluster: ClusterPorts) -> AsyncIterator[Self]:
        """Run on a test's cluster: its name servers, network, clock and randomness."""
        before = self._namesrv, self._shared
        ports = {name: getattr(cluster, name) for name in ("network", "clock", "rng")}
        self._namesrv, self._shared = cluster.namesrv, {**self._shared, **ports}
        try:
            async with self:
                yield self
        finally:
            self._namesrv, self._shared = before

    @property
    def producer(self) -> Producer:
        """The app's producer, for handlers and hooks."""
        if self._producer is None:
            raise NotStarted("the app is not running: its producer comes with it")
        return self._producer

    # handling

    def _once_of(self, group: str) -> Once | None:
        return self._once if group == self.group else None

    def _consumer(self, group: str, handlers: list[_Handler]) -> Consumer:
        """One consumer for all handlers of a group, so that its members subscribe to the same."""
        limits = [handler.retries for handler in handlers if handler.retries is not None]
        consumer = Consumer(
            self._namesrv,
            group=group,
            ordered=handlers[0].ordered,
            max_retries=max(limits) if len(limits) == len(handlers) else None,
            concurrency=sum(handler.concurrency for handler in handlers),
            options=self._options,
            start=self._start,
            start_timeout=self._start_timeout,
            once=self._once_of(group),
            close_grace=self._stop_seconds,
            **self._shared,
        )
        turns = {handler: asyncio.Semaphore(handler.concurrency) for handler in handlers}
        table: dict[str, dict[str, _Handler]] = {}
        for handler in handlers:
            table.setdefault(handler.topic, {}).update(dict.fromkeys(handler.tags, handler))
        for topic, tags in table.items():
            consumer.subscribe(topic, " || ".join(tags))

        async def dispatch(message: Delivery, *transaction: Any) -> ConsumeStatus | None:
            tags = table.get(message.topic, {})
            handler = tags.get(message.tags or "") or tags.get(ALL)
            if handler is None:
                # A retry for a handler that is no longer declared: keep it as a dead letter.
                await message.dead(reason=f"no handler for {message.topic}, tag {message.tags}")
                return None
            async with turns[handler]:
                return await self._handle(handler, message, transaction)

        consumer.handler(dispatch)
        return consumer

    async def _handle(
        self, handler: _Handler, message: Delivery, transaction: tuple[Any, ...]
    ) -> ConsumeStatus | None:
        status: list[ConsumeStatus | None] = []

        async def innermost(message: Delivery) -> None:
            status.append(await self._work(handler, message, transaction))

        call_next: CallNext = innermost
        for layer in reversed(self._middleware):
            call_next = _around(layer, call_next)
        try:
            await call_next(message)
            return status[-1] if status else None
        except Exception as error:
            tries = message.reconsume_times + 1
            if isinstance(error, PayloadRefused) and handler.undecodable == "dead":
                await self._send_dead(handler, message, error, str(error))
            elif handler.retries is not None and tries > handler.retries:
                await self._send_dead(
                    handler, message, error, f"failed after {counted(tries, 'try', 'tries')}"
                )
            raise

    async def _work(
        self, handler: _Handler, message: Delivery, transaction: tuple[Any, ...]
    ) -> ConsumeStatus | None:
        """Make the arguments, call the handler, publish its result."""
        async with AsyncExitStack() as stack:
            call = HandlerCall(
                message,
                self._shown(message),
                self._shown_transaction(transaction),
                self._shown_producer(),
                self._invoke,
                stack,
            )
            arguments, named = await handler.plan.arguments(call)
            result = await self._invoke(handler.function, *arguments, **named)
            if result is None or isinstance(result, ConsumeStatus):
                return result
            targets = self._targets.get(handler.function)
            if not targets:
                raise TypeError(
                    f"{handler.name} returned {result!r}; return None, raise to retry, or say "
                    'where it is published: @app.publish("topic")'
                )
            for target in targets:
                await self.producer.send(target.message(result, message))
            return None

    # overridden by the app whose functions block

    def _check_function(self, function: Callable[..., Any]) -> None:
        """Refuse a handler or a hook that cannot run here."""

    async def _invoke(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """Call a user's function, and await its result if needed."""
        result = function(*arguments, **named)
        return await result if inspect.isawaitable(result) else result

    def _shown(self, message: Delivery) -> Any:
        return message

    def _shown_transaction(self, transaction: tuple[Any, ...]) -> tuple[Any, ...]:
        return transaction

    def _shown_producer(self) -> Any:
        return self.producer

    async def _send_dead(
        self, handler: _Handler, message: Delivery, error: Exception, reason: str
    ) -> None:
        if message.finished is not None:
            return
        try:
            if handler.dead is not None:
                await self._invoke(handler.dead, self._shown(message), error)
        except Exception:
            log.exception("the `dead` hook of %s failed on %r", handler.name, message)
        if message.finished is None:
            message.failure = failure_of(error)._replace(reason=reason)
            await message.dead()


class App(BaseApp[Delivery, Awaitable[None] | None]):
    """Handlers, the consumers that feed them (one for each group), and a producer."""

    def middleware(self, function: M) -> M:
        """Run `function(message, call_next)` around every handler; the first one is outermost.

        `await call_next(message)` reads the body, runs the handler and publishes its result; it
        raises what the handler raises. What `function` raises counts as the handler's exception.
        """
        check_handler(function, arguments=("message", "call_next"), given=Delivery, must_wait=True)
        self._middleware.append(function)
        return function


def _around(layer: Middleware, call_next: CallNext) -> CallNext:
    return lambda message: layer(message, call_next)
