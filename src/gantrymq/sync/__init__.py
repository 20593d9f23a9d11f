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
import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, Self, TypeVar

import msgspec

from gantrymq.base.errors import GantryError
from gantrymq.client.admin import Admin as AsyncAdmin
from gantrymq.client.assignment import Strategy
from gantrymq.client.checks import CheckHandler, Unfinished
from gantrymq.client.consume_status import ConsumeStatus
from gantrymq.client.consumer import CLOSE_GRACE_SECONDS
from gantrymq.client.consumer import Consumer as AsyncConsumer
from gantrymq.client.consumer_errors import AlreadyFinished, ConsumerMisused
from gantrymq.client.delivery import Delivery as AsyncDelivery
from gantrymq.client.errors import Closed, ForkedError, WindowFull
from gantrymq.client.handler_check import check_handler
from gantrymq.client.handout import HandoutClosed
from gantrymq.client.instance import Hook
from gantrymq.client.once.guard import Once
from gantrymq.client.options import ClientOptions, ConsumerOptions, ProducerOptions
from gantrymq.client.outbox import Selector
from gantrymq.client.producer import Producer as AsyncProducer
from gantrymq.client.received import Received
from gantrymq.client.start_at import Start
from gantrymq.client.transactions import Transaction
from gantrymq.model import Message, Queue, SendResult
from gantrymq.sync.app import App
from gantrymq.sync.dead_letters import DeadLetters
from gantrymq.sync.finder import Finder
from gantrymq.sync.on_threads import THREADS, BlockingTransaction, current_task, on_thread
from gantrymq.sync.portal import Blocking, Portal, blocking
from gantrymq.sync.pull import LitePullConsumer, PullConsumer
from gantrymq.sync.simple import Popped, SimpleConsumer

__all__ = [
    "Admin",
    "App",
    "Consumer",
    "DeadLetters",
    "Delivery",
    "Finder",
    "LitePullConsumer",
    "Popped",
    "Portal",
    "Producer",
    "PullConsumer",
    "SimpleConsumer",
]

log = logging.getLogger(__name__)

POLL_MESSAGES: Final = 32


