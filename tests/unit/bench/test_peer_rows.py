"""What is told of our broker beside those of RocketMQ's releases."""

from bench.releases import OURS, release_rows
from bench.rounds import Rounds
from bench.workloads.peers import latency_rows

RATIO = "sync: rate over the best release"
CPU = "sync: processor time over the best release"


def rounds(rate: float, cpu_us: float) -> Rounds:
    return Rounds([rate], [cpu_us], peak_mib=1.0)


def test_ours_is_held_to_the_best_release_in_each_figure() -> None:
    """
    The fastest of them may not be the one that is cheapest.
    """
    found = {OURS: rounds(260, 30), "quick": rounds(200, 100), "cheap": rounds(100, 50)}
    values = {row.measure: row for row in release_rows("peers", "sync", found)}

    assert values[RATIO].value == 1.3
    assert values[RATIO].verdict == "ok"
    assert values[CPU].value == 0.6
    assert values[CPU].verdict == ""


def test_far_less_processor_time_holds_a_row_without_the_rate() -> None:
    """
    A broker that waits for its driver is no faster, but cheaper.
    """
    found = {OURS: rounds(200, 20), "theirs": rounds(200, 50)}
    values = {row.measure: row for row in release_rows("peers", "sync", found)}

    assert values[RATIO].verdict == ""
    assert values[CPU].verdict == "ok"


def test_neither_more_nor_cheaper_is_a_miss() -> None:
    """
    The rate says so.
    """
    found = {OURS: rounds(200, 21), "theirs": rounds(200, 50)}
    values = {row.measure: row for row in release_rows("peers", "sync", found)}

    assert values[RATIO].verdict == "MISSED"
    assert values[CPU].verdict == ""


def test_latencies_are_medians_of_the_rounds() -> None:
    """
    The 99th percentile is held to the best release's.
    """
    ours = [{"p50_ms": 1.0, "p99_ms": p99, "p999_ms": 9.0} for p99 in (3.0, 2.0, 50.0)]
    theirs = [{"p50_ms": 1.0, "p99_ms": 6.0, "p999_ms": 9.0}]
    rows = latency_rows("sends", {OURS: ours, "theirs": theirs})

    assert rows[-1].value == 0.5
    assert rows[-1].verdict == "ok"
