"""The checks behind `Message(...)`: each refuses a wrong type or value and says what is right.

A message object is made for every send, so `Message` itself looks at the usual types first and
comes here only for what is given and not the plainest case.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from gantrymq.base.arguments import wrong_type
from gantrymq.base.errors import WrongValue

DELIVER_MS, DELAY_MS = "TIMER_DELIVER_MS", "TIMER_DELAY_MS"
DELAY_LEVEL_MAX: Final = 18
FLAG_MAX: Final = 2**31 - 1
EARLIEST_MS: Final = 100_000_000_000
"""3 March 1973. A smaller number of milliseconds is a number of seconds by mistake."""
LATEST_MS: Final = 253_402_300_799_999
"""The end of the year 9999. A larger number is of microseconds or nanoseconds."""
_SEPARATORS = ("\x01", "\x02")
_HALF_CHARACTER = re.compile("[\ud800-\udfff]")
"""It has no form in UTF-8, so it could not be sent."""

RESERVED: Final = frozenset(
    {
        "KEYS", "TAGS", "WAIT", "DELAY", "UNIQ_KEY", "CLUSTER", "MSG_REGION", "TRACE_ON",
        "RETRY_TOPIC", "REAL_TOPIC", "REAL_QID", "ORIGIN_MESSAGE_ID", "TRAN_MSG", "PGROUP",
        "MIN_OFFSET", "MAX_OFFSET", "BUYER_ID", "TRANSFER_FLAG", "CORRECTION_FLAG", "MQ2_FLAG",
        "RECONSUME_TIME", "MAX_RECONSUME_TIMES", "CONSUME_START_TIME",
        "TRAN_PREPARED_QUEUE_OFFSET", "TRANSACTION_CHECK_TIMES", "CHECK_IMMUNITY_TIME_IN_SECONDS",
        "EXTEND_UNIQ_INFO",
    }
)  # fmt: skip
"""Names of properties that the system gives a meaning of its own."""
_REFUSED: Final = RESERVED - {"UNIQ_KEY"}
"""A sender may bring its own message id."""
_FIELDS: Final = {
    "KEYS": "keys",
    "TAGS": "tags",
    "WAIT": "wait_store_ok",
    "DELAY": "delay_level",
}
RETRY_PREFIX: Final = "%RETRY%"


def text(name: str, value: Any) -> str:
    """A plain string: of an enum's string member its value, which formatting would not give."""
    if not isinstance(value, str):
        raise wrong_type(name, "a string", value)
    if any(mark in value for mark in _SEPARATORS):
        raise WrongValue(f"{name} contains a separator (0x01 or 0x02): {value[:80]!r}")
    if not value.isascii() and _HALF_CHARACTER.search(value):
        raise WrongValue(f"{name} has half a character in it (a surrogate): {value[:80]!r}")
    return str.__str__(value)


def body(value: Any) -> bytes:
    """Its bytes: at least one, because RocketMQ's clients send no message without a body."""
    if isinstance(value, str):
        found = value.encode()
    elif isinstance(value, bytes | bytearray | memoryview):
        found = bytes(value)
    else:
        raise wrong_type(
            "body", "bytes or a string (for an object: encode it, as json.dumps does)", value
        )
    if not found:
        raise WrongValue(
            "body is at least one byte: RocketMQ's clients send none whose body length is zero"
        )
    return found


def tag(value: Any) -> str:
    if not isinstance(value, str):
        raise wrong_type(
            "tags", "one string: a message has one tag; for more use keys or properties", value
        )
    if "||" in value or value != value.strip():
        raise WrongValue(
            f"tags={value[:80]!r}: a message has one tag, without `||` and blanks around it; no "
            "subscription could name this one"
        )
    return text("tags", value)


def keys(value: Any) -> tuple[str, ...]:
    """Each key by itself: brokers separate them by spaces, so a space would make two."""
    kind = type(value)
    if kind is str and " " not in value and value.isprintable() and value:
        return (value,)
    if (kind is list or kind is tuple) and _are_plain(value):
        return tuple(value)
    return _looked_at_keys(value)


def _are_plain(found: Sequence[Any]) -> bool:
    """Whether these are keys without any doubt, told by one look at all of them together."""
    try:
        joined = " ".join(found)
    except TypeError:
        return False
    return joined.count(" ") == len(found) - 1 and joined.isprintable() and "" not in found


