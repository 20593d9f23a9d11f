"""The pending sends of one producer: choose a queue, transmit, settle, retry.

The hot path is one plain function call from `post` to the connection's buffer, and one from the
answer to the caller's future. A send that has to wait (for a route or a connection) waits in
a list, in order.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from gantrymq.base.errors import GantryError
from gantrymq.client.core.errors import (
    TRANSPORT_ERRORS,
    BrokerRefused,
    BrokerUnknown,
    MessageRefused,
    NoRoute,
    SendFailed,
)
from gantrymq.client.core.instance import Instance
from gantrymq.client.core.options import ProducerOptions
from gantrymq.client.core.routes import publish_queues
from gantrymq.client.sending.latency_fault import TABLES, FaultTable
from gantrymq.client.sending.send_policy import (
    STATUS_BY_CODE,
    next_index,
    sharded_index,
)
from gantrymq.client.sending.send_request import (
    BinarySendFrames,
    PreparedMessage,
    SendFrames,
    is_unusual,
)
from gantrymq.client.sending.trace_sink import TraceSink
from gantrymq.client.sending.wait_list import Waitlist
from gantrymq.model import Queue, SendResult
from gantrymq.protocol.calls import SEND_BATCH_MESSAGE, SEND_MESSAGE_V2, SEND_REPLY_MESSAGE_V2
from gantrymq.protocol.command import BINARY_CODEC, Command, encode
from gantrymq.protocol.headers.messages import SendResponse
from gantrymq.remoting.connection import CallTimeout, Connection

Selector = Callable[[Sequence[Queue]], Queue]
RETRYABLE: Final = (*TRANSPORT_ERRORS, BrokerUnknown)
_REPLY_MARK: Final = "MSG_TYPE\x01reply\x02"


class SendTarget:
    """One queue, the address of its broker, and the frames of its requests."""

    __slots__ = ("address", "connection", "frames", "queue")

    def __init__(self, queue: Queue, address: str, frames: SendFrames) -> None:
        self.queue, self.address, self.frames = queue, address, frames
        self.connection: Connection | None = None
        """The last one used; it may be closed by now."""


class Publication:
    """A topic as a producer sees it: its queues in order, and the next one."""

    __slots__ = ("brokers", "cursor", "queues", "targets", "unusual", "version")

    def __init__(self, targets: list[SendTarget], cursor: int, version: int) -> None:
        self.targets, self.cursor, self.version = targets, cursor, version
        self.queues = [target.queue for target in targets]
        self.brokers = [queue.broker_name for queue in self.queues]
        self.unusual = is_unusual(self.queues[0].topic)
        """Its requests are not the usual ones."""


class PendingSend(msgspec.Struct, gc=False):
    """One pending send. All references to it are dropped when it is settled: no cycle remains."""

    sends: "PendingSends"
    prepared: PreparedMessage
    future: asyncio.Future[SendResult]
    deadline: float
    tries_left: int
    queue: Queue | None = None
    selector: Selector | None = None
    sharding_key: str | None = None
    retry_codes: frozenset[int] = frozenset()
    when_stored_less: bool = False
    target: SendTarget | None = None
    request: Command | None = None
    """What hooks were shown, for when the answer comes."""
    started: float = 0.0
    tried: tuple[str, ...] = ()
    """The brokers that were tried without full success, in order."""
    stored: SendResult | None = None
    """The best there is so far: stored, but less safely than asked for."""

    @property
    def fixed(self) -> bool:
        """Whether the caller chose the queue, so that a retry must not choose another."""
        return self.queue is not None or self.selector is not None or self.sharding_key is not None

    def settle(self, answer: Command | GantryError) -> None:
        self.sends.settle(self, answer)


class PendingSends:
    """Takes prepared messages to their results."""

    def __init__(
        self,
        instance: Instance,
        group: str,
        options: ProducerOptions,
        trace: TraceSink | None = None,
    ) -> None:
        self._instance, self._group, self._options = instance, group, options
        self._connections, self._routes = instance.connections, instance.routes
        self._loop = asyncio.get_running_loop()
        self._settled: asyncio.Future[SendResult] = self._loop.create_future()
        self._settled.cancel()
        self._publications: dict[str, Publication] = {}
        self._faults = (
            FaultTable(TABLES[options.latency_table], self._loop.time)
            if options.latency_fault
            else None
        )
        self._for_route: Waitlist[PendingSend] = Waitlist(self.post, self._fail)
        self._for_connection: Waitlist[PendingSend] = Waitlist(self._transmit_again, self._fail)
        self._room_waiters: deque[asyncio.Future[None]] = deque()
        self._idle: asyncio.Future[None] | None = None
        self._trace = trace
        self.count = 0
        """Messages under way."""
        self.bytes = 0

    # the window

    @property
    def full(self) -> bool:
        options = self._options
        return self.count >= options.window_messages or self.bytes >= options.window_bytes

    async def room(self) -> None:
        """Wait until the window has room."""
        while self.full:
            waiter: asyncio.Future[None] = self._loop.create_future()
            self._room_waiters.append(waiter)
            await waiter

    async def idle(self) -> None:
        """Wait until no send is pending; every send has a deadline, so this ends."""
        while self.count:
            if self._idle is None:
                self._idle = self._loop.create_future()
            await asyncio.shield(self._idle)

    def add(self, pending: PendingSend) -> None:
        """Count a message in the window and send it."""
        self.count += 1
        self.bytes += len(pending.prepared.body)
        self.post(pending)

    def add_plain(self, pending: PendingSend) -> None:
        """The same for a message to any queue, with the usual path in one function for speed."""
        prepared = pending.prepared
        publication = self._publications.get(prepared.topic)
        if publication is not None and publication.version == self._routes.version:
            cursor, targets = publication.cursor + 1, publication.targets
            target = targets[cursor % len(targets)]
            connection = target.connection
            if connection and connection.open and self._plain and not publication.unusual:
                publication.cursor = cursor
                self.count += 1
                self.bytes += len(prepared.body)
                pending.target = target
                connection.write(target.frames.frame(prepared, connection.expect(pending)))
                return
        self.add(pending)

    @property
    def _plain(self) -> bool:
        """Whether the fast path is allowed: no latency faults, no hooks, no waiting sends."""
        return not (self._faults or self._instance.hooks or self._for_route or self._for_connection)

    def _leave(self, pending: PendingSend) -> None:
        self.count -= 1
        self.bytes -= len(pending.prepared.body)
        waiters = self._room_waiters
        # Wake one waiter for each send that ends, and all when none is pending: a woken waiter may
        # have been cancelled meanwhile. A waiter that finds the window full waits again.
        while waiters and not self.full:
            waiter = waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                if self.count:
                    break
        if not self.count and self._idle is not None:
            self._idle.set_result(None)
            self._idle = None

    # choosing

    def post(self, pending: PendingSend) -> None:
        """Choose a queue and transmit; wait for the route first if the topic is unknown."""
        topic = pending.prepared.topic
        publication = self._publications.get(topic)
        if publication is None or publication.version != self._routes.version:
            publication = self._publish(topic)
        if publication is None or topic in self._for_route:
            self._for_route.add(topic, pending, lambda: self._find_route(topic))
            return
        try:
            pending.target = self._choose(pending, publication)
        except GantryError as error:
            self._fail(pending, error)
            return
        self._transmit(pending, pending.target)

    async def _find_route(self, topic: str) -> None:
        options = self._options
        route = await self._routes.get_for_sending(
            topic, options.create_topic_key, options.default_topic_queue_nums
        )
        if not publish_queues(route, topic):
            route = await self._routes.refresh(topic)
            if not publish_queues(route, topic):
                raise NoRoute(topic, "it has brokers, but none with a queue to write to")

    def _publish(self, topic: str) -> Publication | None:
        """Turn a cached route into targets; a changed route keeps the cursor."""
        route = self._routes.cached(topic)
        if route is None:
            return None
        targets = [self._target(queue) for queue in publish_queues(route, topic)]
        if not targets:
            return None
        old = self._publications.get(topic)
        cursor = old.cursor if old is not None else self._instance.rng.randrange(1 << 16)
        publication = Publication(targets, cursor, self._routes.version)
        self._publications[topic] = publication
        return publication

    def _target(self, queue: Queue) -> SendTarget:
        try:
            address = self._routes.address_of(queue.broker_name)
        except BrokerUnknown:
            address = ""  # a broker of an order topic may be down: the send fails
        return SendTarget(queue, address, self._frames_for(queue))

    def _frames_for(self, queue: Queue) -> SendFrames:
        kind = BinarySendFrames if self._instance.codec == BINARY_CODEC else SendFrames
        return kind(self._group, queue, self._options)

    def _choose(self, pending: PendingSend, publication: Publication) -> SendTarget:
        if pending.fixed:
            return self._fixed_target(pending, publication)
        avoid = pending.tried
        publication.cursor += 1
        if self._faults is None:
            at = next_index(publication.brokers, publication.cursor, avoid)
        else:
            at = self._choose_by_latency(publication, avoid, self._faults)
        return publication.targets[at]

    def _choose_by_latency(
        self, publication: Publication, avoid: tuple[str, ...], faults: FaultTable
    ) -> int:
        brokers = publication.brokers
        at = next_index(brokers, publication.cursor, avoid, faults.available)
        if faults.available(brokers[at]):
            return at
        least_bad = faults.least_bad()
        if least_bad in brokers:
            return next_index(brokers, publication.cursor, (), lambda name: name == least_bad)
        if least_bad is not None:
            faults.forget(least_bad)
        return at

    def _fixed_target(self, pending: PendingSend, publication: Publication) -> SendTarget:
        if pending.sharding_key is not None and pending.queue is None and pending.selector is None:
            return publication.targets[
                sharded_index(pending.sharding_key, len(publication.targets))
            ]
        if pending.queue is None:
            assert pending.selector is not None
            pending.queue = _selected(pending.selector, publication.queues)
        queue = pending.queue
        if queue.topic != pending.prepared.topic:
            raise MessageRefused(f"message to {pending.prepared.topic!r}: {queue} is none of its")
        for target in publication.targets:
            if target.queue == queue:
                return target
        return self._target(queue)  # not in the route: the broker decides

    # transmitting

    def _transmit(self, pending: PendingSend, target: SendTarget) -> None:
        if not target.address:
            error = BrokerUnknown(f"broker {target.queue.broker_name!r} is in no route")
            self._fail(pending, error)
            return
        connection = self._connections.ready(target.address)
        waitlist = self._for_connection
        if connection is None or target.address in waitlist:
            address = target.address
            waitlist.add(address, pending, lambda: self._connections.get(address))
            return
        self._write(pending, target, connection)

    def _transmit_again(self, pending: PendingSend) -> None:
        """Transmit a send that waited for its connection."""
        target = pending.target
        assert target is not None
        connection = self._connections.ready(target.address)
        if connection is None:
            address = target.address
            self._for_connection.add(address, pending, lambda: self._connections.get(address))
        else:
            self._write(pending, target, connection)

    def _write(self, pending: PendingSend, target: SendTarget, connection: Connection) -> None:
        target.connection = connection
        if self._faults is not None:
            pending.started = self._loop.time()
        prepared = pending.prepared
        if self._instance.hooks or is_unusual(prepared.topic):
            self._write_shown(pending, target, connection)
        else:
            connection.write(target.frames.frame(prepared, connection.expect(pending)))

    def _write_shown(
        self, pending: PendingSend, target: SendTarget, connection: Connection
    ) -> None:
        """Write the same request as a command, which hooks can see, change and stop."""
        command = self.command(pending.prepared, target)
        try:
            self._instance.before_request(target.address, command)
        except GantryError as error:
            pending.target = None  # the failure is not the broker's
            self._fail(pending, error)
            return
        if self._instance.hooks:
            pending.request = command
        command.opaque = connection.expect(pending)
        connection.write(encode(command))

    def command(self, prepared: PreparedMessage, target: SendTarget) -> Command:
        call = SEND_BATCH_MESSAGE if prepared.batch else SEND_MESSAGE_V2
        if _REPLY_MARK in prepared.properties:
            call = SEND_REPLY_MESSAGE_V2
        header = target.frames.header(prepared)
        return Command(
            code=call.code, ext=header.to_ext(), body=prepared.body, codec=self._instance.codec
        )

    # settling

    def settle(self, pending: PendingSend, answer: Command | GantryError) -> None:
        """Handle the answer to a send, or the error in place of it."""
        target = pending.target
        assert target is not None
        if isinstance(answer, GantryError):
            if target.connection is not None and isinstance(answer, CallTimeout):
                self._connections.unheard(target.connection)
            self._fail(pending, answer)
            return
        if self._connections.silent and target.connection is not None:
            self._connections.heard(target.connection)
        if pending.request is not None:
            self._instance.after_response(target.address, pending.request, answer)
        status = STATUS_BY_CODE.get(answer.code)
        if status is None:
            self._fail(pending, BrokerRefused(answer.code, answer.remark, target.address))
            return
        if self._faults is not None:
            latency_ms = (self._loop.time() - pending.started) * 1000
            self._faults.record(target.queue.broker_name, latency_ms)
        try:
            result = _result(status, pending.prepared.msg_id, target, answer)
        except GantryError as error:
            self._fail(pending, error)
            return
        if self._trace is not None:
            self._trace.sent(pending.prepared, target.address, result, answer)
        if pending.when_stored_less and answer.code and self._may_retry(pending):
            pending.stored = result
            pending.tried += (target.queue.broker_name,)
            self.post(pending)
            return
        self._leave(pending)
        if not pending.future.done():
            pending.future.set_result(result)

    def _fail(self, pending: PendingSend, error: GantryError) -> None:
        """Retry if the error allows it, else fail the caller's future."""
        if pending.target is not None:
            broker_name = pending.target.queue.broker_name
            pending.tried += (broker_name,)
            if self._faults is not None:
                latency_ms = (self._loop.time() - pending.started) * 1000
                self._faults.record(broker_name, latency_ms, failed=True)
        if isinstance(error, BrokerRefused):
            worth_it = error.code in pending.retry_codes
        else:
            worth_it = isinstance(error, RETRYABLE)
        if worth_it and self._may_retry(pending):
            self.post(pending)
            return
        self._leave(pending)
        # The error's traceback refers to this send: drop the future, which refers to the error.
        future, pending.future = pending.future, self._settled
        if future.done():
            return
        if pending.stored is not None:
            future.set_result(pending.stored)
        else:
            future.set_exception(_failure(pending, error))

    def _may_retry(self, pending: PendingSend) -> bool:
        if pending.tries_left <= 1 or pending.deadline <= self._loop.time():
            return False
        if pending.future.done():
            return False  # the caller gave up: do not retry
        pending.tries_left -= 1
        return True

    # without an answer

    async def oneway(self, pending: PendingSend) -> None:
        """Write the message without waiting for an answer."""
        topic = pending.prepared.topic
        await self._find_route(topic)
        publication = self._publish(topic)
        if publication is None:
            raise BrokerUnknown(f"topic {topic!r} has no queue to write to")
        target = self._choose(pending, publication)
        if not target.address:
            raise BrokerUnknown(f"broker {target.queue.broker_name!r} is in no route")
        connection = await self._connections.get(target.address)
        # A one-way message has no answer, so only the socket limits the rate.
        await connection.drained()
        command = self.command(pending.prepared, target)
        self._instance.before_request(target.address, command)
        connection.oneway(command)

    async def close(self) -> None:
        await self.idle()
        await self._for_route.close()
        await self._for_connection.close()


