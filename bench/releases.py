"""Our broker and RocketMQ's releases, all up at once, and how they compare."""

import statistics
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

from bench.rounds import Rounds
from bench.rows import Row
from bench.servers import Ours, Theirs

OURS, JAVA = "GantryMQ", "RocketMQ"
VERSIONS = ("4.9.7", "5.3.3", "5.5.0")
RATE_MIN, CPU_MAX = 1.3, 0.4
"""A row holds with so much more than the fastest release, or so much less of its processor time."""


class Cluster(Protocol):
    """What all of them have."""

    namesrv: str
    broker: str
    started_in: float

    def cpu_seconds(self) -> float: ...

    def memory_mib(self) -> float: ...


def started(
    stack: ExitStack, *, settings: Mapping[str, str] | None = None, profile: Path | None = None
) -> dict[str, Cluster]:
    """Ours, then the releases from the oldest on, by name; all with these settings of a broker."""
    ours = Ours(settings=settings, profile=profile)
    clusters: dict[str, Cluster] = {OURS: stack.enter_context(ours)}
    for version in VERSIONS:
        clusters[f"{JAVA} {version}"] = stack.enter_context(Theirs(version, settings))
    return clusters


def release_rows(
    workload: str, work: str, found: Mapping[str, Rounds], rate_min: float = RATE_MIN
) -> list[Row]:
    """The figures of each, then ours beside the best of the others."""
    rows: list[Row] = []
    for who, rounds in found.items():
        rows += [
            Row(workload, f"{work}, {who}: median of {len(rounds.rates)}", rounds.rate, "1/s"),
            Row(workload, f"{work}, {who}: slowest round", min(rounds.rates), "1/s"),
            Row(workload, f"{work}, {who}: fastest round", max(rounds.rates), "1/s"),
            Row(workload, f"{work}, {who}: processor time", _cpu(rounds), "us/message"),
            Row(workload, f"{work}, {who}: peak memory", rounds.peak_mib, "MiB"),
        ]
    others = [rounds for who, rounds in found.items() if who != OURS]
    rate = found[OURS].rate / max(rounds.rate for rounds in others)
    spent = _cpu(found[OURS]) / min(_cpu(rounds) for rounds in others)
    by_cpu = rate < rate_min and spent <= CPU_MAX
    return [
        *rows,
        Row(workload, f"{work}: rate over the best release", rate, "x",
            None if by_cpu else rate_min),
        Row(workload, f"{work}: processor time over the best release", spent, "x",
            CPU_MAX if by_cpu else None, at_most=True),
    ]  # fmt: skip


def _cpu(rounds: Rounds) -> float:
    return statistics.median(rounds.server_us)
