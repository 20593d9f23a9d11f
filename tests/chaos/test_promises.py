"""Every promise can be broken: a trial that breaks it is found."""

from dataclasses import replace

import pytest

from chaos.checker import Verdict
from chaos.modes import MODES
from chaos.promises import TrialResult, broken_promises

GOOD = TrialResult("sync-master", "leader-kill", "master", Verdict(sent=1, acknowledged=1), True)
SYNC, ASYNC = MODES["sync-master"], MODES["async-master"]


def test_a_good_trial_breaks_none() -> None:
    """Nothing is said about a trial in which all promises hold."""
    assert [] == broken_promises(SYNC, GOOD)


@pytest.mark.parametrize(
    "kind",
    ["lost", "lost_later", "duplicated", "out_of_order", "phantom", "unexpected", "disagreeing"],
)
@pytest.mark.parametrize("mode", MODES)
def test_no_mode_may_do_this(kind: str, mode: str) -> None:
    """One message is enough, in every mode."""
    bad = replace(GOOD, verdict=replace(GOOD.verdict, **{kind: ["w/0/1"]}))  # type: ignore[arg-type]

    (found,) = broken_promises(MODES[mode], bad)

    assert "w/0/1" in found


def test_only_copies_that_are_waited_for_are_promised() -> None:
    """What an ASYNC_MASTER loses with its machine is counted, not promised."""
    bad = replace(GOOD, verdict=replace(GOOD.verdict, lost_with_master=["w/0/1"]))

    assert 1 == len(broken_promises(SYNC, bad))
    assert [] == broken_promises(ASYNC, bad)


@pytest.mark.parametrize(
    "bad",
    [
        replace(GOOD, came_back=False),
        replace(GOOD, verdict=Verdict()),
    ],
)
def test_a_trial_has_to_show_something(bad: TrialResult) -> None:
    """Queues that stay away and a trial without messages fail."""
    assert 1 == len(broken_promises(SYNC, bad))


def test_a_broken_disk_may_cost_the_unflushed_tail() -> None:
    """With ASYNC_FLUSH; with SYNC_FLUSH, and after every other fault, it may not."""
    bad = replace(GOOD, fault="disk-read-only", verdict=replace(GOOD.verdict, lost=["w/0/1"]))

    assert [] == broken_promises(SYNC, bad)
    assert 1 == len(broken_promises(MODES["sync-master-sync-flush"], bad))
    assert 1 == len(broken_promises(SYNC, replace(bad, fault="disk-full")))


def test_no_disk_excuses_what_was_sent_after_its_repair() -> None:
    """The unflushed tail ends where the fault does."""
    lost = replace(GOOD.verdict, lost=["w/0/1"], lost_later=["w/0/1"])

    assert 1 == len(broken_promises(SYNC, replace(GOOD, fault="disk-read-only", verdict=lost)))
