"""One message as it lies in the commit log and travels in a pull reply.

A record is a fixed head, then body, topic and properties, each behind its length:

    head (88 bytes with IPv4 hosts) | body | topic length | topic | i16 length | properties

The head is declared once, in `RecordHead`; everything else that knows positions derives them from
it. Two bits of `sys_flag` say whether a host is IPv4 (8 bytes with its port) or IPv6 (20 bytes),
which makes four layouts. A topic's length has one byte in version 1 of the record and two in
version 2, which is written for topics of more than 127 bytes: retry topics of long group names.
"""

import struct
import zlib
from collections.abc import Iterator
from functools import cached_property
from typing import Annotated, NamedTuple

import msgspec

from gantrymq.base.errors import ProtocolError
from gantrymq.base.layout import I32, I64, byte_layout
from gantrymq.protocol import properties
from gantrymq.protocol.ids import decode_host, encode_host, offset_msg_id

BornHost = Annotated[bytes, "born"]
StoreHost = Annotated[bytes, "store"]

MAGIC_V1 = -626843481
MAGIC_V2 = -626843477
MAGIC_BLANK = -875286124
"""Marks the unused end of a log file; the size in front of it spans the rest of the file."""

BLANK_BYTES = 8
V1_TOPIC_BYTES_MAX = 127
PROPERTIES_BYTES_MAX = 32767

COMPRESSED = 0x1
TRANSACTION_MASK = 0xC
TRANSACTION_PREPARED = 0x4
TRANSACTION_COMMIT = 0x8
TRANSACTION_ROLLBACK = 0xC
BORN_V6 = 0x10
STORE_V6 = 0x20


class RecordHead(NamedTuple):
    """Fixed part of a record, big-endian, in the order of the bytes."""

    total_size: I32
    """The whole record in bytes, this field included."""
    magic: I32
    """The version of the record."""
    body_crc: I32
    """CRC-32 of the stored body without its sign bit; 0 for an empty body."""
    queue_id: I32
    """The queue of the topic."""
    flag: I32
    """The user's; the broker does not read it."""
    queue_offset: I64
    """Which entry of its queue this is; 0 for prepared and rollback records."""
    physical_offset: I64
    """The log offset at which the record begins."""
    sys_flag: I32
    """The bits below."""
    born_ms: I64
    """When the client made the message."""
    born_host: BornHost
    """The client's address and port."""
    store_ms: I64
    """When the broker stored it."""
    store_host: StoreHost
    """The broker's address and port."""
    reconsume_times: I32
    """How often it was sent back for a retry."""
    prepared_offset: I64
    """What it was copied from, if that has to be known; see below."""
    body_size: I32
    """Bytes of the body, which follows."""


def head_layout(sys_flag: int) -> struct.Struct:
    """The head's layout for the host kinds that `sys_flag` names."""
    hosts = {
        "born": "20s" if sys_flag & BORN_V6 else "8s",
        "store": "20s" if sys_flag & STORE_V6 else "8s",
    }
    return byte_layout(RecordHead, hosts)


LAYOUTS = {flag: head_layout(flag) for flag in (0, BORN_V6, STORE_V6, BORN_V6 | STORE_V6)}
"""All four head layouts by the two host bits of `sys_flag`."""

HEAD = LAYOUTS[0]
assert HEAD.size == 88

AT_MAGIC = 4
AT_PHYSICAL_OFFSET = 28
AT_SYS_FLAG = 36
RECORD_BYTES_MIN = HEAD.size + 3

I8_LEN = struct.Struct(">b")
I16_LEN = struct.Struct(">h")
I32_LEN = struct.Struct(">i")


def version_of(topic: bytes) -> tuple[int, int]:
    """The magic number of a topic's records, and how many bytes its length takes."""
    return (MAGIC_V1, 1) if len(topic) <= V1_TOPIC_BYTES_MAX else (MAGIC_V2, 2)


def record_size(topic: int, body: int, properties: int, sys_flag: int = 0) -> int:
    """Bytes of a record, given the lengths of its three variable parts."""
    head = LAYOUTS[sys_flag & (BORN_V6 | STORE_V6)].size
    return head + body + (1 if topic <= V1_TOPIC_BYTES_MAX else 2) + topic + 2 + properties


def body_crc(body: bytes | memoryview) -> int:
    """RocketMQ's body checksum: CRC-32 with the sign bit dropped."""
    return zlib.crc32(body) & 0x7FFFFFFF


class StoredMessage(msgspec.Struct, kw_only=True, dict=True):
    """A message together with where and when the broker stored it."""

    topic: str
    queue_id: int
    queue_offset: int
    physical_offset: int
    body: bytes
    flag: int
    sys_flag: int
    born_ms: int
    born_host: tuple[str, int]
    store_ms: int
    store_host: tuple[str, int]
    reconsume_times: int
    prepared_offset: int
    body_crc: int
    size: int
    raw_properties: bytes

    @cached_property
    def properties(self) -> dict[str, str]:
        """The properties as a dictionary, parsed when first asked for."""
        return properties.decode(self.raw_properties)

    @property
    def offset_message_id(self) -> str:
        """The offset message id: store host and log offset in hexadecimal."""
        return offset_msg_id(encode_host(*self.store_host), self.physical_offset)


def decode_record(buffer: bytes | memoryview, at: int = 0) -> StoredMessage:
    """Decode the record that begins at `at`; ProtocolError if there is none."""
    view = memoryview(buffer)[at:]
    try:
        return _decode(view)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise ProtocolError(f"no record at {at}: {error}") from error


def _decode(view: memoryview) -> StoredMessage:
    size, magic = struct.unpack_from(">ii", view)
    if magic not in (MAGIC_V1, MAGIC_V2) or not RECORD_BYTES_MIN <= size <= len(view):
        raise ProtocolError(f"no record here: size {size}, magic {magic & 0xFFFFFFFF:08x}")
    (sys_flag,) = I32_LEN.unpack_from(view, AT_SYS_FLAG)
    layout = LAYOUTS[sys_flag & (BORN_V6 | STORE_V6)]
    head = RecordHead._make(layout.unpack_from(view))
    body_end = layout.size + head.body_size
    topic_len = I8_LEN if magic == MAGIC_V1 else I16_LEN
    topic_at = body_end + topic_len.size
    topic_end = topic_at + topic_len.unpack_from(view, body_end)[0]
    (properties_size,) = I16_LEN.unpack_from(view, topic_end)
    properties_end = topic_end + 2 + properties_size
    lengths_are_sane = layout.size <= body_end < topic_at <= topic_end < properties_end
    if not lengths_are_sane or properties_end != size:
        raise ProtocolError(f"a record of {size} bytes whose parts end at {properties_end}")
    return StoredMessage(
        topic=bytes(view[topic_at:topic_end]).decode(),
        queue_id=head.queue_id,
        queue_offset=head.queue_offset,
        physical_offset=head.physical_offset,
        body=bytes(view[layout.size : body_end]),
        flag=head.flag,
        sys_flag=sys_flag,
        born_ms=head.born_ms,
        born_host=decode_host(head.born_host),
        store_ms=head.store_ms,
        store_host=decode_host(head.store_host),
        reconsume_times=head.reconsume_times,
        prepared_offset=head.prepared_offset,
        body_crc=head.body_crc,
        size=size,
        raw_properties=bytes(view[topic_end + 2 : size]),
    )


def decode_records(buffer: bytes | memoryview) -> Iterator[StoredMessage]:
    """Decode records that lie back to back, as in the body of a pull reply."""
    at = 0
    while at < len(buffer):
        message = decode_record(buffer, at)
        yield message
        at += message.size
