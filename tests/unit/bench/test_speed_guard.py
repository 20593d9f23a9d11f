"""When the guard of the speed calls a change slower, and what it compares with."""

from pathlib import Path

import pytest
from bench.guard.source import NoBase, unpack
from bench.guard.verdict import Verdict
from bench.guard.works import Cost


def verdict(before: list[float], now: list[float]) -> Verdict:
    return Verdict(
        "sends", [Cost(us, 1e6 / us) for us in before], [Cost(us, 1e6 / us) for us in now]
    )


def test_a_steady_loss_is_slower() -> None:
    """
    A fifth more in every round is called slower, in the line that is printed, too.
    """
    found = verdict([10.0, 10.1, 10.2], [12.0, 12.1, 12.2])

    assert not found.holds
    assert found.line().startswith("SLOWER sends")
    assert "1.20x" in found.line()


@pytest.mark.parametrize("now", [[10.2, 30.0, 30.0], [12.0, 10.0, 9.0], [11.0, 11.4, 11.4]])
def test_a_busy_machine_is_not(now: list[float]) -> None:
    """
    One good round, or a median that is no worse, is enough: other work only adds to a cost.
    """
    found = verdict([10.0, 10.1, 10.2], now)

    assert found.holds
    assert found.line().startswith("ok")


def test_a_commit_that_is_none_is_told(tmp_path: Path) -> None:
    """
    A wrong name of a commit is an error of its own, before anything is measured.
    """
    with pytest.raises(NoBase, match="'nothing' is no commit"):
        unpack("nothing", tmp_path)
