"""Send requests as whole frames: the pure twin."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from gantrymq.kernel.batches import Batchable
from gantrymq.protocol.command import PREFIX

_COUNTER_MASK: Final = 0xFFFF
_json = msgspec.json.Encoder().encode


class SendParts(NamedTuple):
    """A header of SEND_MESSAGE_V2 in JSON for one queue, without what each message has of its own.

    Between the parts stand the time and the flag, the properties, and the request's number.
    """

    start: bytes
    """Up to the time when the message was made."""
    middle: bytes
    """From behind the properties to the number of the request."""
    end: bytes


EncodedSend = tuple[bytes, str, str]
"""The frame, the message's id, and its properties as text."""


def encode_sends(
    messages: Sequence[Batchable],
    parts: Sequence[SendParts],
    opaques: Sequence[int],
    born_ms: int,
    stem: str,
    counter: int,
) -> list[EncodedSend]:
    """Encode messages without properties of their own, each for its queue and with its number.

    Ids are made of `stem` and the counter, which counts up.
    """
    found: list[EncodedSend] = []
    for number, (message, (start, middle, end), opaque) in enumerate(
        zip(messages, parts, opaques, strict=True), counter
    ):
        msg_id = f"{stem}{number & _COUNTER_MASK:04X}"
        text = plain_properties(message, msg_id)
        values = b'%d","h":"%d","i":%b' % (born_ms, message.flag, _json(text))
        header = b"%b%b%b%d%b" % (start, values, middle, opaque, end)
        size = len(header)
        frame = PREFIX.pack(4 + size + len(message.body), size) + header + message.body
        found.append((frame, msg_id, text))
    return found


def plain_properties(message: Batchable, msg_id: str) -> str:
    """The properties of a message that has none of its own: an id, perhaps a tag and keys."""
    text = f"UNIQ_KEY\x01{msg_id}\x02"
    if message.tags:
        text += f"TAGS\x01{message.tags}\x02"
    if message.keys:
        text += f"KEYS\x01{' '.join(message.keys)}\x02"
    return text
