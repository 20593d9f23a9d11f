"""Finding messages that are already stored: by id, by key."""

from typing import Final

from gantrymq.base.errors import ProtocolError
from gantrymq.client.core.errors import BrokerRefused, ClientError
from gantrymq.client.core.instance import Instance
from gantrymq.client.messages.received import Received
from gantrymq.kernel import cut_records
from gantrymq.model import Queue
from gantrymq.protocol import calls
from gantrymq.protocol.codes import ResponseCode
from gantrymq.protocol.headers.messages import QueryMessageRequest, ViewMessageRequest
from gantrymq.protocol.ids import parse_offset_msg_id

QUERY_MESSAGES_MAX: Final = 64
FOREVER_MS: Final = (1 << 63) - 1
PORT_MAX: Final = 0xFFFF


class MessageMissing(ClientError):
    """No message with that id is stored, or it was deleted."""


def read_records(body: bytes, broker_name: str = "") -> list[Received]:
    """The messages of an answer, each with the queue that its record names."""
    records, error = cut_records(body)
    if error is not None:
        raise error
    found = []
    for _, body_at, head in records:
        # The topic is only known from the record itself, so it is read first.
        topic = Received(body, body_at, head, Queue("", broker_name, head.queue_id)).stored_topic
        found.append(Received(body, body_at, head, Queue(topic, broker_name, head.queue_id)))
    return found


async def by_offset_id(instance: Instance, offset_msg_id: str) -> Received:
    """The message that an offset message id names."""
    place = parse_offset_msg_id(offset_msg_id)
    if not 0 < place.port <= PORT_MAX:
        raise ProtocolError(f"{offset_msg_id!r} names no place: it may be a producer's id")
    host = f"[{place.host}]" if ":" in place.host else place.host
    address, header = f"{host}:{place.port}", ViewMessageRequest(offset=place.offset)
    try:
        _, answer = await instance.call(address, calls.VIEW_MESSAGE_BY_ID, header)
    except BrokerRefused as error:
        raise MessageMissing(f"no message {offset_msg_id}: {error.remark}") from error
    found = read_records(answer.body, instance.routes.name_at(address))
    if not found:
        raise MessageMissing(f"no message {offset_msg_id}")
    return found[0]


async def by_key(
    instance: Instance,
    topic: str,
    key: str,
    *,
    count_max: int = QUERY_MESSAGES_MAX,
    begin_ms: int = 0,
    end_ms: int = FOREVER_MS,
    unique: bool = False,
) -> list[Received]:
    """Messages with a key (or, `unique`, with a producer's id), oldest first.

    Asks every broker of the topic. A broker's index has hashes only, so keys are compared here.
    """
    route = await instance.routes.get(topic)
    found: list[Received] = []
    for data in route.broker_datas:
        address = instance.routes.address_of(data.broker_name, any_id=True)
        found += await query_broker(
            instance,
            address,
            data.broker_name,
            topic,
            key,
            count_max=count_max,
            begin_ms=begin_ms,
            end_ms=end_ms,
            unique=unique,
        )
    return sorted(found, key=lambda message: message.store_ms)[:count_max]


async def query_broker(
    instance: Instance,
    address: str,
    broker_name: str,
    topic: str,
    key: str,
    *,
    count_max: int = QUERY_MESSAGES_MAX,
    begin_ms: int = 0,
    end_ms: int = FOREVER_MS,
    unique: bool = False,
) -> list[Received]:
    """The messages with a key on one broker; the topic needs no route."""
    page = await query_page(
        instance,
        address,
        broker_name,
        topic,
        key,
        count_max=count_max,
        begin_ms=begin_ms,
        end_ms=end_ms,
        unique=unique,
    )
    return [message for message in page if has_key(message, key, unique=unique)]


def has_key(message: Received, key: str, *, unique: bool) -> bool:
    """Whether a message has this key or id, and not only the same hash."""
    return message.msg_id == key if unique else key in message.keys


async def query_page(
    instance: Instance,
    address: str,
    broker_name: str,
    topic: str,
    key: str,
    *,
    count_max: int,
    begin_ms: int,
    end_ms: int,
    unique: bool,
) -> list[Received]:
    """One answer of a broker's index: the newest records with the key's hash."""
    header = QueryMessageRequest(
        topic=topic,
        key=key,
        max_num=count_max,
        begin_timestamp=begin_ms,
        end_timestamp=end_ms,
        unique_key_query=unique,
    )
    _, answer = await instance.call(
        address,
        calls.QUERY_MESSAGE,
        header,
        expect=(ResponseCode.SUCCESS, ResponseCode.QUERY_NOT_FOUND),
    )
    return read_records(answer.body, broker_name) if answer.code == ResponseCode.SUCCESS else []


async def by_id(instance: Instance, msg_id: str, topic: str | None = None) -> Received:
    """A message by either kind of id; the topic is needed for an id that the producer gave."""
    if topic is not None:
        found = await by_key(instance, topic, msg_id, unique=True)
        if found:
            return found[0]
    try:
        return await by_offset_id(instance, msg_id)
    except ProtocolError as error:
        raise MessageMissing(f"{msg_id!r} is no message id: {error}") from error
