"""A half message: stored where no consumer looks, with the way to its real topic in it. Pure.

What a commit stores has the same properties as the half message, as RocketMQ's has.
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
    """Whether a message's properties say that it is the first half of a transaction."""
    at = text.find(_PREPARED)
    while at > 0 and text[at - 1] != ENTRY_END:
        at = text.find(_PREPARED, at + 1)
    if at < 0:
        return False
    at += len(_PREPARED)
    end = text.find(ENTRY_END, at)
    return text[at : end if end >= 0 else None].lower() == "true"


def hide(message: Append) -> None:
    """Send a message to the half queue; its properties remember where it belongs.

    The places stand last, because the last one of a name counts.
    """
    place = message.topic.encode(), message.queue_id
    message.properties += b"REAL_TOPIC\x01%b\x02REAL_QID\x01%d\x02" % place
    message.topic, message.queue_id = HALF_TOPIC, HALF_QUEUE
    message.sys_flag &= ~TRANSACTION_MASK


def without_half_mark(text: str) -> str | None:
    """Properties that are otherwise plain; None if the mark is not there in its usual form."""
    at = text.find(HALF_MARK)
    if at < 0 or (at and text[at - 1] != ENTRY_END):
        return None
    return text[:at] + text[at + len(HALF_MARK) :]


def producer_group(text: str) -> str:
    """Who may decide about a half message, by its properties; empty if they do not say."""
    at = text.rfind(_NEXT_GROUP)
    if at < 0 and not text.startswith(_GROUP):
        return ""
    at += 1 + len(_GROUP)
    end = text.find(ENTRY_END, at)  # clients of 4.9 end the last entry with nothing
    return text[at : end if end >= 0 else None]


def without_mark(text: str) -> str:
    """Properties that no longer say that the message is a half one."""
    found = properties.decode(text)
    found.pop(properties.TRANSACTION_PREPARED, None)
    return properties.encode(found)


def with_property(stored: bytes, name: str, value: str) -> bytes:
    """Stored properties with one of them set."""
    found = properties.decode(stored)
    found[name] = value
    return properties.encode(found).encode()


def number(text: str | None, otherwise: int) -> int:
    """A property that should be a number, from whoever wrote it."""
    if text is None or len(text) > DIGITS_MAX or not (text.isascii() and text.isdigit()):
        return otherwise
    return int(text)
