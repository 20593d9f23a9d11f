"""What brokers ask of consumers, over a connection that the consumer itself opened."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from gantrymq.client.consume.membership.offset_store import format_offsets, queue_pairs
from gantrymq.client.consume.push.consumer import Consumer
from gantrymq.client.consume.queues.pull_request import pull_raw
from gantrymq.client.core.options import ConsumerOptions
from gantrymq.client.messages.delivery import Delivery
from gantrymq.model import Message, Queue
from gantrymq.protocol import fastjson
from gantrymq.protocol.codes import RequestCode
from gantrymq.protocol.command import Command
from gantrymq.remoting.connection import Connection
from gantrymq.testing import Cluster

Simulate = Callable[[Callable[[Cluster], Coroutine[Any, Any, None]]], None]
FIRST = ConsumerOptions(consume_from_where="CONSUME_FROM_FIRST_OFFSET")
Q0 = Queue("T", "broker-a", 0)


async def fill(cluster: Cluster, count: int) -> None:
    async with cluster.producer("sender") as producer:
        for number in range(count):
            await producer.send(Message("T", str(number)), queue=Q0)


async def line_to(cluster: Cluster, consumer: Consumer) -> Connection:
    """The broker's end of a connection that the consumer opened."""
    accepted: asyncio.Future[Connection] = asyncio.get_running_loop().create_future()

    def accept() -> Connection:
        return Connection(on_made=accepted.set_result)

    listener = await cluster.network.listen("127.0.0.1", 0, accept)
    await consumer.instance.connections.get(f"127.0.0.1:{listener.port}")
    return await accepted


async def read(consumer: Consumer, count: int) -> list[int]:
    found = []
    async with asyncio.timeout(60):
        async for message in consumer:
            await message.ack()
            found.append(int(message.body))
            if len(found) == count:
                break
    return found


def test_a_consumer_tells_about_itself(gantry_sim: Simulate) -> None:
    """
    GET_CONSUMER_RUNNING_INFO (307) is answered with the queues, offsets and settings of the
    consumer.
    """

    async def story(cluster: Cluster) -> None:
        await fill(cluster, 10)
        async with cluster.consumer("g", options=FIRST) as consumer:
            consumer.subscribe("T")
            await read(consumer, 4)
            line = await line_to(cluster, consumer)
            ask = Command(code=RequestCode.GET_CONSUMER_RUNNING_INFO, ext={"consumerGroup": "g"})
            answer = await line.call(ask, 5)
            assert answer.code == 0
            info = fastjson.loads(answer.body)
            rows = {
                key["queueId"]: row for key, row in info["mqTable"].items() if key["topic"] == "T"
            }
            assert sorted(rows) == [0, 1, 2, 3]
            assert (rows[0]["commitOffset"], rows[0]["cachedMsgCount"]) == (4, 6)
            assert rows[0]["cachedMsgMinOffset"] == 4
            properties = info["properties"]
            assert int(properties["PROP_CONSUMER_START_TIMESTAMP"]) <= cluster.clock.now_ms()
            assert properties["PROP_CONSUMEORDERLY"] == "false"
            status = info["statusTable"]["T"]
            assert status["consumeOKTPS"] == 4 / 60
            assert status["pullTPS"] == 10 / 60
            topics = {row["topic"] for row in info["subscriptionSet"]}
            assert topics == {"T", "%RETRY%g"}

    gantry_sim(story)


def test_a_consumer_tells_its_offsets(gantry_sim: Simulate) -> None:
    """
    GET_CONSUMER_STATUS_FROM_CLIENT (221) is answered with the offset of each queue.
    """

    async def story(cluster: Cluster) -> None:
        await fill(cluster, 10)
        async with cluster.consumer("g", options=FIRST) as consumer:
            consumer.subscribe("T")
            await read(consumer, 4)
            line = await line_to(cluster, consumer)
            ask = Command(
                code=RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, ext={"group": "g", "topic": "T"}
            )
            table = fastjson.loads((await line.call(ask, 5)).body)["messageQueueTable"]
            assert dict(queue_pairs(table))[Q0] == 4

    gantry_sim(story)


def test_a_reset_begins_again_where_it_says(gantry_sim: Simulate) -> None:
    """
    RESET_CONSUMER_CLIENT_OFFSET (220) makes the consumer read from the offsets that it names.
    """

    async def story(cluster: Cluster) -> None:
        await fill(cluster, 10)
        async with cluster.consumer("g", options=FIRST) as consumer:
            consumer.subscribe("T")
            assert await read(consumer, 10) == list(range(10))
            line = await line_to(cluster, consumer)
            line.oneway(
                Command(
                    code=RequestCode.RESET_CONSUMER_CLIENT_OFFSET,
                    ext={"group": "g", "topic": "T", "timestamp": "0", "isForce": "true"},
                    body=format_offsets({Q0: 7}),
                )
            )
            assert await read(consumer, 3) == [7, 8, 9]
        async with cluster.consumer("g") as consumer:
            consumer.subscribe("T")
            await fill(cluster, 1)
            assert await read(consumer, 1) == [0]

    gantry_sim(story)


def test_requests_for_other_groups_are_left_alone(gantry_sim: Simulate) -> None:
    """
    A request for a group that the client does not have is answered with an error.
    """

    async def story(cluster: Cluster) -> None:
        await fill(cluster, 1)
        async with cluster.consumer("g", options=FIRST) as consumer:
            consumer.subscribe("T")
            line = await line_to(cluster, consumer)
            for code in (
                RequestCode.GET_CONSUMER_RUNNING_INFO,
                RequestCode.CONSUME_MESSAGE_DIRECTLY,
            ):
                answer = await line.call(Command(code=code, ext={"consumerGroup": "other"}), 5)
                assert answer.code == 1

    gantry_sim(story)


def test_a_message_can_be_tried_directly(gantry_sim: Simulate) -> None:
    """
    CONSUME_MESSAGE_DIRECTLY (309) runs the handler and answers with its result.
    """

    async def story(cluster: Cluster) -> None:
        await fill(cluster, 2)
        seen: list[tuple[str, bytes]] = []
        async with cluster.consumer("g") as consumer:

            @consumer.handler
            async def work(message: Delivery) -> None:
                seen.append((message.topic, message.body))
                if message.body == b"1":
                    raise RuntimeError("not this one")

            consumer.subscribe("T")
            await asyncio.sleep(5)
            seen.clear()
            line = await line_to(cluster, consumer)
            results = []
            for offset in (0, 1):
                record = await pull_raw(consumer.instance, "g", Q0, offset, max_count=1)
                ask = Command(
                    code=RequestCode.CONSUME_MESSAGE_DIRECTLY,
                    ext={"consumerGroup": "g", "brokerName": "broker-a"},
                    body=record.body,
                )
                answer = await line.call(ask, 5)
                results.append(fastjson.loads(answer.body)["consumeResult"])
        assert results == ["CR_SUCCESS", "CR_LATER"]
        assert seen == [("T", b"0"), ("T", b"1")]

    gantry_sim(story)