def _looked_at_keys(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        value = (value,) if value else ()
    elif isinstance(value, bytes | bytearray | Mapping) or not isinstance(value, Iterable):
        raise wrong_type("keys", "a string or a list of strings", value)
    found = tuple(value)
    for key in found:
        if not isinstance(key, str):
            raise wrong_type("a key", "a string", key)
        if not key or " " in key:
            raise WrongValue(
                f"key {key[:80]!r}: a key is not empty and has no space; "
                'several keys are a list: keys=["a", "b"]'
            )
    return tuple(text("a key", key) for key in found)


def properties(value: Any, topic: str) -> dict[str, str]:
    """A copy of a message's own properties."""
    if type(value) is dict and "" not in value and "" not in value.values():
        try:
            if "".join([*value, *value.values()]).isprintable():
                check_names(value, topic)
                return value.copy()
        except TypeError:
            pass  # the loop below says which of them is no string
    if not isinstance(value, Mapping):
        raise wrong_type("properties", "a mapping of strings to strings", value)
    found = {}
    for name, own in value.items():
        plain = text("a property's name", name)
        found[plain] = text(f"property {plain}", own)
        if not plain or not own:
            raise WrongValue(
                f"property {plain!r}={own!r}: name and value are not empty (brokers do not keep "
                "an empty one); leave it out"
            )
    check_names(found, topic)
    return found


def check_names(found: Mapping[str, str], topic: str) -> None:
    """Refuse the names of the system's own properties.

    A message to a retry topic may have them: so a consumer sends a message again, with its count.
    """
    if _REFUSED.isdisjoint(found) or topic.startswith(RETRY_PREFIX):
        return
    name = next(name for name in found if name in _REFUSED)
    right = f"give {_FIELDS[name]}=" if name in _FIELDS else "take another name"
    raise WrongValue(f"property {name!r} is the system's own: {right}")


def flag(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise wrong_type("flag", "a whole number", value)
    if not -FLAG_MAX - 1 <= value <= FLAG_MAX:
        raise WrongValue(f"flag is a number of 32 bits, not {value}")
    return int(value)


def delay_level(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise wrong_type("delay_level", "a whole number", value)
    if not 0 <= value <= DELAY_LEVEL_MAX:
        raise WrongValue(
            f"delay_level is 1 (1 s) to {DELAY_LEVEL_MAX} (2 h), or 0 for no delay, not {value}; "
            "any other time is said by delay= or deliver_at="
        )
    return int(value)


def timer(deliver_at: Any, delay: Any, level: int) -> tuple[str, str] | None:
    """The property that asks for a time, and its value; a time of day without a zone is local."""
    if (deliver_at is not None) + (delay is not None) + (level > 0) > 1:
        raise WrongValue("a message waits for a time, for a while or for a level: give only one")
    if deliver_at is not None:
        return DELIVER_MS, str(_moment_ms(deliver_at))
    seconds = _seconds(delay)
    return (DELAY_MS, str(round(seconds * 1000))) if seconds else None


def _moment_ms(value: Any) -> int:
    if isinstance(value, datetime):
        return round(value.timestamp() * 1000)
    if not isinstance(value, int) or isinstance(value, bool):
        raise wrong_type("deliver_at", "a datetime or whole milliseconds since 1970", value)
    if not EARLIEST_MS <= value <= LATEST_MS:
        unit = "seconds" if 0 <= value < EARLIEST_MS else "microseconds or nanoseconds"
        raise WrongValue(
            f"deliver_at={value} is in milliseconds since 1970; this number looks like {unit}. "
            "Give a datetime, int(time.time() * 1000) + ..., or delay= in seconds"
        )
    return int(value)


def _seconds(value: Any) -> float:
    if isinstance(value, timedelta):
        seconds = value.total_seconds()
    elif isinstance(value, int | float) and not isinstance(value, bool):
        seconds = float(value)
    else:
        raise wrong_type("delay", "a timedelta or a number of seconds", value)
    if not 0 <= seconds < math.inf:
        raise WrongValue(f"a delay of {seconds} s: time goes forward only, and comes to an end")
    return seconds
