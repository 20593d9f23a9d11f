"""Words for times: what people write, and what the clocks of a zone make of it."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from gantrymq.base.errors import ConfigError
from gantrymq.base.time_text import (
    describe,
    find_moment,
    find_zone,
    local_zone,
    parse_moment,
    parse_period,
)

BERLIN = "Europe/Berlin"
HOUR = 3_600_000


def at(text: str, zone: str = "UTC") -> int:
    """The library's own idea of a time, to compare with."""
    return round(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp() * 1000)


NOW = at("2026-11-18 10:20:30.400")
"""A Wednesday."""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("now", "2026-11-18 10:20:30.400"),
        ("today", "2026-11-18 00:00"),
        ("today 08:30:15.250", "2026-11-18 08:30:15.250"),
        ("Yesterday 00:00", "2026-11-17 00:00"),
        ("tomorrow", "2026-11-19 00:00"),
        ("monday 00:00", "2026-11-16 00:00"),
        ("wednesday 23:00", "2026-11-18 23:00"),
        ("Thursday", "2026-11-12 00:00"),
        ("2h ago", "2026-11-18 08:20:30.400"),
        ("1h30m ago", "2026-11-18 08:50:30.400"),
        ("2 days 3 hours ago", "2026-11-16 07:20:30.400"),
        ("250ms ago", "2026-11-18 10:20:30.150"),
        ("-15m", "2026-11-18 10:05:30.400"),
        ("-1h30m", "2026-11-18 08:50:30.400"),
        ("+2h", "2026-11-18 12:20:30.400"),
        ("1w ago", "2026-11-11 10:20:30.400"),
        ("2026-03-29", "2026-03-29 00:00"),
        ("2026-03-29 02:30:15.25", "2026-03-29 02:30:15.250"),
        ("2026-03-29T02:30:15.250Z", "2026-03-29 02:30:15.250"),
        ("2026-03-29T02:30:15.250+05:30", "2026-03-28 21:00:15.250"),
        ("2026-03-29 02:30 -0800", "2026-03-29 10:30"),
        ("2026-03-29#02:30:15:250", "2026-03-29 02:30:15.250"),
    ],
)  # fmt: skip
def test_a_moment_is_what_people_write(text: str, expected: str) -> None:
    """
    Words, lengths ago, ISO times with and without an offset, and mqadmin's own way.
    """
    assert at(expected) == parse_moment(text, "UTC", NOW)


def test_milliseconds_since_1970_are_taken_as_they_are() -> None:
    """
    13 digits are what other commands print; no zone changes them.
    """
    assert 1_763_461_230_400 == parse_moment("1763461230400", BERLIN, NOW)


def test_an_offset_in_the_text_goes_before_the_zone() -> None:
    """
    The zone is for texts that do not say one.
    """
    assert at("2026-01-01 00:00") == parse_moment("2026-01-01T00:00Z", BERLIN, NOW)
    assert at("2025-12-31 23:00") == parse_moment("2026-01-01", BERLIN, NOW)


def test_yesterday_is_the_day_of_the_zone_not_24_hours() -> None:
    """
    Days in which the clocks change have 23 or 25 hours, and both ends are theirs.
    """
    spring, autumn = at("2026-03-30 09:00", BERLIN), at("2026-10-26 09:00", BERLIN)

    def hours_of_yesterday(now: int) -> float:
        begin, end = (parse_moment(word, BERLIN, now) for word in ("yesterday", "today"))
        return (end - begin) / HOUR

    assert 23.0 == hours_of_yesterday(spring)
    assert 25.0 == hours_of_yesterday(autumn)


def test_today_depends_on_the_zone() -> None:
    """
    Late in the evening in London it is tomorrow in Tokyo already.
    """
    now = at("2026-11-18 23:30")

    assert at("2026-11-19 00:00", "Asia/Tokyo") == parse_moment("today", "Asia/Tokyo", now)


