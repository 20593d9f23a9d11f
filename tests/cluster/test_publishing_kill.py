"""kill -9 of a writer at random moments, over TCP and real files."""

import asyncio
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from epoch_worker import MESSAGES, next_epoch
from epochs import TOPIC, visible

from gantrymq.testing.cluster import Cluster

WORKER = Path(__file__).with_name("epoch_worker.py")
KILLS = int(os.environ.get("GANTRY_KILLS", "4"))
"""More by hand."""
EPOCHS_PER_KILL = 5
pytestmark = pytest.mark.timeout(120 + 20 * KILLS)


class Worker:
    """The writer's process."""

    def __init__(self, *arguments: str) -> None:
        self._process = subprocess.Popen([sys.executable, str(WORKER), *arguments])

    def kill(self) -> None:
        os.kill(self._process.pid, signal.SIGKILL)
        self._process.wait()

    @property
    def code(self) -> int | None:
        return self._process.poll()


async def story(progress: Path) -> list[str]:
    rng, epochs = random.Random(5), KILLS * EPOCHS_PER_KILL
    async with Cluster(brokers=2) as cluster:
        await cluster.create_topic(TOPIC, 2)
        words = cluster.namesrv, str(progress), str(epochs)
        for kill in range(1, KILLS + 1):
            worker = Worker(*words)
            try:
                async with asyncio.timeout(60):
                    while next_epoch(progress) < (kill - 1) * EPOCHS_PER_KILL + 1:
                        await asyncio.sleep(0.002)
                await asyncio.sleep(rng.uniform(0, 0.05))
            finally:
                worker.kill()
        worker = Worker(*words)
        async with asyncio.timeout(90):
            while worker.code is None:
                await asyncio.sleep(0.01)
        assert 0 == worker.code
        return visible(cluster)


def test_every_epoch_is_there_once_and_of_one_run(tmp_path: Path) -> None:
    """
    Two brokers, kills anywhere: each epoch is whole, has no repeat, and no run's is mixed with
    another's.
    """
    progress = tmp_path / "progress"
    progress.write_text("0")
    found = [body.split(":") for body in asyncio.run(story(progress))]
    counts = Counter((int(epoch), int(number)) for epoch, number, _ in found)
    runs: dict[str, set[str]] = {}
    for epoch, _, run in found:
        runs.setdefault(epoch, set()).add(run)

    everything = {(e, m) for e in range(KILLS * EPOCHS_PER_KILL) for m in range(MESSAGES)}
    assert everything == set(counts)
    assert {1} == set(counts.values())
    assert {1} == {len(each) for each in runs.values()}
