"""The loads: each gives the processor time of a message, in the broker or in the client."""

import json
import os
import resource
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from bench import programs
from bench.servers import BIN, ROOT, Ours

SYNC, PIPELINED, BACKLOG, SENT, CONSUMED = 20_000, 120_000, 120_000, 60_000, 60_000


class Cost(NamedTuple):
    """What one round of a load cost."""

    us: float
    """Processor time of a message."""
    tps: float


class Side:
    """One of the two trees: its broker, and its client."""

    def __init__(self, name: str, cluster: Ours, environment: dict[str, str]) -> None:
        self.name, self.cluster, self._environment = name, cluster, environment
        self._groups = 0

    # the broker's share

    def sync(self) -> Cost:
        """64 connections, each with one send under way."""
        return self._served(
            lambda: programs.connections(
                self.cluster.broker, "--connections", 64, "--window", 1, "--count", SYNC
            )
        )

    def pipelined(self) -> Cost:
        """One connection with thousands of sends under way."""
        return self._served(lambda: programs.load(self.cluster.broker, "--count", PIPELINED))

    def backlog(self) -> Cost:
        """What `pipelined` and `sync` stored, read to its end."""
        return self._served(lambda: programs.drain(self.cluster.broker, "--count", BACKLOG))

    def _served(self, load: Callable[[], programs.Figures]) -> Cost:
        before = self.cluster.cpu_seconds()
        found = load()
        used = self.cluster.cpu_seconds() - before
        return Cost(used / found["count"] * 1e6, found["tps"])

    # the client's share

    def client_send(self) -> Cost:
        """`submit` of 1 KiB messages, as fast as answers come."""
        return self._client("producer", "--async", "--size", 1024, "--count", SENT)

    def client_consume(self) -> Cost:
        """A handler that does nothing, on what is stored."""
        self._groups += 1
        group = f"guard-{self._groups}"
        return self._client("consumer", "--group", group, "--count", CONSUMED)

    def _client(self, *words: object) -> Cost:
        """A program of this tree against its own broker; start and end are part of its cost."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            [BIN / "gantry", "bench", *map(str, words), "--namesrv", self.cluster.namesrv],
            cwd=ROOT, env=self._environment, capture_output=True, text=True, check=True,
            timeout=programs.SECONDS_MAX,
        )  # fmt: skip
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        found = json.loads(done.stdout.splitlines()[-1])
        return Cost(used / found["count"] * 1e6, found["tps"])


WORKS: dict[str, Callable[[Side], Cost]] = {
    "sync sends, 64 connections": Side.sync,
    "pipelined sends": Side.pipelined,
    "backlog": Side.backlog,
    "client's sends": Side.client_send,
    "client's consumption": Side.client_consume,
}


def environment(source: Path | None) -> dict[str, str]:
    """Of programs that import the package from a folder, not from this tree."""
    return dict(os.environ) if source is None else os.environ | {"PYTHONPATH": str(source)}
