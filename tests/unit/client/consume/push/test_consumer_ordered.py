"""Ordered consumers: one message of a queue at a time, retried in place, under the group's lock."""

import asyncio
from collections.abc import Callable, Coroutine
from itertools import pairwise
from typing import Any

from gantrymq.client.consume.push.consumer import Consumer
from gantrymq.client.core.options import ConsumerOptions
from gantrymq.client.messages.delivery import Delivery
from gantrymq.model import Message, Queue, dead_topic
from gantrymq.testing import Cluster

Simulate = Callable[[Callable[[Cluster], Coroutine[Any, Any, None]]], None]
FIRST = ConsumerOptions(consume_from_where="CONSUME_FROM_FIRST_OFFSET")
QUEUES = [Queue("T", "broker-a", number) for number in range(4)]


async def fill(cluster: Cluster, count: int, queues: list[Queue] = QUEUES) -> None:
    """Messages `0` to `count - 1` in each queue."""
    async with cluster.producer("sender") as producer:
        for number in range(count):
            for queue in queues:
                await producer.send(Message("T", str(number)), queue=queue)


async def make_topic(cluster: Cluster) -> None:
    """A first message makes the topic; whoever reads it is not this test's business."""
    async with cluster.producer("sender") as producer:
        await producer.send(Message("T", "first"))
    async with cluster.consumer("g", ordered=True, options=FIRST) as consumer:
        consumer.subscribe("T")
        async with asyncio.timeout(60):
            message = await anext(aiter(consumer))
            await message.ack()


def numbers(seen: list[tuple[int, int]], queue_id: int) -> list[int]:
    return [number for at, number in seen if at == queue_id]


def test_messages_of_a_queue_never_overlap_nor_overtake(gantry_sim: Simulate) -> None:
    """
    An ordered consumer handles the messages of a queue one after the other, in their order.
    """

    async def story(cluster: Cluster) -> None:
        await make_topic(cluster)
        await fill(cluster, 30)
        seen: list[tuple[int, int]] = []
        running: dict[int, int] = {}
        async with cluster.consumer("g", ordered=True) as consumer:

            @consumer.handler
            async def work(message: Delivery) -> None:
                queue_id = message.queue.queue_id
                running[queue_id] = running.get(queue_id, 0) + 1
                assert running[queue_id] == 1, "two messages of a queue at once"
                await asyncio.sleep(0.01)
                running[queue_id] -= 1
                seen.append((queue_id, int(message.body)))

            consumer.subscribe("T")
            await asyncio.sleep(10)
        for queue in QUEUES:
            assert numbers(seen, queue.queue_id) == list(range(30))
        first_half = {queue_id for queue_id, _ in seen[:60]}
        assert first_half == {0, 1, 2, 3}, "queues do not wait for each other"

    gantry_sim(story)


def test_a_failure_pauses_its_queue_and_is_tried_again_in_place(gantry_sim: Simulate) -> None:
    """
    A failed message of an ordered queue is retried in place, and nothing overtakes it.
    """

    async def story(cluster: Cluster) -> None:
        await make_topic(cluster)
        await fill(cluster, 5, QUEUES[:1])
        loop = asyncio.get_running_loop()
        seen: list[tuple[int, int]] = []
        times: list[float] = []
        async with cluster.consumer("g", ordered=True) as consumer:

            @consumer.handler
            async def work(message: Delivery) -> None:
                number = int(message.body)
                seen.append((number, message.reconsume_times))
                if number == 2 and message.reconsume_times < 3:
                    times.append(loop.time())
                    raise RuntimeError("not yet")

            consumer.subscribe("T")
            await asyncio.sleep(10)
        assert seen == [(0, 0), (1, 0), (2, 0), (2, 1), (2, 2), (2, 3), (3, 0), (4, 0)]
        assert [round(b - a, 3) for a, b in pairwise(times)] == [1, 1]

    gantry_sim(story)


def test_after_sixteen_retries_it_is_a_dead_letter_and_the_queue_goes_on(
    gantry_sim: Simulate,
) -> None:
    """
    An ordered message that fails sixteen retries becomes a dead letter, and its queue goes on.
    """

    async def story(cluster: Cluster) -> None:
        await make_topic(cluster)
        await fill(cluster, 2, QUEUES[:1])
        tries: list[tuple[str, int]] = []
        async with cluster.consumer("g", ordered=True) as consumer:

            @consumer.handler
            async def work(message: Delivery) -> None:
                tries.append((message.body.decode(), message.reconsume_times))
                if message.body == b"0":
                    raise RuntimeError("never")

            consumer.subscribe("T")
            await asyncio.sleep(60)
        assert tries == [("0", number) for number in range(17)] + [("1", 0)]
        async with cluster.consumer("undertaker", options=FIRST) as consumer:
            consumer.subscribe(dead_topic("g"))
            async with asyncio.timeout(60):
                assert (await anext(aiter(consumer))).body == b"0"

    gantry_sim(story)


