"""The blocking face of the client: the same names, without `async`.

    from gantrymq.sync import Producer

    with Producer("localhost:9876", group="shop") as producer:
        producer.send(Message("orders", b"..."))

One background thread runs one event loop for all of them; each call crosses over once, so the bulk
verbs (`send_many`, `poll`, `finish_many`) are the fast ones. After a fork the objects open again in
the child by themselves.
"""

import asyncio
import concurrent.futures
import contextlib
import functools
import logging
import os
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from typing import Any, Concatenate, Final, Generic, ParamSpec, Protocol, Self, TypeVar

from gantrymq.base.errors import GantryError
from gantrymq.client.admin import Admin as AsyncAdmin
from gantrymq.client.checks import CheckHandler, Unfinished
from gantrymq.client.consumer import Consumer as AsyncConsumer
from gantrymq.client.consumer_errors import AlreadyFinished
from gantrymq.client.delivery import Delivery as AsyncDelivery
from gantrymq.client.errors import Closed, ForkedError
from gantrymq.client.handout import HandoutClosed
from gantrymq.client.instance import Hook
from gantrymq.client.options import ClientOptions, ConsumerOptions, ProducerOptions
from gantrymq.client.producer import Producer as AsyncProducer
from gantrymq.client.received import Received
from gantrymq.client.transactions import Transaction
from gantrymq.model import Message, Queue, SendResult

log = logging.getLogger(__name__)

POLL_MESSAGES: Final = 32
START_SECONDS_MAX: Final = 10.0

P = ParamSpec("P")
T = TypeVar("T")


class Openable(Protocol):
    """What a portal needs to know of the object behind it."""

    async def start(self) -> None:
        """Open it."""

    async def close(self) -> None:
        """Close it."""


A = TypeVar("A", bound=Openable)


