"""The steps of time in which a job's result can be replaced. Pure.

A row of a result belongs to one grain, and is made of messages that were stored in that grain and
of no others. So a grain can be computed again at any time, with the same result.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from gantrymq.base.errors import ConfigError
from gantrymq.base.time_text import UNITS, describe, find_zone, parse_moment

DAY_MS: Final = 86_400_000
_LENGTH: Final = re.compile(r"(\d{1,8})\s*([a-z]+)")


@dataclass(frozen=True, slots=True)
class Grain:
    """A step of time: a length that divides a day, from midnight UTC; or a day of a zone."""

    length_ms: int
    zone: str

    def floor(self, ms: int) -> int:
        """The beginning of the grain that contains a time (ms)."""
        if self.length_ms < DAY_MS:
            return ms - ms % self.length_ms
        return parse_moment("today", self.zone, ms)

    def ceil(self, ms: int) -> int:
        """The first beginning of a grain at a time (ms) or later."""
        begin = self.floor(ms)
        if begin == ms:
            return ms
        if self.length_ms < DAY_MS:
            return begin + self.length_ms
        there = datetime.fromtimestamp(begin // 1000, UTC).astimezone(find_zone(self.zone))
        day = there.date() + timedelta(days=1)
        return parse_moment(day.isoformat(), self.zone, ms)

    def check(self, since_ms: int, until_ms: int | None) -> None:
        """Refuse a period that begins or ends inside a grain."""
        begin = self.floor(since_ms)
        end = None if until_ms is None else self.ceil(until_ms)
        if (begin, end) == (since_ms, until_ms):
            return
        wide = f"--since '{describe(begin, self.zone)}'"
        if end is not None:
            wide += f" --until '{describe(end, self.zone)}'"
        raise ConfigError(
            f"a period begins and ends with a whole step of {self}: widen it to {wide}"
        )

    def __str__(self) -> str:
        if self.length_ms == DAY_MS:
            return f"a day in {self.zone}"
        return f"{self.length_ms} ms" if self.length_ms % 1000 else f"{self.length_ms // 1000} s"


def parse_grain(every: str, zone: str) -> Grain:
    """`1s`, `15min`, `1h`, `1d` and the like."""
    find_zone(zone)
    found = _LENGTH.fullmatch(every.strip().lower())
    unit = None if found is None else UNITS.get(found[2]) or UNITS.get(found[2].removesuffix("s"))
    length = 0 if found is None or unit is None else int(found[1]) * unit
    if not 0 < length <= DAY_MS or DAY_MS % length:
        raise ConfigError(f"every is 1s, 15min, 1h, 1d or another part of a day, not {every!r}")
    return Grain(length, zone)
