"""Broadcasting: everybody gets everything, and keeps its own progress in a file."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from gantrymq.client.consume.membership.offset_store import parse_offsets
from gantrymq.client.consume.push.consumer import Consumer
from gantrymq.client.core.options import ClientOptions, ConsumerOptions
from gantrymq.client.messages.delivery import Delivery
from gantrymq.model import Message
from gantrymq.testing import Cluster

Simulate = Callable[[Callable[[Cluster], Coroutine[Any, Any, None]]], None]


def member(cluster: Cluster, name: str, directory: Path, **more: Any) -> Consumer:
    options = ConsumerOptions(
        consume_from_where="CONSUME_FROM_FIRST_OFFSET", offset_dir=str(directory)
    )
    client = ClientOptions(instance_name=name, client_ip="10.0.0.1")
    return cluster.consumer("g", broadcast=True, options=options, client=client, **more)


async def send(cluster: Cluster, *bodies: str) -> None:
    async with cluster.producer("sender") as producer:
        for body in bodies:
            await producer.send(Message("T", body))


async def read(consumer: Consumer, count: int) -> list[str]:
    found = []
    async with asyncio.timeout(60):
        async for message in consumer:
            await message.ack()
            found.append(message.body.decode())
            if len(found) == count:
                break
    return sorted(found)


def test_every_member_gets_every_message(gantry_sim: Simulate, tmp_path: Path) -> None:
    """
    In broadcast mode every member gets all messages.
    """

    async def story(cluster: Cluster) -> None:
        await send(cluster, "1", "2", "3")
        async with member(cluster, "a", tmp_path) as a, member(cluster, "b", tmp_path) as b:
            for consumer in (a, b):
                consumer.subscribe("T")
            assert await read(a, 3) == await read(b, 3) == ["1", "2", "3"]

    gantry_sim(story)


def test_progress_is_kept_in_rocketmqs_file(gantry_sim: Simulate, tmp_path: Path) -> None:
    """
    In broadcast mode a member stores its offsets in RocketMQ's file, and goes on from there.
    """

    async def story(cluster: Cluster) -> None:
        await send(cluster, "1", "2", "3")
        async with member(cluster, "a", tmp_path) as consumer:
            consumer.subscribe("T")
            await read(consumer, 3)
        table = parse_offsets((tmp_path / "10.0.0.1@a" / "g" / "offsets.json").read_bytes())
        assert sum(table.values()) == 3
        assert {queue.topic for queue in table} == {"T"}, "there is no retry topic"

        await send(cluster, "4")
        async with member(cluster, "a", tmp_path) as consumer:
            consumer.subscribe("T")
            assert await read(consumer, 1) == ["4"]

    gantry_sim(story)


def test_without_an_instance_name_the_file_is_the_same_in_every_process(
    gantry_sim: Simulate, tmp_path: Path
) -> None:
    """
    Without an instance name the folder of the offsets is that of DEFAULT, in every process.
    """

    async def story(cluster: Cluster) -> None:
        await send(cluster, "1")
        async with member(cluster, "DEFAULT", tmp_path) as consumer:
            consumer.subscribe("T")
            await read(consumer, 1)
        assert (tmp_path / "10.0.0.1@DEFAULT" / "g" / "offsets.json").exists()

    gantry_sim(story)


def test_a_failure_is_not_retried(gantry_sim: Simulate, tmp_path: Path) -> None:
    """
    In broadcast mode a message whose handler fails is not delivered again.
    """

    async def story(cluster: Cluster) -> None:
        await send(cluster, "1", "2")
        tries: list[str] = []
        async with member(cluster, "a", tmp_path) as consumer:

            @consumer.handler
            async def fail(message: Delivery) -> None:
                tries.append(message.body.decode())
                raise RuntimeError("no")

            consumer.subscribe("T")
            await asyncio.sleep(120)
        assert sorted(tries) == ["1", "2"]

    gantry_sim(story)


def test_broadcasting_in_order_needs_no_locks(gantry_sim: Simulate, tmp_path: Path) -> None:
    """
    In broadcast mode ordered consumers take no locks at the broker.
    """

    async def story(cluster: Cluster) -> None:
        await send(cluster, *map(str, range(8)))
        async with (
            member(cluster, "a", tmp_path, ordered=True) as a,
            member(cluster, "b", tmp_path, ordered=True) as b,
        ):
            for consumer in (a, b):
                consumer.subscribe("T")
            assert await read(a, 8) == await read(b, 8)
            await asyncio.sleep(120)
            await send(cluster, "8")
            assert await read(a, 1) == await read(b, 1) == ["8"]

    gantry_sim(story)
