"""Filters: what brokers pass over for them, and what a SQL condition costs by itself."""

import time
from contextlib import ExitStack

from bench import programs
from bench.releases import Cluster, release_rows, started
from bench.rounds import Rounds
from bench.rows import Row
from bench.topics import make_topics
from bench.workloads import Run
from gantrymq.filter.sql import Condition
from gantrymq.protocol.properties import encode

SQL = "region = 'eu' AND price > 10 AND quantity BETWEEN 5 AND 9"
EVALUATIONS = 500_000
READINGS = 500
TOPIC, QUEUES, STORED, TAGS = "filtered", 8, 400_000, 100
SELECTED = "Tag7"
WAYS = {"by tag": ("TAG", SELECTED), "by SQL": ("SQL92", f"TAGS = '{SELECTED}'")}
ROUNDS, ROUNDS_QUICK = 5, 1


def _properties(number: int) -> bytes:
    values = {
        "KEYS": f"order-{number}",
        "TAGS": "paid",
        "UNIQ_KEY": f"7F000001000018B4AAC2{number:012X}",
        "region": ("eu", "us")[number % 2],
        "price": f"{number % 40}",
        "quantity": f"{number % 12}",
    }
    return encode(values).encode()


def sql_filter(run: Run) -> list[Row]:
    """Six properties, three terms; half of the messages end at the first term."""
    condition = Condition(SQL)
    messages = [_properties(number) for number in range(1_000)]
    rounds = run.scaled(EVALUATIONS) // len(messages)
    begin = time.perf_counter()
    matched = sum(condition.matches(raw) for _ in range(rounds) for raw in messages)
    took = time.perf_counter() - begin
    begin = time.perf_counter()
    for _ in range(READINGS):
        Condition(SQL)
    reading = (time.perf_counter() - begin) / READINGS
    return [
        Row("sql-filter", "evaluations", rounds * len(messages) / took, "1/s", 100_000),
        Row("sql-filter", "of them matched", 100 * matched / (rounds * len(messages)), "%"),
        Row("sql-filter", "reading a condition", reading * 1e6, "us"),
    ]


def filters(run: Run) -> list[Row]:
    """One message of a hundred is wanted; the rate counts those that are passed over, too."""
    count = run.scaled(STORED)
    found: dict[str, dict[str, Rounds]] = {}
    with ExitStack() as stack:
        clusters = started(stack, profile=run.profile)
        for cluster in clusters.values():
            make_topics(cluster.namesrv, cluster.broker, [TOPIC], QUEUES)
            programs.connections(
                cluster.broker, "--topic", TOPIC, "--queues", QUEUES, "--tags", TAGS,
                "--count", count,
            )  # fmt: skip
        for way, (kind, expression) in WAYS.items():
            found[way] = {who: Rounds() for who in clusters}
            for number in range(-1, ROUNDS_QUICK if run.quick else ROUNDS):
                for who, cluster in clusters.items():
                    into = Rounds() if number < 0 else found[way][who]
                    _select(cluster, kind, expression, count, into)
    return [row for way in WAYS for row in release_rows("filters", way, found[way])]


def _select(cluster: Cluster, kind: str, expression: str, stored: int, into: Rounds) -> None:
    before = cluster.cpu_seconds()
    figures = programs.drain(
        cluster.broker, "--topic", TOPIC, "--queues", QUEUES, "--kind", kind,
        "--expression", expression, "--count", stored // TAGS,
    )  # fmt: skip
    spent = cluster.cpu_seconds() - before
    into.took(stored, figures["seconds"])
    into.server_us.append(spent / stored * 1e6)
    into.peak_mib = max(into.peak_mib, cluster.memory_mib())
