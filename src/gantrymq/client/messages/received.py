"""A message as a pull returns it: a view of the answer's bytes, decoded on first use."""

import struct
from datetime import UTC, datetime

from gantrymq.model import RETRY_PREFIX, Queue
from gantrymq.protocol import compression, properties
from gantrymq.protocol.ids import decode_host, offset_msg_id
from gantrymq.protocol.record import MAGIC_V2, RecordHead

_I16 = struct.Struct(">h")


class Received:
    """A message to read. Body and properties are decoded on first use and then kept."""

    origin = "store"
    """Where it was read: in a broker's store, unless a subclass says otherwise."""

    __slots__ = ("_body", "_body_at", "_data", "_head", "_properties", "offset", "queue", "size")

    def __init__(self, data: bytes, body_at: int, head: RecordHead, queue: Queue) -> None:
        self._data, self._body_at, self._head = data, body_at, head
        self._body: bytes | None = None
        self._properties: dict[str, str] | None = None
        self.queue = queue
        """The queue it was read from; for a retried message that is one of %RETRY%group."""
        self.offset = head.queue_offset
        self.size = head.total_size
        """Bytes of the stored record."""

    @property
    def body(self) -> bytes:
        """The body as sent; decompressed if the producer compressed it."""
        if self._body is None:
            head, start = self._head, self._body_at
            body = self._data[start : start + head.body_size]
            if head.sys_flag & compression.COMPRESSED:
                body = compression.decompress(body, head.sys_flag)
            self._body = body
        return self._body

    @property
    def stored_body(self) -> bytes:
        """The body as stored; compressed if the producer compressed it."""
        return self._data[self._body_at : self._body_at + self._head.body_size]

    def _tail(self) -> tuple[str, bytes]:
        """The stored topic and the encoded properties behind the body."""
        data, at = self._data, self._body_at + self._head.body_size
        size = data[at]
        at += 1
        if self._head.magic == MAGIC_V2:
            size = size << 8 | data[at]
            at += 1
        topic, at = data[at : at + size].decode("utf-8", "replace"), at + size
        (properties_size,) = _I16.unpack_from(data, at)
        return topic, data[at + 2 : at + 2 + properties_size]

    @property
    def properties(self) -> dict[str, str]:
        """The properties of the user and of the system."""
        if self._properties is None:
            self._properties = properties.decode(self._tail()[1])
        return self._properties

    @property
    def topic(self) -> str:
        """The topic it was sent to, also when it is read from a retry topic."""
        topic = self.queue.topic
        if topic.startswith(RETRY_PREFIX):
            return self.properties.get(properties.RETRY_TOPIC, topic)
        return topic

    @property
    def stored_topic(self) -> str:
        """The topic in the record."""
        return self._tail()[0]

    @property
    def tags(self) -> str | None:
        return self.properties.get(properties.TAGS)

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(self.properties.get(properties.KEYS, "").split())

    @property
    def msg_id(self) -> str:
        """The id that the producer gave, the same in every delivery; else the offset message id."""
        return self.properties.get(properties.UNIQ_KEY) or self.offset_msg_id

    @property
    def offset_msg_id(self) -> str:
        """The broker's id of this record: its address and log offset."""
        return offset_msg_id(self._head.store_host, self._head.physical_offset)

    @property
    def log_offset(self) -> int:
        return self._head.physical_offset

    @property
    def flag(self) -> int:
        return self._head.flag

    @property
    def sys_flag(self) -> int:
        return self._head.sys_flag

    @property
    def born_ms(self) -> int:
        return self._head.born_ms

    @property
    def store_ms(self) -> int:
        return self._head.store_ms

    @property
    def born_time(self) -> datetime:
        """When the producer made it."""
        return datetime.fromtimestamp(self._head.born_ms / 1000, UTC)

    @property
    def store_time(self) -> datetime:
        """When the broker stored it."""
        return datetime.fromtimestamp(self._head.store_ms / 1000, UTC)

    @property
    def born_host(self) -> tuple[str, int]:
        return decode_host(self._head.born_host)

    @property
    def store_host(self) -> tuple[str, int]:
        return decode_host(self._head.store_host)

    @property
    def reconsume_times(self) -> int:
        """How many times it was sent back before."""
        return self._head.reconsume_times

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.msg_id} {self.queue} at {self.offset}>"
