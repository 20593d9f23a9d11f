"""Cutting the body of a pull's answer into records: the pure twin."""

from zlib import crc32

from gantrymq.base.errors import ProtocolError
from gantrymq.protocol.record import (
    BORN_V6,
    HEAD,
    LAYOUTS,
    MAGIC_V1,
    MAGIC_V2,
    RECORD_BYTES_MIN,
    STORE_V6,
    RecordHead,
)

Cut = tuple[int, int, RecordHead]
"""Where a record starts, where its body starts, and its head."""

_HOST_BITS = BORN_V6 | STORE_V6


def cut_records(data: bytes, check: bool = False) -> tuple[list[Cut], ProtocolError | None]:
    """The records that lie back to back, and the error of the first bad one, None without one.

    With `check` a record whose body does not match its checksum is bad.
    """
    found: list[Cut] = []
    at, end = 0, len(data)
    unpack, make = HEAD.unpack_from, RecordHead._make
    while at < end:
        if end - at < RECORD_BYTES_MIN:
            return found, ProtocolError(f"{end - at} bytes are left over, too few for a record")
        head = make(unpack(data, at))
        body_at = at + HEAD.size
        hosts = head.sys_flag & _HOST_BITS
        if hosts:
            layout = LAYOUTS[hosts]
            if end - at < layout.size:
                return found, ProtocolError(f"the record at byte {at} is cut off")
            head = make(layout.unpack_from(data, at))
            body_at = at + layout.size
        after = at + head.total_size
        whole = head.magic in (MAGIC_V1, MAGIC_V2) and after <= end
        if not whole or not 0 <= head.body_size <= after - body_at - 3:
            return found, ProtocolError(f"what stands at byte {at} is no record")
        if check and head.body_size:
            crc = crc32(memoryview(data)[body_at : body_at + head.body_size]) & 0x7FFFFFFF
            if crc != head.body_crc:
                return found, ProtocolError(f"the record at byte {at} has a damaged body")
        found.append((at, body_at, head))
        at = after
    return found, None
