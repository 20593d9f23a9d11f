"""A raft group of three beside RocketMQ's DLedger group: sends, and the loss of a leader."""

import statistics
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

from bench import programs
from bench.programs import AskedProgram
from bench.rows import Row
from bench.servers import cpu_seconds, prepare_real
from bench.workloads import Run

if TYPE_CHECKING:
    from raft_group import RaftGroup

VERSION = "5.3.3"
OURS, THEIRS = "GantryMQ", f"RocketMQ {VERSION}"
ROUNDS, ROUNDS_QUICK = 5, 2
COUNTS = {OURS: 150_000, THEIRS: 50_000}
"""Messages of a round: enough for a few seconds."""
WARM_UP = {OURS: 50_000, THEIRS: 150_000}
"""Java's compiler is still at work after 100,000 messages."""
RATE_MIN, RATIO_MIN, PAUSE_SECONDS_MAX = 15_000, 1.5, 3.0
KILLS, KILLS_QUICK = {OURS: 20, THEIRS: 5}, 2
AFTER_SECONDS = 1.0
SETTINGS = {
    # The default, which the interop suite makes smaller.
    OURS: {"mappedFileSizeCommitLog": str(1 << 30)},
    # Also the threads that RocketMQ's own files for such a group have, and entries in batches.
    THEIRS: {
        "mappedFileSizeCommitLog": str(1 << 30),
        "sendMessageThreadPoolNums": "16",
        "enableBatchPush": "true",
    },
}


def _group(kind: str) -> "RaftGroup":
    from raft_group import RaftGroup

    return RaftGroup("ours" if kind == OURS else VERSION, **SETTINGS[kind])


def raft(run: Run) -> list[Row]:
    """1 KiB, 8 connections with 64 sends under way; both groups are up, and take turns."""
    prepare_real()
    rates: dict[str, list[float]] = {OURS: [], THEIRS: []}
    costs: dict[str, list[float]] = {OURS: [], THEIRS: []}
    with ExitStack() as stack:
        groups = {kind: stack.enter_context(_group(kind)) for kind in rates}
        for kind, group in groups.items():
            _measure(group, run.scaled(WARM_UP[kind]))
        for _ in range(ROUNDS_QUICK if run.quick else ROUNDS):
            for kind, group in groups.items():
                rate, cost = _measure(group, run.scaled(COUNTS[kind]))
                rates[kind].append(rate)
                costs[kind].append(cost)
    rows: list[Row] = []
    for kind, found in rates.items():
        least = RATE_MIN if kind == OURS else None
        cost = statistics.median(costs[kind])
        rows += [
            Row("raft", f"{kind}, median of {len(found)}", statistics.median(found), "1/s", least),
            Row("raft", f"{kind}, slowest round", min(found), "1/s"),
            Row("raft", f"{kind}, fastest round", max(found), "1/s"),
            Row("raft", f"{kind}, processor time of all members", cost, "us/message"),
        ]
    ratio = statistics.median(rates[OURS]) / statistics.median(rates[THEIRS])
    return [*rows, Row("raft", "ratio", ratio, "x", RATIO_MIN)]


def _measure(group: "RaftGroup", count: int) -> tuple[float, float]:
    """Messages a second, and microseconds of all members' processor time for a message."""
    leader = group.leader
    assert leader is not None
    before = _processor_seconds(group)
    found = programs.connections(group.address(leader), "--count", count)
    spent = _processor_seconds(group) - before
    return found["tps"], spent / found["count"] * 1e6


def _processor_seconds(group: "RaftGroup") -> float:
    return sum(cpu_seconds(pid) for pid in group.pids())


def failover(run: Run) -> list[Row]:
    """How long nothing is acknowledged when the leader is killed, to clients that never stop."""
    prepare_real()
    rows: list[Row] = []
    for kind in (OURS, THEIRS):
        with _group(kind) as group, programs.asked("pauses", group.namesrv) as program:
            time.sleep(AFTER_SECONDS)
            senders = Senders(program)
            pauses = [
                senders.pause_of(group) for _ in range(KILLS_QUICK if run.quick else KILLS[kind])
            ]
        pauses.sort()
        most = PAUSE_SECONDS_MAX if kind == OURS else None
        middle = statistics.median(pauses)
        rows += [
            Row("failover", f"{kind}, median of {len(pauses)}", middle, "s", most, at_most=True),
            Row("failover", f"{kind}, p99", pauses[int(0.99 * len(pauses))], "s"),
            Row("failover", f"{kind}, shortest", pauses[0], "s"),
        ]
        allowed = 0 if kind == OURS else None
        failed = Row("failover", f"{kind}, sends that failed", senders.failed, "", allowed, True)
        rows.append(failed)
    return rows


class Senders:
    """The program that sends all the time."""

    def __init__(self, program: AskedProgram) -> None:
        self._program = program
        self.failed = 0

    def ask(self) -> tuple[float, int]:
        """The longest pause that ended since the last question, and the number of answers."""
        said = self._program.ask()
        self.failed += said["failed"]
        return said["pause"], said["count"]

    def pause_of(self, group: "RaftGroup") -> float:
        """The pause of one kill; the member that was killed is back at the end."""
        from raft_group import until

        leader = group.leader
        assert leader is not None
        self.ask()
        group.kill(leader)
        group.wait_for_leader(other_than=leader)
        pause, heard = self.ask()[0], 0
        while not heard:
            time.sleep(AFTER_SECONDS)
            longest, heard = self.ask()
            pause = max(pause, longest)
        group.start(leader)
        until(group.is_complete)
        time.sleep(AFTER_SECONDS)
        return pause
