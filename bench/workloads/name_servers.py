"""What a name server's two steady loads cost: look-ups of routes, and brokers that register."""

import statistics
from contextlib import ExitStack

from bench import programs
from bench.registering import RegisteringBrokers, packed_body, plain_body
from bench.rows import Row
from bench.servers import NameServerProcess, cpu_seconds, our_name_server, real_name_server
from bench.workloads import Run
from gantrymq.model import DataVersion

THEIR_VERSION = "5.3.3"
OURS, THEIRS = "GantryMQ", f"RocketMQ {THEIR_VERSION}"

ROUTE_TOPICS, ROUTE_BROKERS = 1_000, 2
ROUNDS, ROUNDS_QUICK = 5, 2
LOOKUPS = {OURS: 150_000, THEIRS: 100_000}
"""Look-ups of a round: enough for a few seconds."""
WARM_UP = {OURS: 20_000, THEIRS: 600_000}
"""Java is slow until it is compiled."""
LOOKUPS_MIN, RATIO_MIN = 20_000, 2.0

REGISTERED_TOPICS, REGISTERING_BROKERS = 5_000, 20
REGISTER_ROUNDS, REGISTER_ROUNDS_QUICK = 5, 2
PERIOD_SECONDS = 30
CORE_PERCENT_MAX = 5.0


def routes(run: Run) -> list[Row]:
    """Routes of 1,000 topics, 4 connections with 64 look-ups under way; the servers take turns."""
    rates: dict[str, list[float]] = {OURS: [], THEIRS: []}
    costs: dict[str, list[float]] = {OURS: [], THEIRS: []}
    body = plain_body(ROUTE_TOPICS, DataVersion(counter=1))
    with ExitStack() as stack:
        servers = {
            OURS: stack.enter_context(our_name_server(run.profile)),
            THEIRS: stack.enter_context(real_name_server(THEIR_VERSION)),
        }
        for kind, server in servers.items():
            brokers = stack.enter_context(RegisteringBrokers(server.address, ROUTE_BROKERS))
            brokers.register(body)
            _look_up(server, run.scaled(WARM_UP[kind]))
        for _ in range(ROUNDS_QUICK if run.quick else ROUNDS):
            for kind, server in servers.items():
                rate, cost = _look_up(server, run.scaled(LOOKUPS[kind]))
                rates[kind].append(rate)
                costs[kind].append(cost)
    rows: list[Row] = []
    for kind, found in rates.items():
        least = LOOKUPS_MIN if kind == OURS else None
        middle, cost = statistics.median(found), statistics.median(costs[kind])
        rows += [
            Row("routes", f"{kind}, median of {len(found)}", middle, "1/s", least),
            Row("routes", f"{kind}, slowest round", min(found), "1/s"),
            Row("routes", f"{kind}, fastest round", max(found), "1/s"),
            Row("routes", f"{kind}, processor time", cost, "us/look-up"),
        ]
    ratio = statistics.median(rates[OURS]) / statistics.median(rates[THEIRS])
    saved = statistics.median(costs[THEIRS]) / statistics.median(costs[OURS])
    return [
        *rows,
        Row("routes", "ratio of look-ups", ratio, "x", RATIO_MIN),
        Row("routes", "ratio of processor time", saved, "x"),
    ]


def _look_up(server: NameServerProcess, count: int) -> tuple[float, float]:
    """Look-ups a second, and microseconds of the server's processor time for one."""
    before = cpu_seconds(server.pid)
    found = programs.lookups(server.address, "--topics", ROUTE_TOPICS, "--count", count)
    return found["tps"], (cpu_seconds(server.pid) - before) / found["count"] * 1e6


def registrations(run: Run) -> list[Row]:
    """20 brokers that all have the same 5,000 topics and register every 30 seconds.

    Rounds follow each other at once; a round's processor time is then spread over 30 seconds.
    """
    rounds = REGISTER_ROUNDS_QUICK if run.quick else REGISTER_ROUNDS
    rows: list[Row] = []
    for name, make in (("JSON", plain_body), ("compressed", packed_body)):
        same = [make(REGISTERED_TOPICS, DataVersion(counter=1))] * rounds
        changed = [make(REGISTERED_TOPICS, DataVersion(counter=at + 2)) for at in range(rounds)]
        with (
            our_name_server(run.profile) as server,
            RegisteringBrokers(server.address, REGISTERING_BROKERS) as brokers,
        ):
            brokers.register(same[0])
            for what, bodies in (("nothing new", same), ("a new version each time", changed)):
                before = cpu_seconds(server.pid)
                for body in bodies:
                    brokers.register(body)
                spent = (cpu_seconds(server.pid) - before) / rounds
                rows += [
                    Row("registrations", f"{name}, {what}: a broker",
                        spent / REGISTERING_BROKERS * 1e3, "ms"),
                    Row("registrations", f"{name}, {what}: every 30 s",
                        spent / PERIOD_SECONDS * 100, "% of a core", CORE_PERCENT_MAX, True),
                ]  # fmt: skip
    return rows
