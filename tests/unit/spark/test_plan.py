"""Batches, ranges and tasks: arithmetic, without Spark and without a broker."""

import subprocess
import sys
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gantrymq.base.errors import ConfigError
from gantrymq.model import Queue
from gantrymq.model.offset_ranges import OffsetRange, QueueOffsets
from gantrymq.spark import plan
from gantrymq.spark.options import points
from gantrymq.spark.options.source_options import TriggerLimits
from gantrymq.spark.source.admission import Admission, rows_limit

Q0, Q1, Q2 = (Queue("orders", "broker-a", number) for number in range(3))

queues = st.builds(
    Queue, st.sampled_from(["a", "b"]), st.sampled_from(["x", "y"]), st.integers(0, 12)
)
offsets = st.dictionaries(queues, st.integers(0, 10_000), max_size=12)


def test_planning_does_not_load_spark() -> None:
    """Whoever plans or reads options need not have Spark, nor wait for it."""
    code = (
        "import sys, gantrymq.spark.plan, gantrymq.spark.options.source_parser; "
        "print('pyspark' in sys.modules)"
    )

    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert answer.stdout.strip() == "False"


@pytest.mark.parametrize(
    "text", ["earlies", "{", "[]", '{"t": 3}', '{"t": {"b": {"x": 1}}}', '{"t": {"b": {"0": -3}}}']
)
def test_a_point_that_is_none_is_refused(text: str) -> None:
    """A starting point that cannot be understood is never taken for another one."""
    with pytest.raises(ConfigError):
        points.parse_point(text, "startingOffsets")


def test_words_and_numbers_become_offsets() -> None:
    """-1 and -2 mean latest and earliest; a queue that is left out is at the default end."""
    lows, highs = {Q0: 5, Q1: 6, Q2: 7}, {Q0: 50, Q1: 60, Q2: 70}
    point = points.parse_point('{"orders": {"broker-a": {"0": -1, "1": 33}}}', "startingOffsets")

    assert points.resolve("earliest", lows, highs, otherwise="earliest") == lows
    assert points.resolve("latest", lows, highs, otherwise="earliest") == highs
    assert points.resolve(point, lows, highs, otherwise="earliest") == {Q0: 50, Q1: 33, Q2: 7}
    assert points.resolve(point, lows, highs, otherwise="latest") == {Q0: 50, Q1: 33, Q2: 70}


def test_offsets_for_a_queue_that_is_not_there_are_refused() -> None:
    """A typing error in a queue must not read the whole topic instead."""
    with pytest.raises(ConfigError, match="queue 9 of orders on broker-a"):
        points.resolve({Queue("orders", "broker-a", 9): 1}, {Q0: 0}, {Q0: 1}, otherwise="earliest")


@given(offsets, offsets, st.none() | st.integers(1, 20_000))
def test_a_batch_never_goes_back_and_never_too_far(
    start: QueueOffsets, highs: QueueOffsets, rows_max: int | None
) -> None:
    """No queue is forgotten, none goes back, none beyond its end."""
    end = plan.advance(start, highs, rows_max)

    assert set(end) == set(start) | set(highs)
    for queue, offset in end.items():
        begin = start.get(queue, 0)
        assert begin <= offset <= max(begin, highs.get(queue, 0))


@given(offsets, offsets, st.integers(1, 20_000))
def test_a_limited_batch_is_limited_and_goes_on(
    start: QueueOffsets, highs: QueueOffsets, rows_max: int
) -> None:
    """Every queue that has something gets a row, and the sum is at most one row a queue over."""
    whole = plan.ranges(start, plan.advance(start, highs))
    limited = plan.ranges(start, plan.advance(start, highs, rows_max))

    assert [each.queue for each in whole] == [each.queue for each in limited]
    assert sum(each.rows for each in limited) <= rows_max + len(limited)


@given(offsets, offsets, st.integers(1, 500))
def test_batches_follow_each_other_without_gap_or_overlap(
    start: QueueOffsets, highs: QueueOffsets, rows_max: int
) -> None:
    """Read batch by batch, every offset is read exactly once."""
    read: dict[Queue, list[OffsetRange]] = {}
    at = start
    while (end := plan.advance(at, highs, rows_max)) != at:
        for each in plan.ranges(at, end):
            read.setdefault(each.queue, []).append(each)
        at = end
    for queue, parts in read.items():
        assert parts[0].start == start.get(queue, 0)
        assert all(one.end == two.start for one, two in pairwise(parts))
        assert parts[-1].end == highs[queue]


def test_a_target_stops_growing_queues_and_hides_new_ones() -> None:
    """Trigger.AvailableNow ends because nothing is there that was not there at its start."""
    assert plan.capped({Q0: 9, Q1: 3, Q2: 4}, {Q0: 5, Q1: 8}) == {Q0: 5, Q1: 3}
    assert plan.capped({Q0: 9}, None) == {Q0: 9}