class Portal:
    """One background thread, one event loop: how blocking callers reach asynchronous code."""

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
        """Run to the end and return the result; an interrupted caller takes its work along."""
        if threading.current_thread() is self._thread:
            work.close()
            raise GantryError("a blocking client cannot be used on its own event loop")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def post(self, function: Callable[..., object], *args: object) -> None:
        """Run soon, in order, without waiting."""
        self._loop.call_soon_threadsafe(function, *args)

    def close(self) -> None:
        """End the thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class _Shared:
    """The portal everybody in this process uses unless told otherwise."""

    def __init__(self) -> None:
        self.forked()

    def forked(self) -> None:
        """In a child the thread is gone, and the lock may have been held by anybody."""
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


class _Blocking(Generic[A]):
    """An asynchronous object behind a portal, made again in a forked child."""

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
        """Close it: in a forked child only what the child itself opened."""
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


def _blocking(
    method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Any, P], T]:
    """The same method, waited for."""

    @functools.wraps(method)
    def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        result: T = self._run(lambda target: method(target, *args, **kwargs))
        return result

    return call


class Producer(_Blocking[AsyncProducer]):
    """Sends messages; any number of threads may use it at once."""

    def __init__(
        self,
        namesrv: str | None = None,
        *,
        group: str,
        options: ProducerOptions | None = None,
        client: ClientOptions | None = None,
        trace: bool | str = False,
        hooks: Sequence[Hook] = (),
        portal: Portal | None = None,
    ) -> None:
        def make() -> AsyncProducer:
            return AsyncProducer(
                namesrv, group=group, options=options, client=client, trace=trace, hooks=hooks
            )

        super().__init__(make, portal)
        self._check: CheckHandler | None = None

    send = _blocking(AsyncProducer.send)
    send_batch = _blocking(AsyncProducer.send_batch)
    send_oneway = _blocking(AsyncProducer.send_oneway)
    request = _blocking(AsyncProducer.request)
    reply = _blocking(AsyncProducer.reply)
    queues = _blocking(AsyncProducer.queues)
    recall = _blocking(AsyncProducer.recall)

    @contextlib.contextmanager
    def transaction(
        self, message: Message, *, queue: Queue | None = None, timeout: float | None = None,
        check_after: int | None = None,
    ) -> Iterator[Transaction]:  # fmt: skip
        """A block whose body is the local transaction; see the asynchronous one."""

        async def begin(target: AsyncProducer) -> Transaction:
            block = target.transaction(
                message, queue=queue, timeout=timeout, check_after=check_after
            )
            return await block.__aenter__()

        async def end(error: BaseException | None) -> None:
            transaction.ended(error)

        transaction = self._run(begin)
        failure: BaseException | None = None
        try:
            yield transaction
        except BaseException as error:
            failure = error
            raise
        finally:
            self._run(lambda _: end(failure))

    def check(self, handler: CheckHandler) -> CheckHandler:
        """Register who answers when a broker asks what became of a transaction.

        It runs on a thread of its own, so it may block.
        """

        async def on_a_thread(message: Unfinished) -> object:
            return await asyncio.to_thread(handler, message)

        self._check = on_a_thread
        self._current().check(on_a_thread)
        return handler

    def _reopen(self, target: AsyncProducer) -> None:
        if self._check is not None:
            target.check(self._check)
        super()._reopen(target)

    def send_many(self, messages: Iterable[Message]) -> list[SendResult | GantryError]:
        """Send all in one crossing; for each its result or what went wrong."""
        every = list(messages)  # the caller's iterator runs on the caller's thread
        return self._run(lambda target: target.send_many(every))


class Admin(_Blocking[AsyncAdmin]):
    """Governs a cluster."""

    def __init__(
        self,
        namesrv: str | None = None,
        *,
        client: ClientOptions | None = None,
        hooks: Sequence[Hook] = (),
        portal: Portal | None = None,
    ) -> None:
        super().__init__(lambda: AsyncAdmin(namesrv, client=client, hooks=hooks), portal)

    cluster = _blocking(AsyncAdmin.cluster)
    masters = _blocking(AsyncAdmin.masters)
    members = _blocking(AsyncAdmin.members)
    broker_runtime = _blocking(AsyncAdmin.broker_runtime)
    broker_config = _blocking(AsyncAdmin.broker_config)
    update_broker_config = _blocking(AsyncAdmin.update_broker_config)
    create_topic = _blocking(AsyncAdmin.create_topic)
    delete_topic = _blocking(AsyncAdmin.delete_topic)
    topics = _blocking(AsyncAdmin.topics)
    topic_configs = _blocking(AsyncAdmin.topic_configs)
    topic_route = _blocking(AsyncAdmin.topic_route)
    topic_stats = _blocking(AsyncAdmin.topic_stats)
    topic_groups = _blocking(AsyncAdmin.topic_groups)
    groups = _blocking(AsyncAdmin.groups)
    waiting = _blocking(AsyncAdmin.waiting)
    update_group = _blocking(AsyncAdmin.update_group)
    delete_group = _blocking(AsyncAdmin.delete_group)
    consume_stats = _blocking(AsyncAdmin.consume_stats)
    consumers = _blocking(AsyncAdmin.consumers)
    subscription_conflicts = _blocking(AsyncAdmin.subscription_conflicts)
    producers = _blocking(AsyncAdmin.producers)
    min_offset = _blocking(AsyncAdmin.min_offset)
    max_offset = _blocking(AsyncAdmin.max_offset)
    search_offset = _blocking(AsyncAdmin.search_offset)
    message = _blocking(AsyncAdmin.message)
    query = _blocking(AsyncAdmin.query)


class PollingConsumer(AsyncConsumer):
    """A consumer that hands out several messages at a time."""

    async def poll(self, count_max: int, timeout: float | None) -> list[AsyncDelivery] | None:
        """Wait for at least one message; [] when none came in time, None when it was closed."""
        if self._closed:
            return None
        self._check_started()
        try:
            async with asyncio.timeout(timeout):
                found = await self._handout.next(count_max)
        except TimeoutError:
            return []
        except HandoutClosed:
            if self._failure is not None:
                raise self._failure from None
            return None
        while len(found) < count_max and (more := self._handout.take(count_max - len(found))):
            found += more
        return found


class Delivery(Received):
    """A delivered message. Finish it once: `ack`, `retry` or `dead`."""

    __slots__ = ("_consumer", "_inner", "_pid")

    def __init__(self, inner: AsyncDelivery, consumer: "Consumer") -> None:
        super().__init__(inner._data, inner._body_at, inner._head, inner.queue)
        self._inner, self._consumer, self._pid = inner, consumer, os.getpid()

    @property
    def reconsume_times(self) -> int:
        return self._inner.reconsume_times

    def ack(self) -> None:
        """The work is done: do not deliver it again."""
        self._check_open()
        self._consumer.finish_many([self], "ack")

    def retry(self, delay_level: int = 0, *, reason: str | None = None) -> None:
        """Deliver it again later."""
        self._check_open()
        self._consumer._run(lambda _: self._inner.retry(delay_level, reason=reason))

    def dead(self, *, reason: str | None = None) -> None:
        """To the group's dead letters."""
        self._check_open()
        self._consumer._run(lambda _: self._inner.dead(reason=reason))

    def _check_open(self) -> None:
        if os.getpid() != self._pid:
            raise ForkedError("this message was delivered to the parent process; finish it there")
        if self._inner.finished is not None:
            raise AlreadyFinished(self.msg_id, self._inner.finished)


