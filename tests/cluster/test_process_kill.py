"""kill -9 of a writing broker, fifty times: nothing acknowledged is missing afterwards."""

import asyncio
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gantrymq.base.network import free_port
from gantrymq.broker.settings.config import OTHER_PORTS
from gantrymq.client.consume.pull.pull_consumer import PullConsumer
from gantrymq.client.consume.queues.pull_request import PullStatus
from gantrymq.client.produce.producer import Producer
from gantrymq.model import Message

ROUNDS = {"ASYNC_FLUSH": 25, "SYNC_FLUSH": 25}
KILL_AFTER_SECONDS = (0.02, 0.25)
IN_FLIGHT = 64
START_SECONDS_MAX = 20.0
HOST = "127.0.0.1"


class BrokerProcess:
    """The shipped broker as a process of its own, with a name server that outlives it."""

    def __init__(self, root: Path, flush: str) -> None:
        self._root, self._flush = root, flush
        self.namesrv_port, self.port = free_port(HOST), free_port(HOST, OTHER_PORTS)
        self._namesrv = self._start(
            "mqnamesrv",
            f"-DbindAddress={HOST}",
            f"-DlistenPort={self.namesrv_port}",
            f"-DkvConfigPath={root}/kv.json",
            "-DlogDirectory=" + str(root / "logs"),
        )
        self._broker: subprocess.Popen[str] | None = None

    @property
    def namesrv(self) -> str:
        return f"{HOST}:{self.namesrv_port}"

    def _start(self, name: str, *arguments: str) -> "subprocess.Popen[str]":
        code = f"from gantrymq.cli.servers import {name}; {name}()"
        process = subprocess.Popen(
            [sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "boot success" in line, line
        return process

    def start(self) -> None:
        self._broker = self._start(
            "mqbroker",
            "-n",
            self.namesrv,
            f"-DbindAddress={HOST}",
            f"-DbrokerIP1={HOST}",
            f"-DlistenPort={self.port}",
            f"-DstorePathRootDir={self._root}/store",
            "-DstoreProfile=dev",
            "-DmappedFileSizeCommitLog=1048576",
            f"-DflushDiskType={self._flush}",
            "-DlogDirectory=" + str(self._root / "logs"),
        )

    def kill(self) -> None:
        assert self._broker is not None
        os.kill(self._broker.pid, signal.SIGKILL)
        self._broker.wait()

    def stop(self) -> None:
        for process in (self._broker, self._namesrv):
            if process is not None and process.poll() is None:
                process.terminate()
                assert 0 == process.wait(START_SECONDS_MAX)


async def write_until_killed(
    broker: BrokerProcess, rng: random.Random, start: int
) -> tuple[dict[bytes, tuple[int, int]], int]:
    """Send with many in flight, kill in the middle; returns where each acknowledged body lies."""
    acked: dict[bytes, tuple[int, int]] = {}
    number = start
    async with Producer(broker.namesrv, group="p") as producer:
        await producer.send(Message("orders", b"warm-%d" % start))
        loop = asyncio.get_running_loop()
        loop.call_later(rng.uniform(*KILL_AFTER_SECONDS), broker.kill)
        waiting: dict[asyncio.Future[object], bytes] = {}
        failed = False
        while not failed:
            while len(waiting) < IN_FLIGHT:
                body = b"%d:" % number + rng.randbytes(rng.randint(0, 2000))
                number += 1
                waiting[asyncio.ensure_future(producer.send(Message("orders", body)))] = body
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                body = waiting.pop(task)
                if task.exception() is None:
                    result = task.result()
                    acked[body] = (result.queue.queue_id, result.offset)  # type: ignore[attr-defined]
                else:
                    failed = True
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
    return acked, number


async def read_all(broker: BrokerProcess) -> dict[tuple[int, int], bytes]:
    found = {}
    async with PullConsumer(broker.namesrv, group="reader") as consumer:
        for queue in await consumer.queues("orders"):
            offset = await consumer.min_offset(queue)
            while True:
                pulled = await consumer.pull(queue, offset, max_count=1000)
                if pulled.status is not PullStatus.FOUND:
                    break
                for message in pulled.messages:
                    found[queue.queue_id, message.offset] = message.body
                offset = pulled.next_offset
    return found


@pytest.mark.timeout(400)
@pytest.mark.parametrize("flush", ROUNDS)
def test_nothing_acknowledged_is_missing_after_kill_9(flush: str, tmp_path: Path) -> None:
    """
    Every acknowledged message is at the queue and offset its answer named, in every round.
    """
    rng = random.Random(20)
    broker = BrokerProcess(tmp_path, flush)
    acked: dict[bytes, tuple[int, int]] = {}
    number = 0
    try:
        for _ in range(ROUNDS[flush]):
            broker.start()
            more, number = asyncio.run(write_until_killed(broker, rng, number))
            acked |= more
        broker.start()
        found = asyncio.run(read_all(broker))
    finally:
        broker.stop()

    assert len(acked) > 20 * ROUNDS[flush]
    missing = [place for body, place in acked.items() if found.get(place) != body]
    assert [] == missing
