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
STEADY_RATE, STEADY_SECONDS, STEADY_P99_MAX = 5_000, 10, 0.7


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
            _prepare(cluster, run)
        found = {work.name: {who: Rounds() for who in clusters} for work in WORKS}
        latencies: dict[str, list[programs.Figures]] = {who: [] for who in clusters}
        for _ in range(ROUNDS_QUICK if run.quick else ROUNDS):
            for who, cluster in clusters.items():
                for work in WORKS:
                    _once(work, cluster, run, found[work.name][who])
                seconds = run.scaled(STEADY_SECONDS)
                latencies[who].append(programs.pace(cluster.namesrv, STEADY_RATE, seconds))
    for work in WORKS:
        rows += release_rows("peers", work.name, found[work.name], work.rate_min)
    return rows + latency_rows(latencies)


def _prepare(cluster: Cluster, run: Run) -> None:
    """Fill the backlog, and warm every kind of load up."""
    make_topics(cluster.namesrv, cluster.broker, [BACKLOG_TOPIC], BACKLOG_QUEUES)
    programs.connections(
        cluster.broker, "--topic", BACKLOG_TOPIC, "--queues", BACKLOG_QUEUES,
        "--count", run.scaled(BACKLOG),
    )  # fmt: skip
    programs.connections(cluster.broker, "--count", run.scaled(WARM_UP))
    for work in WORKS:
        work.measure(cluster, WARM_UP_EACH)


def _once(work: Work, cluster: Cluster, run: Run, into: Rounds) -> None:
    with PeakMemory(cluster.memory_mib) as memory:
        before = cluster.cpu_seconds()
        figures = work.measure(cluster, run.scaled(work.count))
        spent = cluster.cpu_seconds() - before
    into.took(int(figures["count"]), figures["count"] / figures["tps"])
    into.server_us.append(spent / figures["count"] * 1e6)
    into.peak_mib = max(into.peak_mib, memory.mib)


def latency_rows(found: Mapping[str, Sequence[programs.Figures]]) -> list[Row]:
    """How long sends took that should have left at a steady rate; medians of the rounds."""
    work = f"{STEADY_RATE:,} sends a second"
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
