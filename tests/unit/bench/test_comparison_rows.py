"""What is told of rounds in which several servers took turns."""

from bench.python_clients.contenders import OURS, Comparison, Contender, Goal
from bench.rounds import Rounds
from bench.workloads.limit import Shape
from bench.workloads.limit import rows_of as limit_rows
from bench.workloads.python_clients import rows_of

THEIRS = (
    Contender("slow", "lib", "S", 1),
    Contender("quick", "lib", "S", 1, {"how": "well"}),
    Contender("tuned", "lib", "S", 1, tuned=True),
)
WAYS = (Contender("one by one", "ours", OURS, 1), Contender("at once", "ours", OURS, 1))
COMPARED = Comparison("w", "pipelined", (*WAYS, *THEIRS), (Goal("lib", 2.0),))


def rounds(*rates: float) -> Rounds:
    return Rounds(list(rates), [3.0] * len(rates), [5.0] * len(rates), 9.0)


def test_the_fastest_ways_to_use_two_libraries_are_compared() -> None:
    """
    By medians, whatever the best round was; the goal stands at the ratio.
    """
    found = {
        "one by one": rounds(300, 100, 900),
        "at once": rounds(400),
        "slow": rounds(50, 50, 2000),
        "quick": rounds(200, 1, 250),
        "tuned": rounds(800),
    }
    values = {row.measure: row for row in rows_of(COMPARED, found)}

    assert values["ours over lib"].value == 2.0
    assert values["ours over lib"].verdict == "ok"
    assert values["one by one, over lib"].value == 1.5
    assert values["ours over tuned"].value == 0.5
    assert values["one by one: slowest round"].value == 100
    assert values["slow: fastest round"].value == 2000
    assert values["quick: client"].value == 5.0


def test_an_option_becomes_words_of_the_driver() -> None:
    """
    As its command line takes them.
    """
    assert THEIRS[1].words == ["--option", "how=well"]
    assert COMPARED.libraries == ["lib"]


def test_the_limit_is_a_ratio_of_times() -> None:
    """
    Ours takes longer by so much, and is held to no more.
    """
    rows = {
        row.measure: row for row in limit_rows(Shape(1, 1, 9, 2.5, 2.0), rounds(100), rounds(300))
    }

    assert rows["1 x 1: time over the limit's"].value == 3.0
    assert rows["1 x 1: time over the limit's"].verdict == "MISSED"
    assert rows["1 x 1: processor time over the limit's"].value == 1.0
    assert rows["1 x 1: processor time over the limit's"].verdict == "ok"
