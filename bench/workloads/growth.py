"""How rate, processor time and memory of a broker change while one thing grows."""

import statistics
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from bench import programs
from bench.rounds import Rounds
from bench.rows import Row
from bench.servers import Ours
from bench.topics import make_topics, numbered
from bench.workloads import Run

ROUNDS, ROUNDS_QUICK = 3, 1
MESSAGES = 100_000
"""Of a round."""
WORKLOAD = TOPIC = "growth"
KEPT_RATE_MIN = 0.9
"""What is kept of the rate of the smaller size."""


@dataclass(frozen=True)
class Axis:
    """What grows."""

    name: str
    """In the plural, as charts and rows say it."""
    sizes: Sequence[int]
    prepare: Callable[[Ours, int, Run], None]
    """Bring a new cluster to a size."""
    measure: Callable[[Ours, int, Run], programs.Figures]
    compared: tuple[int, int] | None = None
    """The larger of these two must keep most of the rate of the smaller one."""


def _make_topics(cluster: Ours, count: int, queues: int) -> None:
    make_topics(cluster.namesrv, cluster.broker, numbered(TOPIC, count), queues)


def _send(cluster: Ours, run: Run, *how: object) -> programs.Figures:
    count = run.scaled(MESSAGES)
    return programs.connections(
        cluster.broker, "--topic", TOPIC, "--count", count, "--codec", "binary", *how
    )


def _fill(cluster: Ours, size: int, run: Run) -> None:
    programs.load(cluster.broker, "--count", run.scaled(size))


AXES = (
    Axis(
        "queues",
        (1, 10, 100, 1_000, 10_000),
        lambda cluster, size, run: _make_topics(cluster, 1, size),
        lambda cluster, size, run: _send(cluster, run, "--topics", 1, "--queues", size),
        (1, 10_000),
    ),
    Axis(
        "topics",
        (1, 10, 100, 1_000, 10_000),
        lambda cluster, size, run: _make_topics(cluster, size, 1),
        lambda cluster, size, run: _send(cluster, run, "--topics", size, "--queues", 1),
    ),
    Axis(
        "connections",
        (1, 8, 64, 250, 1_000),
        lambda cluster, size, run: _make_topics(cluster, 1, 8),
        lambda cluster, size, run: _send(
            cluster, run, "--topics", 1, "--connections", size, "--window", 1
        ),
        (64, 1_000),
    ),
    Axis(
        "messages read",
        (12_800, 128_000, 1_280_000),  # blocks of `bench.load`, also a tenth of them
        _fill,
        lambda cluster, size, run: programs.drain(cluster.broker, "--count", run.scaled(size)),
    ),
)


def growth(run: Run) -> list[Row]:
    """Sends to more queues and topics, over more connections; reading of more messages."""
    return [row for axis in AXES for row in rows_of(axis, *_grow(axis, run))]


def _grow(axis: Axis, run: Run) -> tuple[dict[int, Rounds], float]:
    """A cluster for each size; all take turns. Also the memory of a cluster that is idle."""
    found = {size: Rounds() for size in axis.sizes}
    with ExitStack() as stack:
        idle = stack.enter_context(Ours()).memory_mib()
        clusters = {size: stack.enter_context(Ours(profile=run.profile)) for size in axis.sizes}
        for size, cluster in clusters.items():
            axis.prepare(cluster, size, run)
            axis.measure(cluster, size, run)  # makes the files of the queues
        for _ in range(ROUNDS_QUICK if run.quick else ROUNDS):
            for size, cluster in clusters.items():
                before = cluster.cpu_seconds()
                figures = axis.measure(cluster, size, run)
                spent = cluster.cpu_seconds() - before
                found[size].took(int(figures["count"]), figures["count"] / figures["tps"])
                found[size].server_us.append(spent / figures["count"] * 1e6)
                found[size].peak_mib = max(found[size].peak_mib, cluster.memory_mib())
    return found, idle


def rows_of(axis: Axis, found: dict[int, Rounds], idle: float) -> list[Row]:
    """Rate, processor time and memory at each size, and what is kept of the rate."""
    name = f"{WORKLOAD} of {axis.name}"
    rows = [Row(name, "idle: memory", idle, "MiB")]
    for size, rounds in found.items():
        spent = statistics.median(rounds.server_us)
        rows += [
            Row(name, f"{size:,}: rate", rounds.rate, "1/s", at=size),
            Row(name, f"{size:,}: processor time", spent, "us/message", at=size),
            Row(name, f"{size:,}: memory", rounds.peak_mib, "MiB", at=size),
        ]
    if axis.compared is not None:
        small, large = axis.compared
        kept = found[large].rate / found[small].rate
        rows.append(Row(name, f"rate at {large:,} over {small:,}", kept, "x", KEPT_RATE_MIN))
    return rows
