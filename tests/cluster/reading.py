"""What tests of consumers have in common: filling queues, reading, asking for progress."""

import asyncio
from typing import Any

from gantrymq import ConsumerOptions, LitePullConsumer, Message, PullConsumer, Queue
from gantrymq.client.consume.push.consumer import Consumer
from gantrymq.client.core.options import PullOptions
from gantrymq.protocol.command import Command
from gantrymq.testing.cluster import Cluster

FROM_FIRST = "CONSUME_FROM_FIRST_OFFSET"
FIRST = ConsumerOptions(consume_from_where=FROM_FIRST)
Q0 = Queue("orders", "broker-a", 0)


def ports(cluster: Cluster) -> dict[str, Any]:
    return {"network": cluster.network, "clock": cluster.clock, "rng": cluster.rng}


def puller(cluster: Cluster, group: str = "g", **more: Any) -> PullConsumer:
    return PullConsumer(cluster.namesrv, group=group, **ports(cluster), **more)


def lite(cluster: Cluster, hooks: Any = (), **options: Any) -> LitePullConsumer:
    settings = PullOptions(consume_from_where=FROM_FIRST, **options)
    return LitePullConsumer(
        cluster.namesrv, group="g", options=settings, hooks=hooks, **ports(cluster)
    )


async def fill(cluster: Cluster, *bodies: str, queue: Queue | None = Q0) -> None:
    """One message for each body, in one queue unless told otherwise."""
    async with cluster.producer("sender") as producer:
        for body in bodies:
            await producer.send(Message("orders", body), queue=queue)


async def take(consumer: Consumer, count: int) -> list[str]:
    """So many bodies, acknowledged."""
    found: list[str] = []
    async with asyncio.timeout(30):
        while len(found) < count:
            message = await anext(consumer)
            await message.ack()
            found.append(message.body.decode())
    return found


async def progress_of(cluster: Cluster, group: str = "g", queue: Queue = Q0) -> int | None:
    """What the broker has stored for a group."""
    async with puller(cluster, group) as consumer:
        return await consumer.committed(queue)


class Pulls:
    """A hook that notes every pull of a client and when it was sent."""

    def __init__(self) -> None:
        self.fields: list[dict[str, str]] = []
        self.times: list[float] = []

    def before_request(self, address: str, command: Command) -> None:
        if command.code == 11:
            self.fields.append(dict(command.ext))
            self.times.append(asyncio.get_running_loop().time())

    def after_response(self, address: str, command: Command, response: Command) -> None:
        """Answers are not looked at."""


async def until(done: Any, seconds: float = 20) -> None:
    """Wait for a condition."""
    async with asyncio.timeout(seconds):
        while not done():
            await asyncio.sleep(0.01)
