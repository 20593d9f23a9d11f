"""`docs/guides/nothing-lost.md` with processes: each of them is killed at each of its steps."""

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from nothing_lost_program import POISON

from gantrymq import Admin, DeadLetters
from gantrymq.base.network import free_port
from gantrymq.broker.settings.config import OTHER_PORTS

PROGRAM = Path(__file__).with_name("nothing_lost_program.py")
HOST = "127.0.0.1"
ORDERS = 120
SENDER_HALTS = ["trying:10", "sent:10", ""]
WORKER_HALTS = ["got:4", "worked:4", "acked:4", "retried:2", ""]
BROKER_KILLS = {("trying", 40), ("sent", 60), ("got", 80), ("worked", 90), ("retried", 5)}
"""At which step of the programs, counted from the beginning, the broker is killed."""
SECONDS_MAX = 90.0


class Servers:
    """A name server and brokers, each a process with a folder and a port of its own."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._ports: dict[str, int] = {}
        self._running: dict[str, subprocess.Popen[str]] = {}
        port = free_port(HOST)
        self.namesrv = f"{HOST}:{port}"
        settings = (f"listenPort={port}", f"kvConfigPath={root}/kv.json")
        self._start("namesrv", "mqnamesrv", *settings, "logDirectory=")

    def _start(self, name: str, command: str, *settings: str) -> None:
        code = f"from gantrymq.cli.servers import {command}; {command}()"
        process = subprocess.Popen(
            [sys.executable, "-c", code, f"-DbindAddress={HOST}", *(f"-D{s}" for s in settings)],
            stdout=subprocess.PIPE,
            text=True,
        )
        self._running[name] = process
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "boot success" in line, line

    def start(self, name: str, *settings: str) -> None:
        port = self._ports.setdefault(name, free_port(HOST, OTHER_PORTS))
        self._start(
            name,
            "mqbroker",
            f"namesrvAddr={self.namesrv}",
            f"brokerIP1={HOST}",
            "brokerName=broker-a",
            f"listenPort={port}",
            f"storePathRootDir={self._root}/{name}",
            "storeProfile=dev",
            "logDirectory=",
            *settings,
        )

    def end(self, name: str, signum: int) -> None:
        process = self._running.pop(name)
        process.send_signal(signum)
        process.wait(20)
        assert process.stdout is not None
        process.stdout.close()

    def lose(self, name: str) -> None:
        """The machine is gone, with its disk."""
        self.end(name, signal.SIGKILL)
        shutil.rmtree(self._root / name)

    def stop(self) -> None:
        for name in reversed(list(self._running)):
            self.end(name, signal.SIGTERM)


@contextlib.contextmanager
def servers(root: Path) -> Iterator[Servers]:
    running = Servers(root)
    try:
        yield running
    finally:
        running.stop()


class Story:
    """Runs both programs, kills them where they halt, and the broker where it is written."""

    def __init__(self, servers: Servers, master: tuple[str, ...], work: Path) -> None:
        self._servers, self._master, self._work = servers, master, work
        self.steps: Counter[str] = Counter()
        self.sent: set[int] = set()
        self.kills: Counter[str] = Counter()
        self._restarting = asyncio.Lock()
        self._broker = "master"

    async def run_program(self, role: str, halt: str) -> int:
        """Run one until it halts, which ends it, or until it ends; returns its code."""
        arguments = [self._next(), str(ORDERS)] if role == "sender" else [str(self._work)]
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, str(PROGRAM), role, self._servers.namesrv, *arguments, halt),
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        try:
            async for line in process.stdout:
                step, order = line.decode().split()
                if step == "halt":
                    self.kills[f"{role} at {halt}"] += 1
                    os.kill(process.pid, signal.SIGKILL)
                    continue
                self.steps[step] += 1
                if step == "sent":
                    self.sent.add(int(order))
                if (step, self.steps[step]) in BROKER_KILLS:
                    await self.kill_broker(step)
            return await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()

    def _next(self) -> str:
        """The first order that was not answered with SEND_OK."""
        return str(min(set(range(ORDERS + 1)) - self.sent))

    async def kill_broker(self, step: str) -> None:
        async with self._restarting:
            self.kills[f"broker at {step}"] += 1
            await asyncio.to_thread(self._servers.end, self._broker, signal.SIGKILL)
            await asyncio.to_thread(self._servers.start, self._broker, *self._master)

    async def lose_master(self) -> None:
        """The machine of the master is gone; an operator makes its slave the master."""
        async with self._restarting:
            await asyncio.to_thread(self._servers.lose, "master")
            await asyncio.to_thread(self._servers.end, "slave", signal.SIGTERM)
            self._broker = "slave"
            await asyncio.to_thread(self._servers.start, self._broker, *self._master)

    async def send_all(self) -> None:
        for halt in SENDER_HALTS:
            code = await self.run_program("sender", halt)
            assert code == (-signal.SIGKILL if halt else 0)

    async def work_all(self) -> None:
        for halt in WORKER_HALTS:
            await self.run_program("worker", halt)

    def worked(self) -> set[int]:
        return (
            {int(line) for line in self._work.read_text().split()} if self._work.exists() else set()
        )

    async def dead(self) -> set[int]:
        async with DeadLetters(self._servers.namesrv, group="billing") as letters:
            page = await letters.page(limit=1_000)
            return {int(letter.message.body) for letter in page.letters}

    async def until_finished(self) -> set[int]:
        """Wait until every order is worked on or a dead letter; returns the dead ones."""
        deadline = time.monotonic() + SECONDS_MAX
        while time.monotonic() < deadline:
            with contextlib.suppress(Exception):
                dead = await self.dead()
                if self.worked() | dead >= set(range(ORDERS)):
                    return dead
            await asyncio.sleep(0.3)
        raise AssertionError(f"lost: {sorted(set(range(ORDERS)) - self.worked())}")


async def tell(story: Story, servers: Servers, *, loses_master: bool = False) -> set[int]:
    """Both programs at work, with all kills, until every order is finished; the dead ones."""
    async with Admin(servers.namesrv) as admin:
        await admin.create_topic("orders", queues=2)
    working = asyncio.create_task(story.work_all())
    try:
        await story.send_all()
        if loses_master:
            await story.lose_master()
        return await story.until_finished()
    finally:
        working.cancel()
        await asyncio.wait([working])


def check(story: Story, dead: set[int]) -> None:
    """Everything was sent; what can be done is done; the rest waits for somebody."""
    poison = set(range(0, ORDERS, POISON))

    assert story.sent == set(range(ORDERS))
    assert dead == poison
    assert story.worked() == set(range(ORDERS)) - poison
    halts = [f"sender at {halt}" for halt in SENDER_HALTS if halt]
    halts += [f"worker at {halt}" for halt in WORKER_HALTS if halt]
    assert story.kills.keys() == {*halts, *(f"broker at {step}" for step, _ in BROKER_KILLS)}


@pytest.mark.timeout(240)
def test_nothing_is_lost_with_one_broker(tmp_path: Path) -> None:
    """SYNC_FLUSH: sender, worker and broker are killed at each of their steps."""
    settings = ("flushDiskType=SYNC_FLUSH",)
    with servers(tmp_path) as running:
        running.start("master", *settings)
        story = Story(running, settings, tmp_path / "work")
        dead = asyncio.run(tell(story, running))

    check(story, dead)


@pytest.mark.timeout(240)
def test_nothing_is_lost_with_a_machine(tmp_path: Path) -> None:
    """SYNC_MASTER: the same, and while there is work left the master's machine is lost with its
    disk; the slave goes on as the master."""
    settings = ("brokerRole=SYNC_MASTER", "brokerId=0")
    with servers(tmp_path) as running:
        running.start("master", *settings)
        running.start("slave", "brokerRole=SLAVE", "brokerId=1")
        story = Story(running, settings, tmp_path / "work")
        dead = asyncio.run(tell(story, running, loses_master=True))

    check(story, dead)
    assert not (tmp_path / "master").exists()