def test_without_a_limit_a_failing_message_blocks_its_queue_for_ever(gantry_sim: Simulate) -> None:
    """
    With `max_retries=None` a failing message is retried for ever, and other queues go on.
    """

    async def story(cluster: Cluster) -> None:
        await make_topic(cluster)
        await fill(cluster, 2, QUEUES[:2])
        tries: list[tuple[int, str]] = []
        async with cluster.consumer("g", ordered=True, max_retries=None) as consumer:

            @consumer.handler
            async def work(message: Delivery) -> None:
                tries.append((message.queue.queue_id, message.body.decode()))
                if message.queue.queue_id == 0:
                    raise RuntimeError("never")

            consumer.subscribe("T")
            await asyncio.sleep(100)
        assert tries.count((0, "0")) > 90
        assert (0, "1") not in tries
        assert [body for queue_id, body in tries if queue_id == 1] == ["0", "1"]

    gantry_sim(story)


def test_iterating_gives_the_next_message_of_a_queue_when_the_last_one_is_finished(
    gantry_sim: Simulate,
) -> None:
    """
    Iteration yields the next message of a queue only after the one before is finished.
    """

    async def story(cluster: Cluster) -> None:
        await make_topic(cluster)
        await fill(cluster, 2, QUEUES[:1])
        async with cluster.consumer("g", ordered=True) as consumer:
            consumer.subscribe("T")
            async with asyncio.timeout(60):
                first = await anext(aiter(consumer))
            following = asyncio.ensure_future(anext(aiter(consumer)))
            await asyncio.sleep(60)
            assert not following.done()
            await first.ack()
            async with asyncio.timeout(1):
                second = await following
            assert (first.body, second.body) == (b"0", b"1")
            await second.ack()

    gantry_sim(story)


async def joined(cluster: Cluster, count: int) -> Consumer:
    consumer = cluster.consumer("g", ordered=True)
    await consumer.start()
    consumer.subscribe("T")
    async with asyncio.timeout(10):
        await consumer.wait_assigned(count)
    return consumer


def test_a_released_queue_is_taken_over_at_once(gantry_sim: Simulate) -> None:
    """
    A member that leaves unlocks its queues, so that the others lock them within seconds.
    """

    async def story(cluster: Cluster) -> None:
        await make_topic(cluster)
        loop = asyncio.get_running_loop()
        one = await joined(cluster, 4)
        started = loop.time()
        two = await joined(cluster, 2)
        assert loop.time() - started < 1.5
        assert len(one.assignment) == 2

        started = loop.time()
        await one.close()
        async with asyncio.timeout(10):
            assert await two.wait_assigned(4) == QUEUES
        assert loop.time() - started < 1.5
        await two.close()

    gantry_sim(story)


def test_a_queue_is_given_away_only_when_its_running_message_has_ended(
    gantry_sim: Simulate,
) -> None:
    """
    A queue is unlocked only after the handler of its current message has returned.
    """

    async def story(cluster: Cluster) -> None:
        await make_topic(cluster)
        await fill(cluster, 3)
        loop = asyncio.get_running_loop()
        events: list[tuple[str, int, str]] = []

        def worker(name: str) -> Callable[[Delivery], Coroutine[Any, Any, None]]:
            async def work(message: Delivery) -> None:
                at, body = message.queue.queue_id, message.body.decode()
                events.append((f"{name} begins", at, body))
                await asyncio.sleep(15 if name == "one" else 0)
                events.append((f"{name} ends", at, body))

            return work

        async with cluster.consumer("g", ordered=True, close_grace=30) as one:
            one.handler(worker("one"))
            one.subscribe("T")
            await one.wait_assigned(4)
            await asyncio.sleep(1)
            async with cluster.consumer("g", ordered=True) as two:
                two.handler(worker("two"))
                two.subscribe("T")
                async with asyncio.timeout(60):
                    theirs = await two.wait_assigned(2)
                assert loop.time() > 15
                await asyncio.sleep(5)
            for queue in theirs:
                mine = [(what, body) for what, at, body in events if at == queue.queue_id]
                assert mine[:2] == [("one begins", "0"), ("one ends", "0")]
                assert mine[2:4] == [("two begins", "1"), ("two ends", "1")]

    gantry_sim(story)


def test_order_survives_a_restart_of_the_broker(gantry_sim: Simulate) -> None:
    """
    An ordered consumer goes on in order after a restart of the broker.
    """

    async def story(cluster: Cluster) -> None:
        await make_topic(cluster)
        await fill(cluster, 10, QUEUES[:1])
        seen: list[int] = []
        async with cluster.consumer("g", ordered=True) as consumer:

            @consumer.handler
            async def work(message: Delivery) -> None:
                seen.append(int(message.body))
                await asyncio.sleep(1)

            consumer.subscribe("T")
            await asyncio.sleep(4)
            await cluster.stop_broker()
            await asyncio.sleep(90)
            await cluster.start_broker()
            await asyncio.sleep(60)
        once = list(dict.fromkeys(seen))
        assert once == list(range(10))
        assert seen == sorted(seen), "a message may come twice, but never after a later one"

    gantry_sim(story)
