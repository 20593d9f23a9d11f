"""POP requests: pop messages of any queue of a broker, acknowledge them, change their time.

The request codes do not fit into the binary header's 16 bits, so these requests are always JSON.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import NamedTuple, TypeVar

from gantrymq.base.errors import GantryError
from gantrymq.client.core.consumer_errors import AlreadyFinished
from gantrymq.client.core.errors import TRANSPORT_ERRORS, BrokerRefused, ClientError
from gantrymq.client.core.instance import Instance
from gantrymq.client.messages.received import Received
from gantrymq.kernel import cut_records
from gantrymq.model import Queue, Subscription
from gantrymq.protocol import calls, fastjson, properties
from gantrymq.protocol.calls import Call
from gantrymq.protocol.codes import ResponseCode
from gantrymq.protocol.command import JSON_CODEC, Command
from gantrymq.protocol.headers import pop as p
from gantrymq.protocol.headers.base import Header, Nothing
from gantrymq.protocol.pop import (
    BatchAck,
    BatchAckBody,
    Handle,
    bit_set,
    parse_info,
    real_topic,
    retry_flag,
)
from gantrymq.protocol.record import RecordHead

ANSWER_MARGIN_SECONDS = 10.0
"""How much longer than the broker may hold a request the client waits for its answer."""
ACK_TRIES = 3
NOTHING_NOW = (
    ResponseCode.POLLING_TIMEOUT,
    ResponseCode.POLLING_FULL,
    ResponseCode.PULL_NOT_FOUND,
)

Q = TypeVar("Q", bound=Header)
R = TypeVar("R", bound=Header)


class PopUnsupported(ClientError):
    """The broker does not support POP."""


class LoanOver(GantryError):
    """The invisible time of a popped message is over: the broker delivers it again."""


class PopSource(NamedTuple):
    """A topic on a broker."""

    topic: str
    broker_name: str


class Popped(Received):
    """A popped message: invisible for other consumers until `due_ms`.

    Finish it once, with `ack` or `retry`; `extend` asks for more time, as often as needed.
    """

    __slots__ = ("_client", "_tries", "finished", "handle")

    def __init__(
        self,
        data: bytes,
        body_at: int,
        head: RecordHead,
        queue: Queue,
        handle: Handle,
        client: "PopClient",
        tries: int = 0,
    ) -> None:
        super().__init__(data, body_at, head, queue)
        self.handle, self._client, self._tries = handle, client, tries
        self.finished: str | None = None
        """The verb that finished this delivery; None while it is open."""

    @property
    def reconsume_times(self) -> int:
        """How many times it was delivered before."""
        return max(self._head.reconsume_times, self._tries)

    @property
    def due_ms(self) -> int:
        """When it becomes visible for other consumers again, in ms of the broker's clock."""
        return self.handle.pop_ms + self.handle.invisible_ms

    async def ack(self) -> None:
        """The work is done: do not deliver it again. An ack that raises may be repeated."""
        with self.finishing("ack"):
            await self._client.ack(self)

    async def extend(self, seconds: float) -> None:
        """Keep it invisible for `seconds` from now."""
        self.check_open()
        self.handle = await self._client.change(self, int(seconds * 1000))

    async def retry(self, seconds: float = 0.0) -> None:
        """Deliver it again after `seconds`."""
        with self.finishing("retry"):
            await self._client.change(self, int(seconds * 1000))

    @contextmanager
    def finishing(self, verb: str) -> Iterator[None]:
        """Mark it as finished while the request runs; open again if the request raises."""
        self.check_open()
        self.finished = verb
        try:
            yield
        except BaseException:
            self.finished = None
            raise

    def check_open(self) -> None:
        if self.finished is not None:
            raise AlreadyFinished(self.msg_id, self.finished)


