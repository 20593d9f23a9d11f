"""The trace writer: records sends and consumptions, without slowing them down.

Records go into a bounded queue; when it is full they are dropped and counted, because a message is
worth more than its trace. A full trace message is sent at once, the rest after half a second; these
sends are not traced themselves. Each trace message ends with a count of the writer's records, so
that readers know whether they have all.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from gantrymq.base.errors import GantryError
from gantrymq.base.plurals import counted
from gantrymq.client.core.options import ProducerOptions
from gantrymq.client.sending.pending_send import PendingSend
from gantrymq.client.sending.pending_sends import PendingSends
from gantrymq.client.sending.send_request import PreparedMessage, prepare
from gantrymq.model import TRACE_TOPIC, Message, SendResult
from gantrymq.protocol import batch, properties, trace
from gantrymq.protocol.command import Command
from gantrymq.protocol.trace import ConsumeReturnType, MessageType, Record

if TYPE_CHECKING:
    from gantrymq.client.core.instance import Instance
    from gantrymq.client.messages.delivery import Delivery
    from gantrymq.client.messages.received import Received

log = logging.getLogger(__name__)

QUEUE_MAX: Final = 65_536
"""Records that wait to be written: three seconds of 20,000 messages a second, about 30 MB."""
BATCH_MAX: Final = 100
"""Records that go into one trace message."""
BATCH_CHARS_MAX: Final = 16_000
"""A trace message with this much text takes no more records: their keys have to fit into its
properties, which have 32,767 bytes."""
FLUSH_SECONDS: Final = 0.5
TURN_MESSAGES_MAX: Final = 8
"""Trace messages made in one turn of the event loop: a few milliseconds."""
CLOSE_SECONDS_MAX: Final = 10.0
WARN_SECONDS: Final = 60.0
"""At least so much time lies between two warnings about lost records."""
_DELAYS: Final = {
    properties.DELAY,
    properties.TIMER_DELIVER_MS,
    properties.TIMER_DELAY_MS,
    properties.TIMER_DELAY_SEC,
}
_OPTIONS: Final = ProducerOptions(
    send_timeout_ms=5_000, max_message_bytes=128_000, window_messages=256
)


class Attempt:
    """One consumption of one message, from the hand-out to ack, retry or dead."""

    __slots__ = ("_began_ms", "_request_id", "_tracing")

    def __init__(self, tracing: "TraceWriter", began_ms: int, request_id: str) -> None:
        self._tracing, self._began_ms, self._request_id = tracing, began_ms, request_id

    def ended(self, message: "Delivery") -> None:
        """Record the end; `message.finished` says how it ended."""
        self._tracing.ended(message, self._began_ms, self._request_id)


class TraceWriter:
    """Writes the trace of one producer or consumer."""

    def __init__(self, instance: "Instance", group: str, kind: str, topic: str | bool) -> None:
        self._instance, self._group = instance, group
        self._topic = topic if isinstance(topic, str) else TRACE_TOPIC
        self._side = kind
        self._inner_group = f"_INNER_TRACE_PRODUCER-{group}-{kind}-1"
        self._loop = asyncio.get_running_loop()
        self._sends = PendingSends(instance, self._inner_group, _OPTIONS)
        self._records: deque[Record] = deque()
        self._begun_ms = instance.clock.now_ms()
        self._numbered = 0
        self._members: set[str] = set()
        self._new_members: list[str] = []
        self._timer: asyncio.Handle | None = None
        self._soon: asyncio.Handle | None = None
        self._warned_at = -WARN_SECONDS
        self.dropped = 0
        """Records that were not taken because the queue was full."""
        self.lost = 0
        """Records whose trace message could not be stored."""
        instance.register_producer(self._inner_group)

    async def close(self) -> None:
        """Send the remaining records; gives up after CLOSE_SECONDS_MAX."""
        try:
            async with asyncio.timeout(CLOSE_SECONDS_MAX):
                last = not (self._numbered or self._records or self.dropped or self._members)
                while not last:
                    await self._sends.window.room()
                    self._write(closing=True)
                    last = not self._records
                await self._sends.close()
        except TimeoutError:
            records = counted(len(self._records), "record")
            self._warn(f"{records} and {counted(self._sends.window.count, 'message')} given up")
        finally:
            for handle in (self._timer, self._soon):
                if handle is not None:
                    handle.cancel()
            await self._instance.unregister_producer(self._inner_group)

    # events

    def sent(
        self, prepared: PreparedMessage, address: str, result: SendResult, answer: Command
    ) -> None:
        if answer.ext.get(properties.TRACE_ON) == "false" or prepared.topic == self._topic:
            return
        now_ms = self._instance.clock.now_ms()
        region = answer.ext.get(properties.MSG_REGION, trace.DEFAULT_REGION)
        for record in self._pubs(prepared, address, result, region, now_ms):
            self._note(record)

    def handed_out(self, messages: "Sequence[Delivery]") -> None:
        began_ms = self._instance.clock.now_ms()
        for message in messages:
            found = message.properties
            if found.get(properties.TRACE_ON) == "false" or message.topic == self._topic:
                continue
            request_id = self._instance.ids.next()[0]
            message.attempt = Attempt(self, began_ms, request_id)
            before = trace.SubBefore(
                msg_id=message.msg_id,
                at_ms=began_ms,
                request_id=request_id,
                region=found.get(properties.MSG_REGION, trace.DEFAULT_REGION),
                group=self._group,
                retry_times=message.reconsume_times,
                keys=found.get(properties.KEYS, ""),
            )
            self._note(before)

    def ended(self, message: "Delivery", began_ms: int, request_id: str) -> None:
        """Record the end of a consumption."""
        now_ms = self._instance.clock.now_ms()
        after = trace.SubAfter(
            msg_id=message.msg_id,
            request_id=request_id,
            cost_ms=now_ms - began_ms,
            ok=message.finished == "ack",
            keys=message.properties.get(properties.KEYS, ""),
            outcome=_outcome(message),
            at_ms=now_ms,
            group=self._group,
        )
        self._note(after)

    def transaction_ended(
        self,
        message: "Message | Received",
        msg_id: str,
        transaction_id: str,
        broker: str,
        decision: str,
        *,
        from_check: bool,
    ) -> None:
        ended = trace.EndTransaction(
            msg_id=msg_id,
            at_ms=self._instance.clock.now_ms(),
            region=trace.DEFAULT_REGION,
            group=self._group,
            keys=" ".join(message.keys),
            topic=message.topic,
            tags=message.tags or "",
            store_host=self._address(broker),
            transaction_id=transaction_id,
            state=trace.STATES[decision],
            from_check=from_check,
        )
        self._note(ended)

    def _address(self, broker: str) -> str:
        try:
            return self._instance.routes.address_of(broker)
        except GantryError:
            return broker

    def recalled(self, topic: str, msg_id: str, *, ok: bool) -> None:
        now_ms = self._instance.clock.now_ms()
        called = trace.Recall(
            msg_id=msg_id,
            at_ms=now_ms,
            region=trace.DEFAULT_REGION,
            group=self._group,
            topic=topic,
            ok=ok,
        )
        self._note(called)

    def note_members(self, members: Sequence[str]) -> None:
        """Record the members of the group, so that readers of the trace can tell whether all
        of them trace."""
        found = [member for member in members if member not in self._members]
        if found:
            self._members.update(found)
            self._new_members += found
            if self._timer is None:
                self._timer = self._loop.call_later(FLUSH_SECONDS, self._flush)

    def _note(self, record: Record) -> None:
        records = self._records
        if len(records) >= QUEUE_MAX:
            self.dropped += 1
            self._warn("the queue is full")
            return
        records.append(record)
        if len(records) >= BATCH_MAX:
            self._hurry()
        elif self._timer is None:
            self._timer = self._loop.call_later(FLUSH_SECONDS, self._flush)

    def _hurry(self) -> None:
        """Send full messages in the loop's next turn, or after an answer if the window is full."""
        if self._soon is None and not self._sends.window.full:
            self._soon = self._loop.call_soon(self._write_full)

    # encoding and sending

    def _pubs(
        self, prepared: PreparedMessage, address: str, result: SendResult, region: str, now_ms: int
    ) -> list[Record]:
        """One record a message, also of a batch, so that each is found by its own id."""
        ids, places = [result.msg_id], [result.offset_msg_id]
        items = [(properties.decode(prepared.properties), len(prepared.body))]
        if prepared.batch:
            inner = batch.decode(prepared.body)
            ids, places = result.msg_id.split(","), result.offset_msg_id.split(",")
            places += [""] * (len(ids) - len(places))  # a batch stored as one record has one id
            items = [(properties.decode(item.properties), len(item.body)) for item in inner]
        return [
            trace.Pub(
                msg_id=msg_id,
                at_ms=prepared.born_ms,
                region=region,
                group=self._group,
                keys=found.get(properties.KEYS, ""),
                topic=prepared.topic,
                tags=found.get(properties.TAGS, ""),
                store_host=address,
                body_bytes=size,
                cost_ms=max(0, now_ms - prepared.born_ms),
                message_type=_message_type(found),
                offset_msg_id=place,
                ok=result.status == "SEND_OK",
            )
            for msg_id, place, (found, size) in zip(ids, places, items, strict=False)
        ]

    def _flush(self) -> None:
        """Called by the timer: send waiting records, also if they are few."""
        self._timer = None
        if len(self._records) >= BATCH_MAX or self._sends.window.full:
            self._hurry()
        elif self._records or self._new_members:
            self._write()
        if self._records or self._new_members:
            self._timer = self._loop.call_later(FLUSH_SECONDS, self._flush)

    def _write_full(self) -> None:
        self._soon = None
        for _ in range(TURN_MESSAGES_MAX):
            if len(self._records) < BATCH_MAX or self._sends.window.full:
                break
            self._write()
        if len(self._records) >= BATCH_MAX:
            self._hurry()
        elif self._records and self._timer is None:
            self._timer = self._loop.call_later(FLUSH_SECONDS, self._flush)

    def _write(self, *, closing: bool = False) -> None:
        """Encode records as one trace message and send it."""
        records: list[Record] = []
        parts: list[str] = []
        size = 0
        while self._records and len(records) < BATCH_MAX and size < BATCH_CHARS_MAX:
            record = self._records.popleft()
            records.append(record)
            parts.append(trace.encode(record))
            size += len(parts[-1])
        count = trace.TraceCount(
            at_ms=self._instance.clock.now_ms(),
            group=self._group,
            side=self._side,
            client_id=self._instance.client_id,
            begun_ms=self._begun_ms,
            first=self._numbered,
            records=len(records),
            dropped=self.dropped,
            waiting=len(self._records),
            closed=closing and not self._records,
            met=len(self._members),
            members=tuple(self._new_members),
        )
        self._new_members.clear()
        self._numbered += len(records)
        self._send(records, "".join((*parts, trace.encode(count))))

    def _send(self, records: list[Record], text: str) -> None:
        message = Message(self._topic, text, keys=_fitting(trace.index_keys(records)))
        count = len(records)
        try:
            prepared = prepare(message, self._instance.ids, _OPTIONS)
        except GantryError as error:
            self._lose(count, error)
            return
        future: asyncio.Future[SendResult] = self._loop.create_future()
        deadline = self._loop.time() + _OPTIONS.send_timeout_ms / 1000
        future.add_done_callback(lambda done: self._settled(done, count))
        self._sends.add(PendingSend(self._sends, prepared, future, deadline, 1 + _OPTIONS.retries))

    def _settled(self, done: asyncio.Future[SendResult], count: int) -> None:
        error = None if done.cancelled() else done.exception()
        if error is not None:
            self._lose(count, error)
        if len(self._records) >= BATCH_MAX:
            self._hurry()

    def _lose(self, count: int, error: BaseException) -> None:
        self.lost += count
        self._warn(str(error))

    def _warn(self, why: str) -> None:
        now = self._loop.time()
        if now - self._warned_at >= WARN_SECONDS:
            self._warned_at = now
            log.warning(
                "trace of %s: %s (%d dropped, %d lost so far)",
                self._group,
                why,
                self.dropped,
                self.lost,
            )


def _message_type(found: dict[str, str]) -> MessageType:
    if not _DELAYS.isdisjoint(found):
        return MessageType.DELAY
    return (
        MessageType.HALF
        if found.get(properties.TRANSACTION_PREPARED) == "true"
        else MessageType.NORMAL
    )


def _outcome(message: "Delivery") -> ConsumeReturnType:
    if message.finished == "ack":
        return ConsumeReturnType.SUCCESS
    if message.finished not in ("retry", "dead"):
        return ConsumeReturnType.TIMEOUT
    failure = message.failure
    return (
        ConsumeReturnType.EXCEPTION
        if failure is not None and failure.error
        else ConsumeReturnType.FAILED
    )


def _fitting(keys: list[str]) -> list[str]:
    """As many keys as fit into the properties of a message."""
    kept, size = [], 0
    for key in keys:
        size += len(key.encode()) + 1
        if size > properties.BYTES_MAX - 1024:
            break
        kept.append(key)
    return kept
