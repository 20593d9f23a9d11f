"""The blocking producer."""

import asyncio
import concurrent.futures
import contextlib
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, Self, overload

from gantrymq.base.errors import GantryError
from gantrymq.client.produce.check_back import CheckHandler, Unfinished
from gantrymq.client.produce.producer import Producer as AsyncProducer
from gantrymq.client.produce.send_results import SendResults
from gantrymq.client.produce.transactions import Transaction
from gantrymq.client.sending.pending_send import Selector
from gantrymq.model import Message, Queue, SendResult
from gantrymq.sync.portal import BlockingClient, Portal, arguments_of, blocking
from gantrymq.sync.submissions import Submissions


class Producer(BlockingClient[AsyncProducer]):
    """Sends messages; any number of threads may use it at once."""

    @overload
    @arguments_of(AsyncProducer)
    def __init__(self) -> None: ...

    @overload
    def __init__(self, *given: Any, portal: Portal | None, **named: Any) -> None: ...

    def __init__(self, *given: Any, portal: Portal | None = None, **named: Any) -> None:
        super().__init__(partial(AsyncProducer, *given, **named), portal)
        self._check: CheckHandler | None = None
        self._submissions = Submissions(self._target, lambda: self._portal)

    @classmethod
    def over(cls, target: AsyncProducer, portal: Portal) -> Self:
        """The blocking form of a producer that its owner starts and closes."""
        face = cls.__new__(cls)
        BlockingClient.__init__(face, lambda: target, portal)
        face._check, face._submissions = None, Submissions(target, lambda: portal)
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
        self,
        message: Message,
        *,
        queue: Queue | None = None,
        selector: Selector | None = None,
        timeout: float | None = None,
        check_after: int | None = None,
    ) -> Iterator[Transaction]:
        """A block whose body is the local transaction; see `gantrymq.Producer.transaction`."""

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
        """Register the function that answers check-backs.

        It runs on a thread of its own, so it may block.
        """

        async def on_a_thread(message: Unfinished) -> object:
            return await asyncio.to_thread(handler, message)

        self._check = on_a_thread
        self._current().check(on_a_thread)
        return handler

    def _reopen(self, target: AsyncProducer) -> None:
        self._submissions = Submissions(target, lambda: self._portal)
        if self._check is not None:
            target.check(self._check)
        super()._reopen(target)

    def submit(
        self, message: Message, *, queue: Queue | None = None, selector: Selector | None = None
    ) -> "concurrent.futures.Future[SendResult]":
        """Start a send and return its future; waits while `window_messages` are pending."""
        self._current()  # in a forked child it replaces what the parent has under way
        return self._submissions.add(message, queue, selector)

    def send_all(self, messages: Iterable[Message]) -> SendResults:
        """Send any number of messages as batches; see `gantrymq.Producer.send_all`."""
        every = list(messages)  # the caller's iterator runs on the caller's thread
        return self._run(lambda target: target.send_all(every))

    def send_many(self, messages: Iterable[Message]) -> list[SendResult | GantryError]:
        """Send all in one crossing; returns for each its result or its error."""
        every = list(messages)  # the caller's iterator runs on the caller's thread
        return self._run(lambda target: target.send_many(every))
