"""The people of a story: consumers that fail, and the process around each of them."""

import asyncio
import random

from sim_ledger import Ledger
from sim_network import Uplink

from gantrymq import ClientOptions, Consumer, ConsumerOptions, Delivery
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.network import MemoryNetwork

RETRIES_MAX = 2
WORK_SECONDS_MAX = 0.5
FROM_FIRST = "CONSUME_FROM_FIRST_OFFSET"


class HandlerBroke(Exception):
    """What a handler of the user raises."""


class Member:
    """One consumer of a group in a process of its own."""

    def __init__(
        self, name: str, group: str, topics: tuple[str, ...], ordered: bool, cluster: Cluster,
        ledger: Ledger, rng: random.Random, failing: float,
    ) -> None:  # fmt: skip
        assert isinstance(cluster.network, MemoryNetwork)
        self.name, self.group = name, group
        self._ledger, self._rng, self.failing = ledger, rng, failing
        self._uplink = Uplink(cluster.network)
        self._consumer = Consumer(
            cluster.namesrv, group=group, ordered=ordered, max_retries=RETRIES_MAX, concurrency=4,
            options=ConsumerOptions(consume_from_where=FROM_FIRST),
            client=ClientOptions(client_ip="127.0.0.1", instance_name=name),
            network=self._uplink, clock=cluster.clock, rng=random.Random(rng.random()),
        )  # fmt: skip
        for topic in topics:
            self._consumer.subscribe(topic)
        self._consumer.handler(self._handle)

    async def join(self) -> None:
        self._ledger.say(f"{self.group}/{self.name} joins")
        await self._consumer.start()

    async def leave(self) -> None:
        """Close cleanly."""
        self._ledger.say(f"{self.group}/{self.name} leaves")
        await self._consumer.close()

    async def crash(self) -> None:
        """The process dies: nothing is said to anybody, and nothing it still does counts."""
        self._ledger.say(f"{self.group}/{self.name} crashes")
        self._uplink.tear_out()
        self._ledger.forget_member(self.name)
        await self._consumer.close()

    async def _handle(self, message: Delivery) -> None:
        if self._uplink.dead:
            raise HandlerBroke("dead")
        entry = self._ledger.delivered(self.group, self.name, message.body.decode())
        if entry is None:
            return
        self._ledger.begin(self.group, self.name, entry)
        try:
            await asyncio.sleep(self._rng.uniform(0, WORK_SECONDS_MAX))
        finally:
            self._ledger.end(self.group, self.name, entry)
        if self._uplink.dead:
            raise HandlerBroke("dead")
        if entry.poison or self._rng.random() < self.failing:
            self._ledger.say(f"{self.group}/{self.name} fails on {entry.name}")
            raise HandlerBroke(entry.name)
        self._ledger.acknowledged(self.group, entry)