class Producer(Blocking[AsyncProducer]):
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
        self._room = threading.BoundedSemaphore(self._target.options.window_messages)

    @classmethod
    def over(cls, target: AsyncProducer, portal: Portal) -> Self:
        """The blocking face of a producer that somebody else starts and closes."""
        face = cls.__new__(cls)
        Blocking.__init__(face, lambda: target, portal)
        face._check, face._room = None, threading.BoundedSemaphore(target.options.window_messages)
        return face

    send = blocking(AsyncProducer.send)
    send_batch = blocking(AsyncProducer.send_batch)
    send_oneway = blocking(AsyncProducer.send_oneway)
    request = blocking(AsyncProducer.request)
    reply = blocking(AsyncProducer.reply)
    queues = blocking(AsyncProducer.queues)
    recall = blocking(AsyncProducer.recall)

    @contextlib.contextmanager
    def transaction(
        self, message: Message, *, queue: Queue | None = None, selector: Selector | None = None,
        timeout: float | None = None, check_after: int | None = None,
    ) -> Iterator[Transaction]:  # fmt: skip
        """A block whose body is the local transaction; see the asynchronous one."""

        async def begin(target: AsyncProducer) -> Transaction:
            block = target.transaction(
                message, queue=queue, selector=selector, timeout=timeout, check_after=check_after
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
        self._room = threading.BoundedSemaphore(target.options.window_messages)
        if self._check is not None:
            target.check(self._check)
        super()._reopen(target)

    def submit(
        self, message: Message, *, queue: Queue | None = None, selector: Selector | None = None
    ) -> "concurrent.futures.Future[SendResult]":
        """Begin to send and return a future; waits only while `window_messages` are under way."""
        target = self._current()

        async def send() -> SendResult:
            while True:
                await target.room()
                with contextlib.suppress(WindowFull):  # another thread was faster
                    return await target.submit(message, queue=queue, selector=selector)

        room = self._room
        room.acquire()
        future = self._portal.submit(send())
        future.add_done_callback(lambda _: room.release())
        return future

    def send_many(self, messages: Iterable[Message]) -> list[SendResult | GantryError]:
        """Send all in one crossing; for each its result or what went wrong."""
        every = list(messages)  # the caller's iterator runs on the caller's thread
        return self._run(lambda target: target.send_many(every))


class Admin(Blocking[AsyncAdmin]):
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

    cluster = blocking(AsyncAdmin.cluster)
    masters = blocking(AsyncAdmin.masters)
    members = blocking(AsyncAdmin.members)
    broker_runtime = blocking(AsyncAdmin.broker_runtime)
    broker_config = blocking(AsyncAdmin.broker_config)
    update_broker_config = blocking(AsyncAdmin.update_broker_config)
    create_topic = blocking(AsyncAdmin.create_topic)
    delete_topic = blocking(AsyncAdmin.delete_topic)
    topics = blocking(AsyncAdmin.topics)
    topic_configs = blocking(AsyncAdmin.topic_configs)
    topic_route = blocking(AsyncAdmin.topic_route)
    topic_stats = blocking(AsyncAdmin.topic_stats)
    topic_groups = blocking(AsyncAdmin.topic_groups)
    groups = blocking(AsyncAdmin.groups)
    waiting = blocking(AsyncAdmin.waiting)
    update_group = blocking(AsyncAdmin.update_group)
    delete_group = blocking(AsyncAdmin.delete_group)
    consume_stats = blocking(AsyncAdmin.consume_stats)
    consumers = blocking(AsyncAdmin.consumers)
    subscription_conflicts = blocking(AsyncAdmin.subscription_conflicts)
    producers = blocking(AsyncAdmin.producers)
    preview_reset = blocking(AsyncAdmin.preview_reset)
    reset = blocking(AsyncAdmin.reset)
    consumer_status = blocking(AsyncAdmin.consumer_status)
    min_offset = blocking(AsyncAdmin.min_offset)
    max_offset = blocking(AsyncAdmin.max_offset)
    search_offset = blocking(AsyncAdmin.search_offset)
    message = blocking(AsyncAdmin.message)
    query = blocking(AsyncAdmin.query)


class PollingConsumer(AsyncConsumer):
    """A consumer that hands out several messages at a time."""

    async def poll(
        self, count_max: int, timeout: float | None, *, one_by_one: bool = False
    ) -> list[AsyncDelivery] | None:
        """Wait for at least one message; [] when none came in time, None when it was closed.

        One by one, an ordered queue gives no second message before the first is finished.
        """
        if self._closed:
            return None
        self._check_started()
        if self._once is not None:
            raise ConsumerMisused("`once` needs a handler and `run`: it must know when work begins")
        if not self._waited:
            self._waited = True
            self._readiness.look(waits=True)
        try:
            async with asyncio.timeout(timeout):
                found = await self._handout.next(1 if one_by_one else count_max)
        except TimeoutError:
            return []
        except HandoutClosed:
            if self._failure is not None:
                raise self._failure from None
            return None
        while left := count_max - len(found):
            more = self._handout.take(1 if one_by_one else left)
            if not more:
                break
            found += more
        return found

    async def serve(
        self, ahead: Sequence[AsyncDelivery], function: Callable[..., Any], count: int
    ) -> None:
        """Give every message to a coroutine function, so many at a time, until it is closed.

        Those `ahead` were handed out before, to a loop that was left.
        """
        self._check_started()
        if self._work is None:
            self.options = msgspec.structs.replace(self.options, consume_thread_max=count)
            self.handler(function)
        assert self._work is not None
        for message in ahead:
            await self._work.run([message])
        await self.run()

    async def close_for(self, closer: "asyncio.Task[Any] | None") -> None:
        """Close, maybe on behalf of a handler: that one is not waited for."""
        if closer is not None and self._workers is not None:
            self._workers.closers.add(closer)
        await self.close()


class Delivery(Received):
    """A delivered message. Finish it once: `ack`, `retry` or `dead`."""

    __slots__ = ("_consumer", "_inner", "_pid")

    def __init__(self, inner: AsyncDelivery, consumer: "Consumer") -> None:
        super().__init__(inner._data, inner._body_at, inner._head, inner.queue)
        self._inner, self._consumer, self._pid = inner, consumer, os.getpid()

    @property
    def reconsume_times(self) -> int:
        return self._inner.reconsume_times

    @property
    def finished(self) -> str | None:
        """The verb that finished this delivery; None while it is open."""
        return self._inner.finished

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


SyncHandler = (
    Callable[[Delivery], ConsumeStatus | None] | Callable[[Delivery, Any], ConsumeStatus | None]
)


H = TypeVar("H", bound=SyncHandler)


class Consumer(Blocking[PollingConsumer]):
    """Reads topics as a member of a group: poll, iterate, or run a handler."""

    def __init__(
        self,
        namesrv: str | None = None,
        *,
        group: str,
        start: Start | None = None,
        ordered: bool = False,
        broadcast: bool = False,
        max_retries: int | None = -1,
        strategy: Strategy | None = None,
        once: Once | None = None,
        options: ConsumerOptions | None = None,
        client: ClientOptions | None = None,
        trace: bool | str = False,
        close_grace: float = CLOSE_GRACE_SECONDS,
        start_timeout: float | None = None,
        hooks: Sequence[Hook] = (),
        portal: Portal | None = None,
    ) -> None:
        def make() -> PollingConsumer:
            return PollingConsumer(
                namesrv, group=group, start=start, ordered=ordered, broadcast=broadcast,
                max_retries=max_retries, strategy=strategy, once=once, options=options,
                client=client, trace=trace, close_grace=close_grace, start_timeout=start_timeout,
                hooks=hooks,
            )  # fmt: skip

        super().__init__(make, portal)
        self._wanted: dict[str, tuple[str, str | None]] = {}
        self._handler: SyncHandler | None = None
        self._ordered, self._once = ordered, once
        self._ahead: deque[Delivery] = deque()
        """Fetched for a loop, which may be left at any time."""

    def close(self) -> None:
        """Close it: in a forked child only what the child itself opened."""
        if os.getpid() == self._pid:
            self._started = False
            closer = current_task()
            self._run(lambda target: target.close_for(closer))
        self._ahead.clear()

    def subscribe(self, topic: str, tags: str = "*", *, sql: str | None = None) -> None:
        """Read a topic: all of it, some tags (`a || b`), or what an SQL92 condition picks."""
        self._wanted[topic] = (tags, sql)
        self._run(lambda target: _subscribe(target, {topic: (tags, sql)}))

    def unsubscribe(self, topic: str) -> None:
        """Read it no more."""
        self._wanted.pop(topic, None)
        self._run(lambda target: _unsubscribe(target, topic))

    def _reopen(self, target: PollingConsumer) -> None:
        self._ahead.clear()  # the parent's
        if self._once is not None:
            raise ForkedError("a consumer with `once` belongs to the process that made it")
        super()._reopen(target)
        self._portal.run(_subscribe(target, self._wanted))

    commit = blocking(AsyncConsumer.commit)
    wait_assigned = blocking(AsyncConsumer.wait_assigned)

    @property
    def assignment(self) -> list[Queue]:
        """The queues this member holds now, its group's retry queues left out."""
        return self._do(lambda target: target.assignment)

    def pause(self, seconds: float) -> None:
        """Hand nothing out for a time, when what the handler needs is down."""
        self._do(lambda target: target.pause(seconds))

    def resume(self) -> None:
        """End a pause early."""
        self._do(lambda target: target.resume())

    def poll(self, count_max: int = POLL_MESSAGES, timeout: float | None = None) -> list[Delivery]:
        """Up to `count_max` messages in one crossing; waits for the first, at most `timeout`."""
        if ahead := self._from_ahead(count_max):
            return ahead
        found = self._run(lambda target: target.poll(count_max, timeout))
        if found is None:
            raise Closed("the consumer is closed")
        return [Delivery(message, self) for message in found]

    def _from_ahead(self, count_max: int) -> list[Delivery]:
        self._current()  # in a child nothing of it counts
        found: list[Delivery] = []
        with contextlib.suppress(IndexError):  # another thread was faster
            while len(found) < count_max:
                message = self._ahead.popleft()
                if message.finished is None:
                    found.append(message)
        return found

    def __iter__(self) -> Iterator[Delivery]:
        """Messages one by one until the consumer is closed."""
        while True:
            if ahead := self._from_ahead(1):
                yield ahead[0]
                continue
            found = self._fetch(POLL_MESSAGES)
            if found is None:
                return
            self._ahead.extend(found)

    def _fetch(self, count_max: int) -> list[Delivery] | None:
        """Wait for messages that will be finished each by itself."""
        found = self._run(lambda target: target.poll(count_max, None, one_by_one=self._ordered))
        return None if found is None else [Delivery(message, self) for message in found]

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

    def handler(self, function: H) -> H:
        """Register the function that `run` gives every message."""
        in_transaction = self._once is not None and self._once.transaction
        names = ("message", "transaction") if in_transaction else ("message",)
        check_handler(function, arguments=names, given=Delivery, may_wait=False)
        self._handler = function
        return function

    def run(self, threads: int = THREADS) -> None:
        """Give messages to the handler until the consumer is closed, by a handler or elsewhere.

        Up to `threads` handlers run at once, each on a thread, and the next message is taken the
        moment one is free; an ordered consumer keeps each queue's order in any case. Returning None
        acknowledges, an exception retries, and a ConsumeStatus says which.
        """
        handler = self._handler
        if handler is None:
            raise GantryError("there is no handler: register one with @consumer.handler")
        portal = self._portal

        def handle(inner: AsyncDelivery, *transaction: Any) -> Any:
            across = (BlockingTransaction(each, portal) for each in transaction)
            return handler(Delivery(inner, self), *across)

        with concurrent.futures.ThreadPoolExecutor(threads, "gantrymq-handler") as pool:
            work = on_thread(pool, handle)
            ahead = [message._inner for message in self._from_ahead(len(self._ahead))]
            self._run(lambda target: target.serve(ahead, work, threads))


async def _subscribe(consumer: AsyncConsumer, wanted: dict[str, tuple[str, str | None]]) -> None:
    for topic, (tags, sql) in wanted.items():
        consumer.subscribe(topic, tags, sql=sql)


async def _unsubscribe(consumer: AsyncConsumer, topic: str) -> None:
    consumer.unsubscribe(topic)
