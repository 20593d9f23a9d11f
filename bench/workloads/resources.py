"""What `gantry up` costs: the time until it serves, and memory."""

import time

from bench import programs
from bench.rows import Row
from bench.servers import Ours
from bench.workloads import Run

STARTS = 3


def start(run: Run) -> list[Row]:
    """The best of a few starts, the files being in the page cache after the first."""
    return [
        Row("start", "gantry up to ready", _best_start(has_console=False), "s", 0.8, at_most=True),
        Row("start", "gantry up with its console to ready", _best_start(has_console=True), "s"),
    ]


def _best_start(*, has_console: bool) -> float:
    seconds = []
    for _ in range(STARTS + 1):
        with Ours(has_console=has_console) as cluster:
            seconds.append(cluster.started_in)
    return min(seconds[1:])


def memory(run: Run) -> list[Row]:
    """Idle, and again when a million messages have passed."""
    count = run.scaled(1_000_000)
    with Ours(profile=run.profile) as cluster:
        time.sleep(2 if run.quick else 10)
        idle = cluster.memory_mib()
        programs.load(cluster.broker, "--count", count)
        after = cluster.memory_mib()
    with Ours(has_console=True) as cluster:
        time.sleep(2 if run.quick else 10)
        console = cluster.memory_mib()
    return [
        Row("memory", "RssAnon, idle", idle, "MiB", 100, at_most=True),
        Row("memory", f"RssAnon after {count:,} messages", after, "MiB", 100, at_most=True),
        Row("memory", "RssAnon with the console, idle", console, "MiB", 140, at_most=True),
    ]
