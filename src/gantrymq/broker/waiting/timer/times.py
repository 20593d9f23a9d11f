"""The due time of a timer message, from its properties.

RocketMQ writes TIMER_OUT_MS: the delivery time rounded down to its precision, and one tick less for
an exact multiple. A message is due after that and at most a tick later; the properties of its
sender say exactly when.
"""

import re
from collections.abc import Mapping
from typing import Final

from gantrymq.kernel import find_property
from gantrymq.protocol import properties

TICK_MS_MAX: Final = 1000
"""RocketMQ's own precision: what it wrote may be rounded by this much."""
SLACK_MS: Final = 100
"""How long after it was accepted a message may have been stored."""

_NUMBER = re.compile(r"[+-]?[0-9]{1,18}")
_DELAY_SEC, _DELAY_MS, _DELIVER_MS, _OUT_MS, _ROLLED = (
    name.encode()
    for name in (
        properties.TIMER_DELAY_SEC,
        properties.TIMER_DELAY_MS,
        properties.TIMER_DELIVER_MS,
        properties.TIMER_OUT_MS,
        properties.TIMER_ROLL_TIMES,
    )
)


def number(text: str | None) -> int | None:
    """A whole number as Java parses it; None for anything else."""
    return int(text) if text is not None and _NUMBER.fullmatch(text) else None


def asked_ms(found: Mapping[str, str], now_ms: int) -> int | None:
    """The delivery time that the sender asks for, in ms; None if it is not a number."""
    seconds, delay = found.get(properties.TIMER_DELAY_SEC), found.get(properties.TIMER_DELAY_MS)
    if seconds is not None:
        wanted = number(seconds)
        return None if wanted is None else now_ms + wanted * 1000
    if delay is not None:
        wanted = number(delay)
        return None if wanted is None else now_ms + wanted
    return number(found.get(properties.TIMER_DELIVER_MS))


def out_ms(deliver_ms: int, precision_ms: int) -> int:
    """TIMER_OUT_MS of a delivery time."""
    return (deliver_ms - 1) // precision_ms * precision_ms


def due_ms(stored: bytes, store_ms: int, precision_ms: int) -> int | None:
    """When a waiting message is due; None if it has no TIMER_OUT_MS.

    The sender's own time counts if it agrees with TIMER_OUT_MS. A relative delay counts from the
    store time, unless the message was rolled, because a copy has a new store time.
    """
    written = _value(stored, _OUT_MS)
    if written is None:
        return None
    exact: int | None = None
    delay = _value(stored, _DELAY_SEC)
    delay = delay * 1000 if delay is not None else _value(stored, _DELAY_MS)
    if delay is None:
        exact = _value(stored, _DELIVER_MS)
    elif find_property(stored, _ROLLED) is None:
        exact = store_ms + delay
    if exact is not None and written < exact <= written + max(TICK_MS_MAX, precision_ms) + SLACK_MS:
        return exact
    return written + precision_ms


def _value(stored: bytes, name: bytes) -> int | None:
    text = find_property(stored, name)
    return None if text is None else number(text.decode("ascii", "replace"))
