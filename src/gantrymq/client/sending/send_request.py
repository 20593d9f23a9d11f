"""Builds the bytes of a send request from a message; the fast path fills a template."""

import struct
from collections.abc import Sequence
from typing import Final

import msgspec

from gantrymq.base.errors import ProtocolError
from gantrymq.client.core.errors import MessageRefused
from gantrymq.client.core.identity import MessageIds
from gantrymq.client.core.options import ProducerOptions
from gantrymq.kernel import SendParts, plain_properties
from gantrymq.message_fields import check_names
from gantrymq.model import (
    REPLY_SUFFIX,
    RETRY_PREFIX,
    UNSENDABLE_TOPICS,
    Message,
    NameRefused,
    Queue,
    check_topic_name,
)
from gantrymq.protocol import batch, properties
from gantrymq.protocol.codes import LANGUAGE_CODES, VERSION_4_9_8, RequestCode
from gantrymq.protocol.command import BINARY_CODEC
from gantrymq.protocol.compression import compress
from gantrymq.protocol.headers.messages import SendRequestV2

RECONSUME_TIME: Final = "RECONSUME_TIME"
MAX_RECONSUME_TIMES: Final = "MAX_RECONSUME_TIMES"
RETRY_NAME_CHARS_MAX: Final = 255

_prefix = struct.Struct(">II").pack
_BINARY_HEAD = struct.Struct(">hBhiiii")
_KEY_SIZE, _VALUE_SIZE = struct.Struct(">h"), struct.Struct(">i")
PYTHON: Final = LANGUAGE_CODES["PYTHON"]
_json = msgspec.json.Encoder().encode

_TEMPLATE = (
    '{{"code":{code},"extFields":{{"a":{group},"b":{topic},"c":{default_topic},"d":"{queue_nums}",'
    '"e":"{queue_id}","f":"%d","g":"%d","h":"%d","i":%b,"j":"0","k":"false","m":"{batch}",'
    '"n":{broker}}},"flag":0,"language":"PYTHON","opaque":%d,"serializeTypeCurrentRPC":"JSON",'
    '"version":{version}}}'
)
_OWN_VALUES: Final = b'"f":"%d","g":"%d","h":"%d","i":%b'


class PreparedMessage(msgspec.Struct, gc=False):
    """A checked and encoded message with its id. All tries share it, so the id stays the same.

    The garbage collector does not track it, because thousands are pending at once; it refers to
    nothing that could form a cycle.
    """

    topic: str
    body: bytes
    properties: str
    msg_id: str
    born_ms: int
    flag: int = 0
    sys_flag: int = 0
    batch: bool = False


def check_topic(topic: str) -> None:
    """Raise if a producer may not send to this topic."""
    if not topic.startswith(RETRY_PREFIX):
        check_topic_name(topic)
    elif len(topic) > RETRY_NAME_CHARS_MAX:
        raise NameRefused(f"the specified topic is longer than {RETRY_NAME_CHARS_MAX} characters")
    if topic in UNSENDABLE_TOPICS:
        raise MessageRefused(f"Sending message to topic[{topic}] is forbidden.")


def is_unusual(topic: str) -> bool:
    """Whether requests to this topic need more fields than usual, or another request code."""
    return topic.startswith(RETRY_PREFIX) or topic.endswith(REPLY_SUFFIX)


def prepare(message: Message, ids: MessageIds, options: ProducerOptions) -> PreparedMessage:
    """Check and encode one message. The caller checks the topic name, once a topic."""
    body = message.body
    if len(body) > options.max_message_bytes:
        raise too_large(message.topic, len(body), options.max_message_bytes)
    msg_id, born_ms = ids.next()
    if (
        message.properties
        or message.delay_level
        or not message.wait_store_ok
        or (
            message.sharding_key is not None
            or message.deliver_at is not None
            or message.delay is not None
        )
    ):
        fields = property_map(message, msg_id)
        msg_id = fields[properties.UNIQ_KEY]
        text = _encoded(message, fields)
    else:
        text = plain_properties(message, msg_id)
    sys_flag = 0
    if len(body) >= options.compress_over_bytes:
        packed, packed_flag = compress(body, options.compression, options.compression_level)
        # A body that does not get smaller is sent as it is: compressed it could exceed a limit.
        if len(packed) < len(body):
            body, sys_flag = packed, packed_flag
    return PreparedMessage(message.topic, body, text, msg_id, born_ms, message.flag, sys_flag)


