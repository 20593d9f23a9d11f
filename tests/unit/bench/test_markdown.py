"""Tables in Markdown of what a run measured."""

from bench.markdown import tables
from bench.rows import Row

ROWS = [
    Row("peers", "sync, 1 sender, GantryMQ: median of 5", 12_345.6, "1/s"),
    Row("peers", "sync, 1 sender, GantryMQ: peak memory", 80.5, "MiB"),
    Row("peers", "sync, 1 sender, RocketMQ 5.3.3: median of 5", 9_000, "1/s"),
    Row("peers", "sync, 1 sender: rate over the best release", 0.5, "x", 1.0),
    Row("peers", "sync, 1 sender: processor time over the best release", 0.3, "x"),
]


def test_what_is_compared_has_a_line_and_ratios_come_last() -> None:
    """
    A figure that one of them lacks leaves its cell empty.
    """
    figures, judged = tables(ROWS)

    assert figures.splitlines() == [
        "| | median of 5, 1/s | peak memory, MiB |",
        "| --- | ---: | ---: |",
        "| sync, 1 sender, GantryMQ | 12,346 | 80.5 |",
        "| sync, 1 sender, RocketMQ 5.3.3 | 9,000 | |",
    ]
    assert judged.splitlines()[2:] == [
        "| sync, 1 sender: rate over the best release | 0.5 x | >= 1 | **missed** |",
        "| sync, 1 sender: processor time over the best release | 0.3 x | | |",
    ]


def test_a_workload_may_have_bounds_only() -> None:
    """
    No table without lines.
    """
    (judged,) = tables([Row("start", "to ready", 0.5, "s", 0.8, at_most=True)])
    assert judged.endswith("| to ready | 0.5 s | <= 0.8 | ok |")
