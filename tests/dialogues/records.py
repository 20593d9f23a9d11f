"""Decodes the stored messages that a pull or a query carries in its body."""

import struct
import zlib
from typing import Any

MAGIC_V1 = 0xDAA320A7
_FIXED = struct.Struct(">IIIii")
_OFFSETS = struct.Struct(">qqi")


def is_records(body: bytes) -> bool:
    """Whether a body starts like a stored message."""
    return len(body) >= 91 and struct.unpack_from(">I", body, 4)[0] == MAGIC_V1


def decode(body: bytes) -> list[dict[str, Any]]:
    """Every message of a body, in the order it lies there."""
    messages, at = [], 0
    while at < len(body):
        (size,) = struct.unpack_from(">I", body, at)
        messages.append(_message(body[at : at + size]))
        at += size
    assert at == len(body), "the last message is cut"
    return messages


def _message(data: bytes) -> dict[str, Any]:
    size, magic, crc, queue_id, flag = _FIXED.unpack_from(data, 0)
    assert size == len(data)
    assert magic == MAGIC_V1
    queue_offset, physical_offset, sys_flag = _OFFSETS.unpack_from(data, 20)
    assert not sys_flag & 0x30, "hosts are IPv4 here"
    born_time, born_host = struct.unpack_from(">q8s", data, 40)
    store_time, store_host = struct.unpack_from(">q8s", data, 56)
    reconsume_times, prepared, body_size = struct.unpack_from(">iqi", data, 72)
    content = data[88 : 88 + body_size]
    assert crc == zlib.crc32(content) & 0x7FFFFFFF, "the CRC of the body does not match"
    at = 88 + body_size
    topic = data[at + 1 : at + 1 + data[at]].decode()
    at += 1 + data[at]
    (properties_size,) = struct.unpack_from(">h", data, at)
    properties = data[at + 2 :].decode()
    assert properties_size == len(data) - at - 2
    return {
        "topic": topic,
        "queueId": queue_id,
        "queueOffset": queue_offset,
        "physicalOffset": physical_offset,
        "flag": flag,
        "sysFlag": sys_flag,
        "bornTimestamp": born_time,
        "bornHost": _host(born_host),
        "storeTimestamp": store_time,
        "storeHost": _host(store_host),
        "reconsumeTimes": reconsume_times,
        "preparedTransactionOffset": prepared,
        "body": content.decode(),
        "properties": dict(
            entry.split("\x01", 1) for entry in properties.split("\x02") if "\x01" in entry
        ),
    }


def _host(data: bytes) -> str:
    address, port = data[:4], struct.unpack(">i", data[4:])[0]
    return f"{'.'.join(str(part) for part in address)}:{port}"
