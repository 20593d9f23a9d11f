"""What a copy costs the master, and how quickly a slave that was away catches up."""

import statistics
import time

from bench import programs
from bench.rows import Row
from bench.send_cost import SendCost, measure_sends
from bench.servers import Ours, Slave, prepare_real
from bench.workloads import Run
from gantrymq import sync
from gantrymq.model import BENCHMARK_TOPIC

ALONE = {"brokerRole": "ASYNC_MASTER"}
WITH_SLAVE = {"brokerRole": "SYNC_MASTER"}
THEIR_VERSION = "5.3.3"
THEIR_SETTINGS = {
    "mappedFileSizeCommitLog": str(1 << 30),
    # Without these a master of RocketMQ 5 waits for no slave, whatever its role is.
    "inSyncReplicas": "2",
    "enableAutoInSyncReplicas": "true",
}
WARM_UP, ROUNDS, COST_ROUNDS = 150_000, 3, 7
RATIO_MAX, CATCH_UP_MIN, PEER_RATIO_MIN = 1.3, 150.0, 1.2
SECONDS_MAX = 120.0


def copies(run: Run) -> list[Row]:
    """Sends of 1 KiB, pipelined: without a slave, and with one that every send waits for.

    In turns, and each round with a ratio of its own: what a message costs depends as much on the
    memory that the machine has to spare at the moment as on the copy.
    """
    count = run.scaled(200_000)
    alone: list[SendCost] = []
    copied: list[SendCost] = []
    with Ours(settings=ALONE) as cluster:
        measure_sends(cluster, count)
        with Slave(cluster):
            speed = _catch_up(cluster)
    with (
        Ours(settings=ALONE) as single,
        Ours(settings=WITH_SLAVE, profile=run.profile) as pair,
        Slave(pair),
    ):
        _catch_up(pair)
        for _ in range(COST_ROUNDS):
            alone.append(measure_sends(single, count))
            copied.append(measure_sends(pair, count))
        beside = _beside_theirs(pair, run)
    ratios = [with_copy.us / without.us for with_copy, without in zip(copied, alone, strict=True)]
    return [
        *_cost_rows("without a copy", alone),
        *_cost_rows("with SYNC_MASTER and a slave", copied),
        Row(
            "copies",
            f"processor time as a ratio, median of {COST_ROUNDS} rounds",
            statistics.median(ratios),
            "x",
            RATIO_MAX,
            at_most=True,
        ),
        Row("copies", "processor time as a ratio, lowest round", min(ratios), "x"),
        Row("copies", "processor time as a ratio, highest round", max(ratios), "x"),
        Row("copies", "a slave catches up", speed / 1e6, "MB/s", CATCH_UP_MIN),
        *beside,
    ]


def _beside_theirs(cluster: Ours, run: Run) -> list[Row]:
    """A master of RocketMQ's that waits for its slave, in turns with ours."""
    prepare_real()
    from master_slave import BrokerPair, until

    rates: dict[str, list[float]] = {"GantryMQ": [], f"RocketMQ {THEIR_VERSION}": []}
    with BrokerPair(THEIR_VERSION, THEIR_VERSION, **THEIR_SETTINGS) as pair:
        addresses = dict(zip(rates, (cluster.broker, pair.address("master")), strict=True))
        until(lambda: pair.send(BENCHMARK_TOPIC, ["copied?"]) == [0])
        programs.connections(pair.address("master"), "--count", run.scaled(WARM_UP))
        for _ in range(ROUNDS):
            for name, address in addresses.items():
                found = programs.connections(address, "--count", run.scaled(100_000))
                rates[name].append(found["tps"])
    ours, theirs = map(statistics.median, rates.values())
    rows = []
    for name, reached in rates.items():
        measure = f"8 connections, SYNC_MASTER and a slave, {name}"
        rows += [
            Row("copies", f"{measure}, median of {ROUNDS}", statistics.median(reached), "1/s"),
            Row("copies", f"{measure}, slowest round", min(reached), "1/s"),
            Row("copies", f"{measure}, fastest round", max(reached), "1/s"),
        ]
    return [*rows, Row("copies", "the same as a ratio", ours / theirs, "x", PEER_RATIO_MIN)]


def _cost_rows(how: str, costs: list[SendCost]) -> list[Row]:
    us, tps = (statistics.median(figures) for figures in zip(*costs, strict=True))
    return [
        Row("copies", f"processor time {how}, median", us, "us/message"),
        Row("copies", f"messages {how}, median", tps, "1/s"),
    ]


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
