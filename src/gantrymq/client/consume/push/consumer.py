"""The push consumer: subscribe, then iterate or register a handler."""

import random
from collections.abc import Callable, Sequence
from typing import Any, Generic, Self, overload

from gantrymq.base import arguments
from gantrymq.base.clock import WallClock
from gantrymq.base.network import Network
from gantrymq.base.own_process import OWN_PROCESS
from gantrymq.client.consume.handling.handler_registration import HandlerRegistration
from gantrymq.client.consume.handling.handler_types import BatchDecorator, H, R
from gantrymq.client.consume.membership.offset_store import OffsetStore
from gantrymq.client.consume.membership.readiness import ready_or
from gantrymq.client.consume.membership.setup import check_group
from gantrymq.client.consume.membership.start_position import Start, with_start
from gantrymq.client.consume.membership.subscriptions import Subscriptions
from gantrymq.client.consume.push.consumer_end import ConsumerEnd
from gantrymq.client.consume.push.consumer_settings import (
    CLOSE_GRACE_SECONDS,
    FROM_OPTIONS,
    ConsumerSettings,
    with_arguments,
)
from gantrymq.client.consume.push.running_consumer import RunningConsumer
from gantrymq.client.consume.queues.ready_queues import ReadyQueuesClosed
from gantrymq.client.core.consumer_errors import ConsumerMisused
from gantrymq.client.core.instance import Hook, Instance
from gantrymq.client.core.lifecycle import ClientPorts, Lifecycle
from gantrymq.client.core.options import (
    ClientOptions,
    ConsumerOptions,
    check_trace,
    chosen,
    with_namesrv,
)
from gantrymq.client.messages.delivery import Delivery
from gantrymq.client.once.guard import Once
from gantrymq.client.once.store import Tx
from gantrymq.client.spans import Spans
from gantrymq.client.tracing import TraceWriter
from gantrymq.model import Queue
from gantrymq.protocol.assignment import Strategy


