"""One message: everything about it, its body, its history, and sending it again."""

import re
from collections.abc import AsyncIterator
from typing import Annotated, Final

from msgspec import UNSET, Meta, UnsetType

from gantrymq.client.admin.admin import Admin
from gantrymq.client.admin.messages.history_query import why
from gantrymq.client.admin.messages.message_search import Finder
from gantrymq.client.messages.received import Received
from gantrymq.client.produce.producer import Producer
from gantrymq.console.api.ask import Ask
from gantrymq.console.api.decoding.forms import BodyForm, Schema
from gantrymq.console.api.endpoint import Answer, Download, EndpointTable, OfCluster
from gantrymq.console.api.masking.masker import Masker, topics_of
from gantrymq.console.api.messages import Place, QueueNumber, WantedId
from gantrymq.console.api.seen import (
    MessageRow,
    Seen,
    ShownBody,
    is_system_property,
    schemas_of,
)
from gantrymq.console.api.topic_work import PRODUCER_GROUP, MessageSent
from gantrymq.console.errors import BadInput, NotThere
from gantrymq.model import Message, Queue
from gantrymq.protocol import properties
from gantrymq.protocol.compression import COMPRESSED

TABLE = EndpointTable("messages")

FAILURES: Final = ("dead", "retry", "redelivered", "failed")
"""Events, and states of groups, that tell why a delivery failed."""
CHUNK_BYTES: Final = 64 * 1024
PASTED_CHARACTERS_MAX: Final = 16_000
"""Of a schema in an address; a longer one is kept for its topic."""
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.-]+")


class NamedMessage(OfCluster, frozen=True, kw_only=True):
    """A message by its place."""

    topic: str
    broker: str
    queue_id: QueueNumber
    offset: Place


class WantedBody(NamedMessage, frozen=True, kw_only=True):
    """A message, and how to show its body."""

    form: BodyForm = BodyForm.AUTO
    schema: Annotated[str, Meta(max_length=PASTED_CHARACTERS_MAX)] | None = None
    """An Avro schema, or a .proto file or FileDescriptorSet in base64."""
    kept: str | None = None
    """Instead: the id of a schema that is kept here."""
    message_type: Annotated[str, Meta(max_length=255)] = ""
    """The message type of a Protocol Buffers body."""


class MessageProperty(Answer, frozen=True, kw_only=True):
    """A property of a message."""

    name: str
    value: str
    is_system: bool
    is_masked: bool


class MessageDetails(Answer, frozen=True, kw_only=True):
    """Everything about a message."""

    row: MessageRow
    origin: str
    """The topic it was sent to; of a retry or dead letter another one than where it lies."""
    body: ShownBody
    properties: list[MessageProperty]
    born_host: str
    store_host: str
    flag: int
    sys_flag: int
    is_compressed: bool
    transaction: str
    """Empty, or: prepared, committed, rolled back."""
    reconsume_times: int
    log_offset: int
    stored_size: int
    """Bytes of the whole record."""
    first_offset: int
    """Of the queue."""
    end_offset: int


class HistoryEvent(Answer, frozen=True, kw_only=True):
    """Something that happened to a message."""

    at_ms: int
    what: str
    text: str
    place: str
    group: str
    due_ms: int | None
    source: str


class HistoryGroup(Answer, frozen=True, kw_only=True):
    """The state of a message for one group."""

    group: str
    state: str
    text: str
    due_ms: int | None


class History(Answer, frozen=True, kw_only=True):
    """What became of a message."""

    msg_id: str
    topic: str
    state: str
    text: str
    due_ms: int | None
    events: list[HistoryEvent]
    groups: list[HistoryGroup]
    unknown: list[str]
    """What could not be found out, and why."""


class Changed(NamedMessage, frozen=True, kw_only=True):
    """A message to send again, as a new one. What is not given stays as it is stored, and so do
    tags, keys and properties that rules mask."""

    to: str | None = None
    """Another topic."""
    body: str | UnsetType = UNSET
    tags: str | UnsetType | None = UNSET
    keys: list[str] | UnsetType = UNSET
    properties: dict[str, str] | UnsetType = UNSET
    """All of the sender's own properties."""


async def message_at(admin: Admin, wanted: NamedMessage) -> Received:
    """The message at a place; NotThere if there is none."""
    queue = Queue(wanted.topic, wanted.broker, wanted.queue_id)
    found = await Finder(admin).at(queue, wanted.offset)
    if not found.messages or found.messages[0].offset != wanted.offset:
        why_not = found.why or "it was removed"
        raise NotThere(f"no message at {wanted.offset}: {why_not}")
    message = found.messages[0]
    message.queue = queue
    return message


def origin_of(message: Received) -> str:
    """The topic that a message was sent to."""
    found = message.properties
    return (
        found.get(properties.RETRY_TOPIC)
        or found.get(properties.DEAD_ORIGIN_TOPIC)
        or found.get(properties.REAL_TOPIC)
        or message.queue.topic
    )


@TABLE.get("/clusters/{cluster}/messages/{topic}/{broker}/{queueId}/{offset}")
async def show_message(ask: Ask, wanted: WantedBody) -> MessageDetails:
    """A message: body, properties, times and hosts."""
    admin, seen = await ask.admin(wanted.cluster), await Seen.of(ask, wanted.cluster)
    message = await message_at(admin, wanted)
    queue = message.queue
    return MessageDetails(
        row=seen.row(message),
        origin=origin_of(message),
        body=seen.shown(message, wanted.form, await _schema(ask, wanted)),
        properties=shown_properties(seen, message),
        born_host="{}:{}".format(*message.born_host),
        store_host="{}:{}".format(*message.store_host),
        flag=message.flag,
        sys_flag=message.sys_flag,
        is_compressed=bool(message.sys_flag & COMPRESSED),
        transaction=_TRANSACTION.get(message.sys_flag & TRANSACTION_BITS, ""),
        reconsume_times=message.reconsume_times,
        log_offset=message.log_offset,
        stored_size=message.size,
        first_offset=await admin.min_offset(queue),
        end_offset=await admin.max_offset(queue),
    )


