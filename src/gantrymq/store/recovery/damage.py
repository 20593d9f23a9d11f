"""Records that the disk has damaged: how they are told from torn writes.

Recovery ends the log at the first record that is not whole. Most often that is a write which a
crash has torn, and nobody was told that it is stored. But a bit that turned over looks the same to
a checksum, and what recovery cuts off then was acknowledged. A member of a raft group has to know
the difference: after a loss it must not vote.

A torn write leaves whole sectors out, which read as zeros, because log files are made of zeros and
written once. So a record that is not whole and lacks no sector was damaged. In doubt it was: that
costs a member its vote until it holds what its group has committed.
"""

from gantrymq.protocol.record import (
    AT_SYS_FLAG,
    BORN_V6,
    LAYOUTS,
    MAGIC_V1,
    MAGIC_V2,
    RECORD_BYTES_MIN,
    STORE_V6,
)
from gantrymq.store.log.commitlog import CommitLog

SECTOR = 512
PIECE_BYTES_MIN = 8
"""A shorter piece of a record in a sector may be zeros by itself: its size begins with some."""
PREFIX_BYTES = 20


def is_damaged(log_: CommitLog, end: int) -> bool:
    """Whether what stands at `end`, where the whole records of a log end, was a record once."""
    if not log_.bases or end >= log_.limit:
        return False
    room = log_.rest_of_file(end)
    head = log_.read(min(PREFIX_BYTES, room), end)
    size, magic = int.from_bytes(head[:4], "big"), int.from_bytes(head[4:8], "big", signed=True)
    is_head = magic in (MAGIC_V1, MAGIC_V2) and RECORD_BYTES_MIN <= size <= room
    data = log_.read(size, end) if is_head else head
    if not any(data):
        return False
    return (is_head and _contradicts_itself(data)) or not _lacks_a_sector(data, end)


def _lacks_a_sector(data: bytes, at: int) -> bool:
    stops = [*range(at - at % SECTOR + SECTOR, at + len(data), SECTOR), at + len(data)]
    starts = [at, *stops[:-1]]
    pieces = [data[start - at : stop - at] for start, stop in zip(starts, stops, strict=True)]
    return any(len(piece) >= PIECE_BYTES_MIN and not any(piece) for piece in pieces)


def _contradicts_itself(data: bytes) -> bool:
    """Whether the lengths of the parts are there, and do not fit the size."""
    sys_flag = int.from_bytes(data[AT_SYS_FLAG : AT_SYS_FLAG + 4], "big")
    head = LAYOUTS[sys_flag & (BORN_V6 | STORE_V6)].size
    length_bytes = 1 if int.from_bytes(data[4:8], "big", signed=True) == MAGIC_V1 else 2
    at = head + int.from_bytes(data[head - 4 : head], "big")
    topic = int.from_bytes(data[at : at + length_bytes], "big")
    at += length_bytes + topic
    properties = int.from_bytes(data[at : at + 2], "big")
    return topic > 0 and at + 2 + properties != len(data)
