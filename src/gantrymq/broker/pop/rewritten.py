"""A retried message as its consumer sees it: under its own topic, with its handle inside."""

import struct

from gantrymq.kernel import cut_records
from gantrymq.protocol import properties
from gantrymq.protocol.pop import Handle
from gantrymq.protocol.record import MAGIC_V1, PROPERTIES_BYTES_MAX, decode_record

_SIZE = struct.Struct(">i")
_PROPERTIES_SIZE = struct.Struct(">h")


def under_own_topic(records: bytes, topic: str, handle: Handle) -> bytes:
    """The same records with another topic, each with its handle as a property.

    A record whose properties have no room for it stays as it is; clients understand both forms.
    """
    cuts, _ = cut_records(records)
    name = topic.encode()
    parts = []
    for at, body_at, head in cuts:
        record = decode_record(records, at)
        found = {**record.properties}
        found.setdefault(properties.POP_CHECKPOINT, str(handle._replace(offset=head.queue_offset)))
        encoded = properties.encode(found).encode()
        body_end = body_at + head.body_size
        if len(encoded) > PROPERTIES_BYTES_MAX or head.magic != MAGIC_V1:
            parts.append(records[at : at + head.total_size])
            continue
        size = body_end - at + 1 + len(name) + 2 + len(encoded)
        parts += [
            _SIZE.pack(size), records[at + 4 : body_end], bytes([len(name)]), name,
            _PROPERTIES_SIZE.pack(len(encoded)), encoded,
        ]  # fmt: skip
    return b"".join(parts)
