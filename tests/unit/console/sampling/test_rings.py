"""Rings: what is written is read again, coarser rings have means, and gaps stay gaps."""

import math

from hypothesis import given
from hypothesis import strategies as st

from gantrymq.console.sampling.rings import NAME_BYTES_MAX, SampleRings, named, size_of

BEGIN = 1_800_000_000
"""A multiple of every step."""


def empty(series_max: int = 4) -> tuple[bytearray, SampleRings]:
    buffer = bytearray(size_of(series_max))
    return buffer, SampleRings(memoryview(buffer), series_max)


def test_what_is_written_is_read() -> None:
    """Each value stands at its time, and what nobody wrote is a gap."""
    _, rings = empty()
    rings.write("in", BEGIN, 1.0)
    rings.write("in", BEGIN + 30, 4.0)

    assert [1.0, None, None, 4.0, None] == rings.read("in", 10, BEGIN, BEGIN + 50)
    assert [None, None] == rings.read("other", 10, BEGIN, BEGIN + 20)


def test_coarser_rings_have_means() -> None:
    """A minute is the mean of its known values, and ten minutes that of the minutes."""
    _, rings = empty()
    for at, value in ((0, 1.0), (10, 3.0), (50, 5.0), (60, 9.0)):
        rings.write("lag", BEGIN + at, value)

    assert [3.0, 9.0, None] == rings.read("lag", 60, BEGIN, BEGIN + 180)
    assert [6.0] == rings.read("lag", 600, BEGIN, BEGIN + 600)


def test_old_values_leave_no_trace() -> None:
    """After a pause longer than a ring nothing of its last round is left in it."""
    _, rings = empty()
    for at in range(0, 3_600, 10):
        rings.write("in", BEGIN + at, 7.0)
    later = BEGIN + 3_600 + 1_800
    rings.write("in", later, 1.0)

    found = rings.read("in", 10, later - 3_590, later + 10)

    assert [7.0] * 179 == found[:179]
    assert [None] * 180 == found[179:-1]
    assert 1.0 == found[-1]


def test_a_file_that_is_opened_again_goes_on() -> None:
    """The names and values are in the buffer; the time between is a gap."""
    buffer, before = empty()
    before.write("in", BEGIN, 1.0)

    after = SampleRings(memoryview(buffer), 4)
    after.write("in", BEGIN + 20, 2.0)

    assert ["in"] == list(after.names())
    assert [1.0, None, 2.0] == after.read("in", 10, BEGIN, BEGIN + 30)


def test_a_file_of_something_else_is_emptied() -> None:
    """Bytes that are no rings of this shape are no samples."""
    buffer = bytearray(b"\xff" * size_of(4))

    rings = SampleRings(memoryview(buffer), 4)
    rings.write("in", BEGIN, 1.0)

    assert [None, 1.0] == rings.read("in", 10, BEGIN - 10, BEGIN + 10)


def test_the_series_written_longest_ago_makes_room() -> None:
    """A name too many takes the place of the one that was not written for the longest time."""
    _, rings = empty(2)
    rings.write("a", BEGIN, 1.0)
    rings.write("b", BEGIN + 10, 2.0)
    rings.write("a", BEGIN + 20, 3.0)
    rings.write("c", BEGIN + 30, 4.0)

    assert {"a", "c"} == set(rings.names())
    assert [None, None, None, 4.0] == rings.read("c", 10, BEGIN, BEGIN + 40)
    assert [None] == rings.read("b", 10, BEGIN + 10, BEGIN + 20)


def test_a_clock_that_goes_back() -> None:
    """A little into the past nothing is written; after a long step back it begins anew."""
    _, rings = empty()
    rings.write("in", BEGIN, 1.0)
    rings.write("in", BEGIN - 60, 2.0)
    soon = rings.read("in", 10, BEGIN - 60, BEGIN + 10)
    rings.write("in", BEGIN - 86_400, 3.0)

    assert [None] * 6 + [1.0] == soon
    assert [3.0] == rings.read("in", 10, BEGIN - 86_400, BEGIN - 86_390)
    assert [None] == rings.read("in", 10, BEGIN, BEGIN + 10)


def test_long_names_are_cut() -> None:
    """A name never takes more room than a place has, and is no half character."""
    assert NAME_BYTES_MAX >= len(named("lag", "组" * 400).encode())
    _, rings = empty()
    rings.write(named("lag", "组" * 400), BEGIN, 1.0)
    assert [1.0] == rings.read(named("lag", "组" * 400), 10, BEGIN, BEGIN + 10)


@given(st.lists(st.tuples(st.integers(0, 900), st.floats(0, 1000, width=32)), max_size=60))
def test_the_finest_ring_is_a_map_of_the_last_hour(steps: list[tuple[int, float]]) -> None:
    """Whatever pauses there are, the finest ring says what a plain map of times would say."""
    _, rings = empty(1)
    known: dict[int, float] = {}
    now = BEGIN
    for pause, value in steps:
        now += pause
        rings.write("in", now, value)
        known[now // 10 * 10] = value

    found = rings.read("in", 10, now // 10 * 10 - 3_590, now // 10 * 10 + 10)

    assert [known.get(at) for at in range(now // 10 * 10 - 3_590, now // 10 * 10 + 10, 10)] == found
    assert not any(value is not None and math.isnan(value) for value in found)
