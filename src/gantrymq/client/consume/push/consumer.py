"""The push consumer: subscribe, then iterate or register a handler."""

import asyncio
import logging
import os
import random
from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, Self, overload

import msgspec

from gantrymq.base import arguments
from gantrymq.base.background import Background
from gantrymq.base.clock import WallClock
from gantrymq.base.errors import GantryError
from gantrymq.base.network import Network
from gantrymq.client.consume.broker_requests import ServerRequests
from gantrymq.client.consume.handling.handler_check import check_handler
from gantrymq.client.consume.handling.handler_types import BatchDecorator, H, R
from gantrymq.client.consume.handling.workers import Work, Workers
from gantrymq.client.consume.membership.offset_store import OffsetStore
from gantrymq.client.consume.membership.one_host import check_one_host
from gantrymq.client.consume.membership.queue_offsets import timestamp_of
from gantrymq.client.consume.membership.readiness import Readiness, ready_or
from gantrymq.client.consume.membership.rebalance import RebalanceService
from gantrymq.client.consume.membership.retry_log import NO_LIMIT
from gantrymq.client.consume.membership.send_back import SendBacks
from gantrymq.client.consume.membership.setup import (
    BROADCASTING,
    RETRIES_MAX_DEFAULT,
    Setup,
    check_group,
    strategy_named,
)
from gantrymq.client.consume.membership.start_position import Start, moment_of, with_start
from gantrymq.client.consume.membership.subscriptions import Subscriptions
from gantrymq.client.consume.queues.process_queues import ProcessQueues
from gantrymq.client.consume.queues.ready_queues import ReadyQueues, ReadyQueuesClosed
from gantrymq.client.core.consumer_errors import ConsumerMisused
from gantrymq.client.core.errors import BrokerRefused
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
from gantrymq.client.tracing import TraceWriter
from gantrymq.model import RETRY_PREFIX, Queue
from gantrymq.protocol.assignment import Strategy
from gantrymq.protocol.bodies import ConsumerData

log = logging.getLogger(__name__)

LOCK_RENEW_SECONDS: Final = 20.0
CLOSE_GRACE_SECONDS: Final = 5.0
FROM_OPTIONS: Final = -1


def _with_arguments(
    options: ConsumerOptions, broadcast: bool, concurrency: int | None, max_retries: int | None
) -> ConsumerOptions:
    """The options, overridden by the arguments of the constructor."""
    changes: dict[str, Any] = {}
    if arguments.yes_or_no("broadcast", broadcast):
        changes["message_model"] = BROADCASTING
    if concurrency is not None:
        changes["consume_thread_max"] = concurrency
    if max_retries is not None and max_retries != FROM_OPTIONS:
        changes["max_reconsume_times"] = max_retries
    return msgspec.structs.replace(options, **changes)


def _check_parts(strategy: Strategy | None, once: Once | None) -> None:
    if once is not None:
        arguments.one_of("once", once, Once, "an Once, as in Once(SqliteStore(path))")
    if strategy is not None and not callable(strategy):
        raise arguments.wrong_type(
            "strategy",
            "a function from gantrymq.client (by name: the option allocate_strategy)",
            strategy,
        )


