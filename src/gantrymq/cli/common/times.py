"""Times on the command line: how they are read and printed.

Users write times as `gantrymq.base.time_text` describes, in the zone of this machine. Tables show
local time with its offset, JSON has milliseconds since 1970.
"""

import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from gantrymq.base.clock import SystemClock
from gantrymq.base.errors import ConfigError
from gantrymq.base.time_text import describe, find_moment, local_zone

EPOCH_MS_DIGITS = 13
"""A number with so many digits is a time in milliseconds, not an offset."""


if TYPE_CHECKING:
    _IntType = click.ParamType[int]
else:
    _IntType = click.ParamType  # generic from click 8.4 on only


class Time(_IntType):
    """An option that is a time; its value is milliseconds since 1970."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        try:
            found = find_moment(value, local_zone(), SystemClock().now_ms())
        except ConfigError as error:
            self.fail(str(error), param, ctx)
        if found.note is not None:
            print(f"note: {found.note}", file=sys.stderr)
        return found.ms


TIME = Time()


def as_place(text: str, *words: str) -> str | int | datetime:
    """Read a place: one of the words, an offset, or a time."""
    if text in words:
        return text
    if text.isdecimal() and len(text) != EPOCH_MS_DIGITS:
        return int(text)
    try:
        ms = find_moment(text, local_zone(), SystemClock().now_ms()).ms
    except ConfigError as error:
        names = ", ".join(words)
        raise click.UsageError(
            f"{text!r} is none of {names}, an offset, or a time: {error}"
        ) from None
    return datetime.fromtimestamp(ms / 1000, UTC)


def shown(ms: int | None) -> str | None:
    """A time as text: local, to the millisecond, with its offset; None for none."""
    return describe(ms, local_zone()) if ms else None


def shown_or_ms(ms: int | None, people: bool) -> str | int | None:
    """A time as text for tables, as a number for JSON."""
    return shown(ms) if people else ms or None
