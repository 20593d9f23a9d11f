"""What makes two messages the same piece of work."""

import hashlib
from collections.abc import Callable
from typing import Final

import msgspec

from gantrymq.client.messages.delivery import Delivery

KeyOf = Callable[[Delivery], str]
"""Gives each message the name of its work; equal names are done once."""

KEY_BYTES_MAX: Final = 400
"""Longer names are kept as their hash: an index of a database has limits."""


def by_keys(message: Delivery) -> str:
    """Topic, tag and keys, because the same order may be both `created` and `paid`.

    Without keys the message id, which differs when the producer sends the same thing twice.
    """
    keys = message.keys
    if not keys:
        return by_message_id(message)
    return msgspec.json.encode([message.topic, message.tags or "", *keys]).decode()


def by_message_id(message: Delivery) -> str:
    """The message id: detects a second delivery, but not a second send."""
    return f"id {message.msg_id}"


def row_key(key: str) -> str:
    """The key as stores keep it: a hash if it is long or not printable."""
    if key.isprintable() and len(key.encode()) <= KEY_BYTES_MAX:
        return key
    return "sha256 " + hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
