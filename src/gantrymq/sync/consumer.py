"""The blocking push consumer."""

import asyncio
import concurrent.futures
import contextlib
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar, overload

import msgspec

from gantrymq.base import arguments
from gantrymq.base.errors import GantryError
from gantrymq.client.consume.handling.handler_check import check_handler
from gantrymq.client.consume.push.consumer import Consumer as AsyncConsumer
from gantrymq.client.consume.queues.ready_queues import ReadyQueuesClosed
from gantrymq.client.core.consumer_errors import AlreadyFinished, ConsumerMisused
from gantrymq.client.core.errors import Closed, ForkedError
from gantrymq.client.messages.consume_status import ConsumeStatus
from gantrymq.client.messages.delivery import Delivery as AsyncDelivery
from gantrymq.client.messages.received import Received
from gantrymq.client.once.guard import Once
from gantrymq.model import Queue
from gantrymq.sync.on_threads import THREADS, BlockingTransaction, current_task, on_thread
from gantrymq.sync.portal import BlockingClient, Portal, arguments_of, blocking

POLL_MESSAGES: Final = 32


class PollingConsumer(AsyncConsumer):
    """A consumer that hands out several messages at a time."""

    @property
    def once(self) -> Once | None:
        """The `once` that it was made with."""
        return self._settings.once

    async def poll(
        self, count_max: int, timeout: float | None, *, one_by_one: bool = False
    ) -> list[AsyncDelivery] | None:
        """Wait for at least one message; [] when none came in time, None when closed.

        With `one_by_one` an ordered queue returns only its first unfinished message.
        """
        if self._closed:
            return None
        running = self._running
        if self.once is not None:
            raise ConsumerMisused("`once` needs a handler and `run`: it must know when work begins")
        running.log_readiness()
        ready = running.ready
        try:
            async with asyncio.timeout(timeout):
                found = await ready.next(1 if one_by_one else count_max)
        except TimeoutError:
            return []
        except ReadyQueuesClosed:
            self._end.check()
            return None
        while left := count_max - len(found):
            more = ready.take(1 if one_by_one else left)
            if not more:
                break
            found += more
        return found

    async def serve(
        self,
        ahead: Sequence[AsyncDelivery],
        function: Callable[..., Any],
        count: int,
        batch_max: int | None,
    ) -> None:
        """Give every message to a coroutine function, `count` calls at a time, until closed.

        With a `batch_max` it gets lists of up to so many. The messages `ahead` were handed out
        before, to a `for` loop that was left.
        """
        self._running.log_readiness()
        if self._handler.work is None:
            self.options = msgspec.structs.replace(self.options, consume_thread_max=count)
            if batch_max is None:
                self.handler(function)
            else:
                self.handler(batch=batch_max)(function)
        assert self._handler.work is not None
        for message in ahead:
            await self._handler.work.run([message])
        await self.run()

    async def close_for(self, closer: "asyncio.Task[Any] | None") -> None:
        """Close without waiting for `closer`, the task of the handler that closes it."""
        if closer is not None and self._started is not None:
            self._started.workers.closers.add(closer)
        await self.close()


class Delivery(Received):
    """A delivered message. Finish it once: `ack`, `retry` or `dead`."""

    __slots__ = ("_inner", "_pid", "_portal")

    def __init__(self, inner: AsyncDelivery, portal: Portal) -> None:
        super().__init__(inner._data, inner._body_at, inner._head, inner.queue)
        self._inner, self._portal, self._pid = inner, portal, os.getpid()

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
        self._portal.run(self._inner.ack())

    def retry(self, delay_level: int = 0, *, reason: str | None = None) -> None:
        """Deliver it again later."""
        self._check_open()
        self._portal.run(self._inner.retry(delay_level, reason=reason))

    def dead(self, *, reason: str | None = None) -> None:
        """Send it to the group's dead letters."""
        self._check_open()
        self._portal.run(self._inner.dead(reason=reason))

    def _check_open(self) -> None:
        if os.getpid() != self._pid:
            raise ForkedError("this message was delivered to the parent process; finish it there")
        if self._inner.finished is not None:
            raise AlreadyFinished(self.msg_id, self._inner.finished)


async def _finish(messages: Sequence[AsyncDelivery], verb: str) -> None:
    for message in messages:
        await getattr(message, verb)()


Outcome = ConsumeStatus | None
BlockingHandler = Callable[[Delivery], Outcome] | Callable[[Delivery, Any], Outcome]
"""The second parameter is the transaction of `once`; its methods block."""
BlockingBatchHandler = (
    Callable[[list[Delivery]], Outcome] | Callable[[list[Delivery], Any], Outcome]
)
H = TypeVar("H", bound=BlockingHandler)
B = TypeVar("B", bound=BlockingBatchHandler)


class _Registered(NamedTuple):
    """A handler; with a `batch_max` it gets lists of up to so many messages."""

    function: Callable[..., Outcome]
    batch_max: int | None