def too_large(topic: str, size: int, size_max: int) -> MessageRefused:
    return MessageRefused(
        f"message to {topic!r} has {size} bytes: this client refuses more than {size_max} "
        "(ProducerOptions.max_message_bytes); raise the broker's maxMessageSize with it"
    )


def property_map(message: Message, msg_id: str) -> dict[str, str]:
    """All properties of a message, of the system and of the sender."""
    own = message.properties
    check_names(own, message.topic)  # again: the dict may have changed since the message was made
    fields = {properties.UNIQ_KEY: msg_id, **own}
    if message.tags:
        fields[properties.TAGS] = message.tags
    if message.keys:
        fields[properties.KEYS] = " ".join(message.keys)
    if message.delay_level:
        fields[properties.DELAY] = str(message.delay_level)
    timer = message.timer
    if timer is not None:
        fields[timer[0]] = timer[1]
    if not message.wait_store_ok:
        fields[properties.WAIT] = "false"
    if message.sharding_key is not None:
        fields[properties.SHARDING_KEY] = message.sharding_key
    return fields


def _encoded(message: Message, fields: dict[str, str]) -> str:
    try:
        text = properties.encode(fields)
    except ProtocolError as error:
        raise MessageRefused(f"message to {message.topic!r}: {error}") from error
    if len(text) * 3 > properties.BYTES_MAX and len(text.encode()) > properties.BYTES_MAX:
        raise MessageRefused(
            f"message to {message.topic!r}: its properties need {len(text.encode())} bytes, "
            f"more than {properties.BYTES_MAX}"
        )
    return text


def prepare_batch(
    messages: Sequence[Message], ids: MessageIds, options: ProducerOptions
) -> PreparedMessage:
    """Check and encode a batch: one topic, no retry topic, no delay, within the size limit."""
    if not messages:
        raise MessageRefused("a batch needs at least one message")
    topic = messages[0].topic
    if topic.startswith(RETRY_PREFIX):
        raise MessageRefused("a retry topic takes no batches")
    items, msg_ids, born_ms = [], [], 0
    for message in messages:
        if message.topic != topic:
            raise MessageRefused(f"a batch has one topic: {topic!r}, not also {message.topic!r}")
        if message.delay_level or message.timer is not None:
            raise MessageRefused("a batch takes no delayed messages")
        if message.wait_store_ok != messages[0].wait_store_ok:
            raise MessageRefused("a batch has one wait_store_ok for all its messages")
        msg_id, born_ms = ids.next()
        fields = property_map(message, msg_id)
        msg_ids.append(fields[properties.UNIQ_KEY])
        items.append(batch.Item(message.flag, message.body, _encoded(message, fields).encode()))
    body = batch.encode(items)
    if len(body) > options.max_message_bytes:
        raise too_large(topic, len(body), options.max_message_bytes)
    text = "" if messages[0].wait_store_ok else "WAIT\x01false\x02"
    return PreparedMessage(topic, body, text, ",".join(msg_ids), born_ms, batch=True)


