"""Rows of an archive as messages, of the same kind as those from brokers."""

from typing import Any, Final

from gantrymq.base.errors import ProtocolError
from gantrymq.client.messages.received import Received
from gantrymq.model import Queue
from gantrymq.protocol import properties
from gantrymq.protocol.compression import COMPRESSED, TYPE_MASK
from gantrymq.protocol.ids import encode_host
from gantrymq.protocol.record import MAGIC_V2, RecordHead

UNPACKED: Final = ~(COMPRESSED | TYPE_MASK)
"""Bodies are archived as they were before they were packed."""
NOWHERE: Final = encode_host("0.0.0.0", 0)


class Archived(Received):
    """A message that was read from an archive."""

    __slots__ = ("origin",)

    def __init__(
        self, data: bytes, body_at: int, head: RecordHead, queue: Queue, origin: str
    ) -> None:
        super().__init__(data, body_at, head, queue)
        self.origin = origin


def message_of(row: dict[str, Any], origin: str) -> Archived:
    """A row with all columns as a message."""
    body, topic = row["body"] or b"", row["topic"].encode()
    stored = _properties(dict(row["properties"] or ()))
    data = b"".join(
        [body, len(topic).to_bytes(2), topic, len(stored).to_bytes(2, signed=True), stored]
    )
    head = RecordHead(
        total_size=row["storeSize"] or 0,
        magic=MAGIC_V2,
        body_crc=row["bodyCRC"] or 0,
        queue_id=row["queueId"],
        flag=row["flag"] or 0,
        queue_offset=row["queueOffset"],
        physical_offset=row["commitLogOffset"] or 0,
        sys_flag=(row["sysFlag"] or 0) & UNPACKED,
        born_ms=_ms(row["bornTimestamp"]),
        born_host=_host(row["bornHost"]),
        store_ms=_ms(row["storeTimestamp"]),
        store_host=_host(row["storeHost"]),
        reconsume_times=row["reconsumeTimes"] or 0,
        prepared_offset=row["preparedTransactionOffset"] or 0,
        body_size=len(body),
    )
    queue = Queue(row["topic"], row["brokerName"], row["queueId"])
    return Archived(data, 0, head, queue, origin)


def _properties(found: dict[str, str]) -> bytes:
    try:
        return properties.encode(found).encode()
    except ProtocolError:
        clean = {k: v for k, v in found.items() if not ({"\x01", "\x02"} & set(k + v))}
        return properties.encode(clean).encode()


def _ms(moment: Any) -> int:
    return 0 if moment is None else round(moment.timestamp() * 1000)


def _host(text: str | None) -> bytes:
    host, _, port = (text or "").rpartition(":")
    try:
        return encode_host(host.strip("[]"), int(port))
    except ValueError:
        return NOWHERE