def test_a_time_that_the_clocks_skip_is_the_moment_they_jump() -> None:
    """
    Nothing happened at 02:30 that night; everything from then on happened from 03:00 on.
    """
    found = find_moment("2026-03-29 02:30", BERLIN, NOW)

    assert at("2026-03-29 01:00") == found.ms
    assert (
        "2026-03-29 02:30:00.000 is skipped by the clocks of Europe/Berlin: "
        "2026-03-29 03:00:00.000+02:00 is meant" == found.note
    )


def test_a_time_that_comes_twice_is_the_first_and_says_so() -> None:
    """
    The note tells how to write the other one, and that text means it.
    """
    found = find_moment("2026-10-25 02:30", BERLIN, NOW)
    other = find_moment("2026-10-25 02:30:00.000+01:00", BERLIN, NOW)

    assert at("2026-10-25 00:30") == found.ms
    assert (
        "2026-10-25 02:30:00.000 comes twice in Europe/Berlin: the first, +02:00, is meant; "
        "write 2026-10-25 02:30:00.000+01:00 for the second" == found.note
    )
    assert (at("2026-10-25 01:30"), None) == (other.ms, other.note)


def test_midnight_may_be_skipped_too() -> None:
    """
    Where clocks jump at midnight, a day begins at 01:00.
    """
    found = find_moment("2018-11-04", "America/Sao_Paulo", NOW)

    assert "2018-11-04 01:00:00.000-02:00" == describe(found.ms, "America/Sao_Paulo")


@pytest.mark.parametrize(
    "text",
    ["", "soon", "2026-13-01", "2026-02-30", "25:00", "today 24:00", "today 8", "2 fortnights ago",
     "ago", "1763461230", "20260329000000", "2026-03-29 02:30:15.2501", "2026-03-29 02:30+25:00",
     "-1h ago", "today 08:30 UTC", "2026-03-29 02:30+05:75"],
)  # fmt: skip
def test_anything_else_is_an_error_that_says_what_is_accepted(text: str) -> None:
    """
    Guessing at a time would repeat or replace the wrong rows.
    """
    with pytest.raises(ConfigError) as caught:
        parse_moment(text, "UTC", NOW)

    assert "write 2026-03-29" in str(caught.value)


def test_a_length_out_of_all_bounds_is_refused() -> None:
    """
    Numbers have an end, whatever somebody types.
    """
    with pytest.raises(ConfigError, match="more than a hundred years away"):
        parse_moment("999999999999999w ago", "UTC", NOW)
    with pytest.raises(ConfigError, match="not between the years"):
        parse_moment("0001-01-01 00:00+14:00", "UTC", NOW)


@pytest.mark.parametrize("zone", ["Mars/Olympus", "", "/etc/passwd", "../UTC", "Europe"])
def test_a_zone_nobody_knows_is_refused_by_name(zone: str) -> None:
    """
    A misspelt zone must not become UTC.
    """
    with pytest.raises(ConfigError, match="there is no time zone") as caught:
        find_zone(zone)

    assert repr(zone) in str(caught.value)


def test_this_machine_has_a_zone_that_can_be_named() -> None:
    """
    Commands take it where none is given.
    """
    assert local_zone() == find_zone(local_zone()).key


def test_a_period_has_two_ends_in_order() -> None:
    """
    The end is exclusive; either end may be left out; notes of both are kept.
    """
    found = parse_period("2026-03-29 02:30", "2026-10-25 02:30", BERLIN, NOW)

    assert (at("2026-03-29 01:00"), at("2026-10-25 00:30")) == (found.since_ms, found.until_ms)
    assert 2 == len(found.notes)
    assert (None, NOW) == (
        parse_period(None, "now", BERLIN, NOW).since_ms,
        parse_period(None, "now", BERLIN, NOW).until_ms,
    )
    with pytest.raises(ConfigError, match="there is no time between 'now'"):
        parse_period("now", "yesterday", BERLIN, NOW)
