"""Half messages: stored in the half topic, with the real topic in their properties. Pure.

A committed message has the same properties as its half message, as in RocketMQ.
"""

from typing import Final

from gantrymq.model import HALF_TOPIC
from gantrymq.protocol import properties
from gantrymq.protocol.properties import ENTRY_END, NAME_END
from gantrymq.protocol.record import TRANSACTION_MASK
from gantrymq.store.append import Append

HALF_QUEUE: Final = 0
DIGITS_MAX: Final = 18
"""Longer numbers fit no field of RocketMQ's."""
HALF_MARK: Final = f"{properties.TRANSACTION_PREPARED}{NAME_END}true{ENTRY_END}"
_PREPARED = f"{properties.TRANSACTION_PREPARED}{NAME_END}"
_GROUP = f"{properties.PRODUCER_GROUP}{NAME_END}"
_NEXT_GROUP = f"{ENTRY_END}{_GROUP}"


def asks_for_half(text: str) -> bool:
    """Whether a message's properties mark it as a half message."""
    at = text.find(_PREPARED)
    while at > 0 and text[at - 1] != ENTRY_END:
        at = text.find(_PREPARED, at + 1)
    if at < 0:
        return False
    at += len(_PREPARED)
    end = text.find(ENTRY_END, at)
    return text[at : end if end >= 0 else None].lower() == "true"


def hide(message: Append) -> None:
    """Redirect a message to the half queue; its properties get the real topic and queue.

    They are added at the end, because the last property of a name counts.
    """
    place = message.topic.encode(), message.queue_id
    message.properties += b"REAL_TOPIC\x01%b\x02REAL_QID\x01%d\x02" % place
    message.topic, message.queue_id = HALF_TOPIC, HALF_QUEUE
    message.sys_flag &= ~TRANSACTION_MASK


def without_half_mark(text: str) -> str | None:
    """The properties without the half mark; None if it is missing or in an unusual form."""
    at = text.find(HALF_MARK)
    if at < 0 or (at and text[at - 1] != ENTRY_END):
        return None
    return text[:at] + text[at + len(HALF_MARK) :]


def producer_group(text: str) -> str:
    """The producer group in a half message's properties; empty if there is none."""
    at = text.rfind(_NEXT_GROUP)
    if at < 0 and not text.startswith(_GROUP):
        return ""
    at += 1 + len(_GROUP)
    end = text.find(ENTRY_END, at)  # clients of 4.9 leave out the last separator
    return text[at : end if end >= 0 else None]


def without_mark(text: str) -> str:
    """The properties without the half mark."""
    found = properties.decode(text)
    found.pop(properties.TRANSACTION_PREPARED, None)
    return properties.encode(found)


def with_property(stored: bytes, name: str, value: str) -> bytes:
    """Stored properties with one of them set."""
    found = properties.decode(stored)
    found[name] = value
    return properties.encode(found).encode()


def number(text: str | None, otherwise: int) -> int:
    """A property as a number; `otherwise` if it is missing or not a number."""
    if text is None or len(text) > DIGITS_MAX or not (text.isascii() and text.isdigit()):
        return otherwise
    return int(text)