class Consumer(BlockingClient[PollingConsumer]):
    """Reads topics as a member of a group: poll, iterate, or run a handler."""

    @overload
    @arguments_of(PollingConsumer)
    def __init__(self) -> None: ...

    @overload
    def __init__(self, *given: Any, portal: Portal | None, **named: Any) -> None: ...

    def __init__(self, *given: Any, portal: Portal | None = None, **named: Any) -> None:
        super().__init__(partial(PollingConsumer, *given, **named), portal)
        self._wanted: dict[str, tuple[str, str | None]] = {}
        self._handler: _Registered | None = None
        self._ordered, self._once = self._target.ordered, self._target.once
        self._threads = named.get("concurrency") or THREADS
        self._ahead: deque[Delivery] = deque()
        """Fetched for a loop, which may be left at any time."""

    def close(self) -> None:
        """Close the consumer; a forked child closes only what it opened itself."""
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
        """Stop reading a topic."""
        self._wanted.pop(topic, None)
        self._run(lambda target: _unsubscribe(target, topic))

    def _reopen(self, target: PollingConsumer) -> None:
        self._ahead.clear()  # handed out to the parent process
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
        """Hand out no messages for `seconds`, for instance while the handler's database is down."""
        self._do(lambda target: target.pause(seconds))

    def resume(self) -> None:
        """End a pause early."""
        self._do(lambda target: target.resume())

    def poll(self, count_max: int = POLL_MESSAGES, timeout: float | None = None) -> list[Delivery]:
        """Up to `count_max` messages in one crossing; waits for the first, at most `timeout` s."""
        if ahead := self._from_ahead(count_max):
            return ahead
        found = self._run(lambda target: target.poll(count_max, timeout))
        if found is None:
            raise Closed("the consumer is closed")
        return self._shown(found)

    def _from_ahead(self, count_max: int) -> list[Delivery]:
        self._current()  # a child has no part in the parent's messages
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
        """Wait for messages that are finished one by one."""
        found = self._run(lambda target: target.poll(count_max, None, one_by_one=self._ordered))
        return None if found is None else self._shown(found)

    def _shown(self, found: Sequence[AsyncDelivery]) -> list[Delivery]:
        portal = self._portal
        return [Delivery(message, portal) for message in found]

    def finish_many(self, messages: Iterable[Delivery], verb: str = "ack") -> None:
        """Finish messages the same way (`ack`, `retry` or `dead`) in one crossing."""
        if verb not in ("ack", "retry", "dead"):
            raise ValueError(f"a message is finished by ack, retry or dead, not {verb!r}")
        inner = []
        for message in messages:
            message._check_open()
            inner.append(message._inner)
        if inner:
            self._run(lambda _: _finish(inner, verb))

    @overload
    def handler(self, function: H) -> H: ...

    @overload
    def handler(self, *, batch: int) -> Callable[[B], B]: ...

    def handler(self, function: Any = None, *, batch: int | None = None) -> Any:
        """Register the function that `run` gives every message; with `batch`, lists of so many."""
        if batch is not None:
            arguments.whole("batch", batch, 1)
            return lambda inner: self._register(inner, batch)
        size = self._current().options.consume_batch_max
        return self._register(function, size if size > 1 else None)

    def _register(self, function: Any, batch_max: int | None) -> Any:
        in_transaction = self._once is not None and self._once.transaction
        check_handler(
            function,
            arguments=(
                "message" if batch_max is None else "messages",
                *(("transaction",) if in_transaction else ()),
            ),
            given=Delivery,
            as_list=batch_max is not None,
            may_wait=False,
        )
        self._handler = _Registered(function, batch_max)
        return function

    def run(self, threads: int | None = None) -> None:
        """Give messages to the handler until the consumer is closed.

        Up to `threads` handlers run at once, each on a thread (20, or `concurrency`), and
        a free thread takes the next message; an ordered consumer keeps the order of each queue.
        Returning None acknowledges, an exception retries, and a ConsumeStatus says which.
        """
        count = self._threads if threads is None else threads
        if self._handler is None:
            raise GantryError("there is no handler: register one with @consumer.handler")
        function, batch_max = self._handler
        portal = self._portal

        def handle(inner: AsyncDelivery | list[AsyncDelivery], *transaction: Any) -> Any:
            across = (BlockingTransaction(each, portal) for each in transaction)
            if isinstance(inner, list):
                return function(self._shown(inner), *across)
            return function(Delivery(inner, portal), *across)

        with concurrent.futures.ThreadPoolExecutor(count, "gantrymq-handler") as pool:
            work = on_thread(pool, handle)
            ahead = [message._inner for message in self._from_ahead(len(self._ahead))]
            self._run(lambda target: target.serve(ahead, work, count, batch_max))


async def _subscribe(consumer: AsyncConsumer, wanted: dict[str, tuple[str, str | None]]) -> None:
    for topic, (tags, sql) in wanted.items():
        consumer.subscribe(topic, tags, sql=sql)


async def _unsubscribe(consumer: AsyncConsumer, topic: str) -> None:
    consumer.unsubscribe(topic)
