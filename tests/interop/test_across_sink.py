"""The Spark sink's tasks against RocketMQ's servers, and epochs of ours for Java's consumers.

Spark itself is not needed: a task is a function from Arrow batches to sends.
"""

import asyncio

import pyarrow as pa
import pytest
from clients import JavaClient
from clusters import OURS
from expect import bodies
from our_client import NEW_JAVA, OLD_JAVA, Scene, on_real_servers, story

from gantrymq.base.errors import ConfigError
from gantrymq.client.produce.epochs import Epoch, id_prefix, stable_id
from gantrymq.client.produce.publishing import NotSupported, Publisher
from gantrymq.model import Message
from gantrymq.spark.options.sink_options import parse_sink_options
from gantrymq.spark.sink.sink import is_exact
from gantrymq.spark.sink.task import Assignment, write_rows

pytestmark = pytest.mark.timeout(240)


def rows(count: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {
            "body": bodies(count),
            "tags": ["t"] * count,
            "keys": [f"key-{number}" for number in range(count)],
            "properties": pa.array(
                [[("n", str(number))] for number in range(count)], pa.map_(pa.string(), pa.string())
            ),
            "delayLevel": pa.array([1 if not number else None for number in range(count)]),
        }
    )


class TestTheirServers:
    @on_real_servers
    @story
    async def test_rows_arrive_at_least_once_with_stable_ids(
        self, scene: Scene, where: str
    ) -> None:
        """Batches for most rows, a send of its own for the one that waits; ids as computed."""
        await scene.create_topic(queues=2)
        options = parse_sink_options(
            {"nameServer": scene.namesrv, "topic": scene.topic}, streaming=False
        )
        exact = await asyncio.to_thread(is_exact, options, {"body": "string"})
        task = Assignment("their-writer", 5, 2, exact=exact)
        written = await write_rows(task, options, iter([rows(20)]))
        async with scene.consumer() as consumer:
            consumer.subscribe(scene.topic)
            found = {}
            while len(found) < 20:
                message = await anext(consumer)
                found[message.body.decode()] = message
                await message.ack()
        prefix = id_prefix("their-writer", 5, 2)

        assert not exact
        assert (20, 0, {}) == (written.rows, written.refused, written.shares)
        assert sorted(bodies(20)) == sorted(found)
        assert {stable_id(prefix, number) for number in range(20)} == {
            message.properties["UNIQ_KEY"] for message in found.values()
        }

    @on_real_servers
    @story
    async def test_exactly_once_is_refused_there(self, scene: Scene, where: str) -> None:
        """The error says what to write instead; nothing was sent."""
        await scene.create_topic(queues=1)
        options = parse_sink_options(
            {"nameServer": scene.namesrv, "topic": scene.topic, "delivery": "exactly-once"},
            streaming=False,
        )
        with pytest.raises(ConfigError, match="write with delivery=at-least-once"):
            await asyncio.to_thread(is_exact, options, {"body": "string"})
        async with Publisher(scene.namesrv, "their-writer") as publisher:
            with pytest.raises(NotSupported, match="only GantryMQ's can"):
                await publisher.last_epoch()
            with pytest.raises(NotSupported, match="only GantryMQ's can"):
                await Epoch(publisher, 0).add([Message(scene.topic, "a")])


class TestTheirClients:
    @pytest.mark.parametrize("where, java", [(OURS, OLD_JAVA), (OURS, NEW_JAVA)])
    @story
    async def test_a_java_consumer_reads_a_published_epoch(
        self, scene: Scene, where: str, java: JavaClient
    ) -> None:
        """To it the messages are like all others."""
        await scene.create_topic(queues=2)
        await scene.introduce_group()
        async with scene.beside(java, "consume-concurrently", expected=6, timeout=60) as it:
            async with Publisher(scene.namesrv, scene.topic) as publisher:
                epoch = Epoch(publisher, 0)
                await epoch.add([Message(scene.topic, body, tags="t") for body in bodies(6)])
                await epoch.publish()
            seen = await it.finish()

        assert sorted(bodies(6)) == sorted(seen.bodies)