class PopClient:
    """Sends the POP requests of one group."""

    def __init__(self, instance: Instance, group: str) -> None:
        self.instance, self.group = instance, group

    async def _call(
        self,
        broker_name: str,
        call: Call[Q, R],
        header: Q,
        body: bytes = b"",
        *,
        timeout: float | None = None,
        expect: Sequence[int] = (),
    ) -> tuple[R | None, Command]:
        address = self.instance.routes.address_of(broker_name)
        command = Command(code=call.code, ext=header.to_ext(), body=body, codec=JSON_CODEC)
        answer = await self.instance.exchange(address, command, timeout)
        if answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
            raise PopUnsupported(
                f"broker {broker_name} at {address} cannot pop messages: that needs RocketMQ 5 or "
                "GantryMQ; use Consumer there"
            )
        if answer.code == 0:
            return call.response.parse(answer.ext), answer
        if answer.code in expect:
            return None, answer
        raise BrokerRefused(answer.code, answer.remark, address)

    # popping

    async def pop(
        self,
        source: PopSource,
        wanted: Subscription,
        count: int,
        invisible_ms: int,
        wait: float,
        *,
        init_mode: int,
        attempt: str | None,
    ) -> list[Popped]:
        """Pop up to `count` messages; without any the broker holds the request `wait` seconds."""
        header = p.PopRequest(
            consumer_group=self.group,
            topic=source.topic,
            queue_id=-1,
            max_msg_nums=count,
            invisible_time=invisible_ms,
            poll_time=int(wait * 1000),
            born_time=self.instance.clock.now_ms(),
            init_mode=init_mode,
            exp_type=wanted.expression_type,
            exp=wanted.sub_string,
            order=attempt is not None,
            attempt_id=attempt,
        )
        found, answer = await self._call(
            source.broker_name,
            calls.POP_MESSAGE,
            header,
            timeout=wait + ANSWER_MARGIN_SECONDS,
            expect=NOTHING_NOW,
        )
        return [] if found is None else self._popped(source, found, answer.body)

    def _popped(self, source: PopSource, found: p.PopResponse, body: bytes) -> list[Popped]:
        starts, counts = parse_info(found.start_offset_info), parse_info(found.order_count_info)
        cuts, error = cut_records(body)
        if error is not None:
            raise error
        messages = []
        for _, body_at, head in cuts:
            queue = Queue(source.topic, source.broker_name, head.queue_id)
            seen = Received(body, body_at, head, queue)
            given = seen.properties.get(properties.POP_CHECKPOINT)
            flag, place = retry_flag(seen.stored_topic), str(head.queue_id)
            if given:
                handle = Handle.parse(given)
            else:
                handle = Handle(
                    int(starts.get((flag, place), head.queue_offset)),
                    found.pop_time,
                    found.invisible_time,
                    found.revive_qid,
                    flag,
                    source.broker_name,
                    head.queue_id,
                    head.queue_offset,
                )
            tries = counts.get((flag, f"qo{place}%{head.queue_offset}")) or counts.get(
                (flag, place)
            )
            messages.append(Popped(body, body_at, head, queue, handle, self, int(tries or 0)))
        return messages

    async def has_news(self, source: PopSource, wait: float, attempt: str | None) -> bool:
        """Wait up to `wait` seconds; True when a pop would find a message."""
        header = p.NotificationRequest(
            consumer_group=self.group,
            topic=source.topic,
            queue_id=-1,
            poll_time=int(wait * 1000),
            born_time=self.instance.clock.now_ms(),
            order=attempt is not None,
            attempt_id=attempt,
        )
        found, _ = await self._call(
            source.broker_name, calls.NOTIFICATION, header, timeout=wait + ANSWER_MARGIN_SECONDS
        )
        return found is not None and found.has_msg

    # settling

    def _topic(self, message: Popped) -> str:
        return real_topic(message.queue.topic, self.group, message.handle.flag)

    async def ack(self, message: Popped) -> None:
        handle = message.handle
        header = p.AckRequest(
            consumer_group=self.group,
            topic=self._topic(message),
            queue_id=handle.queue_id,
            extra_info=str(handle),
            offset=handle.offset,
        )
        await self._surely(handle.broker_name, calls.ACK_MESSAGE, header)

    async def ack_many(self, messages: Iterable[Popped]) -> None:
        """Acknowledge with one request a broker; raises the first error after all brokers."""
        by_broker: dict[str, list[Popped]] = {}
        for message in messages:
            message.check_open()
            by_broker.setdefault(message.handle.broker_name, []).append(message)
        failures = []
        for broker_name, part in by_broker.items():
            try:
                with ExitStack() as finishing:
                    for message in part:
                        finishing.enter_context(message.finishing("ack"))
                    await self._ack_part(broker_name, part)
            except GantryError as error:
                failures.append(error)
        if failures:
            raise failures[0]

    async def _ack_part(self, broker_name: str, part: list[Popped]) -> None:
        """Acknowledge as a batch, or one by one if the broker supports no batches."""
        body = fastjson.dumps(BatchAckBody(acks=self._batch(part), broker_name=broker_name))
        try:
            await self._surely(broker_name, calls.BATCH_ACK_MESSAGE, Nothing(), body)
        except PopUnsupported:
            for message in part:
                await self.ack(message)

    def _batch(self, messages: list[Popped]) -> list[BatchAck]:
        together: dict[tuple[str, Handle], list[int]] = {}
        for message in messages:
            handle = message.handle
            key = message.queue.topic, handle._replace(offset=handle.start)
            together.setdefault(key, []).append(handle.offset)
        return [
            BatchAck(
                b=bit_set(offsets, h.start),
                c=self.group,
                it=h.invisible_ms,
                pt=h.pop_ms,
                q=h.queue_id,
                r=h.flag,
                rq=h.revive_queue,
                so=h.start,
                t=topic,
            )
            for (topic, h), offsets in together.items()
        ]

    async def change(self, message: Popped, invisible_ms: int) -> Handle:
        """Change the invisible time; returns the new handle, or raises LoanOver."""
        handle = message.handle
        header = p.ChangeInvisibleRequest(
            consumer_group=self.group,
            topic=self._topic(message),
            queue_id=handle.queue_id,
            extra_info=str(handle),
            offset=handle.offset,
            invisible_time=max(0, invisible_ms),
        )
        found, answer = await self._call(
            handle.broker_name,
            calls.CHANGE_MESSAGE_INVISIBLETIME,
            header,
            expect=(ResponseCode.NO_MESSAGE,),
        )
        if found is None:
            raise LoanOver(
                f"message {message.msg_id}: {answer.remark or 'its invisible time is over'}"
            )
        return handle._replace(
            start=handle.offset,
            pop_ms=found.pop_time,
            invisible_ms=found.invisible_time,
            revive_queue=found.revive_qid,
        )

    async def _surely(
        self, broker_name: str, call: Call[Q, R], header: Q, body: bytes = b""
    ) -> None:
        """Send an ack, again after transport errors: a repeated ack does no harm."""
        for left in reversed(range(ACK_TRIES)):
            try:
                await self._call(broker_name, call, header, body)
            except TRANSPORT_ERRORS:
                if not left:
                    raise
            else:
                return
