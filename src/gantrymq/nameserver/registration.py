"""The body of a broker's registration, plain or packed, as 4.9 and 5.x brokers write it."""

import struct
import zlib

from gantrymq.base.errors import ProtocolError
from gantrymq.model import DataVersion, TopicConfig
from gantrymq.protocol import fastjson
from gantrymq.protocol.bodies import RegisterBrokerBody, TopicTable
from gantrymq.remoting.limits import LimitReached, NameServerLimits

_SIZE = struct.Struct(">i")
UNPACKED_BYTES_MAX = NameServerLimits().max_registration_bytes


def decode_body(body: bytes, unpacked_max: int = UNPACKED_BYTES_MAX) -> RegisterBrokerBody:
    """The body of a registration, plain or packed by its first byte.

    The header cannot tell: 5.x brokers say `compressed=false` of packed bodies, too.
    """
    if not body:
        return RegisterBrokerBody()
    if body[:1] == b"{":
        return fastjson.load_as(body, RegisterBrokerBody, fastjson.DIALECT_BYTES_MAX)
    return _decode_packed(body, unpacked_max)


def _decode_packed(body: bytes, unpacked_max: int) -> RegisterBrokerBody:
    stream = zlib.decompressobj()
    try:
        data = stream.decompress(body, unpacked_max)
        if stream.unconsumed_tail:
            key = "maxRegistrationBytes"
            raise LimitReached(key, f"packed registration: raise {key} (now {unpacked_max})")
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
