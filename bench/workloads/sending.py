"""Pipelined 1 KiB messages, asynchronous flush: how many a broker takes in a second."""

import statistics
from concurrent.futures import ThreadPoolExecutor

from bench import programs
from bench.rows import Row
from bench.send_cost import SendCost, measure_sends
from bench.servers import Ours
from bench.workloads import Run

COMPILED, PURE = 60_000, 25_000
ROUNDS, ROUNDS_QUICK = 3, 1
ONE_BROKERS_COUNT = 200_000


def json_headers(run: Run) -> list[Row]:
    return _raw(run, "send-json", "json", COMPILED, pure=False)


def binary_headers(run: Run) -> list[Row]:
    return _raw(run, "send-binary", "binary", COMPILED, pure=False)


def json_headers_pure(run: Run) -> list[Row]:
    return _raw(run, "send-json-pure", "json", PURE, pure=True)


def binary_headers_pure(run: Run) -> list[Row]:
    return _raw(run, "send-binary-pure", "binary", PURE, pure=True)


def _raw(run: Run, name: str, codec: str, target: int, *, pure: bool) -> list[Row]:
    with Ours(pure=pure, profile=run.profile) as cluster:
        return _rows(name, measure_sends(cluster, run.scaled(500_000), "--codec", codec), target)


def two_brokers(run: Run) -> list[Row]:
    """`gantry up --brokers 2`, a driver for each; one broker and two take turns."""
    count = run.scaled(ONE_BROKERS_COUNT)
    rates: dict[int, list[float]] = {1: [], 2: []}
    with Ours(profile=run.profile) as one, Ours(brokers=2) as two, ThreadPoolExecutor() as threads:

        def rate(cluster: Ours) -> float:
            return sum(threads.map(lambda at: _connections(at, count), cluster.brokers))

        for cluster in (one, two):
            rate(cluster)  # makes the files of its queues
        for _ in range(ROUNDS_QUICK if run.quick else ROUNDS):
            for cluster in (one, two):
                rates[len(cluster.brokers)].append(rate(cluster))
    alone, both = (statistics.median(found) for found in rates.values())
    return [
        Row("two-brokers", "one broker", alone, "1/s"),
        Row("two-brokers", "two brokers", both, "1/s"),
        Row("two-brokers", "two over one", both / alone, "x"),
    ]


def _connections(broker: str, count: int) -> float:
    return float(programs.connections(broker, "--count", count)["tps"])


def through_the_client(run: Run) -> list[Row]:
    """The same through `Producer.submit`, whose own work is part of the figure."""
    with Ours(profile=run.profile) as cluster:
        before = cluster.cpu_seconds()
        found = programs.gantry(
            "producer", "--namesrv", cluster.namesrv, "--size", 1024, "--async",
            "--count", run.scaled(300_000),
        )  # fmt: skip
        cpu = (cluster.cpu_seconds() - before) / found["count"] * 1e6
        return _rows("send-client", SendCost(cpu, found["tps"]), None)


def _rows(name: str, cost: SendCost, target: int | None) -> list[Row]:
    return [
        Row(name, "messages", cost.tps, "1/s", target),
        Row(name, "broker's processor time", cost.us, "us/message"),
    ]
