"""What is told, and drawn, of a broker on which one thing grows."""

from dataclasses import asdict

from bench.charts import PANELS, points_of
from bench.rounds import Rounds
from bench.rows import Row
from bench.workloads.growth import AXES, rows_of

QUEUES = AXES[0]


def rounds(*rates: float) -> Rounds:
    return Rounds(list(rates), [5.0] * len(rates), peak_mib=80.0)


def test_the_rate_of_the_largest_size_is_held_to_that_of_the_smallest() -> None:
    """
    By medians: nine tenths have to be left.
    """
    found = {1: rounds(100, 1, 100), 10_000: rounds(89, 89, 500)}
    values = {row.measure: row for row in rows_of(QUEUES, found, idle=70.0)}

    assert values["10,000: rate"].value == 89
    assert values["rate at 10,000 over 1"].value == 0.89
    assert values["rate at 10,000 over 1"].verdict == "MISSED"
    assert values["10,000: memory"].value == 80
    assert values["idle: memory"].value == 70


def test_a_chart_has_what_grew_and_nothing_else() -> None:
    """
    Rows of other workloads, and those without a place on the axis, are in no chart.
    """
    rows = [
        *rows_of(QUEUES, {1: rounds(100), 10_000: rounds(95)}, idle=70.0),
        Row("start", "gantry up to ready", 0.5, "s"),
    ]

    found = points_of([asdict(row) for row in rows])

    assert list(found) == ["queues"]
    assert found["queues"].keys() == PANELS.keys()
    assert found["queues"]["rate"] == [(1, 100), (10_000, 95)]
