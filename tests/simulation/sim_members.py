"""The people of a story: consumers that fail, and the process around each of them."""

import asyncio
import random
from contextlib import suppress
from typing import Any

from sim_ledger import Entry, Ledger
from sim_network import Uplink

from gantrymq import (
    ClientOptions,
    Consumer,
    ConsumerOptions,
    Delivery,
    GantryError,
    SimpleConsumer,
)
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.network import MemoryNetwork

RETRIES_MAX = 2
WORK_SECONDS_MAX = 0.5
INVISIBLE_SECONDS = 5.0
FROM_FIRST = "CONSUME_FROM_FIRST_OFFSET"


class HandlerBroke(Exception):
    """What a handler of the user raises."""


class Member:
    """One consumer of a group in a process of its own; how it reads is the subclass's affair."""

    def __init__(
        self, name: str, group: str, topics: tuple[str, ...], cluster: Cluster, ledger: Ledger,
        rng: random.Random, failing: float,
    ) -> None:  # fmt: skip
        assert isinstance(cluster.network, MemoryNetwork)
        self.name, self.group, self._topics = name, group, topics
        self._ledger, self._rng, self.failing = ledger, rng, failing
        self._uplink = Uplink(cluster.network)
        self._ports = {
            "client": ClientOptions(client_ip="127.0.0.1", instance_name=name),
            "network": self._uplink, "clock": cluster.clock, "rng": random.Random(rng.random()),
        }  # fmt: skip

    async def join(self) -> None:
        self._ledger.say(f"{self.group}/{self.name}", "joins")
        await self._open()

    async def leave(self) -> None:
        """Close cleanly."""
        self._ledger.say(f"{self.group}/{self.name}", "leaves")
        await self._close()

    async def crash(self) -> None:
        """The process dies: nothing is said to anybody, and nothing it still does counts."""
        self._ledger.say(f"{self.group}/{self.name}", "crashes")
        self._uplink.tear_out()
        self._ledger.forget_member(self.name)
        await self._close()

    async def _open(self) -> None:
        raise AssertionError("said by the subclass")

    async def _close(self) -> None:
        raise AssertionError("said by the subclass")

    async def work_on(self, body: bytes) -> Entry:
        """What a handler does with a message: take its time, perhaps fail."""
        if self._uplink.dead:
            raise HandlerBroke("dead")
        entry = self._ledger.delivered(self.group, self.name, body.decode().strip())
        self._ledger.begin(self.group, self.name, entry)
        try:
            await asyncio.sleep(self._rng.uniform(0, WORK_SECONDS_MAX))
        finally:
            self._ledger.end(self.group, self.name, entry)
        if self._uplink.dead:
            raise HandlerBroke("dead")
        if entry.poison or self._rng.random() < self.failing:
            self._ledger.say(f"{self.group}/{self.name}", f"fails on {entry.name}")
            self._ledger.counts["failed deliveries"] += 1
            raise HandlerBroke(entry.name)
        return entry


class Pusher(Member):
    """Gets messages pushed into a handler, in order or not."""

    ordered = False

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        cluster: Cluster = args[3]
        self._consumer = Consumer(
            cluster.namesrv, group=self.group, ordered=self.ordered, max_retries=RETRIES_MAX,
            concurrency=4, options=ConsumerOptions(consume_from_where=FROM_FIRST), **self._ports,
        )  # fmt: skip
        for topic in self._topics:
            self._consumer.subscribe(topic)
        self._consumer.handler(self._handle)

    async def _handle(self, message: Delivery) -> None:
        self._ledger.acknowledged(self.group, await self.work_on(message.body))

    async def _open(self) -> None:
        await self._consumer.start()

    async def _close(self) -> None:
        await self._consumer.close()


class OrderedPusher(Pusher):
    """One message of a key after the other."""

    ordered = True


class Popper(Member):
    """Borrows messages and acknowledges each by itself."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        cluster: Cluster = args[3]
        self._consumer = SimpleConsumer(
            cluster.namesrv, group=self.group, invisible=INVISIBLE_SECONDS, from_first=True,
            **self._ports,
        )  # fmt: skip
        for topic in self._topics:
            self._consumer.subscribe(topic)
        self._task: asyncio.Task[None] | None = None

    async def _open(self) -> None:
        await self._consumer.start()
        self._task = asyncio.create_task(self._loop())

    async def _close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        await self._consumer.close()

    async def _loop(self) -> None:
        while True:
            try:
                messages = await self._consumer.receive(4, wait=5)
            except GantryError:
                await asyncio.sleep(0.5)
                continue
            for message in messages:
                with suppress(GantryError, HandlerBroke):
                    self._ledger.acknowledged(self.group, await self.work_on(message.body))
                    await message.ack()
