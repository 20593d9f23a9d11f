"""Every promise can be broken: a window that breaks it is found."""

from dataclasses import replace

import pytest

from chaos.checker import Verdict
from chaos.modes import MODES
from chaos.promises import Window, broken_promises

GOOD = Window("sync-master", "leader-kill", "master", Verdict(sent=1, acknowledged=1), True)
SYNC, ASYNC = MODES["sync-master"], MODES["async-master"]


def test_a_good_window_breaks_none() -> None:
    """Nothing is said about a window in which all promises hold."""
    assert [] == broken_promises(SYNC, GOOD)


@pytest.mark.parametrize(
    "kind", ["lost", "duplicated", "out_of_order", "phantom", "unexpected", "disagreeing"]
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
def test_a_window_has_to_show_something(bad: Window) -> None:
    """Queues that stay away and a window without messages fail."""
    assert 1 == len(broken_promises(SYNC, bad))


def test_a_broken_disk_may_cost_the_unflushed_tail() -> None:
    """With ASYNC_FLUSH; with SYNC_FLUSH, and after every other fault, it may not."""
    bad = replace(GOOD, fault="disk-read-only", verdict=replace(GOOD.verdict, lost=["w/0/1"]))

    assert [] == broken_promises(SYNC, bad)
    assert 1 == len(broken_promises(MODES["sync-master-sync-flush"], bad))
    assert 1 == len(broken_promises(SYNC, replace(bad, fault="disk-full")))
