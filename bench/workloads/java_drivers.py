"""RocketMQ's own benchmark programs against our broker and those of RocketMQ's releases."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass

from bench import programs
from bench.java_drivers.driver import driving
from bench.peak_memory import PeakMemory
from bench.releases import RATE_MIN, Cluster, release_rows, started
from bench.rounds import Rounds
from bench.rows import Row
from bench.topics import make_topics
from bench.workloads import Run
from gantrymq import Admin
from gantrymq.base.errors import GantryError

ROUNDS, ROUNDS_QUICK = 3, 1
TOPIC, QUEUES = "java-drivers", 8
BACKLOG_TOPIC, BACKLOG = "java-drivers-backlog", 600_000
WARM_UP_SECONDS, SECONDS = 3.0, 3.0
"""A driver works so long before it counts, because its own code is slow until it is compiled."""
BEGINS_SECONDS_MAX = 30.0
LOOK_SECONDS = 0.05


class NothingDone(Exception):
    """A driver runs, and the broker sees nothing of it."""


@dataclass(frozen=True)
class Work:
    """A benchmark program as its users start it."""

    name: str
    program: str
    arguments: tuple[object, ...]
    rate_min: float = RATE_MIN
    is_reader: bool = False


_SENDS = ("-t", TOPIC, "-s", 1024)
WORKS = (
    Work("sync, 1 thread", "Producer", (*_SENDS, "-w", 1), rate_min=1.0),
    Work("sync, 64 threads", "Producer", (*_SENDS, "-w", 64)),
    Work("async", "Producer", (*_SENDS, "-y", "true")),
    Work("batches of 32, 8 threads", "BatchProducer", (*_SENDS, "-w", 8, "-b", 32)),
    Work("consumer", "Consumer", ("-t", BACKLOG_TOPIC, "-p", "false"), is_reader=True),
)


def java_drivers(run: Run) -> list[Row]:
    """All brokers are up, and take turns. What was done is counted at the broker, by offsets."""
    rounds = ROUNDS_QUICK if run.quick else ROUNDS
    with ExitStack() as stack:
        clusters = started(stack, profile=run.profile)
        for cluster in clusters.values():
            make_topics(cluster.namesrv, cluster.broker, [TOPIC, BACKLOG_TOPIC], QUEUES)
            programs.connections(
                cluster.broker, "--topic", BACKLOG_TOPIC, "--queues", QUEUES, "--count", BACKLOG
            )
        found = {work.name: {who: Rounds() for who in clusters} for work in WORKS}
        for number in range(rounds):
            for who, cluster in clusters.items():
                for work in WORKS:
                    asyncio.run(_once(work, cluster, f"readers-{number}", found[work.name][who]))
    return [
        row
        for work in WORKS
        for row in release_rows("java-drivers", work.name, found[work.name], work.rate_min)
    ]


async def _once(work: Work, cluster: Cluster, group: str, into: Rounds) -> None:
    arguments = (*work.arguments, "-g", group) if work.is_reader else work.arguments
    async with Admin(cluster.namesrv) as admin:
        count = _read(admin, group) if work.is_reader else _stored(admin)
        before = await count()
        with driving(work.program, cluster.namesrv, *arguments):
            await _begun(work, count, before)
            await asyncio.sleep(WARM_UP_SECONDS)
            with PeakMemory(cluster.memory_mib) as memory:
                first, began, cpu = await count(), time.perf_counter(), cluster.cpu_seconds()
                await asyncio.sleep(SECONDS)
                done, seconds = await count() - first, time.perf_counter() - began
                spent = cluster.cpu_seconds() - cpu
    if not done:
        raise NothingDone(f"{work.name}: nothing in {SECONDS} s after {first - before}")
    into.took(done, seconds)
    into.server_us.append(spent / done * 1e6)
    into.peak_mib = max(into.peak_mib, memory.mib)


async def _begun(work: Work, count: Callable[[], Awaitable[int]], before: int) -> None:
    until = time.perf_counter() + BEGINS_SECONDS_MAX
    while await count() == before:
        if time.perf_counter() > until:
            raise NothingDone(f"{work.name}: nothing in {BEGINS_SECONDS_MAX} s")
        await asyncio.sleep(LOOK_SECONDS)


def _stored(admin: Admin) -> Callable[[], Awaitable[int]]:
    async def count() -> int:
        return sum(row.max_offset for row in (await admin.topic_stats(TOPIC)).values())

    return count


def _read(admin: Admin, group: str) -> Callable[[], Awaitable[int]]:
    """What a group has read: its progress goes with every pull."""

    async def count() -> int:
        try:
            rows = (await admin.consume_stats(group, BACKLOG_TOPIC)).queues
        except GantryError:
            return 0  # the group is not known before its first heartbeat
        return sum(row.consumer_offset for row in rows.values())

    return count
