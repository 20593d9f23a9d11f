"""The body of a batch send, as clients encode and brokers decode it."""

import struct
from typing import NamedTuple

from gantrymq.base.errors import ProtocolError
from gantrymq.base.layout import I32, byte_layout


class BatchItemHead(NamedTuple):
    """What each message of a batch begins with; its body and its properties follow."""

    total_size: I32
    """The whole item in bytes, this field included."""
    magic: I32
    """Always 0; not read."""
    body_crc: I32
    """Always 0; not read."""
    flag: I32
    """The user's."""
    body_size: I32
    """Bytes of the body, which follows."""


_HEAD = byte_layout(BatchItemHead)
_SIZE = struct.Struct(">h")
FIXED_BYTES = _HEAD.size + _SIZE.size
COUNT_MAX = 2**31 - 1
"""More than any frame holds."""


class Item(NamedTuple):
    """One message of a batch; properties are still encoded."""

    flag: int
    body: bytes
    properties: bytes


def encode(items: list[Item]) -> bytes:
    parts: list[bytes] = []
    for flag, body, properties in items:
        total = FIXED_BYTES + len(body) + len(properties)
        parts += (
            _HEAD.pack(total, 0, 0, flag, len(body)),
            body,
            _SIZE.pack(len(properties)),
            properties,
        )
    return b"".join(parts)


def decode(data: bytes, count_max: int = COUNT_MAX) -> list[Item]:
    """The messages of a batch, one more than `count_max` at most.

    ProtocolError refuses the whole batch.
    """
    items: list[Item] = []
    at = 0
    try:
        while at < len(data) and len(items) <= count_max:
            total, _magic, _crc, flag, body_size = _HEAD.unpack_from(data, at)
            body_end = at + 20 + body_size
            (properties_size,) = _SIZE.unpack_from(data, body_end) if body_size >= 0 else (-1,)
            end = body_end + 2 + properties_size
            if properties_size < 0 or end - at != total or end > len(data):
                raise ProtocolError(f"batch item at {at} does not add up")
            items.append(Item(flag, data[at + 20 : body_end], data[body_end + 2 : end]))
            at = end
    except struct.error as error:
        raise ProtocolError(f"batch body ends inside the item at {at}") from error
    return items
