"""The handle that recalls a delayed message: base64 of five words.

v1 topic brokerName deliverMs uniqKey
"""

import base64
import binascii
from typing import NamedTuple, Self

from gantrymq.base.errors import ProtocolError

VERSION = "v1"


class RecallHandle(NamedTuple):
    """Which message, on which broker, and when it would be delivered."""

    topic: str
    """The topic that it was sent to."""
    broker_name: str
    """The broker that it waits on."""
    deliver_ms: int
    """When it would be delivered."""
    msg_id: str
    """Its unique id."""

    def encode(self) -> str:
        words = (VERSION, self.topic, self.broker_name, str(self.deliver_ms), self.msg_id)
        return base64.urlsafe_b64encode(" ".join(words).encode()).decode()

    @classmethod
    def decode(cls, text: str) -> Self:
        """Read a handle; ProtocolError if the text is none."""
        try:
            raw = base64.b64decode(text.encode() + b"=" * (-len(text) % 4), b"-_", validate=True)
            version, topic, broker_name, deliver_ms, msg_id, *_ = raw.decode().split(" ")
        except (binascii.Error, ValueError) as error:
            raise ProtocolError("recall handle is invalid") from error
        if version != VERSION:
            raise ProtocolError("recall handle is invalid")
        digits = deliver_ms.isascii() and deliver_ms.isdigit() and len(deliver_ms) <= 18
        return cls(topic, broker_name, int(deliver_ms) if digits else -1, msg_id)
