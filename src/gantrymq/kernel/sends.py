"""The fields of an ordinary send: the pure twin of a step that every send takes."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from gantrymq.kernel.frames import send_answer
from gantrymq.protocol.ids import offset_msg_id

PlainSend = tuple[str, int, int, int, int, int, bytes, str, bool]
"""Topic, queue id, flag, sys flag, born ms, reconsume times, properties as they are stored, the
client's message id, whether the sender waits for the disk."""

_DIGITS_MAX: Final = 18
_GUARDED_INITIALS: Final = "SRTO"
_LOWER = re.compile(r"[a-z]")
_TRANSACTION_BITS: Final = 0xC
_DELAY, _TRANSACTION, _TIMER = "DELAY\x01", "TRAN_MSG\x01true", "TIMER_DEL"


def read_send(ext: Mapping[str, str], tail: bytes) -> PlainSend | None:
    """The fields of a SEND_MESSAGE_V2 header if the send is an ordinary one, else None.

    Not ordinary are batches, delays, timers, transactions, retry and system topics, and fields that
    are missing or no numbers of their size. `tail` is what the broker adds to the properties.
    """
    topic, text = ext.get("b"), ext.get("i", "")
    if not topic or topic[0] == "%" or _is_guarded(topic) or ext.get("m") == "true":
        return None
    queue_id, flag = _number(ext.get("e")), _number(ext.get("h", "0"))
    sys_flag, born_ms = _number(ext.get("f", "0")), _number(ext.get("g"), 0x7FFF_FFFF_FFFF_FFFF)
    again = _number(ext.get("j") or "0")
    if queue_id is None or flag is None or sys_flag is None or born_ms is None or again is None:
        return None
    if sys_flag & _TRANSACTION_BITS or any(mark in text for mark in (_DELAY, _TRANSACTION, _TIMER)):
        return None
    properties, unique, waits = _stored_properties(text)
    return topic, queue_id, flag, sys_flag, born_ms, again, properties + tail, unique, waits


def _is_guarded(topic: str) -> bool:
    """Whether a topic may be one that producers must not send to; a cheap first check."""
    return topic[0] in _GUARDED_INITIALS and (not _LOWER.search(topic) or "_XXXX" in topic)


def _number(text: str | None, high: int = 0x7FFFFFFF) -> int | None:
    """A decimal number of 32 or 64 bits, as Java accepts it; int() accepts more."""
    if text is None:
        return None
    digits = text.removeprefix("-")
    if not (digits.isdecimal() and digits.isascii() and len(digits) <= _DIGITS_MAX):
        return None
    value = int(text)
    return value if ~high <= value <= high else None


def _stored_properties(text: str) -> tuple[bytes, str, bool]:
    """All properties except POP_CK: this is a new message, which was never popped."""
    stored, unique, waits = "", "", True
    for entry in text.split("\x02"):
        if not entry or entry.startswith("POP_CK\x01"):
            continue
        stored += entry + "\x02"
        if entry.startswith("WAIT\x01"):
            waits = entry != "WAIT\x01false"
        elif not unique and entry.startswith("UNIQ_KEY\x01"):
            unique = entry[len("UNIQ_KEY\x01") :]
    return stored.encode(), unique, waits


def stored_answer(
    codec: int,
    code: int,
    opaque: int,
    store_host: bytes,
    position: int,
    queue_id: int,
    queue_offset: int,
    transaction_id: str,
) -> bytes:
    """The answer to one stored message; its id has the broker's address and log offset."""
    msg_id = offset_msg_id(store_host, position)
    return send_answer(codec, code, opaque, msg_id, queue_id, queue_offset, transaction_id)


def offset_msg_ids(store_host: bytes, offsets: Sequence[int]) -> str:
    """The ids of the messages of a batch, by the broker's address and their log offsets."""
    return ",".join(offset_msg_id(store_host, offset) for offset in offsets)
