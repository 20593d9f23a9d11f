"""What a copy costs the master, and how quickly a slave that was away catches up."""

import time

from bench import programs
from bench.rows import Row
from bench.servers import Ours, Slave
from bench.workloads import Run
from gantrymq import sync

ALONE = {"brokerRole": "ASYNC_MASTER"}
WITH_SLAVE = {"brokerRole": "SYNC_MASTER"}
RATIO_MAX, CATCH_UP_MIN = 1.3, 150.0
SECONDS_MAX = 120.0


def copies(run: Run) -> list[Row]:
    """Sends of 1 KiB, pipelined: without a slave, and with one that every send waits for."""
    count = run.scaled(300_000)
    with Ours(settings=ALONE) as cluster:
        alone, alone_tps = _cost(cluster, count)
        with Slave(cluster):
            speed = _catch_up(cluster)
    with Ours(settings=WITH_SLAVE, profile=run.profile) as cluster, Slave(cluster):
        _catch_up(cluster)
        copied, copied_tps = _cost(cluster, count)
    return [
        Row("copies", "processor time without a copy", alone, "us/message"),
        Row("copies", "processor time with SYNC_MASTER and a slave", copied, "us/message"),
        Row("copies", "the same as a ratio", copied / alone, "x", RATIO_MAX, at_most=True),
        Row("copies", "messages without a copy", alone_tps, "1/s"),
        Row("copies", "messages with SYNC_MASTER and a slave", copied_tps, "1/s"),
        Row("copies", "a slave catches up", speed / 1e6, "MB/s", CATCH_UP_MIN),
    ]


def _cost(cluster: Ours, count: int) -> tuple[float, float]:
    """Microseconds of the master's processor time for a message, and messages a second."""
    programs.load(cluster.broker, "--codec", "json", "--count", 20_000)
    before = cluster.cpu_seconds()
    found = programs.load(cluster.broker, "--codec", "json", "--count", count)
    return (cluster.cpu_seconds() - before) / found["count"] * 1e6, found["tps"]


def _catch_up(cluster: Ours) -> float:
    """Wait until a slave has the whole log; bytes a second since it was first seen."""
    end = time.perf_counter() + SECONDS_MAX
    first: tuple[float, int] | None = None
    with sync.Admin(cluster.namesrv) as admin:
        while (now := time.perf_counter()) < end:
            rows = admin.ha_status(cluster.broker).ha_connection_info
            if rows and first is None:
                first = now, rows[0].diff
            if first is not None and rows and rows[0].in_sync and rows[0].diff == 0:
                return first[1] / max(now - first[0], 1e-3)
            time.sleep(0.005)
    raise TimeoutError("no slave came into sync")
