"""The producer: sends messages.

async with Producer("localhost:9876", group="shop") as producer:
    result = await producer.send(Message("orders", b"..."))
"""

import asyncio
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, cast

from gantrymq.base import arguments
from gantrymq.base.clock import WallClock
from gantrymq.base.network import Network
from gantrymq.base.own_process import OWN_PROCESS
from gantrymq.client.core.identity import MessageIds
from gantrymq.client.core.instance import Hook, Instance
from gantrymq.client.core.lifecycle import ClientPorts, Lifecycle, RunningPart
from gantrymq.client.core.options import (
    ClientOptions,
    ProducerOptions,
    check_trace,
    chosen,
    with_namesrv,
)
from gantrymq.client.core.requests import Reply
from gantrymq.client.core.routes import publish_queues
from gantrymq.client.messages.received import Received
from gantrymq.client.produce.batching import Batching, outcome_of
from gantrymq.client.produce.bulk_send import BulkSend
from gantrymq.client.produce.check_back import CheckBacks, CheckHandler
from gantrymq.client.produce.checks import check_batch, check_producer_group, no_message
from gantrymq.client.produce.linger import Linger
from gantrymq.client.produce.recall import RecallResult, recall_message
from gantrymq.client.produce.request_reply import answer, ask
from gantrymq.client.produce.send_results import SendOutcome, SendResults
from gantrymq.client.produce.transactions import (
    Decision,
    Ends,
    Local,
    Submitted,
    Transaction,
    check_message,
    half_of,
    run_transaction,
)
from gantrymq.client.sending.pending_send import PendingSend, Selector
from gantrymq.client.sending.pending_sends import PendingSends
from gantrymq.client.sending.send_policy import retry_codes
from gantrymq.client.sending.send_request import (
    PreparedMessage,
    check_topic,
    prepare,
    prepare_batch,
)
from gantrymq.client.sending.send_window import SendWindow
from gantrymq.client.sending.turn_sends import Tries, TurnSends
from gantrymq.client.spans import Spans
from gantrymq.client.tracing import TraceWriter
from gantrymq.kernel import is_plain
from gantrymq.model import Message, Queue, SendResult

BURST_MESSAGES: Final = 256
"""How many messages `send_many` submits before the loop gets its turn."""


@dataclass(slots=True, eq=False)
class _Running(RunningPart):
    """What a started producer sends with."""

    pid: int
    """The process that started it."""
    loop: asyncio.AbstractEventLoop
    ids: MessageIds
    sends: PendingSends
    window: SendWindow
    ends: Ends
    checks: CheckBacks
    batching: Batching | None = None
    """None with spans: each message has one of its own, whose context is in its properties."""
    linger: Linger | None = None
    turn: TurnSends | None = None
    """None with spans, for the same reason."""