class Consumer(Lifecycle, Generic[Tx]):
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
        close_grace: float = CLOSE_GRACE_SECONDS,
        start_timeout: float | None = None,
        network: Network | None = None,
        clock: WallClock | None = None,
        rng: random.Random | None = None,
        hooks: Sequence[Hook] = (),
    ) -> None:
        self.group = check_group(group)
        self.ordered = arguments.yes_or_no("ordered", ordered)
        self._start_at = start
        options = with_start(chosen(ConsumerOptions, options), start)
        self.options = options = _with_arguments(options, broadcast, concurrency, max_retries)
        super().__init__(
            f"consumer of {self.group!r}",
            with_namesrv(client, namesrv),
            ClientPorts(network, clock, rng),
            hooks,
            consumer_group=self.group,
        )
        self._max_retries = None if max_retries is None else options.max_reconsume_times
        _check_parts(strategy, once)
        self._strategy = strategy or strategy_named(options.allocate_strategy)
        self._own_offsets, self._once = offsets, once
        self._close_grace = arguments.seconds("close_grace", close_grace)
        if start_timeout is not None:
            arguments.seconds("start_timeout", start_timeout, more_than_none=True)
        self._start_timeout = start_timeout
        self._trace = check_trace(trace)
        self.tracing: TraceWriter | None = None
        """What it writes down about what it consumes; None: nothing."""
        self._subscriptions = Subscriptions(
            self.group, retries=options.message_model != BROADCASTING
        )
        self._work: Work | None = None
        self._workers: Workers | None = None
        self._background = Background(f"consumer group {self.group}")
        self._failure: GantryError | None = None
        self._assigning: dict[asyncio.Event, None] = {}
        self._waited = False
        self._ended: asyncio.Event
        self._setup: Setup
        self._ready: ReadyQueues
        self._process_queues: ProcessQueues
        self._readiness: Readiness
        self._rebalance_service: RebalanceService
        self._requests: ServerRequests
        self._stop_listening: Callable[[], None]

    # life

    async def start(self) -> None:
        """Join the group. Leave it with `close`, or use `async with` for both.

        With a `start_timeout` all subscribed topics must be readable within so many seconds: they
        exist and their brokers answer. Otherwise this raises NotReady; for a topic subscribed to
        later, the wait for messages raises it.
        """
        if self._state == "open":
            return
        early = bool(self._subscriptions.table)
        await super().start()
        if self._start_timeout is None:
            return
        if not early:
            self._background.spawn(ready_or(self._readiness, self._start_timeout, self._fail))
            return
        try:
            await self._readiness.wait(self._start_timeout)
        except BaseException:
            await self.close()
            raise

    async def _open(self, instance: Instance) -> None:
        options = self.options
        self._setup = setup = Setup(
            instance,
            self.group,
            options,
            self.ordered,
            self._share,
            self._begin_ms(instance.clock.now_ms()),
            self._subscriptions.table,
        )
        offsets = self._own_offsets or setup.offset_store()
        await offsets.load()
        if self._once is not None:
            await self._start_once(self._once, instance)
        self._ready, self._ended = ReadyQueues(), asyncio.Event()
        if self._trace:
            self.tracing = TraceWriter(instance, self.group, "CONSUME", self._trace)
            self._ready.trace = self.tracing
        self._rebalance_service = RebalanceService(
            self._rebalance, options.rebalance_interval_ms / 1000
        )
        self._process_queues = ProcessQueues(
            setup,
            self._ready,
            offsets,
            None if setup.broadcast else SendBacks(instance, self.group, self._own_limit),
            retries_max=self._retry_limit,
            spawn=self._background.spawn,
            wake=self._rebalance_service.wake,
        )
        self._process_queues.on_change.append(self._look_again)
        self._readiness = Readiness(
            self.group, instance.routes, self._subscriptions.table, self._process_queues.unknown
        )
        self._requests = ServerRequests(setup, self._process_queues, lambda: self._work)
        instance.register_consumer(self.group, self._consumer_data)
        self._requests.listen()
        self._stop_listening = self._rebalance_service.listen(instance, self.group)
        self._subscriptions.start(instance, self._rebalance_service.wake)
        background = self._background
        background.spawn(self._rebalance_service.run())
        background.every(
            instance.options.persist_offset_interval_ms / 1000, self._process_queues.persist
        )
        background.every(min(options.consume_timeout_ms / 1000, 60.0), self._expire)
        if self.ordered:
            background.every(LOCK_RENEW_SECONDS, self._process_queues.renew_locks)
        if self._work is not None:
            self._start_workers(self._work)

    def _share(self, mine: str, queues: Sequence[Queue], members: Sequence[str]) -> list[Queue]:
        """The strategy's assignment; a consumer with tracing records the members."""
        if self.tracing is not None:
            self.tracing.met(members)
        return self._strategy(mine, queues, members)

    def _begin_ms(self, now_ms: int) -> int:
        if self._start_at in (None, "first", "last"):
            return timestamp_of(self.options.consume_timestamp, now_ms)
        assert self._start_at is not None
        return moment_of(self._start_at, now_ms)

    async def _start_once(self, once: Once, instance: Instance) -> None:
        if self._setup.broadcast:
            raise ConsumerMisused("every member of a broadcasting group does all work: no `once`")
        if once.store.one_host:
            await check_one_host(instance, self.group, self._subscriptions.table)
        await once.start(self.group, instance.clock, instance.rng, self._background)

    @property
    def _retry_limit(self) -> int | None:
        return RETRIES_MAX_DEFAULT if self._max_retries == FROM_OPTIONS else self._max_retries

    @property
    def _own_limit(self) -> int | None:
        """The limit sent to brokers; None unless the caller chose one: the group's limit counts."""
        if self._max_retries == FROM_OPTIONS:
            return None
        return NO_LIMIT if self._max_retries is None else self._max_retries

    async def close(self) -> None:
        """Wait for handlers, store the progress, leave the group. Open messages are redelivered."""
        was = self._state
        await super().close()
        if was == "open":
            self._ended.set()

    async def _shut(self) -> None:
        self._look_again()
        self._requests.stop()
        self._stop_listening()
        self._process_queues.stop_pulls()
        self._ready.close()
        if self._workers is not None:
            await self._workers.stop(self._close_grace)
        await self._background.close()
        self._subscriptions.stop()
        await self._process_queues.close()
        if self.tracing is not None:
            await self.tracing.close()
        if self._once is not None:
            await self._once.close()
        await self._instance.unregister_consumer(self.group)

    async def _expire(self) -> None:
        seconds = self.options.consume_timeout_ms / 1000
        await self._process_queues.expire(seconds, ordered_too=self._work is None)

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

    def _consumer_data(self) -> ConsumerData:
        return ConsumerData(
            consume_from_where=self.options.consume_from_where,
            consume_type="CONSUME_PASSIVELY",
            group_name=self.group,
            message_model=self.options.message_model,
            subscription_data_set=list(self._subscriptions.table.values()),
        )

    async def _rebalance(self) -> float | None:
        try:
            await self._subscriptions.announce()
        except BrokerRefused as error:
            self._fail(error)
        except GantryError as error:
            log.warning("subscriptions of %s not announced: %s", self.group, error)
        if self._once is not None and self._once.store.one_host:
            try:
                await check_one_host(self._instance, self.group, self._subscriptions.table)
            except ConsumerMisused as error:
                self._fail(error)
                return None
        bearable = await self._process_queues.rebalance()
        self._readiness.look()
        return bearable

    def _fail(self, error: GantryError) -> None:
        """End the consumer by an error: callers that wait for messages get it."""
        log.error("consumer group %s: %s", self.group, error)
        self._failure = error
        self._ready.close()
        self._look_again()
        self._ended.set()

    @property
    def assignment(self) -> list[Queue]:
        """The queues this member holds now, its group's retry queues left out."""
        self._check_open()
        return sorted(q for q in self._process_queues.held if not q.topic.startswith(RETRY_PREFIX))

    def on_assignment(self, listener: Callable[[list[Queue]], None]) -> None:
        """Call `listener` with all held queues when they change."""
        self._check_open()
        self._process_queues.on_change.append(listener)

    async def wait_assigned(self, count: int = 1) -> list[Queue]:
        """Wait until at least `count` queues are held."""
        self._check_open()
        changed = asyncio.Event()
        self._assigning[changed] = None
        try:
            while len(self.assignment) < count:
                if self._failure is not None:
                    raise self._failure
                await changed.wait()
                changed.clear()
        finally:
            del self._assigning[changed]
        return self.assignment

    def _look_again(self, _: object = None) -> None:
        """Wake the callers of `wait_assigned`: the queues changed, or the consumer ends."""
        for changed in self._assigning:
            changed.set()

    # messages

    def __aiter__(self) -> Self:
        self._check_not_closed()
        return self

    async def __anext__(self) -> Delivery:
        if self._work is not None:
            raise ConsumerMisused("a consumer with a handler cannot be iterated over as well")
        if self._once is not None:
            raise ConsumerMisused("`once` needs a handler: it must know when the work begins")
        if self._state == "new" or os.getpid() != self._instance.pid:
            self._check_open()
        if not self._waited:
            self._waited = True
            self._readiness.look(waits=True)
        try:
            return (await self._ready.next())[0]
        except ReadyQueuesClosed:
            if self._failure is not None:
                raise self._failure from None
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
        if batch is not None:
            arguments.whole("batch", batch, 1)
            return lambda inner: self._set_work(inner, self._work_of(inner, batch, as_list=True))
        size = self.options.consume_batch_max
        return self._set_work(function, self._work_of(function, size, as_list=size > 1))

    def _work_of(self, function: Any, batch_max: int, *, as_list: bool) -> Work:
        in_transaction = self._once is not None and self._once.transaction
        check_handler(
            function,
            arguments=(
                "messages" if as_list else "message",
                *(("transaction",) if in_transaction else ()),
            ),
            given=Delivery,
            as_list=as_list,
            transaction=self._once.transaction_kind if self._once is not None else None,
        )
        if self._once is not None:
            function = self._once.guard(function, as_list=as_list)
        return Work(function, batch_max, as_list=as_list)

    def _set_work(self, function: Any, work: Work) -> Any:
        if self._work is not None:
            raise ConsumerMisused("a consumer has one handler; look at `message.topic` in it")
        self._work = work
        if self._state == "open":
            self._start_workers(work)
        return function

    def _start_workers(self, work: Work) -> None:
        self._workers = Workers(self._ready, work, self.options.consume_thread_max)

    async def run(self) -> None:
        """Wait until the consumer is closed; for programs that only have a handler."""
        self._check_open()
        self._readiness.look(waits=True)
        await self._ended.wait()
        if self._failure is not None:
            raise self._failure

    def pause(self, seconds: float) -> None:
        """Hand out no messages for `seconds`, for instance while the handler's database is down."""
        self._check_open()
        self._ready.hold(arguments.seconds("a pause", seconds))

    def resume(self) -> None:
        """End a pause early."""
        self._check_open()
        self._ready.release()

    async def commit(self) -> None:
        """Store the progress now; the consumer also does so every 5 s and at close."""
        self._check_open()
        await self._process_queues.persist(wait=True)
