"""What may go wrong around a consumer, and that it goes on."""

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from gantrymq.client.consume.pull.pull_consumer import PullConsumer
from gantrymq.client.consume.push.consumer import Consumer
from gantrymq.client.core.options import ConsumerOptions
from gantrymq.client.messages.delivery import Delivery
from gantrymq.model import Message, Queue
from gantrymq.testing import Cluster

Simulate = Callable[..., None]
Story = Callable[[Cluster], Coroutine[Any, Any, None]]
FIRST = ConsumerOptions(consume_from_where="CONSUME_FROM_FIRST_OFFSET")
Q0 = Queue("T", "broker-a", 0)


async def send(cluster: Cluster, *bodies: str, queue: Queue | None = None) -> None:
    async with cluster.producer("sender") as producer:
        for body in bodies:
            await producer.send(Message("T", body), queue=queue)


async def next_body(consumer: Consumer) -> str:
    async with asyncio.timeout(120):
        message = await anext(aiter(consumer))
    await message.ack()
    return message.body.decode()


def test_an_offset_outside_the_queue_is_corrected(gantry_sim: Simulate) -> None:
    """
    A committed offset beyond the end of the queue is corrected, and the next message is
    delivered.
    """

    async def story(cluster: Cluster) -> None:
        await send(cluster, "1", "2", queue=Q0)
        async with PullConsumer(
            cluster.namesrv, group="g", network=cluster.network, clock=cluster.clock
        ) as puller:
            await puller.commit(Q0, 99)
        async with cluster.consumer("g") as consumer:
            consumer.subscribe("T")
            await consumer.wait_assigned(4)
            await asyncio.sleep(15)
            await send(cluster, "3", queue=Q0)
            assert await next_body(consumer) == "3"

    gantry_sim(story)


def test_a_queue_whose_pulls_ended_is_taken_afresh(gantry_sim: Simulate) -> None:
    """
    A queue whose pull loop has died is taken again at the next rebalance.
    """

    async def story(cluster: Cluster) -> None:
        await send(cluster, "1", queue=Q0)
        async with cluster.consumer("g", options=FIRST) as consumer:
            consumer.subscribe("T")
            assert await next_body(consumer) == "1"
            for process_queue in consumer._running.process_queues.held.values():
                assert process_queue.pulls is not None
                process_queue.pulls.cancel()
            await send(cluster, "2", queue=Q0)
            async with asyncio.timeout(21):
                assert await next_body(consumer) == "2"

    gantry_sim(story)


def test_a_handler_that_hangs_gives_its_message_to_another(gantry_sim: Simulate) -> None:
    """
    A message whose handler hangs longer than the consume timeout is delivered again.
    """

    async def story(cluster: Cluster) -> None:
        await send(cluster, "slow")
        tries: list[int] = []
        async with cluster.consumer("g", options=FIRST) as consumer:

            @consumer.handler
            async def work(message: Delivery) -> None:
                tries.append(message.reconsume_times)
                if not message.reconsume_times:
                    await asyncio.sleep(2000)

            consumer.subscribe("T")
            await asyncio.sleep(2500)
        assert tries == [0, 1]
        async with cluster.consumer("g") as consumer:
            consumer.subscribe("T")
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(60):
                    await anext(aiter(consumer))

    gantry_sim(story)


def test_a_handler_may_close_its_consumer(gantry_sim: Simulate) -> None:
    """
    A handler may close its own consumer without waiting for itself.
    """

    async def story(cluster: Cluster) -> None:
        await send(cluster, "last")
        loop = asyncio.get_running_loop()
        async with cluster.consumer("g", options=FIRST) as consumer:

            @consumer.handler
            async def work(message: Delivery) -> None:
                await message.ack()
                await consumer.close()

            consumer.subscribe("T")
            started = loop.time()
            await consumer.run()
            assert loop.time() - started < 2

    gantry_sim(story)


def test_queues_added_to_a_topic_are_found(gantry_sim: Simulate) -> None:
    """
    Queues that are added to a topic are assigned after the next look at the route.
    """

    async def story(cluster: Cluster) -> None:
        await send(cluster, "1")
        async with cluster.consumer("g", options=FIRST) as consumer:
            consumer.subscribe("T")
            assert await next_body(consumer) == "1"
            await cluster.create_topic("T", queues=6)
            async with asyncio.timeout(40):
                assert len(await consumer.wait_assigned(6)) == 6

    gantry_sim(story)


@pytest.mark.parametrize("ordered", [False, True], ids=["concurrent", "ordered"])
@pytest.mark.parametrize("seed", range(6))
def test_no_message_is_lost_while_members_come_and_go(
    gantry_sim: Simulate, seed: int, ordered: bool
) -> None:
    """
    Every message is handled while members join and leave, and in order when the consumer is
    ordered.
    """

    async def story(cluster: Cluster) -> None:
        rng = random.Random(seed)
        seen: dict[str, int] = {}
        last: dict[Queue, int] = {}

        async def work(message: Delivery) -> None:
            await asyncio.sleep(rng.random() * 0.2)
            if rng.random() < 0.1:
                raise RuntimeError("this time it fails")
            body = message.body.decode()
            seen[body] = seen.get(body, 0) + 1
            if ordered and message.offset > last.get(message.queue, -1):
                assert message.offset == last.get(message.queue, -1) + 1, "one was overtaken"
                last[message.queue] = message.offset

        async def member() -> Consumer:
            consumer = cluster.consumer("g", ordered=ordered, options=FIRST)
            consumer.handler(work)
            await consumer.start()
            consumer.subscribe("T")
            return consumer

        members = [await member()]
        for number in range(300):
            await send(cluster, str(number))
            await asyncio.sleep(rng.random() * 0.2)
            roll = rng.random()
            if roll < 0.03 and len(members) < 5:
                members.append(await member())
            elif roll < 0.06 and len(members) > 1:
                await members.pop(rng.randrange(len(members))).close()
            elif roll < 0.07:
                await cluster.stop_broker()
                await asyncio.sleep(rng.random() * 40)
                await cluster.start_broker()
        await asyncio.sleep(400)
        for consumer in members:
            await consumer.close()
        assert sorted(seen, key=int) == [str(number) for number in range(300)]

    gantry_sim(story, seed=seed)