def test_an_end_before_its_start_has_no_rows() -> None:
    """After a crash in the first batch the old end holds, whatever the beginning is by now."""
    assert plan.ranges({Q0: 20, Q1: 5}, {Q0: 10, Q1: 8}) == [OffsetRange(Q1, 5, 8)]


def test_a_queue_that_appears_begins_at_its_first_message() -> None:
    """A queue added while the query runs is read from its start, and known to be new."""
    assert plan.ranges({Q0: 3}, {Q0: 3, Q1: 8}) == [OffsetRange(Q1, 0, 8, is_new=True)]


@given(offsets, st.integers(1, 6))
def test_packing_keeps_every_range_once(end: QueueOffsets, tasks_max: int) -> None:
    """Few tasks share the work; nothing is read twice or not at all."""
    found = plan.ranges({}, end)
    tasks = plan.pack(found, tasks_max)

    assert len(tasks) == min(tasks_max, len(found))
    assert sorted(each for task in tasks for each in [r.queue for r in task]) == sorted(
        each.queue for each in found
    )
    assert all(tasks)


@given(offsets, st.integers(1, 6))
def test_planning_again_gives_the_same_tasks(end: QueueOffsets, tasks_max: int) -> None:
    """Spark may plan a batch several times, also after a restart."""
    again = dict(reversed(end.items()))

    assert plan.pack(plan.ranges({}, end), tasks_max) == plan.pack(
        plan.ranges({}, again), tasks_max
    )


@given(offsets, st.integers(1, 3_000), st.none() | st.integers(1, 40))
def test_cutting_keeps_every_row_once_and_the_limits(
    end: QueueOffsets, rows_max: int, tasks_min: int | None
) -> None:
    """Pieces follow each other, none is too large, and there are enough if there are rows."""
    found = plan.ranges({}, end)
    pieces = plan.split(found, dict.fromkeys(end, rows_max), tasks_min)

    for whole in found:
        mine = [each for each in pieces if each.queue == whole.queue]
        assert (whole.start, whole.end) == (mine[0].start, mine[-1].end)
        assert all(one.end == two.start for one, two in pairwise(mine))
    assert all(0 < each.rows <= rows_max for each in pieces)
    if tasks_min is not None and found:
        assert len(pieces) >= min(tasks_min, sum(each.rows for each in found))


def test_new_queues_begin_where_they_are_told() -> None:
    """A limit counts from the first message that is still there, not from 0."""
    assert {Q0: 3, Q1: 110} == plan.advance({Q0: 3}, {Q0: 3, Q1: 500}, 10, new={Q1: 100})
    assert {Q0: 5, Q1: 500} == plan.advance({Q0: 3}, {Q0: 5, Q1: 500}, new={Q1: 900})
    assert [] == plan.ranges({}, {Q1: 8}, skips_new=True)


def test_a_beginning_that_may_move_is_known() -> None:
    """A time does not move: what is stored from now on lies behind it."""
    at_latest = points.parse_point('{"orders": {"broker-a": {"0": -1}}}', "startingOffsets")
    fixed = points.parse_point('{"orders": {"broker-a": {"0": 5}}}', "startingOffsets")

    assert [True, True, True] == [points.moves(each) for each in ("latest", "committed", at_latest)]
    assert [False] * 3 == [points.moves(each) for each in ("earliest", fixed, points.AtTime(5))]


def test_both_limits_of_a_batch_hold() -> None:
    """The smaller one counts; bytes by the size of the messages that come next."""
    start, highs = {Q0: 0, Q1: 0}, {Q0: 100, Q1: 300}
    sizes = {Q0: 10.0, Q1: 10.0}

    assert 50 == rows_limit(50, None, start, highs, sizes)
    assert 40 == rows_limit(50, 400, start, highs, sizes)
    assert 50 == rows_limit(50, 4_000, start, highs, sizes)
    assert rows_limit(None, 4_000, start, highs, sizes) is None
    assert 1 == rows_limit(None, 1, start, highs, sizes)
    assert rows_limit(None, 1, start, highs, {}) is None


def test_a_batch_is_put_off_until_it_is_worth_it() -> None:
    """Never when nothing is there, never longer than the delay, never the first one."""
    admission = Admission(TriggerLimits(rows_min=10, delay_ms=5_000))

    waits = [
        admission.waits({Q0: 0}, {Q0: 3}, now=100.0),
        admission.waits({Q0: 3}, {Q0: 3}, now=101.0),
        admission.waits({Q0: 3}, {Q0: 5}, now=102.0),
        admission.waits({Q0: 3}, {Q0: 13}, now=103.0),
        admission.waits({Q0: 13}, {Q0: 14}, now=107.9),
        admission.waits({Q0: 13}, {Q0: 14}, now=108.0),
    ]

    assert [False, False, True, False, True, False] == waits
