"""Rewrites retried messages for their consumer: original topic, POP receipt as a property."""

import struct

from gantrymq.kernel import cut_records, find_property
from gantrymq.protocol import properties
from gantrymq.protocol.pop import Handle
from gantrymq.protocol.record import PROPERTIES_BYTES_MAX, decode_record, version_of

_FRONT = struct.Struct(">ii")
_PROPERTIES_SIZE = struct.Struct(">h")
_POP_CHECKPOINT = properties.POP_CHECKPOINT.encode()
_ENTRY_END = properties.ENTRY_END.encode()


def with_receipts(records: bytes, topic: str, handle: Handle) -> bytes:
    """The same records under another topic, each with its POP receipt as a property.

    A record whose properties have no room for the receipt stays as it is; clients understand both
    forms. The sender's properties are not parsed, because they may be malformed.
    """
    cuts, _ = cut_records(records)
    name = topic.encode()
    magic, width = version_of(name)
    parts = []
    for at, body_at, head in cuts:
        record = decode_record(records, at)
        encoded = record.raw_properties
        if find_property(encoded, _POP_CHECKPOINT) is None:
            own = {properties.POP_CHECKPOINT: str(handle._replace(offset=head.queue_offset))}
            end = b"" if not encoded or encoded.endswith(_ENTRY_END) else _ENTRY_END
            encoded += end + properties.encode(own).encode()
        body_end = body_at + head.body_size
        if len(encoded) > PROPERTIES_BYTES_MAX:
            parts.append(records[at : at + head.total_size])
            continue
        size = body_end - at + width + len(name) + 2 + len(encoded)
        parts += [
            _FRONT.pack(size, magic),
            records[at + _FRONT.size : body_end],
            len(name).to_bytes(width),
            name,
            _PROPERTIES_SIZE.pack(len(encoded)),
            encoded,
        ]
    return b"".join(parts)