def _selected(selector: Selector, queues: Sequence[Queue]) -> Queue:
    """Call the caller's selector; its errors must not stop other sends."""
    try:
        queue = selector(queues)
    except Exception as error:
        raise MessageRefused(f"the selector failed: {error!r}") from error
    if not isinstance(queue, Queue):
        raise MessageRefused(f"a selector returns one of the queues, not {queue!r}")
    return queue


def _failure(pending: PendingSend, error: GantryError) -> GantryError:
    """The error for the caller: the plain one if no broker was tried, else SendFailed."""
    if not pending.tried:
        return error
    failed = SendFailed(pending.prepared.topic, pending.tried, error)
    failed.__cause__ = error
    return failed


def _result(status: str, msg_id: str, target: SendTarget, answer: Command) -> SendResult:
    """Read the few fields needed; parse the whole header only when one is missing or bad."""
    ext = answer.ext
    queue = target.queue
    try:
        offset_msg_id, offset = ext["msgId"], int(ext["queueOffset"])
        queue_id = int(ext["queueId"])
    except (KeyError, ValueError):
        header = SendResponse.parse(ext)  # raises, naming the field
        offset_msg_id, offset, queue_id = header.msg_id, header.queue_offset, header.queue_id
    if queue_id != queue.queue_id:
        queue = Queue(queue.topic, queue.broker_name, queue_id)
    return SendResult(
        status,
        msg_id,
        offset_msg_id,
        queue,
        offset,
        ext.get("transactionId"),
        ext.get("recallHandle"),
    )
