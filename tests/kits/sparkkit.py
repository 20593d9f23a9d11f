"""What the Spark tests share: a cluster of real processes, and messages in its topics."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from gantrymq import Admin, Message, Producer, Queue, SendResult

STOP_SECONDS_MAX = 30
BROKER = "broker-a"


class Processes:
    """`gantry up` on free ports, and what tests do with it."""

    def __init__(self, data: Path) -> None:
        self.store = data / BROKER / "store"
        """The files of its broker."""
        gantry = Path(sys.executable).with_name("gantry")
        ports = ["--namesrv-port", "0", "--broker-port", "0", "--no-console"]
        self._child = subprocess.Popen(
            [str(gantry), "up", "--data", str(data), *ports], stdout=subprocess.PIPE, text=True
        )
        assert self._child.stdout is not None
        for line in self._child.stdout:
            if line.startswith("gantrymq ready "):
                self.namesrv = dict(word.split("=", 1) for word in line.split()[2:])["namesrv"]
                return
        raise AssertionError(f"gantry up ended with {self._child.wait()}")

    def close(self) -> None:
        self._child.send_signal(signal.SIGTERM)
        assert self._child.wait(STOP_SECONDS_MAX) == 0

    def create_topic(self, topic: str, queues: int) -> None:
        async def create() -> None:
            async with Admin(self.namesrv) as admin:
                await admin.create_topic(topic, queues=queues)

        asyncio.run(create())

    def queues(self, topic: str) -> list[Queue]:
        """The queues of a topic."""

        async def look() -> list[Queue]:
            async with Admin(self.namesrv) as admin:
                return list(await admin.topic_stats(topic))

        return asyncio.run(look())

    def send(self, messages: Iterable[Message], queue: Queue | None = None) -> list[SendResult]:
        """Send them all; each must be stored."""

        async def send() -> list[SendResult]:
            async with Producer(self.namesrv, group="spark-tests") as producer:
                futures = []
                for message in messages:
                    await producer.room()
                    futures.append(producer.submit(message, queue=queue))
                return list(await asyncio.gather(*futures))

        return asyncio.run(send())

    def fill(self, topic: str, counts: Sequence[int], first: int = 0) -> None:
        """So many numbered messages into each queue of a topic."""
        for queue_id, count in enumerate(counts):
            messages = [Message(topic, f"{queue_id}:{first + number}") for number in range(count)]
            if messages:
                self.send(messages, Queue(topic, BROKER, queue_id))


def numbered(counts: Sequence[int], first: int = 0) -> list[str]:
    """The bodies that `fill` sent, sorted."""
    return sorted(
        f"{queue_id}:{first + number}"
        for queue_id, count in enumerate(counts)
        for number in range(count)
    )


def bodies_of(rows: Iterable[Any]) -> list[str]:
    """The bodies of rows as sorted texts: a repeat is seen as well as a gap."""
    return sorted(bytes(row.body).decode() for row in rows)
