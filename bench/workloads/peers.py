"""The same bytes by the same driver to our broker and to those of RocketMQ's releases."""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from bench import programs
from bench.peak_memory import PeakMemory
from bench.releases import OURS, RATE_MIN, Cluster, release_rows, started
from bench.rounds import Rounds
from bench.rows import Row
from bench.topics import make_topics
from bench.workloads import Run

ROUNDS, ROUNDS_QUICK = 5, 1
WARM_UP = 100_000
"""Requests, pipelined: Java is slow until it is compiled."""
BACKLOG_TOPIC, BACKLOG_QUEUES, BACKLOG = "bench-backlog", 8, 200_000
WARM_UP_EACH = 6_400
"""Messages of each kind of load."""
BATCH = 32
IDLE_SECONDS = 5.0
STEADY_RATE, STEADY_SECONDS, STEADY_ROUNDS, STEADY_P99_MAX = 5_000, 6, 3, 0.7


@dataclass(frozen=True)
class Work:
    """One kind of load, and how many messages a round has."""

    name: str
    count: int
    measure: Callable[[Cluster, int], programs.Figures]
    rate_min: float = RATE_MIN


def _sends(*how: object, batch: int = 1) -> Callable[[Cluster, int], programs.Figures]:
    def measure(cluster: Cluster, count: int) -> programs.Figures:
        figures = programs.connections(
            cluster.broker, "--count", count // batch, "--batch", batch, *how
        )
        return {"count": figures["count"] * batch, "tps": figures["tps"] * batch}

    return measure


def _read(cluster: Cluster, count: int) -> programs.Figures:
    return programs.drain(
        cluster.broker, "--topic", BACKLOG_TOPIC, "--queues", BACKLOG_QUEUES, "--count", count
    )


WORKS = (
    Work("sync, 1 sender", 15_000, _sends("--connections", 1, "--window", 1), rate_min=1.0),
    Work("sync, 64 senders", 150_000, _sends("--connections", 64, "--window", 1)),
    Work("pipelined, 8 x 64", 200_000, _sends("--connections", 8, "--window", 64)),
    Work(
        f"batches of {BATCH}, 8 x 1", 320_000,
        _sends("--connections", 8, "--window", 1, batch=BATCH),
    ),
    Work("backlog read", BACKLOG, _read),
)  # fmt: skip

FLUSHED_WARM_UP = 20_000
FLUSHED = {"flushDiskType": "SYNC_FLUSH"}
FLUSHED_WORKS = (
    Work("sync, 1 sender", 2_000, _sends("--connections", 1, "--window", 1), rate_min=1.0),
    Work("sync, 64 senders", 30_000, _sends("--connections", 64, "--window", 1)),
    Work("pipelined, 8 x 64", 60_000, _sends("--connections", 8, "--window", 64)),
)


def peers(run: Run) -> list[Row]:
    """All are up, and take turns."""
    rows: list[Row] = []
    with ExitStack() as stack:
        clusters = started(stack, profile=run.profile)
        time.sleep(IDLE_SECONDS)
        for who, cluster in clusters.items():
            rows += [
                Row("peers", f"{who}: start", cluster.started_in, "s"),
                Row("peers", f"{who}: idle memory", cluster.memory_mib(), "MiB"),
            ]
            _fill_backlog(cluster, run)
        rows += compare("peers", WORKS, clusters, WARM_UP, run)
        return rows + steady(clusters, run)


def flushed(run: Run) -> list[Row]:
    """Every message is on the disk before it is confirmed; senders share its syncs."""
    with ExitStack() as stack:
        clusters = started(stack, settings=FLUSHED, profile=run.profile)
        return compare("peers-flushed", FLUSHED_WORKS, clusters, FLUSHED_WARM_UP, run)


def compare(
    workload: str, works: Sequence[Work], clusters: Mapping[str, Cluster], warm_up: int, run: Run
) -> list[Row]:
    """Every round goes through all works on all clusters, after so many requests, pipelined, that
    warm each of them up, and some of each work.
    """
    for cluster in clusters.values():
        programs.connections(cluster.broker, "--count", run.scaled(warm_up))
        for work in works:
            work.measure(cluster, WARM_UP_EACH)
    found = {work.name: {who: Rounds() for who in clusters} for work in works}
    for _ in range(ROUNDS_QUICK if run.quick else ROUNDS):
        for who, cluster in clusters.items():
            for work in works:
                _once(work, cluster, run, found[work.name][who])
    return [
        row
        for work in works
        for row in release_rows(workload, work.name, found[work.name], work.rate_min)
    ]


def steady(clusters: Mapping[str, Cluster], run: Run) -> list[Row]:
    """How long a send takes at a steady rate, and a message from producer to consumer."""
    seconds = max(1, run.scaled(STEADY_SECONDS))
    rows: list[Row] = []
    for what, program in (("send", programs.pace), ("end to end", programs.delivery)):
        found: dict[str, list[programs.Figures]] = {who: [] for who in clusters}
        for _ in range(ROUNDS_QUICK if run.quick else STEADY_ROUNDS):
            for who, cluster in clusters.items():
                found[who].append(program(cluster.namesrv, STEADY_RATE, seconds))
        rows += latency_rows(f"{STEADY_RATE:,} a second, {what}", found)
    return rows


def _fill_backlog(cluster: Cluster, run: Run) -> None:
    make_topics(cluster.namesrv, cluster.broker, [BACKLOG_TOPIC], BACKLOG_QUEUES)
    programs.connections(
        cluster.broker, "--topic", BACKLOG_TOPIC, "--queues", BACKLOG_QUEUES,
        "--count", run.scaled(BACKLOG),
    )  # fmt: skip


def _once(work: Work, cluster: Cluster, run: Run, into: Rounds) -> None:
    with PeakMemory(cluster.memory_mib) as memory:
        before = cluster.cpu_seconds()
        figures = work.measure(cluster, run.scaled(work.count))
        spent = cluster.cpu_seconds() - before
    into.took(int(figures["count"]), figures["count"] / figures["tps"])
    into.server_us.append(spent / figures["count"] * 1e6)
    into.peak_mib = max(into.peak_mib, memory.mib)


def latency_rows(work: str, found: Mapping[str, Sequence[programs.Figures]]) -> list[Row]:
    """How long it took since messages should have left; medians of the rounds."""
    rows: list[Row] = []
    p99: dict[str, float] = {}
    for who, rounds in found.items():
        for name, key in (("p50", "p50_ms"), ("p99", "p99_ms"), ("p99.9", "p999_ms")):
            value = statistics.median(figures[key] for figures in rounds)
            rows.append(Row("peers", f"{work}, {who}: {name}", value, "ms"))
            if name == "p99":
                p99[who] = value
    over = p99[OURS] / min(value for who, value in p99.items() if who != OURS)
    name = f"{work}: p99 over the best release"
    return [*rows, Row("peers", name, over, "x", STEADY_P99_MAX, at_most=True)]
