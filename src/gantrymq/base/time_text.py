"""Words for times: what people write for a moment, as milliseconds since 1970.

The present is an argument. Only `local_zone` asks the machine, for the zone that it is set to.
A day is what the clocks of the named zone call one, so it may have 23 or 25 hours. A local time
that the clocks skip or show twice is resolved, and `Moment.note` says how.
"""

import os
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from gantrymq.base.errors import ConfigError

ACCEPTED: Final = (
    "2026-03-29, 2026-03-29 02:30:15.250 (a T between and an offset such as Z or +02:00 behind are "
    "fine), now, today 08:30, yesterday 00:00, monday 00:00, 2h ago, -15m, +1h30m, or 13 digits of "
    "milliseconds since 1970"
)
DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
UNITS: Final = {
    "ms": 1, "s": 1000, "sec": 1000, "second": 1000, "m": 60_000, "min": 60_000, "minute": 60_000,
    "h": 3_600_000, "hour": 3_600_000, "d": 86_400_000, "day": 86_400_000, "w": 604_800_000,
    "week": 604_800_000,
}  # fmt: skip
"""Lengths in milliseconds; `d` is 24 hours, whatever the clocks do (`yesterday` is a day)."""

_EPOCH_MS = re.compile(r"\d{13}")
_AGO = re.compile(r"((?:\d+\s*[a-z]+\s*)+)\s+ago")
_SHIFT = re.compile(r"([+-])\s?((?:\d+\s*[a-z]+\s*)+)")
_LENGTH = re.compile(r"(\d+)\s*([a-z]+)")
_DAY = re.compile(r"(\d{4}-\d{2}-\d{2}|[a-z]+)(?:[t# ]\s*(.+))?")
_CLOCK = re.compile(r"(\d{2}):(\d{2})(?::(\d{2})(?:[.:,](\d{1,3}))?)?\s*(z|[+-]\d{2}:?\d{2})?")
_MS = timedelta(milliseconds=1)
_START = datetime(1970, 1, 1, tzinfo=UTC)
YEAR_MIN, YEAR_MAX = 1970, 9000
_LENGTH_MS_MAX: Final = 100 * 366 * 86_400_000


@dataclass(frozen=True, slots=True)
class Moment:
    """A point in time, with a note if the text was ambiguous."""

    ms: int
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Period:
    """From `since_ms` up to but not including `until_ms`; None is no limit."""

    since_ms: int | None = None
    until_ms: int | None = None
    notes: tuple[str, ...] = ()


def parse_moment(text: str, zone: str, now_ms: int) -> int:
    """The moment in milliseconds since 1970; ConfigError if the text is none."""
    return find_moment(text, zone, now_ms).ms


def parse_period(since: str | None, until: str | None, zone: str, now_ms: int) -> Period:
    """A period between two moments; either may be None. An empty period is an error."""
    begin = None if since is None else find_moment(since, zone, now_ms)
    end = None if until is None else find_moment(until, zone, now_ms)
    if begin is not None and end is not None and begin.ms >= end.ms:
        raise ConfigError(
            f"there is no time between {since!r} ({describe(begin.ms, zone)}) and {until!r} "
            f"({describe(end.ms, zone)})"
        )
    found = [each for each in (begin, end) if each is not None]
    return Period(
        None if begin is None else begin.ms,
        None if end is None else end.ms,
        tuple(each.note for each in found if each.note is not None),
    )


def find_moment(text: str, zone: str, now_ms: int) -> Moment:
    """The moment, with a note if the clocks of the zone skip or repeat the time."""
    words = " ".join(text.strip().lower().split())
    if words == "now":
        return Moment(now_ms)
    if _EPOCH_MS.fullmatch(words):
        return Moment(int(words))
    ago = _AGO.fullmatch(words)
    if ago:
        return Moment(now_ms - _length(ago[1], text))
    shift = _SHIFT.fullmatch(words)
    if shift:
        length = _length(shift[2], text)
        return Moment(now_ms + length if shift[1] == "+" else now_ms - length)
    named = _DAY.fullmatch(words)
    if named is None:
        raise _unknown(text)
    region = find_zone(zone)
    day = _day(named[1], text, region, now_ms)
    clock, offset = _clock(named[2] or "00:00", text)
    local = datetime.combine(day, clock)
    if offset is not None:
        return Moment(_to_ms(local.replace(tzinfo=UTC) - offset))
    return _placed(local, region)


