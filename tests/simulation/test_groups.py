"""Random stories about a raft group: what was acknowledged is consumed, and all members agree.

`GANTRY_SEEDS=1000:2000` runs other seeds than the usual ones; with `-k seed-17` one story runs.
"""

import os
import sys
from collections import Counter

import pytest
from sim_group import KINDS, run

FIRST, _, STOP = os.environ.get("GANTRY_SEEDS", "0:50").partition(":")
SEEDS = range(int(FIRST), int(STOP))
HAPPENED: Counter[str] = Counter()
EXPECTED = {
    "leader_dies", "member_dies", "two_die", "member_restarts", "disk_is_lost", "disk_is_full",
    "syncs_fail", "network_breaks", "network_is_slow", "leader_is_cut_off", "member_is_cut_off",
    "one_way", "leadership_moves", "kill", "power_cut", "leader changes", "cuts", "recoveries",
    "SEND_OK", "SendFailed", *KINDS,
}  # fmt: skip


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: f"seed-{seed}")
def test_a_group_keeps_what_it_acknowledged(seed: int) -> None:
    """Whatever happens to members, disks and network."""
    story = run(seed)
    HAPPENED.update(story.counts)

    assert [] == story.faults, dict(story.counts)


def test_everything_happened(capsys: pytest.CaptureFixture[str]) -> None:
    """Every accident, kind of message and recovery was part of some story."""
    with capsys.disabled():
        counted = ", ".join(f"{count} {what}" for what, count in sorted(HAPPENED.items()))
        sys.stdout.write(f"\nraft stories: {counted}\n")

    assert set() == EXPECTED - {what for what, count in HAPPENED.items() if count}


def test_a_seed_repeats() -> None:
    """The same seed is the same story, down to each answer and each delivery."""
    one, other = run(3), run(3)

    assert one.acknowledged == other.acknowledged
    assert one.counts == other.counts
