"""A raft group in memory and virtual time, and what tests do with it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from gantrymq import Message
from gantrymq.replication.group.node import RaftNode
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.loop import simulate
from gantrymq.testing.network import MemoryNetwork

MEMBERS = ("n0", "n1", "n2")


def in_group(work: Callable[[Cluster], Awaitable[None]], **options: Any) -> None:
    """Run `work` with a group of three that has a leader."""

    async def main() -> None:
        async with Cluster(memory=True, **{"members": 3, **options}) as cluster:
            await cluster.wait_for_leader()
            await work(cluster)

    simulate(main)


async def until(holds: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait until something holds."""
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.02)


def node_of(cluster: Cluster, name: str) -> RaftNode:
    node = cluster.broker(name).node
    assert node is not None
    return node


def network_of(cluster: Cluster) -> MemoryNetwork:
    assert isinstance(cluster.network, MemoryNetwork)
    return cluster.network


def followers(cluster: Cluster) -> list[str]:
    """The members that run and do not lead."""
    return [name for name in cluster.running if name != cluster.leader]


async def send(cluster: Cluster, *bodies: str, topic: str = "orders", **more: Any) -> list[str]:
    """Send messages, one after the other; returns their statuses."""
    async with cluster.producer() as producer:
        return [
            (await producer.send(Message(topic, body.encode(), **more))).status for body in bodies
        ]


async def agreed(cluster: Cluster) -> None:
    """Wait until all members show the same log."""
    await until(lambda: len({shown(cluster, name) for name in cluster.running}) == 1)


def shown(cluster: Cluster, name: str) -> tuple[int, int]:
    store = cluster.broker(name).store
    return store.log_max, store.dispatched.value


async def lose_leader(cluster: Cluster, *, power_cut: bool = False) -> tuple[str, str]:
    """Kill the leader and wait for the next one; returns both."""
    old = await cluster.wait_for_leader()
    await cluster.kill_broker(old, power_cut=power_cut)
    return old, await cluster.wait_for_leader(other_than=old)


async def read(cluster: Cluster, count: int, topic: str = "orders", group: str = "g") -> list[str]:
    """The next messages of a consumer, acknowledged; so many different ones."""
    found: list[str] = []
    async with cluster.consumer(group) as consumer, asyncio.timeout(120):
        consumer.subscribe(topic)
        async for message in consumer:
            found.append(message.body.decode())
            await message.ack()
            if len(set(found)) == count:
                break
    return found