def shown_properties(seen: Seen, message: Received) -> list[MessageProperty]:
    """The properties of a message behind the masking rules."""
    shown = seen.masker(message).properties(message.properties)
    return [
        MessageProperty(
            name=name,
            value=value,
            is_system=is_system_property(name),
            is_masked=value != message.properties[name],
        )
        for name, value in shown.items()
    ]


TRANSACTION_BITS: Final = 0x3 << 2
_TRANSACTION: Final = {0x1 << 2: "prepared", 0x2 << 2: "committed", 0x3 << 2: "rolled back"}


async def _schema(ask: Ask, wanted: WantedBody) -> Schema | None:
    if wanted.kept:
        for each in await schemas_of(ask, wanted.cluster).read():
            if each.id == wanted.kept:
                return each.schema
        raise NotThere(f"no schema {wanted.kept!r} is kept here")
    if not wanted.schema:
        return None
    if wanted.form not in (BodyForm.AVRO, BodyForm.PROTOBUF):
        raise BadInput("a schema is for form=avro or form=protobuf")
    return Schema(form=wanted.form, text=wanted.schema, message=wanted.message_type)


@TABLE.get(
    "/clusters/{cluster}/messages/{topic}/{broker}/{queueId}/{offset}/body",
    "application/octet-stream",
)
async def download_body(ask: Ask, wanted: NamedMessage) -> Download:
    """The bytes of a body; where rules mask something, without it."""
    admin, seen = await ask.admin(wanted.cluster), await Seen.of(ask, wanted.cluster)
    found = seen.body(await message_at(admin, wanted))
    if found.raw is None:
        raise BadInput(f"this body is {found.why}")
    name = f"{wanted.topic}-{wanted.broker}-{wanted.queue_id}-{wanted.offset}.bin"
    return Download("application/octet-stream", _chunks(found.raw), _UNSAFE.sub("_", name))


async def _chunks(data: bytes) -> AsyncIterator[bytes]:
    for at in range(0, len(data), CHUNK_BYTES):
        yield data[at : at + CHUNK_BYTES]


@TABLE.get("/clusters/{cluster}/message-ids/{id}/history")
async def show_history(ask: Ask, wanted: WantedId) -> History:
    """What became of a message: sent, stored, delivered, retried, dead (`gantry history`)."""
    admin, seen = await ask.admin(wanted.cluster), await Seen.of(ask, wanted.cluster)
    found = await why(admin, wanted.id, topic=wanted.topic)
    masker = seen.masker_of_topic(found.topic or None)
    return History(
        msg_id=found.msg_id,
        topic=found.topic,
        state=found.state,
        text=masker.text(found.text),
        due_ms=found.due_ms,
        events=[
            HistoryEvent(
                at_ms=each.at_ms,
                what=each.what,
                text=_told(masker, each.what, each.text),
                place=each.place,
                group=each.group,
                due_ms=each.due_ms,
                source=each.source,
            )
            for each in found.events
        ],
        groups=[
            HistoryGroup(
                group=each.group,
                state=each.state,
                text=_told(masker, each.state, each.text),
                due_ms=each.due_ms,
            )
            for each in found.groups
        ],
        unknown=found.unknown,
    )


def _told(masker: Masker, what: str, text: str) -> str:
    """A sentence of a history; those about failures repeat what the error said."""
    return masker.story(text) if what in FAILURES else masker.text(text)


@TABLE.post("/clusters/{cluster}/messages/{topic}/{broker}/{queueId}/{offset}/resend")
async def resend_message(ask: Ask, wanted: Changed) -> MessageSent:
    """Send a message again as a new one, with changes if some are given."""
    admin, seen = await ask.admin(wanted.cluster), await Seen.of(ask, wanted.cluster)
    message = await message_at(admin, wanted)
    made = _changed(message, wanted, seen.masker(message))
    seen.check_copy(ask, topics_of(message), made.topic)
    async with Producer(group=PRODUCER_GROUP, client=admin.instance.options) as producer:
        result = await producer.send(made)
    queue = result.queue
    return MessageSent(
        text=f"message {result.msg_id} is in {queue}, offset {result.offset}",
        status=result.status,
        msg_id=result.msg_id,
        offset_msg_id=result.offset_msg_id,
        broker=queue.broker_name,
        queue_id=queue.queue_id,
        offset=result.offset,
        recall_handle=result.recall_handle,
    )


def _changed(message: Received, wanted: Changed, masker: Masker) -> Message:
    """The new message. What the masker hides of the old one stays."""
    stored = message.properties
    shown = masker.properties(stored)
    keeps_tags = wanted.tags is UNSET or masker.tags(message.tags) != message.tags
    keeps_keys = wanted.keys is UNSET or masker.keys(message.keys) != list(message.keys)
    own = {name: value for name, value in stored.items() if not is_system_property(name)}
    if wanted.properties is not UNSET:
        hidden = {name: value for name, value in own.items() if shown[name] != value}
        own = {**wanted.properties, **hidden}
    return Message(
        wanted.to or origin_of(message),
        message.body if wanted.body is UNSET else wanted.body.encode(),
        tags=message.tags if keeps_tags or wanted.tags is UNSET else wanted.tags,
        keys=message.keys if keeps_keys or wanted.keys is UNSET else wanted.keys,
        properties=own,
        flag=message.flag,
        sharding_key=stored.get(properties.SHARDING_KEY),
    )
