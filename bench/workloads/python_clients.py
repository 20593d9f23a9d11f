"""What a Python program gets of GantryMQ, Kafka, NATS JetStream and Redis Streams."""

import statistics
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack

from bench import programs, tools
from bench.peak_memory import PeakMemory
from bench.python_clients import contenders
from bench.python_clients.contenders import CONSUMES, SENDS, TASKS, Comparison, Contender
from bench.python_clients.servers import Kafka, Nats, OurServer, Redis, Server
from bench.rounds import Rounds
from bench.rows import Row
from bench.workloads import Run

ROUNDS, ROUNDS_QUICK = 5, 1
SERVERS: Mapping[str, Callable[[Run], AbstractContextManager[Server]]] = {
    contenders.OURS: lambda run: OurServer(profile=run.profile),
    contenders.KAFKA: lambda _: Kafka(),
    contenders.NATS: lambda _: Nats(),
    contenders.REDIS: lambda _: Redis(),
}
PROGRAMS = {
    contenders.KAFKA: ("java", "mvn"),
    contenders.NATS: ("go",),
    contenders.REDIS: ("redis-server",),
}
PACKAGES = {
    "confluent-kafka": ("confluent_kafka",), "aiokafka": ("aiokafka",), "nats-py": ("nats",),
    "redis-py": ("redis", "hiredis"), "redis.asyncio": ("redis", "hiredis"),
}  # fmt: skip


def sends(run: Run) -> list[Row]:
    """1 KiB, 512 messages under way."""
    return _compare(SENDS, run)


def tasks(run: Run) -> list[Row]:
    """1 KiB, 64 tasks that wait for each send."""
    return _compare(TASKS, run)


def consumes(run: Run) -> list[Row]:
    """A backlog of 1 KiB messages, each acknowledged."""
    return _compare(CONSUMES, run)


def _compare(comparison: Comparison, run: Run) -> list[Row]:
    """The servers run side by side, and one at a time has something to do."""
    _require(comparison)
    found = {each.name: Rounds() for each in comparison.contenders}
    with ExitStack() as stack:
        servers = {
            name: stack.enter_context(SERVERS[name](run))
            for name in SERVERS if name in comparison.servers
        }  # fmt: skip
        for name, server in servers.items():
            print(f"{name}: {server.durability}", file=sys.stderr)
        for each in comparison.contenders:  # Java is slow until it is compiled
            _once(comparison, each, servers[each.server], run, Rounds())
        for _ in range(ROUNDS_QUICK if run.quick else ROUNDS):
            for each in comparison.contenders:
                _once(comparison, each, servers[each.server], run, found[each.name])
    return rows_of(comparison, found)


def _require(comparison: Comparison) -> None:
    tools.require(
        comparison.workload,
        programs=[tool for server in comparison.servers for tool in PROGRAMS.get(server, ())],
        packages=[name for library in comparison.libraries for name in PACKAGES[library]],
    )


def _once(
    comparison: Comparison, contender: Contender, server: Server, run: Run, into: Rounds
) -> None:
    count = run.scaled(contender.count)
    with (
        PeakMemory(server.memory_mib) as peak,
        programs.asked(
            "python_clients.driver", contender.library, comparison.work, server.address,
            f"bench-{time.time_ns()}", count, "--warm-up", run.scaled(comparison.warm_up),
            *contender.words,
        ) as driver,
    ):  # fmt: skip
        driver.ask()
        before = server.cpu_seconds()
        figures = driver.ask()
        spent = server.cpu_seconds() - before
    into.took(count, figures["seconds"])
    into.server_us.append(spent / count * 1e6)
    into.client_us.append(figures["cpu_seconds"] / count * 1e6)
    into.peak_mib = max(into.peak_mib, peak.mib)


def rows_of(comparison: Comparison, found: Mapping[str, Rounds]) -> list[Row]:
    """The figures of each, then what ours reached of the fastest way to use each other library."""
    name = comparison.workload
    rows: list[Row] = []
    for who, rounds in found.items():
        rows += [
            Row(name, f"{who}: median of {len(rounds.rates)}", rounds.rate, "1/s"),
            Row(name, f"{who}: slowest round", min(rounds.rates), "1/s"),
            Row(name, f"{who}: fastest round", max(rounds.rates), "1/s"),
            Row(name, f"{who}: server", statistics.median(rounds.server_us), "us/message"),
            Row(name, f"{who}: client", statistics.median(rounds.client_us), "us/message"),
            Row(name, f"{who}: server's peak", rounds.peak_mib, "MiB"),
        ]
    rates = {who: rounds.rate for who, rounds in found.items()}
    goals = dict(comparison.goals)
    for library in comparison.libraries:
        ways = [each for each in comparison.contenders if each.library == library]
        best = max(rates[way.name] for way in ways if not way.tuned)
        ours = {who: rates[who] / best for who in comparison.ours}
        rows.append(Row(name, f"ours over {library}", max(ours.values()), "x", goals.get(library)))
        if len(ours) > 1:
            rows += [Row(name, f"{who}, over {library}", ours[who], "x") for who in ours]
        rows += [
            Row(name, f"ours over {way.name}", max(ours.values()) * best / rates[way.name], "x")
            for way in ways if way.tuned
        ]  # fmt: skip
    return rows
