"""Reads the trace of one message, as GantryMQ's and RocketMQ's clients write it."""

from typing import TYPE_CHECKING, Final

import msgspec

from gantrymq.base.errors import GantryError
from gantrymq.client.admin.messages.message_query import QUERY_MESSAGES_MAX, query_broker
from gantrymq.client.core.errors import NoRoute
from gantrymq.client.messages.received import Received
from gantrymq.model import TRACE_TOPIC
from gantrymq.protocol import trace
from gantrymq.protocol.trace import EndTransaction, Pub, Recall, Record, SubAfter, SubBefore

if TYPE_CHECKING:
    from gantrymq.client.admin.admin import Admin

_ORDER: Final[dict[type[Record], int]] = {
    Pub: 0,
    EndTransaction: 1,
    Recall: 2,
    SubBefore: 3,
    SubAfter: 4,
}
"""The order of records of the same time: a cause comes before its effect."""


class TraceEvent(msgspec.Struct, frozen=True):
    """One trace record and the client that wrote it."""

    record: Record
    client: str
    """Where the writer runs, as `address:port`."""
    at_ms: int
    """When it happened, by the writer's clock."""


class Trace(msgspec.Struct, frozen=True):
    """The trace of one message, oldest record first."""

    msg_id: str
    events: list[TraceEvent]
    gaps: list[str]
    """Why something may be missing; empty: this is all that was stored."""

    @property
    def complete(self) -> bool:
        return not self.gaps


async def trace_of(admin: "Admin", msg_id: str, *, topic: str = TRACE_TOPIC) -> Trace:
    """The trace of the message with this id, from every broker of the trace topic."""
    instance = admin.instance
    try:
        route = await instance.routes.refresh(topic)
    except NoRoute:
        why = f"no trace: topic {topic} does not exist (traceTopicEnable of the brokers)"
        return Trace(msg_id, [], [why])
    found: list[Received] = []
    gaps = []
    for data in route.broker_datas:
        try:
            address = instance.routes.address_of(data.broker_name, any_id=True)
            part = await query_broker(instance, address, data.broker_name, topic, msg_id)
        except GantryError as error:
            gaps.append(f"no trace from {data.broker_name}: {error}")
            continue
        if len(part) >= QUERY_MESSAGES_MAX:
            gaps.append(f"{data.broker_name} returned {len(part)} trace messages: more are there")
        found += part
    events, unreadable = read_trace(msg_id, found)
    if unreadable:
        gaps.append(f"{unreadable} trace records could not be read")
    return Trace(msg_id, events, gaps)


def read_trace(msg_id: str, messages: list[Received]) -> tuple[list[TraceEvent], int]:
    """The records about one message, in order of time, and the number of unreadable ones."""
    found: dict[Record, TraceEvent] = {}
    unreadable = 0
    for message in messages:
        records, bad = trace.decode(message.body)
        unreadable += bad
        client = "{}:{}".format(*message.born_host)
        for record in records:
            # RocketMQ traces a batch as one record with all ids.
            if msg_id in record.msg_id.split(","):
                found.setdefault(record, TraceEvent(record, client, record.at_ms))
    began = {r.request_id: r.at_ms for r in found if isinstance(r, SubBefore)}
    events = [_timed(event, began) for event in found.values()]
    events.sort(key=lambda event: (event.at_ms, _ORDER[type(event.record)]))
    return events, unreadable


def _timed(event: TraceEvent, began: dict[str, int]) -> TraceEvent:
    """Some clients leave out the end of a consumption: then it is its begin plus its cost."""
    record = event.record
    if not isinstance(record, SubAfter) or record.at_ms:
        return event
    return TraceEvent(record, event.client, began.get(record.request_id, 0) + record.cost_ms)