class Producer(Lifecycle[_Running]):
    """Sends messages of one producer group. Any number of tasks may use it at once."""

    def __init__(
        self,
        namesrv: str | None = None,
        *,
        group: str,
        options: ProducerOptions | None = None,
        client: ClientOptions | None = None,
        trace: bool | str = False,
        spans: bool = False,
        hooks: Sequence[Hook] = (),
        network: Network | None = None,
        clock: WallClock | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self.group = check_producer_group(group)
        self.options = chosen(ProducerOptions, options)
        ports = ClientPorts(network, clock, rng)
        super().__init__("the producer", with_namesrv(client, namesrv), ports, hooks)
        self._trace = check_trace(trace)
        self._spans = Spans(group) if arguments.yes_or_no("spans", spans) else None
        self.tracing: TraceWriter | None = None
        """The writer of the trace of its sends; None before the start, or without `trace`."""
        self._checked_topics: set[str] = set()
        self._check_handler: CheckHandler | None = None
        self._retry_codes = retry_codes(when_busy=self.options.retry_when_busy)
        self._send_seconds = self.options.send_timeout_ms / 1000
        codes, less = self._retry_codes, self.options.retry_when_not_stored_ok
        self._tries = Tries(1 + self.options.retries, codes, less)
        self._tries_submitted = Tries(1 + self.options.retries_async)

    # life

    async def _open(self, instance: Instance) -> _Running:
        group, options = self.group, self.options
        instance.register_producer(group)
        if self._trace:
            self.tracing = TraceWriter(instance, group, "PRODUCE", self._trace)
        sends = PendingSends(instance, group, options, self.tracing)
        running = _Running(
            instance,
            instance.pid,
            asyncio.get_running_loop(),
            instance.ids,
            sends,
            sends.window,
            Ends(instance, group),
            CheckBacks(instance, group, options, lambda: self._check_handler, self.tracing),
        )
        if self._spans is None:
            running.batching = Batching(running.ids, options)
            running.turn = TurnSends(sends, running.ids, options)
        if running.batching is not None and options.linger_ms is not None:
            running.linger = Linger(
                options.linger_ms / 1000,
                running.batching,
                lambda message: self._post(running, self._prepared(running, message), message),
                lambda prepared: self._submit_batch(running, prepared),
            )
        return running

    async def _shut(self, running: _Running) -> None:
        """Wait for pending sends, which have a deadline, and unregister the group."""
        if running.linger is not None:
            await running.linger.idle()
        await running.sends.close()
        await running.checks.close()
        if self.tracing is not None:
            await self.tracing.close()
        await running.instance.unregister_producer(self.group)

    def _usable(self) -> _Running:
        """The running part, like `_running`, but with no call more than each message needs."""
        running = self._started
        if running is None or OWN_PROCESS.pid != running.pid:
            return self._running
        return running

    # sending

    async def send(
        self,
        message: Message,
        *,
        queue: Queue | None = None,
        selector: Selector | None = None,
        timeout: float | None = None,
    ) -> SendResult:
        """Send and wait for the answer.

        Without a queue, a selector or a sharding key it tries up to three times, on other brokers,
        after transport errors and retryable answers; `timeout` (s) covers all tries.
        """
        running = self._usable()
        if running.window.full:
            await running.window.room()
        if queue is None and selector is None and timeout is None:
            future = self._plain(running, message, self._tries)
            if future is not None:
                return await future
        prepared = self._prepared(running, message)
        pending = self._pending(running, prepared, timeout, 1 + self.options.retries)
        _fix(pending, message, queue, selector)
        return await self._start(running.sends, pending)

    def _plain(
        self, running: _Running, message: Message, tries: Tries
    ) -> asyncio.Future[SendResult] | None:
        """Send a message together with others, if it can be."""
        if running.linger is not None and isinstance(message, Message) and is_plain(message):
            return running.linger.add(message)
        return None if running.turn is None else running.turn.add(message, tries)

    def _start(self, sends: PendingSends, pending: PendingSend) -> asyncio.Future[SendResult]:
        if pending.fixed:
            pending.tries_left = 1  # a retry after a timeout would break the order
        pending.retry_codes = self._retry_codes
        pending.when_stored_less = self.options.retry_when_not_stored_ok
        future = pending.future  # a send that fails at once drops it before `add` returns
        sends.add(pending)
        return future

    def submit(
        self,
        message: Message,
        *,
        queue: Queue | None = None,
        selector: Selector | None = None,
        timeout: float | None = None,
    ) -> asyncio.Future[SendResult]:
        """Send without waiting: many at once, each with a future of its own.

        Retries only after transport errors. Raises WindowFull when the window is full: call
        `await producer.room()` before the next send, so that memory stays bounded however slow
        the brokers are.
        """
        running = self._usable()
        if running.window.full:
            running.window.check()
        if queue is None and selector is None and timeout is None:
            future = self._plain(running, message, self._tries_submitted)
            if future is not None:
                return future
        prepared = self._prepared(running, message)
        return self._post(running, prepared, message, queue, selector, timeout)

    def _post(
        self,
        running: _Running,
        prepared: PreparedMessage,
        message: Message,
        queue: Queue | None = None,
        selector: Selector | None = None,
        timeout: float | None = None,
        future: asyncio.Future[SendResult] | None = None,
    ) -> asyncio.Future[SendResult]:
        sends = running.sends
        tries = 1 + self.options.retries_async
        pending = self._pending(running, prepared, timeout, tries, future)
        future = pending.future
        _fix(pending, message, queue, selector)
        sends.add(pending)
        return future

    async def room(self) -> None:
        """Wait until `submit` may be called again."""
        window = self._usable().window
        if window.full:
            await window.room()

    async def flush(self) -> None:
        """Wait until no send is pending."""
        running = self._usable()
        if running.linger is not None:
            await running.linger.idle()
        await running.window.idle()

    async def send_many(self, messages: Iterable[Message]) -> list[SendOutcome]:
        """Submit all, as fast as the window allows; returns for each its result or its error."""
        window = self._usable().window
        futures: list[asyncio.Future[SendResult]] = []
        for number, message in enumerate(messages, 1):
            if number % BURST_MESSAGES == 0:
                await asyncio.sleep(0)  # let written bytes leave and other tasks run
            if window.full:
                await window.room()
            futures.append(self.submit(message))
        await self.flush()
        return [await outcome_of(future) for future in futures]

    async def send_all(self, messages: Iterable[Message]) -> SendResults:
        """Send any number of messages, much faster than one by one; waits until all are answered.

        Messages of one topic that stand next to each other go to one queue as a batch, in their
        order, and the next batch goes to the next queue; a batch is stored as a whole or not at
        all. Messages that wait for a time, have a sharding key, or are so large that they are
        compressed go alone. The results are a table: for each message its result or its error.
        """
        running = self._usable()
        bulk = BulkSend(
            running.window,
            running.batching,
            lambda message: self._post(running, self._prepared(running, message), message),
            lambda prepared: self._submit_batch(running, prepared),
        )
        return await bulk.run(messages)

    def _submit_batch(
        self, running: _Running, prepared: PreparedMessage
    ) -> asyncio.Future[SendResult]:
        self._check_topic(prepared.topic)
        pending = self._pending(running, prepared, None, 1 + self.options.retries)
        return self._start(running.sends, pending)

    async def send_batch(
        self,
        messages: Sequence[Message],
        *,
        queue: Queue | None = None,
        timeout: float | None = None,
    ) -> SendResult:
        """Send several messages of one topic as one request; the broker stores all or none.

        `msg_id` holds the ids separated by commas, `offset` is that of the first message.
        """
        running = self._usable()
        check_batch(messages)
        if running.window.full:
            await running.window.room()
        prepared = self._prepared_batch(running, messages)
        self._check_topic(prepared.topic)
        pending = self._pending(running, prepared, timeout, 1 + self.options.retries)
        pending.queue = queue
        return await self._start(running.sends, pending)

    async def send_oneway(
        self,
        message: Message,
        *,
        queue: Queue | None = None,
        selector: Selector | None = None,
    ) -> None:
        """Send without an answer: fast, but it is not known whether the message was stored."""
        running = self._usable()
        pending = self._pending(running, self._prepared(running, message), None, 1)
        _fix(pending, message, queue, selector)
        sending = running.sends.oneway(pending)
        await (sending if self._spans is None else self._spans.oneway(sending, pending.future))

    async def request(
        self,
        message: Message,
        *,
        queue: Queue | None = None,
        selector: Selector | None = None,
        timeout: float | None = None,
    ) -> Reply:
        """Send a request and wait for the reply of the consumer that gets it.

        `timeout` (3 s) covers both; raises RequestTimeout when it passes.
        """
        self._usable()
        if not isinstance(message, Message):
            raise no_message(message)
        seconds = self._send_seconds if timeout is None else timeout
        return await ask(self, message, seconds, queue=queue, selector=selector)

    async def reply(self, message: Received, body: bytes | str) -> SendResult:
        """Reply to a received request; a broker has the reply when this returns."""
        self._usable()
        return await answer(self, message, body)

    async def recall(self, topic: str, handle: str) -> RecallResult:
        """Take back a message that still waits for its time.

        The handle is `recall_handle` of its send result. The result's `state` says whether the
        message was waiting; raises RecallRefused if its time has passed or the handle is wrong.
        """
        instance = self._usable().instance
        return await recall_message(instance, self.group, topic, handle, self.tracing)

    # transactions

    def transaction(
        self,
        message: Message,
        *,
        queue: Queue | None = None,
        selector: Selector | None = None,
        timeout: float | None = None,
        check_after: int | None = None,
    ) -> Transaction:
        """A block for `async with`: its body is the local transaction.

        Leaving it commits, an exception rolls back; `tx.commit()`, `tx.rollback()` and
        `tx.unknown()` override that. Without a decision for `check_after` seconds (6 by default)
        the broker starts check-backs.
        """
        return Transaction(
            self, message, queue=queue, selector=selector, timeout=timeout, check_after=check_after
        )

    async def send_transaction(
        self, message: Message, local: Local, *, check_after: int | None = None
    ) -> Transaction:
        """Send a half message, run `local` with the transaction, and send its decision."""
        return await run_transaction(self.transaction(message, check_after=check_after), local)

    def submit_transaction(self, message: Message, local: Local) -> asyncio.Future[Transaction]:
        """Like `submit`, for many at once; `local` is a plain function that does not wait."""
        running, submitted = self._usable(), Submitted(Transaction(self, message), local)
        prepared = half_of(self._prepared(running, message), self.group, None)
        future = cast("asyncio.Future[SendResult]", submitted)
        running.window.check()
        self._post(running, prepared, message, future=future)
        return submitted.outcome

    def check(self, handler: CheckHandler) -> CheckHandler:
        """Register the function that answers check-backs."""
        self._check_handler = handler
        return handler

    async def send_half(
        self,
        message: Message,
        check_after: int | None = None,
        *,
        queue: Queue | None = None,
        selector: Selector | None = None,
        timeout: float | None = None,
    ) -> SendResult:
        """Send only the half message; the caller must call `end_transaction`."""
        running = self._usable()
        check_message(message, check_after)
        if running.window.full:
            await running.window.room()
        prepared = half_of(self._prepared(running, message), self.group, check_after)
        pending = self._pending(running, prepared, timeout, 1 + self.options.retries)
        _fix(pending, message, queue, selector)
        return await self._start(running.sends, pending)

    def end_transaction(self, result: SendResult, decision: Decision, remark: str = "") -> None:
        """Send the decision on a half message, one-way; if it is lost the broker checks back."""
        self._usable().ends.send(result, decision, remark)

    async def queues(self, topic: str) -> list[Queue]:
        """The writable queues of a topic."""
        return publish_queues(await self._usable().instance.routes.get(topic), topic)

    def _prepared(self, running: _Running, message: Message) -> PreparedMessage:
        try:
            if message.topic not in self._checked_topics:
                self._check_topic(message.topic)
        except AttributeError:
            raise no_message(message) from None
        if self._spans is not None:
            return self._spans.prepared(
                [message], lambda marked: prepare(marked[0], running.ids, self.options)
            )
        return prepare(message, running.ids, self.options)

    def _prepared_batch(self, running: _Running, messages: Sequence[Message]) -> PreparedMessage:
        if self._spans is not None and messages:
            return self._spans.prepared(
                messages, lambda marked: prepare_batch(marked, running.ids, self.options)
            )
        return prepare_batch(messages, running.ids, self.options)

    def _check_topic(self, topic: str) -> None:
        check_topic(topic)
        self._checked_topics.add(topic)

    def _pending(
        self,
        running: _Running,
        prepared: PreparedMessage,
        timeout: float | None,
        tries: int,
        future: asyncio.Future[SendResult] | None = None,
    ) -> PendingSend:
        if timeout is not None:
            arguments.seconds("timeout", timeout, more_than_none=True)
        loop = running.loop
        deadline = loop.time() + (self._send_seconds if timeout is None else timeout)
        future = future or loop.create_future()
        if self._spans is not None:
            self._spans.pending(prepared, future)
        return PendingSend(running.sends, prepared, future, deadline, tries)


def _fix(
    pending: PendingSend, message: Message, queue: Queue | None, selector: Selector | None
) -> None:
    if queue is not None:
        arguments.one_of("queue", queue, Queue, "a Queue, as producer.queues(topic) gives them")
    if selector is not None and not callable(selector):
        raise arguments.wrong_type("selector", "a function", selector)
    pending.queue, pending.selector = queue, selector
    pending.sharding_key = message.sharding_key
