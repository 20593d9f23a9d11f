"""kill -9 of consumers at work, again and again, over TCP and with a real file."""

import asyncio
import os
import random
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from once_member import send

from gantrymq.testing.cluster import Cluster

WORKER = Path(__file__).with_name("once_worker.py")
ORDERS = [f"order-{number}" for number in range(60)]
KILLS = 3
LEASE_SECONDS = 1.0
CONCURRENCY = 20


class Worker:
    """The consumer's process."""

    def __init__(self, *arguments: str) -> None:
        self._process = subprocess.Popen([sys.executable, str(WORKER), *arguments])

    def kill(self) -> None:
        os.kill(self._process.pid, signal.SIGKILL)
        self._process.wait()


def written(path: Path) -> Counter[str]:
    with sqlite3.connect(path, timeout=10) as db:
        return Counter(body for (body,) in db.execute("SELECT body FROM written"))


async def until_written(path: Path, count: int) -> None:
    async with asyncio.timeout(40):
        while len(written(path)) < count:
            await asyncio.sleep(0.005)


async def story(path: Path, strength: str) -> None:
    rng = random.Random(11)
    async with Cluster() as cluster:
        await cluster.create_topic("orders")
        await send(cluster, *ORDERS, times=2)
        for kill in range(1, KILLS + 2):
            worker = Worker(cluster.namesrv, str(path), strength, str(LEASE_SECONDS))
            try:
                await until_written(path, kill * len(ORDERS) // (KILLS + 1))
                await asyncio.sleep(rng.uniform(0, 0.02) if kill <= KILLS else 1.0)
            finally:
                worker.kill()


@pytest.mark.parametrize("strength", ["transaction", "claims"])
def test_orders_sent_twice_and_consumers_killed_at_work(strength: str, tmp_path: Path) -> None:
    """
    In a transaction each order is written once, whatever was killed when. With claims nothing is
    lost, and only what was under way at a kill can be there twice.
    """
    path = tmp_path / "once.db"
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("CREATE TABLE written (body text)")
    asyncio.run(story(path, strength))

    found = written(path)
    assert set(ORDERS) == set(found)
    doubles = sum(found.values()) - len(ORDERS)
    assert doubles <= (0 if strength == "transaction" else KILLS * CONCURRENCY)
