"""The body of a broker's registration, plain or packed, as 4.9 and 5.x brokers write it."""

import struct
import zlib

from gantrymq.base.errors import ProtocolError
from gantrymq.model import DataVersion, TopicConfig
from gantrymq.protocol import fastjson
from gantrymq.protocol.bodies import RegisterBrokerBody, TopicTable

_SIZE = struct.Struct(">i")
UNPACKED_BYTES_MAX = 64 * 1024 * 1024


def decode_body(body: bytes) -> RegisterBrokerBody:
    """The body of a registration, plain or packed by its first byte.

    The header cannot tell: 5.x brokers say `compressed=false` of packed bodies, too.
    """
    if not body:
        return RegisterBrokerBody()
    if body[:1] == b"{":
        return fastjson.load_as(body, RegisterBrokerBody)
    return _decode_packed(body)


def _decode_packed(body: bytes) -> RegisterBrokerBody:
    stream = zlib.decompressobj()
    try:
        data = stream.decompress(body, UNPACKED_BYTES_MAX)
        at = 0

        def take() -> bytes:
            nonlocal at
            (size,) = _SIZE.unpack_from(data, at)
            if size < 0 or at + 4 + size > len(data):
                raise ProtocolError(f"packed registration: {size} bytes at {at} of {len(data)}")
            at += 4 + size
            return data[at - size : at]

        version = fastjson.load_as(take(), DataVersion)
        (count,) = _SIZE.unpack_from(data, at)
        at += 4
        topics = [_topic_of(take().decode()) for _ in range(count)]
        servers = fastjson.load_as(take(), list[str])
    except (zlib.error, struct.error, UnicodeDecodeError) as error:
        raise ProtocolError(f"packed registration: {error}") from error
    table = {topic.topic_name: topic for topic in topics}
    return RegisterBrokerBody(
        filter_server_list=servers,
        topics=TopicTable(data_version=version, topic_config_table=table),
    )


def _topic_of(line: str) -> TopicConfig:
    """`name readQueues writeQueues perm filterType [attributes]`."""
    words = line.split(" ")
    if len(words) < 5 or not all(word.isdigit() for word in words[1:4]):
        raise ProtocolError(f"packed registration: topic line {line[:80]!r}")
    return TopicConfig(
        topic_name=words[0],
        read_queue_nums=int(words[1]),
        write_queue_nums=int(words[2]),
        perm=int(words[3]),
        topic_filter_type=words[4],
    )
