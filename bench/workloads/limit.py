"""Our broker beside a C program that does only what no broker can leave out."""

import statistics
from contextlib import ExitStack
from typing import NamedTuple, Protocol

from bench import programs, tools
from bench.limit.server import Limit
from bench.rounds import Rounds
from bench.rows import Row
from bench.servers import Ours
from bench.workloads import Run

NAME = "limit"
OURS, LIMIT = "GantryMQ", "limit"
ROUNDS, ROUNDS_QUICK = 5, 1
WARM_UP = 20_000


class Shape(NamedTuple):
    """How many requests are under way, and what they may cost over the limit program."""

    connections: int
    window: int
    """Under way on each connection."""
    requests: int
    """Of a round."""
    time_most: float | None = None
    cpu_most: float | None = None

    def __str__(self) -> str:
        return f"{self.connections} x {self.window}"


SHAPES = (
    Shape(1, 1, 50_000, time_most=2.5),
    # The driver, which is Python, is slower than the limit: only processor time can tell.
    Shape(64, 1, 150_000, cpu_most=2.0),
    Shape(8, 64, 300_000),
)


class Broker(Protocol):
    """What both servers have."""

    broker: str

    def cpu_seconds(self) -> float: ...


def limit(run: Run) -> list[Row]:
    """The same driver sends the same bytes to both in turns."""
    tools.require(NAME, programs=["cc"])
    found = {(shape, who): Rounds() for shape in SHAPES for who in (OURS, LIMIT)}
    with ExitStack() as stack:
        servers: dict[str, Broker] = {
            OURS: stack.enter_context(Ours(profile=run.profile)),
            LIMIT: stack.enter_context(Limit()),
        }
        for server in servers.values():
            programs.connections(server.broker, "--count", run.scaled(WARM_UP))
        for _ in range(ROUNDS_QUICK if run.quick else ROUNDS):
            for shape in SHAPES:
                for who, server in servers.items():
                    _once(server, shape, run, found[shape, who])
    return [
        row
        for shape in SHAPES
        for row in rows_of(shape, found[shape, OURS], found[shape, LIMIT])
    ]  # fmt: skip


def _once(server: Broker, shape: Shape, run: Run, into: Rounds) -> None:
    before = server.cpu_seconds()
    figures = programs.connections(
        server.broker, "--connections", shape.connections, "--window", shape.window,
        "--count", run.scaled(shape.requests),
    )  # fmt: skip
    into.server_us.append((server.cpu_seconds() - before) / figures["count"] * 1e6)
    into.took(int(figures["count"]), figures["seconds"])


def rows_of(shape: Shape, ours: Rounds, limit: Rounds) -> list[Row]:
    """Time and processor time of a request, and how often ours has those of the limit."""
    rows = []
    for who, rounds in ((OURS, ours), (LIMIT, limit)):
        us = sorted(1e6 / rate for rate in rounds.rates)
        rows += [
            Row(NAME, f"{shape}, {who}: median of {len(us)}", statistics.median(us), "us/request"),
            Row(NAME, f"{shape}, {who}: fastest round", us[0], "us/request"),
            Row(NAME, f"{shape}, {who}: slowest round", us[-1], "us/request"),
            Row(NAME, f"{shape}, {who}: processor time", cpu_us(rounds), "us/request"),
        ]
    times, spent = limit.rate / ours.rate, cpu_us(ours) / cpu_us(limit)
    return [
        *rows,
        Row(NAME, f"{shape}: time over the limit's", times, "x", shape.time_most, at_most=True),
        Row(NAME, f"{shape}: processor time over the limit's", spent, "x", shape.cpu_most, True),
    ]


def cpu_us(rounds: Rounds) -> float:
    """The server's processor time of a request."""
    return statistics.median(rounds.server_us)