def find_zone(name: str) -> ZoneInfo:
    """The time zone of a name such as Europe/Berlin."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ConfigError(
            f"there is no time zone {name!r}: write UTC or a name such as Europe/Berlin"
        ) from None


def local_zone() -> str:
    """The name of this machine's zone, UTC where none can be found."""
    for name in (os.environ.get("TZ", ""), _name_in(Path("/etc/localtime"))):
        try:
            return ZoneInfo(name.lstrip(":")).key
        except (ZoneInfoNotFoundError, ValueError, OSError):
            continue
    return "UTC"


def describe(ms: int, zone: str) -> str:
    """A moment as the clocks of the zone show it, to the millisecond and with their offset."""
    there = (_START + ms * _MS).astimezone(find_zone(zone))
    return there.isoformat(sep=" ", timespec="milliseconds")


# the parts of a text


def _day(word: str, text: str, region: ZoneInfo, now_ms: int) -> date:
    today = (_START + now_ms * _MS).astimezone(region).date()
    near = {"today": 0, "yesterday": -1, "tomorrow": 1}
    if word in near:
        return today + timedelta(days=near[word])
    if word in DAYS:  # the latest such day, which may be today
        return today - timedelta(days=(today.weekday() - DAYS.index(word)) % 7)
    try:
        day = date.fromisoformat(word)
    except ValueError:
        raise _unknown(text) from None
    if not YEAR_MIN <= day.year <= YEAR_MAX:
        raise ConfigError(f"{text!r} is not between the years {YEAR_MIN} and {YEAR_MAX}")
    return day


def _clock(word: str, text: str) -> tuple[time, timedelta | None]:
    found = _CLOCK.fullmatch(word)
    if found is None:
        raise _unknown(text)
    hour, minute, second, part, offset = found.groups()
    try:
        micros = int((part or "0").ljust(3, "0")) * 1000
        clock = time(int(hour), int(minute), int(second or 0), micros)
        return clock, None if offset is None else _offset(offset)
    except ValueError:
        raise _unknown(text) from None


def _offset(word: str) -> timedelta:
    if word == "z":
        return timedelta(0)
    digits = word[1:].replace(":", "")
    found = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    if found > timedelta(hours=18) or int(digits[2:]) > 59:
        raise ValueError(word)
    return -found if word[0] == "-" else found


def _length(words: str, text: str) -> int:
    total = 0
    for number, unit in _LENGTH.findall(words):
        known = UNITS.get(unit) or UNITS.get(unit.removesuffix("s"))
        if known is None or len(number) > 15:
            raise _unknown(text)
        total += int(number) * known
    if total > _LENGTH_MS_MAX:
        raise ConfigError(f"{text!r} is more than a hundred years away")
    return total


def _unknown(text: str) -> ConfigError:
    return ConfigError(f"{text!r} is no time that is known here: write {ACCEPTED}")


def _name_in(link: Path) -> str:
    """What follows `zoneinfo/` where the link leads."""
    return str(link.resolve()).rpartition("zoneinfo/")[2]


# local times and the clocks


def _placed(local: datetime, region: ZoneInfo) -> Moment:
    """The moment of a local time: the first of two; the jump if the clocks skip it."""
    first, second = local.replace(tzinfo=region), local.replace(tzinfo=region, fold=1)
    before, after = first.utcoffset(), second.utcoffset()
    assert before is not None
    assert after is not None
    shown = local.isoformat(sep=" ", timespec="milliseconds")
    early = _to_ms(local.replace(tzinfo=UTC) - before)
    if before == after:
        return Moment(early)
    if before > after:
        chosen = f"{shown} comes twice in {region.key}: the first, {_hours(before)}, is meant"
        return Moment(early, f"{chosen}; write {shown}{_hours(after)} for the second")
    jump = _jump(_to_ms(local.replace(tzinfo=UTC) - after), early, region)
    landed = describe(jump, region.key)
    return Moment(jump, f"{shown} is skipped by the clocks of {region.key}: {landed} is meant")


def _jump(low: int, high: int, region: ZoneInfo) -> int:
    """The first millisecond with the later offset, between two moments around the change."""
    later = (_START + high * _MS).astimezone(region).utcoffset()
    while high - low > 1:
        middle = (low + high) // 2
        if (_START + middle * _MS).astimezone(region).utcoffset() == later:
            high = middle
        else:
            low = middle
    return high


def _hours(offset: timedelta) -> str:
    sign, minutes = ("-", -offset) if offset < timedelta(0) else ("+", offset)
    return f"{sign}{minutes // timedelta(hours=1):02}:{minutes // timedelta(minutes=1) % 60:02}"


def _to_ms(moment: datetime) -> int:
    return (moment - _START) // _MS
