"""How the values of options are written: counts, sizes, durations, times, choices. Pure.

All values come as text. A wrong one is refused with the option's name and an example.
"""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from gantrymq.base.errors import ConfigError
from gantrymq.base.quick_pattern import REPEATS_MAX, is_quick

_UNITS: Final = {
    "ms": 1,
    "s": 1_000,
    "m": 60_000,
    "min": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
}
_SIZES: Final = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_DURATION: Final = re.compile(r"(\d+)\s*([a-z]+)")
_SIZE: Final = re.compile(r"(\d+)\s*([kmgt]?)(?:i?b)?")
_SPAN: Final = re.compile(r"(\d+)(?:\s*-\s*(\d+))?")
QUEUE_IDS_MAX: Final = 65_536
"""More queues than any topic has: a range in an option must not fill the memory."""


def words(text: str) -> list[str]:
    """The parts of a list with commas."""
    return [word.strip() for word in text.split(",") if word.strip()]


def number(text: str, option: str) -> int:
    """A number, 0 or more."""
    if not text.strip().isdecimal():
        raise ConfigError(f"{option} is a number from 0 on, not {text!r}")
    return int(text)


def count(text: str, option: str) -> int:
    """A number of things, 1 or more."""
    if not text.strip().isdecimal() or int(text) < 1:
        raise ConfigError(f"{option} is a number above 0, not {text!r}")
    return int(text)


def size(text: str, option: str) -> int:
    """Bytes: `1048576`, `64m`, `1g`."""
    found = _SIZE.fullmatch(text.strip().lower())
    if found is None or int(found[1]) < 1:
        raise ConfigError(f"{option} is a size such as 67108864, 64m or 1g, not {text!r}")
    return int(found[1]) * _SIZES[found[2]]


def duration_ms(text: str, option: str) -> int:
    """Milliseconds of `500ms`, `15m`, `1h`; a number alone is milliseconds."""
    word = text.strip().lower()
    found = _DURATION.fullmatch(word)
    if word.isdecimal():
        return int(word)
    if found is None or found[2] not in _UNITS:
        raise ConfigError(f"{option} is a time such as 500ms, 30s or 15m, not {text!r}")
    return int(found[1]) * _UNITS[found[2]]


def moment_ms(value: object, option: str) -> int:
    """A moment as milliseconds since 1970, from just that or from ISO text with its zone."""
    text = str(value).strip()
    if text.isdecimal():
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise ConfigError(
            f"{option} is ms since 1970 or a time such as 2026-01-31T08:00:00+01:00, not {text!r}"
        ) from error
    if moment.tzinfo is None:
        raise ConfigError(f"{option} needs a time zone: write {text}Z or {text}+01:00")
    return int(moment.timestamp() * 1000)


def choice(text: str, option: str, choices: Sequence[str]) -> str:
    """One of some words."""
    word = text.strip().lower()
    if word not in choices:
        *some, last = choices
        raise ConfigError(f"{option} is {', '.join(some)} or {last}, not {text!r}")
    return word


def flag(text: str, option: str) -> bool:
    return choice(text, option, ("true", "false")) == "true"


def queue_ids(text: str, option: str) -> frozenset[int]:
    """Queue numbers: `0,2,8-15`."""
    found: set[int] = set()
    for word in words(text):
        span = _SPAN.fullmatch(word)
        first = int(span[1]) if span else 0
        last = int(span[2] or span[1]) if span else -1
        if not first <= last < QUEUE_IDS_MAX:
            raise ConfigError(f"{option} is a list of queue numbers such as 0,2,8-15, not {text!r}")
        found.update(range(first, last + 1))
    if not found:
        raise ConfigError(f"{option} names no queue")
    return frozenset(found)


def pattern(text: str, option: str) -> str:
    """A regular expression for names of topics, checked: no name may keep it busy for long."""
    try:
        re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise ConfigError(f"{option} is no regular expression: {error}") from error
    if not is_quick(text):
        raise ConfigError(
            f"{option} could take years for some names: write no repetition of something that is "
            f"repeated itself or has alternatives, and {REPEATS_MAX} repetitions at most"
        )
    return text