async def _finish(messages: Sequence[AsyncDelivery], verb: str) -> None:
    for message in messages:
        await getattr(message, verb)()


SyncHandler = Callable[[Delivery], object]


class Consumer(_Blocking[PollingConsumer]):
    """Reads topics as a member of a group: poll, iterate, or run a handler."""

    def __init__(
        self,
        namesrv: str | None = None,
        *,
        group: str,
        ordered: bool = False,
        broadcast: bool = False,
        max_retries: int | None = -1,
        options: ConsumerOptions | None = None,
        client: ClientOptions | None = None,
        trace: bool | str = False,
        hooks: Sequence[Hook] = (),
        portal: Portal | None = None,
    ) -> None:
        def make() -> PollingConsumer:
            return PollingConsumer(
                namesrv, group=group, ordered=ordered, broadcast=broadcast,
                max_retries=max_retries, options=options, client=client, trace=trace, hooks=hooks,
            )  # fmt: skip

        super().__init__(make, portal)
        self._wanted: dict[str, tuple[str, str | None]] = {}
        self._handler: SyncHandler | None = None

    def subscribe(self, topic: str, tags: str = "*", *, sql: str | None = None) -> None:
        """Read a topic: all of it, some tags (`a || b`), or what an SQL92 condition picks."""
        self._wanted[topic] = (tags, sql)
        self._run(lambda target: _subscribe(target, {topic: (tags, sql)}))

    def unsubscribe(self, topic: str) -> None:
        """Read it no more."""
        self._wanted.pop(topic, None)
        self._run(lambda target: _unsubscribe(target, topic))

    def _reopen(self, target: PollingConsumer) -> None:
        super()._reopen(target)
        self._portal.run(_subscribe(target, self._wanted))

    commit = _blocking(AsyncConsumer.commit)
    wait_assigned = _blocking(AsyncConsumer.wait_assigned)

    def poll(self, count_max: int = POLL_MESSAGES, timeout: float | None = None) -> list[Delivery]:
        """Up to `count_max` messages in one crossing; waits for the first, at most `timeout`."""
        found = self._run(lambda target: target.poll(count_max, timeout))
        if found is None:
            raise Closed("the consumer is closed")
        return [Delivery(message, self) for message in found]

    def __iter__(self) -> Iterator[Delivery]:
        """Messages one by one until the consumer is closed."""
        while True:
            found = self._run(lambda target: target.poll(POLL_MESSAGES, None))
            if found is None:
                return
            for message in found:
                yield Delivery(message, self)

    def finish_many(self, messages: Iterable[Delivery], verb: str = "ack") -> None:
        """Finish messages with one verb (`ack`, `retry` or `dead`) in one crossing."""
        if verb not in ("ack", "retry", "dead"):
            raise ValueError(f"a message is finished by ack, retry or dead, not {verb!r}")
        inner = []
        for message in messages:
            message._check_open()
            inner.append(message._inner)
        if inner:
            self._run(lambda _: _finish(inner, verb))

    def handler(self, function: SyncHandler) -> SyncHandler:
        """Register the function that `run` gives every message."""
        self._handler = function
        return function

    def run(self, threads: int = 1) -> None:
        """Give messages to the handler until the consumer is closed by another thread.

        Returning None acknowledges, an exception retries. With several threads so many handlers
        run at once; an ordered consumer keeps each queue's order in any case.
        """
        if self._handler is None:
            raise GantryError("there is no handler: register one with @consumer.handler")
        with concurrent.futures.ThreadPoolExecutor(threads) as pool:
            while True:
                found = self._run(lambda target: target.poll(threads, None))
                if found is None:
                    return
                list(pool.map(self._handle, [Delivery(message, self) for message in found]))

    def _handle(self, message: Delivery) -> None:
        assert self._handler is not None
        try:
            value = self._handler(message)
            if value is not None:
                raise TypeError(f"a handler returns None, not {value!r}")
        except Exception:
            log.exception("handler failed on %s; it is retried", message.msg_id)
            verb = "retry"
        else:
            verb = "ack"
        if message._inner.finished is None:
            try:
                self.finish_many([message], verb)
            except Closed:
                log.info("closed before %s was finished; it comes again", message.msg_id)


async def _subscribe(consumer: AsyncConsumer, wanted: dict[str, tuple[str, str | None]]) -> None:
    for topic, (tags, sql) in wanted.items():
        consumer.subscribe(topic, tags, sql=sql)


async def _unsubscribe(consumer: AsyncConsumer, topic: str) -> None:
    consumer.unsubscribe(topic)