class Consumer(Lifecycle[RunningConsumer], Generic[Tx]):
    """Reads topics as a member of a group.

        async with Consumer("localhost:9876", group="billing") as consumer:
            consumer.subscribe("orders", tags="paid || refunded")
            async for message in consumer:
                ...
                await message.ack()

    or, with up to 20 at a time, `@consumer.handler` and `await consumer.run()`. `start` says where
    a group without progress begins: "first", "last" (the default), a datetime, "30m ago".
    """

    def __init__(
        self,
        namesrv: str | None = None,
        *,
        group: str,
        start: Start | None = None,
        ordered: bool = False,
        broadcast: bool = False,
        max_retries: int | None = FROM_OPTIONS,
        concurrency: int | None = None,
        strategy: Strategy | None = None,
        offsets: OffsetStore | None = None,
        once: Once[Tx] | None = None,
        options: ConsumerOptions | None = None,
        client: ClientOptions | None = None,
        trace: bool | str = False,
        spans: bool = False,
        close_grace: float = CLOSE_GRACE_SECONDS,
        start_timeout: float | None = None,
        network: Network | None = None,
        clock: WallClock | None = None,
        rng: random.Random | None = None,
        hooks: Sequence[Hook] = (),
    ) -> None:
        self.group = check_group(group)
        options = with_start(chosen(ConsumerOptions, options), start)
        self.options = options = with_arguments(options, broadcast, concurrency, max_retries)
        self._settings = ConsumerSettings(
            group=self.group,
            options=options,
            ordered=ordered,
            start=start,
            max_retries=max_retries,
            strategy=strategy,
            offsets=offsets,
            once=once,
            trace=check_trace(trace),
            spans=Spans(self.group) if arguments.yes_or_no("spans", spans) else None,
            close_grace=close_grace,
            start_timeout=start_timeout,
        )
        super().__init__(
            f"consumer of {self.group!r}",
            with_namesrv(client, namesrv),
            ClientPorts(network, clock, rng),
            hooks,
            consumer_group=self.group,
        )
        self.ordered = ordered
        self.tracing: TraceWriter | None = None
        """The writer of its trace; None before the start, or without `trace`."""
        self._subscriptions = Subscriptions(self.group, retries=not self._settings.broadcast)
        self._handler = HandlerRegistration(once, options.consume_batch_max)
        self._end = ConsumerEnd()

    # life

    async def start(self) -> None:
        """Join the group. Leave it with `close`, or use `async with` for both.

        With a `start_timeout` all subscribed topics must be readable within so many seconds: they
        exist and their brokers answer. Otherwise this raises NotReady; for a topic subscribed to
        later, the wait for messages raises it.
        """
        if self._started is not None:
            return
        early = bool(self._subscriptions.table)
        await super().start()
        running, seconds = self._running, self._settings.start_timeout
        if seconds is None:
            return
        if not early:
            running.background.spawn(ready_or(running.readiness, seconds, running.fail))
            return
        try:
            await running.readiness.wait(seconds)
        except BaseException:
            await self.close()
            raise

    async def _open(self, instance: Instance) -> RunningConsumer:
        settings = self._settings
        if settings.trace:
            self.tracing = TraceWriter(instance, self.group, "CONSUME", settings.trace)
        running = RunningConsumer(
            instance, settings, self._subscriptions, self._handler, self._end, self.tracing
        )
        try:
            await running.open()
        except BaseException:
            if self.tracing is not None:
                await self.tracing.close()
            raise
        return running

    async def close(self) -> None:
        """Wait for handlers, store the progress, leave the group. Open messages are redelivered."""
        running = self._started
        await super().close()
        if running is not None:
            self._end.reach()

    async def _shut(self, running: RunningConsumer) -> None:
        await running.close()

    # what to read

    def subscribe(self, topic: str, tags: str = "*", *, sql: str | None = None) -> None:
        """Read a topic: all of it, some tags (`a || b`), or what an SQL92 condition lets through.

        A second call for the same topic replaces the first.
        """
        self._check_not_closed()
        self._subscriptions.subscribe(topic, tags, sql)

    def unsubscribe(self, topic: str) -> None:
        """Stop reading a topic; its queues are given up."""
        self._subscriptions.unsubscribe(topic)

    @property
    def assignment(self) -> list[Queue]:
        """The queues this member holds now, its group's retry queues left out."""
        return self._running.assignment

    def on_assignment(self, listener: Callable[[list[Queue]], None]) -> None:
        """Call `listener` with all held queues when they change."""
        self._running.process_queues.on_change.append(listener)

    async def wait_assigned(self, count: int = 1) -> list[Queue]:
        """Wait until at least `count` queues are held."""

        def held() -> list[Queue]:
            found = self.assignment
            if len(found) < count:
                self._end.check()
            return found

        return await self._running.waiters.wait(count, held)

    # messages

    def __aiter__(self) -> Self:
        self._check_not_closed()
        return self

    async def __anext__(self) -> Delivery:
        if self._handler.work is not None:
            raise ConsumerMisused("a consumer with a handler cannot be iterated over as well")
        if self._settings.once is not None:
            raise ConsumerMisused("`once` needs a handler: it must know when the work begins")
        running = self._started
        if running is None and self._closed:
            self._end.check()
            raise StopAsyncIteration
        if running is None or OWN_PROCESS.pid != running.pid:
            running = self._running
        if not running.readiness_logged:
            running.log_readiness()
        message = running.ready.take_one()
        if message is not None:
            return message
        try:
            return (await running.ready.next())[0]
        except ReadyQueuesClosed:
            self._end.check()
            raise StopAsyncIteration from None

    @overload
    def handler(self, function: H) -> H: ...

    @overload
    def handler(self, function: Callable[[Delivery, Tx], R]) -> Callable[[Delivery, Tx], R]: ...

    @overload
    def handler(self, *, batch: int) -> BatchDecorator[Tx]: ...

    def handler(self, function: Any = None, *, batch: int | None = None) -> Any:
        """Register the function that gets every message, or with `batch` lists of up to so many.

        Returning None acknowledges, an exception retries, and a ConsumeStatus says which. Up
        to `concurrency` calls of a coroutine function run at once; a plain function runs on the
        event loop and must be quick.
        """
        if batch is None:
            return self._register(function, None)
        arguments.whole("batch", batch, 1)
        return lambda inner: self._register(inner, batch)

    def _register(self, function: Any, batch: int | None) -> Any:
        work = self._handler.register(function, batch)
        if self._started is not None:
            self._started.workers.start(work, self.options.consume_thread_max)
        return function

    async def run(self) -> None:
        """Wait until the consumer is closed; for programs that only have a handler."""
        self._running.readiness.look(waits=True)
        await self._end.wait()

    def pause(self, seconds: float) -> None:
        """Hand out no messages for `seconds`, for instance while the handler's database is down."""
        self._running.ready.hold(arguments.seconds("a pause", seconds))

    def resume(self) -> None:
        """End a pause early."""
        self._running.ready.release()

    async def commit(self) -> None:
        """Store the progress now; the consumer also does so every 5 s and at close."""
        await self._running.process_queues.persist(wait=True)
