"""Random stories about a raft group: what was acknowledged is consumed, and all members agree.

`GANTRY_SEEDS=1000:2000` runs other seeds than the usual ones; with `-k seed-17` one story runs.
`GANTRY_EVENTS=50000` makes them longer.
"""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from sim_group import EVENTS, run

FIRST, _, STOP = os.environ.get("GANTRY_SEEDS", "0:100").partition(":")
SEEDS = range(int(FIRST), int(STOP))
EVENTS_MIN = EVENTS * 3 // 4
HERE = Path(__file__).parent
HAPPENED: Counter[str] = Counter()
EXPECTED = {
    "leader_dies", "member_dies", "two_die", "all_die", "member_restarts", "kill", "power_cut",
    "disk_is_lost", "disk_is_full", "disk_is_slow", "syncs_fail", "bits flipped", "clock_jumps",
    "network_breaks", "network_is_slow", "leader_is_cut_off", "member_is_cut_off", "one_way",
    "link_stalls", "leadership_moves", "laggards_and_a_loss", "leaders_in_a_row",
    "leader_comes_back", "answers_come_late", "figure_eight", "old records copied", "elections",
    "leader changes", "cuts", "recoveries",
    "plain messages", "delayed messages", "keyed messages", "paid messages", "failed deliveries",
    "dead letters", "stored", "maybe", "committed", "rolled back",
}  # fmt: skip


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: f"seed-{seed}")
def test_a_group_keeps_what_it_acknowledged(seed: int) -> None:
    """Whatever happens to members, disks, clocks and network."""
    story = run(seed)
    HAPPENED.update(story.counts)

    assert [] == story.faults, story.ledger.timeline.tail()
    assert story.counts["events"] >= EVENTS_MIN


def test_everything_happened(capsys: pytest.CaptureFixture[str]) -> None:
    """Every accident, kind of message and recovery was part of some story; that takes dozens."""
    with capsys.disabled():
        counted = ", ".join(f"{count} {what}" for what, count in sorted(HAPPENED.items()))
        sys.stdout.write(f"\nraft stories: {counted}\n")

    assert set() == EXPECTED - {what for what, count in HAPPENED.items() if count}


def test_a_seed_repeats_in_another_process() -> None:
    """The same seed is the same story, line by line."""
    other = subprocess.run(
        [sys.executable, HERE / "tell.py", "3", "group"],
        env={**os.environ, "PYTHONHASHSEED": "3"},
        capture_output=True,
        text=True,
        check=True,
    )

    assert run(3).ledger.timeline.lines == other.stdout.splitlines()[1:]
