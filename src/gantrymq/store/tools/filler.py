"""Bytes that cover damage in a log: records that belong to no queue, and end marks.

A record of the rollback kind is in no queue and in no index, in these brokers and in RocketMQ's:
it is the one thing of the format that takes space in the middle of a log and says nothing.
"""

import struct
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from gantrymq.protocol.record import (
    HEAD,
    MAGIC_BLANK,
    MAGIC_V1,
    TRANSACTION_ROLLBACK,
    RecordHead,
    body_crc,
    record_size,
)

TOPIC: Final = b"RMQ_SYS_REPAIRED"
PIECE_BYTES_MAX: Final = 1 << 20
FILLER_BYTES_MIN: Final = record_size(1, 0, 0)
"""No record of a topic is smaller."""
HOST: Final = bytes(8)
_END_MARK: Final = struct.Struct(">ii")


def end_mark(rest: int) -> bytes:
    """Says that the remaining `rest` bytes of a log file are not used."""
    return _END_MARK.pack(rest, MAGIC_BLANK)


def fillers(start: int, size: int, store_ms: int) -> Iterator[tuple[int, bytes]]:
    """Records that fill `size` bytes from log offset `start` on, with the place of each."""
    count = -(-size // PIECE_BYTES_MAX)
    bounds = [start + size * number // count for number in range(count + 1)]
    for at, end in pairwise(bounds):
        yield at, _filler(at, end - at, store_ms)


def _filler(at: int, size: int, store_ms: int) -> bytes:
    topic = TOPIC[: size - record_size(0, 0, 0)]
    body = bytes(size - record_size(len(topic), 0, 0))
    head = RecordHead(
        total_size=size,
        magic=MAGIC_V1,
        body_crc=body_crc(body) if body else 0,
        queue_id=0,
        flag=0,
        queue_offset=0,
        physical_offset=at,
        sys_flag=TRANSACTION_ROLLBACK,
        born_ms=store_ms,
        born_host=HOST,
        store_ms=store_ms,
        store_host=HOST,
        reconsume_times=0,
        prepared_offset=0,
        body_size=len(body),
    )
    return HEAD.pack(*head) + body + bytes([len(topic)]) + topic + bytes(2)
