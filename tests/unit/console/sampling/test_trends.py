"""Rates between two looks, and how long a lag lasts."""

import pytest

from gantrymq.console.sampling.trends import (
    largest,
    rates_between,
    seconds_to_drain,
    slope,
    sums_of,
)
from gantrymq.model import Queue
from gantrymq.protocol.bodies import OffsetWrapper


def row(end: int, read: int) -> OffsetWrapper:
    return OffsetWrapper(broker_offset=end, consumer_offset=read)


def test_sums_count_a_queue_once() -> None:
    """What was sent is counted once, however many groups read it; what was read, by group."""
    first, second = Queue("orders", "broker-a", 0), Queue("orders", "broker-a", 1)
    progress = {
        "billing": {first: row(10, 4), second: row(5, 5)},
        "audit": {first: row(11, 11)},
    }

    sums = sums_of(progress, 1.0)

    assert {"orders": 16} == sums.sent
    assert {"billing": 9, "audit": 11} == sums.read


def test_rates_leave_out_what_shrank_or_is_new() -> None:
    """Only what was there and grew has a rate."""
    before, after = {"a": 10, "b": 10}, {"a": 30, "b": 5, "c": 7}

    assert {"a": 2.0} == rates_between(before, after, 10.0)
    assert {} == rates_between(before, after, 0.0)


def test_the_largest_come_first() -> None:
    """The largest values, and names decide between equal ones."""
    assert ["c", "a"] == largest({"a": 1, "b": 1, "c": 2}, 2)


@pytest.mark.parametrize(
    "values, expected",
    [
        ([0.0, 10.0, 20.0], 1.0),
        ([30.0, None, 10.0, None, -10.0], -1.0),
        ([5.0, 5.0, 5.0], 0.0),
        ([1.0, None, 2.0], None),
        ([], None),
    ],
)
def test_slopes(values: list[float | None], expected: float | None) -> None:
    """A slope needs three known values, gaps between them do no harm."""
    assert expected == slope(values, 10)


def test_time_to_drain() -> None:
    """A lag that shrinks is gone after a while; one that does not shrink has no end."""
    assert 50.0 == seconds_to_drain(100, -2.0)
    assert seconds_to_drain(100, 0.0) is None
    assert seconds_to_drain(100, None) is None
    assert 0.0 == seconds_to_drain(0, 5.0)
