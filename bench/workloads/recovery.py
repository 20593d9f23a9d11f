"""Opening a store after a crash: one that left nothing but the commit log, and `kill -9`."""

import asyncio
import os
import shutil
import tempfile
import time
from pathlib import Path

from bench import programs
from bench.releases import JAVA, OURS
from bench.rows import Row
from bench.servers import Ours, Theirs
from bench.topics import make_topics
from bench.workloads import Run
from gantrymq import Admin
from gantrymq.base.clock import SystemClock
from gantrymq.base.disk import OsDisk
from gantrymq.base.offload import ThreadOffload
from gantrymq.kernel import walk_records
from gantrymq.store.append import Append
from gantrymq.store.config import StoreConfig
from gantrymq.store.engine import Store
from gantrymq.store.log.syncer import InlineSyncer
from gantrymq.store.shared import StorePorts

MIB = 1 << 20
QUEUES, TURN = 16, 200
HOST = bytes((127, 0, 0, 1, 0, 0, 0x2A, 0x9F))
TOPIC, KILLED_QUEUES, BATCH = "killed", 8, 32
STORED = 3_500_000
"""Messages of 1 KiB: 4 GiB of log."""
VERSION = "5.3.3"


class MessagesLost(Exception):
    """Confirmed messages are not there after the next start."""


def recovery(run: Run) -> list[Row]:
    directory = Path(tempfile.mkdtemp(prefix="gantrymq-bench-"))
    try:
        count = run.scaled(300_000)
        size = asyncio.run(_fill(directory, count))
        scan = _scan(directory)
        _forget_derived(directory)
        began = time.perf_counter()
        asyncio.run(_open_and_close(directory, count))
        seconds = time.perf_counter() - began
    finally:
        shutil.rmtree(directory)
    return [
        Row("recovery", "scan and checksum", scan, "MB/s", 200),
        Row("recovery", "with queues and index rebuilt", size / seconds / 1e6, "MB/s", 100),
    ]


async def _open(directory: Path) -> Store:
    ports = StorePorts(OsDisk(), SystemClock(), ThreadOffload(), InlineSyncer())
    return await Store.open(StoreConfig.dev(str(directory)), ports, store_host=HOST)


async def _fill(directory: Path, count: int) -> int:
    """A store of 1 KiB messages; returns the bytes of its log."""
    store = await _open(directory)
    body = os.urandom(1024)
    for number in range(count):
        store.put(
            Append(
                "orders", number % QUEUES, body,
                properties=b"UNIQ_KEY\x01%032X\x02TAGS\x01TagA\x02" % number,
            )
        )  # fmt: skip
        if number % TURN == 0:
            await asyncio.sleep(0)
    await store.close()
    return store.log_max


def _scan(directory: Path) -> float:
    """Walk the files of the log, checksums verified; MB a second."""
    size, began = 0, time.perf_counter()
    for path in sorted((directory / "commitlog").iterdir()):
        data = path.read_bytes()
        walk = walk_records(data, int(path.name), len(data), True)
        size += walk.end - int(path.name)
    return size / (time.perf_counter() - began) / 1e6


def _forget_derived(directory: Path) -> None:
    for name in ("consumequeue", "index"):
        shutil.rmtree(directory / name)
    (directory / "checkpoint").unlink()
    (directory / "abort").touch()


async def _open_and_close(directory: Path, count: int) -> None:
    store = await _open(directory)
    found = sum(store.queues.max_offset("orders", queue) for queue in range(QUEUES))
    assert found == count, f"{found} of {count} messages recovered"
    await store.close()


def killed(run: Run) -> list[Row]:
    """A broker with 4 GiB is killed while nobody sends, and started again."""
    rows: list[Row] = []
    for who, server in ((OURS, Ours(profile=run.profile)), (f"{JAVA} {VERSION}", Theirs(VERSION))):
        with server as cluster:
            make_topics(cluster.namesrv, cluster.broker, [TOPIC], KILLED_QUEUES)
            figures = programs.connections(
                cluster.broker, "--topic", TOPIC, "--queues", KILLED_QUEUES, "--batch", BATCH,
                "--count", run.scaled(STORED) // BATCH,
            )  # fmt: skip
            first = cluster.started_in
            cluster.kill()
            cluster.start()
            if (found := asyncio.run(_stored(cluster.namesrv))) != figures["count"] * BATCH:
                raise MessagesLost(f"{who}: {found} of {figures['count'] * BATCH}")
            rows += [
                Row("recovery-killed", f"{who}: start without messages", first, "s"),
                Row("recovery-killed", f"{who}: start after kill -9", cluster.started_in, "s"),
            ]
    ours, theirs = rows[1].value, rows[3].value
    return [*rows, Row("recovery-killed", "start against RocketMQ's", theirs / ours, "x", 3)]


async def _stored(namesrv: str) -> int:
    async with Admin(namesrv) as admin:
        return sum(row.max_offset for row in (await admin.topic_stats(TOPIC)).values())