class SendFrames:
    """Builds the frames of one producer for one queue; constant fields are filled in once."""

    __slots__ = ("_group", "_options", "_queue", "_templates", "parts")

    def __init__(self, group: str, queue: Queue, options: ProducerOptions) -> None:
        self._group, self._queue, self._options = group, queue, options
        self._templates = (self._template(False), self._template(True))
        self.parts: SendParts | None = self._parts()
        """For requests that the kernel encodes; None if it does not know their form."""

    def _template(self, of_batch: bool) -> bytes:
        code = RequestCode.SEND_BATCH_MESSAGE if of_batch else RequestCode.SEND_MESSAGE_V2
        return _TEMPLATE.format(
            code=int(code),
            group=quoted(self._group),
            topic=quoted(self._queue.topic),
            default_topic=quoted(self._options.create_topic_key),
            queue_nums=self._options.default_topic_queue_nums,
            queue_id=self._queue.queue_id,
            batch="true" if of_batch else "false",
            broker=quoted(self._queue.broker_name),
            version=VERSION_4_9_8,
        ).encode()

    def _parts(self) -> SendParts | None:
        start, _, rest = self._templates[False].partition(_OWN_VALUES)
        middle, end = rest.split(b'"opaque":%d')
        # The same bytes as a filled template: % is escaped in it.
        return SendParts(start % () + b'"f":"0","g":"', middle % () + b'"opaque":', end % ())

    def frame(self, prepared: PreparedMessage, opaque: int) -> bytes:
        """The whole request."""
        header = self._templates[prepared.batch] % (
            prepared.sys_flag,
            prepared.born_ms,
            prepared.flag,
            _json(prepared.properties),
            opaque,
        )
        body = prepared.body
        size = len(header)
        return b"".join((_prefix(4 + size + len(body), size), header, body))

    def header(self, prepared: PreparedMessage) -> SendRequestV2:
        """The same as a typed header, for hooks, one-way sends and retry topics."""
        text, again, again_max = prepared.properties, None, None
        if prepared.topic.startswith(RETRY_PREFIX):
            # A resend by a consumer: brokers read these two from the header.
            fields = properties.decode(text)
            again = fields.pop(RECONSUME_TIME, None)
            again_max = fields.pop(MAX_RECONSUME_TIMES, None)
            text = properties.encode(fields)
        return SendRequestV2(
            producer_group=self._group,
            topic=prepared.topic,
            default_topic=self._options.create_topic_key,
            default_topic_queue_nums=self._options.default_topic_queue_nums,
            queue_id=self._queue.queue_id,
            sys_flag=prepared.sys_flag,
            born_timestamp=prepared.born_ms,
            flag=prepared.flag,
            properties=text,
            reconsume_times=int(again) if again else 0,
            unit_mode=False,
            max_reconsume_times=int(again_max) if again_max else None,
            batch=prepared.batch,
            bname=self._queue.broker_name,
        )


class BinarySendFrames(SendFrames):
    """The same requests with RocketMQ's binary header."""

    __slots__ = ("_fixed",)

    def __init__(self, group: str, queue: Queue, options: ProducerOptions) -> None:
        super().__init__(group, queue, options)
        shared = {
            "a": group,
            "b": queue.topic,
            "c": options.create_topic_key,
            "d": str(options.default_topic_queue_nums),
            "e": str(queue.queue_id),
            "j": "0",
            "k": "false",
            "n": queue.broker_name,
        }
        start = b"".join(_field(name, value) for name, value in shared.items())
        self._fixed = (start + _field("m", "false"), start + _field("m", "true"))

    def _parts(self) -> SendParts | None:
        return None

    def frame(self, prepared: PreparedMessage, opaque: int) -> bytes:
        code = RequestCode.SEND_BATCH_MESSAGE if prepared.batch else RequestCode.SEND_MESSAGE_V2
        fields = b"".join(
            (
                self._fixed[prepared.batch],
                _field("f", str(prepared.sys_flag)),
                _field("g", str(prepared.born_ms)),
                _field("h", str(prepared.flag)),
                _field("i", prepared.properties),
            )
        )
        body, size = prepared.body, _BINARY_HEAD.size + len(fields)
        head = _BINARY_HEAD.pack(code, PYTHON, VERSION_4_9_8, opaque, 0, 0, len(fields))
        prefix = _prefix(4 + size + len(body), BINARY_CODEC << 24 | size)
        return b"".join((prefix, head, fields, body))


def _field(name: str, value: str) -> bytes:
    """One extension field of a binary header; nothing for an empty value, which reads as absent."""
    key, text = name.encode(), value.encode()
    if not text:
        return b""
    return _KEY_SIZE.pack(len(key)) + key + _VALUE_SIZE.pack(len(text)) + text


def quoted(text: str) -> str:
    """The text as a JSON string, with % escaped for a template."""
    return _json(text).decode().replace("%", "%%")
