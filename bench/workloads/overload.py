"""A broker that is offered five times what it can take: what it stores, how late, for whom."""

from bench import programs
from bench.peak_memory import PeakMemory
from bench.rows import Row
from bench.servers import Ours
from bench.workloads import Run

TIMES = 5
CONNECTIONS = (16, 200)
GOODPUT_MIN, ACCEPTED_SECONDS_MAX, RECOVERY_SECONDS_MAX = 0.8, 1.0, 5.0
SHARE_MIN = 0.5
"""Of an equal share: what the connection gets that is served least."""
GROWTH_MIB_MAX = 64.0


def overload(run: Run) -> list[Row]:
    """With answers before and after the flush, over few and many connections."""
    return [
        row
        for flush in ("ASYNC_FLUSH", "SYNC_FLUSH")
        for connections in CONNECTIONS
        for row in _rows(run, flush, connections)
    ]


def _rows(run: Run, flush: str, connections: int) -> list[Row]:
    peak_seconds, seconds = (0.5, 1) if run.quick else (2, 5)
    with Ours(settings={"flushDiskType": flush}) as cluster:
        programs.overload(cluster.broker, "--rounds", 1, "--seconds", 1)
        warm = cluster.memory_mib()
        with PeakMemory(cluster.memory_mib) as memory:
            found = programs.overload(
                cluster.broker, "--connections", connections, "--times", TIMES,
                "--peak-seconds", peak_seconds, "--seconds", seconds,
            )  # fmt: skip
    growth = memory.mib - warm

    def row(
        measure: str, value: float, unit: str, target: float | None = None, least: bool = False
    ) -> Row:
        name = f"{flush}, {connections} connections: {measure}"
        return Row("overload", name, value, unit, target, at_most=not least)

    return [
        row("peak", found["peak"], "1/s"),
        row("offered", found["offered"], "1/s"),
        row("held back by TCP", found["held_back"], "1/s"),
        row("refused", found["refused"], "1/s"),
        row("stored", found["goodput"], "1/s"),
        row("stored, as a part of the peak", found["ratio"], "x", GOODPUT_MIN, least=True),
        row("stored, half within", found["accepted_p50_s"], "s"),
        row("stored, p99", found["accepted_p99_s"], "s", ACCEPTED_SECONDS_MAX),
        row("a polite client, p99", found["polite_p99_s"], "s", ACCEPTED_SECONDS_MAX),
        row("least of an equal share", found["least_share"], "x", SHARE_MIN, least=True),
        row("memory more than before", growth, "MiB", GROWTH_MIB_MAX),
        row("calm again after", found["recovery_s"], "s", RECOVERY_SECONDS_MAX),
    ]
