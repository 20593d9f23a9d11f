"""What waiting costs: memory a message, and the moment when all are due at once."""

import time

from bench import programs
from bench.rows import Row
from bench.servers import Ours
from bench.workloads import Run

SECONDS_TO_SEND = 45


def timers(run: Run) -> list[Row]:
    """A hundred thousand messages for the same second, with live sends going on."""
    count = run.scaled(100_000)
    with Ours(profile=run.profile) as cluster:
        at_ms = int((time.time() + SECONDS_TO_SEND / (4 if run.quick else 1)) * 1000)
        programs.later("send", cluster.namesrv, "--count", count, "--at", at_ms)
        memory = cluster.memory_mib()
        burst = programs.later("watch", cluster.namesrv, "--count", count, "--at", at_ms)
    return [
        Row("timers", f"RssAnon with {count:,} waiting", memory, "MiB", 100, at_most=True),
        Row("timers", f"{count:,} due at once, delivered", count / burst["seconds"], "msg/s",
            10_000),
        Row("timers", "live send meanwhile, p99", burst["live_p99_ms"], "ms", 200, at_most=True),
    ]  # fmt: skip
