"""Stores of releases, kept packed: how one is made, and a broker that is started on it.

.venv/bin/python tests/kits/keptstores.py

packs a store of this release as `stores/gantrymq-RELEASE.tar.xz`. Do it once for each release,
before the format of what is ours changes, and add it to `tests/cluster/test_kept_stores.py`.
"""

import asyncio
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Self

from storekeeping import STORES

from gantrymq import Admin, Consumer, Message, Producer
from gantrymq.base.network import free_port
from gantrymq.broker.settings.config import OTHER_PORTS
from gantrymq.store.version import this_release

HOST = "127.0.0.1"
STOP_SECONDS_MAX = 20
TOPIC, GROUP, QUEUES, COUNT, READ = "kept", "readers", 2, 40, 15
SIZES = {
    "mappedFileSizeCommitLog": "16384", "mappedFileSizeConsumeQueue": "640",
    "maxHashSlotNum": "64", "maxIndexNum": "256", "maxMessageSize": "4096",
    "fileReservedTime": "876000",
}  # fmt: skip


class KeptBroker:
    """A name server and a broker on a store with small files, as processes."""

    def __init__(self, store: Path, logs: Path) -> None:
        self._logs = logs
        self.namesrv = f"{HOST}:{free_port(HOST)}"
        port = self.namesrv.rpartition(":")[2]
        settings = {**SIZES, "brokerIP1": HOST, "brokerName": "broker-a", "storeProfile": "dev",
                    "listenPort": str(free_port(HOST, OTHER_PORTS)),
                    "storePathRootDir": str(store)}  # fmt: skip
        self._running = [
            self._start("mqnamesrv", listenPort=port, kvConfigPath=f"{logs}/kv.json"),
            self._start("mqbroker", "-n", self.namesrv, **settings),
        ]

    def _start(self, name: str, *words: str, **settings: str) -> "subprocess.Popen[str]":
        given = {"bindAddress": HOST, "logDirectory": str(self._logs), **settings}
        code = f"from gantrymq.cli.servers import {name}; {name}()"
        options = [f"-D{key}={value}" for key, value in given.items()]
        process = subprocess.Popen(
            [sys.executable, "-c", code, *words, *options], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "boot success" in line, line
        return process

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for process in reversed(self._running):
            process.terminate()
            assert 0 == process.wait(STOP_SECONDS_MAX)


async def fill(namesrv: str) -> None:
    """Messages of every kind that leaves something on disk, and a group that read some."""
    async with Admin(namesrv) as admin:
        await admin.create_topic(TOPIC, queues=QUEUES)
    async with Producer(namesrv, group="keeper") as producer:
        for number in range(COUNT):
            await producer.send(Message(TOPIC, body(number), tags="t", keys=[f"k{number}"]))
        await producer.send(Message(TOPIC, "in a year", delay=3600 * 24 * 365))
        await producer.send(Message(TOPIC, "in two hours", delay_level=18))
        await producer.send_transaction(Message(TOPIC, "agreed"), lambda _: "commit")
    await read(namesrv, GROUP, READ)


def body(number: int) -> str:
    return f"message {number}" + "." * 10 * number


async def read(namesrv: str, group: str, count: int) -> set[str]:
    """So many messages, acknowledged by a group."""
    found: set[str] = set()
    async with Consumer(namesrv, group=group, start="first") as consumer:
        consumer.subscribe(TOPIC)
        async with asyncio.timeout(20):
            async for each in consumer:
                found.add(each.body.decode())
                await each.ack()
                if len(found) >= count:
                    break
    return found


def main() -> None:
    """Make and pack a store of this release."""
    with tempfile.TemporaryDirectory() as place:
        store = Path(place) / "store"
        with KeptBroker(store, Path(place) / "logs") as broker:
            asyncio.run(fill(broker.namesrv))
        packed = STORES / f"gantrymq-{this_release()}.tar.xz"
        names = ["--exclude=./lock", "--owner=0", "--group=0", "--sort=name"]
        subprocess.run(["tar", "-C", store, "-S", *names, "-cJf", packed, "."], check=True)
        sys.stdout.write(f"{packed} {packed.stat().st_size}\n")


if __name__ == "__main__":
    main()
