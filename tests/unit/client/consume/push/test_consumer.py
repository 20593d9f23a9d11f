"""The consumer against a real name server and broker, in memory and in virtual time."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from gantrymq.base.errors import ConfigError
from gantrymq.client.consume.push.consumer import Consumer
from gantrymq.client.core.consumer_errors import AlreadyFinished, ConsumerMisused
from gantrymq.client.core.errors import Closed, NotStarted
from gantrymq.client.core.options import ConsumerOptions
from gantrymq.client.messages.delivery import Delivery
from gantrymq.model import Message, Queue, dead_topic
from gantrymq.testing import Cluster

Simulate = Callable[[Callable[[Cluster], Coroutine[Any, Any, None]]], None]
FIRST = ConsumerOptions(consume_from_where="CONSUME_FROM_FIRST_OFFSET")


async def send(cluster: Cluster, topic: str, *bodies: str, tags: str | None = None) -> None:
    async with cluster.producer("sender") as producer:
        for body in bodies:
            await producer.send(Message(topic, body, tags=tags))


async def take(consumer: Consumer, count: int) -> list[Delivery]:
    """So many messages, not finished yet."""
    found: list[Delivery] = []
    async with asyncio.timeout(600):
        async for message in consumer:
            found.append(message)
            if len(found) == count:
                break
    return found


async def bodies_acked(consumer: Consumer, count: int) -> list[str]:
    messages = await take(consumer, count)
    for message in messages:
        await message.ack()
    return sorted(message.body.decode() for message in messages)


async def nothing_comes(consumer: Consumer, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            async for message in consumer:
                pytest.fail(f"{message!r} came")
    except TimeoutError:
        return True
    return False


def test_a_group_goes_on_where_it_was(gantry_sim: Simulate) -> None:
    """
    A group that comes back reads from its committed offsets on.
    """

    async def story(cluster: Cluster) -> None:
        await send(cluster, "T", "1", "2", "3")
        async with cluster.consumer("g", options=FIRST) as consumer:
            consumer.subscribe("T")
            assert await bodies_acked(consumer, 3) == ["1", "2", "3"]
        await send(cluster, "T", "4", "5")

        async with cluster.consumer("g", options=FIRST) as consumer:
            consumer.subscribe("T")
            assert await bodies_acked(consumer, 2) == ["4", "5"]
            assert await nothing_comes(consumer, 60)

    gantry_sim(story)


def test_unfinished_messages_come_again_after_close(gantry_sim: Simulate) -> None:
    """
    Messages that were not finished before the close are delivered again to the next member.
    """

    async def story(cluster: Cluster) -> None:
        await send(cluster, "T", "1", "2", "3")
        async with cluster.consumer("g", options=FIRST) as consumer:
            consumer.subscribe("T")
            first, second, _ = await take(consumer, 3)
            await first.ack()
        with pytest.raises(Closed):
            await second.ack()

        async with cluster.consumer("g") as consumer:
            consumer.subscribe("T")
            again = await bodies_acked(consumer, 2)
            assert set(again) == {"1", "2", "3"} - {first.body.decode()}

    gantry_sim(story)


def test_unfinished_messages_come_again_after_a_quarter_of_an_hour(gantry_sim: Simulate) -> None:
    """
    A message that is not finished within the consume timeout is delivered again.
    """

    async def story(cluster: Cluster) -> None:
        await send(cluster, "T", "slow")
        loop = asyncio.get_running_loop()
        async with cluster.consumer("g", options=FIRST) as consumer:
            consumer.subscribe("T")
            (held,) = await take(consumer, 1)
            started = loop.time()
            async with asyncio.timeout(1200):
                again = await anext(aiter(consumer))
            assert 900 <= loop.time() - started <= 900 + 60 + 11
            assert (again.body, again.msg_id) == (b"slow", held.msg_id)
            assert again.reconsume_times == 1
            with pytest.raises(AlreadyFinished):
                await held.ack()
            await again.ack()

    gantry_sim(story)


def test_a_retry_comes_back_later_with_its_id_and_topic(gantry_sim: Simulate) -> None:
    """
    A retried message comes back after its delay level with its id, topic and a higher count.
    """

    async def story(cluster: Cluster) -> None:
        await send(cluster, "T", "again", tags="a")
        loop = asyncio.get_running_loop()
        async with cluster.consumer("g", options=FIRST) as consumer:
            consumer.subscribe("T", tags="a")
            (message,) = await take(consumer, 1)
            started, waits = loop.time(), []
            for _ in range(3):
                await message.retry()
                (later,) = await take(consumer, 1)
                waits.append(round(loop.time() - started))
                started = loop.time()
                assert (later.msg_id, later.topic) == (message.msg_id, "T")
                assert later.reconsume_times == len(waits)
                assert later.offset_msg_id != message.offset_msg_id
                message = later
            await message.ack()
            assert waits == [10, 30, 60]
            assert await nothing_comes(consumer, 300)

    gantry_sim(story)


def test_dead_letters_are_not_delivered_again_but_can_be_read(gantry_sim: Simulate) -> None:
    """
    A dead letter is not delivered to its group again, and can be read from the group's
    dead-letter topic.
    """

    async def story(cluster: Cluster) -> None:
        await send(cluster, "T", "poison")
        async with cluster.consumer("g", options=FIRST) as consumer:
            consumer.subscribe("T")
            (message,) = await take(consumer, 1)
            await message.dead()
            assert await nothing_comes(consumer, 300)
        async with cluster.consumer("undertaker", options=FIRST) as consumer:
            consumer.subscribe(dead_topic("g"))
            assert await bodies_acked(consumer, 1) == ["poison"]

    gantry_sim(story)


def test_retries_end_in_the_dead_letters(gantry_sim: Simulate) -> None:
    """
    A message that fails more often than max_retries becomes a dead letter.
    """

    async def story(cluster: Cluster) -> None:
        await send(cluster, "T", "poison")
        tries: list[int] = []
        async with cluster.consumer("g", options=FIRST, max_retries=2) as consumer:

            @consumer.handler
            async def fail(message: Delivery) -> None:
                tries.append(message.reconsume_times)
                raise RuntimeError("no")

            consumer.subscribe("T")
            await asyncio.sleep(300)
        assert tries == [0, 1, 2]
        async with cluster.consumer("undertaker", options=FIRST) as consumer:
            consumer.subscribe(dead_topic("g"))
            assert await bodies_acked(consumer, 1) == ["poison"]

    gantry_sim(story)


def test_a_handler_that_returns_none_acknowledges(gantry_sim: Simulate) -> None:
    """
    A handler that returns None acknowledges its message.
    """

    async def story(cluster: Cluster) -> None:
        await send(cluster, "T", *map(str, range(50)))
        seen: list[str] = []
        async with cluster.consumer("g", options=FIRST) as consumer:

            @consumer.handler
            async def note(message: Delivery) -> None:
                await asyncio.sleep(0.01)
                seen.append(message.body.decode())

            consumer.subscribe("T")
            await asyncio.sleep(5)
        assert sorted(seen, key=int) == [str(number) for number in range(50)]
        async with cluster.consumer("g") as consumer:
            consumer.subscribe("T")
            assert await nothing_comes(consumer, 60)

    gantry_sim(story)


def test_a_handler_that_returns_a_value_is_told_so_and_the_message_retried(
    gantry_sim: Simulate, caplog: pytest.LogCaptureFixture
) -> None:
    """
    A handler that returns anything but None or a status is reported, and its message is
    retried.
    """

    async def story(cluster: Cluster) -> None:
        await send(cluster, "T", "1")
        tries: list[int] = []
        async with cluster.consumer("g", options=FIRST) as consumer:

            def wrong(message: Delivery) -> Any:
                tries.append(message.reconsume_times)
                return "CONSUME_SUCCESS"

            consumer.handler(wrong)
            consumer.subscribe("T")
            await asyncio.sleep(15)
        assert tries == [0, 1]

    with caplog.at_level(logging.ERROR):
        gantry_sim(story)
    assert "TypeError: handler returned 'CONSUME_SUCCESS'" in caplog.text


def test_a_handler_may_finish_messages_itself(gantry_sim: Simulate) -> None:
    """
    A handler may acknowledge, retry or kill a message itself, which then counts.
    """

    async def story(cluster: Cluster) -> None:
        await send(cluster, "T", "keep", "drop")
        seen: list[tuple[str, int]] = []
        async with cluster.consumer("g", options=FIRST) as consumer:

            @consumer.handler
            async def choose(message: Delivery) -> None:
                seen.append((message.body.decode(), message.reconsume_times))
                if message.body == b"keep" and not message.reconsume_times:
                    await message.retry()

            consumer.subscribe("T")
            await asyncio.sleep(60)
        assert sorted(seen) == [("drop", 0), ("keep", 0), ("keep", 1)]

    gantry_sim(story)


def test_a_batch_handler_gets_lists(gantry_sim: Simulate) -> None:
    """
    A handler with `batch` gets lists of at most that many messages.
    """

    async def story(cluster: Cluster) -> None:
        async with cluster.producer("sender") as producer:
            await producer.send(Message("T", "0"))
            queue = Queue("T", "broker-a", 0)
            for number in range(1, 20):
                await producer.send(Message("T", str(number)), queue=queue)
        sizes: list[int] = []
        async with cluster.consumer("g", options=FIRST) as consumer:

            @consumer.handler(batch=8)
            async def note(messages: list[Delivery]) -> None:
                sizes.append(len(messages))

            consumer.subscribe("T")
            await asyncio.sleep(5)
        assert sum(sizes) == 20
        assert max(sizes) == 8

    gantry_sim(story)


def test_at_most_so_many_handlers_run_at_once(gantry_sim: Simulate) -> None:
    """
    Not more than `concurrency` handlers run at the same time.
    """

    async def story(cluster: Cluster) -> None:
        await send(cluster, "T", *map(str, range(40)))
        running, most = 0, 0
        async with cluster.consumer("g", options=FIRST, concurrency=7) as consumer:

            @consumer.handler
            async def work(message: Delivery) -> None:
                nonlocal running, most
                running += 1
                most = max(most, running)
                await asyncio.sleep(1)
                running -= 1

            consumer.subscribe("T")
            await asyncio.sleep(20)
        assert most == 7

    gantry_sim(story)


def test_tags_with_the_same_hash_are_told_apart(gantry_sim: Simulate) -> None:
    """
    Two tags with the same hash code are told apart by their text.
    """

    async def story(cluster: Cluster) -> None:
        await send(cluster, "T", "wanted", tags="Aa")
        await send(cluster, "T", "unwanted", tags="BB")
        await send(cluster, "T", "other", tags="C")
        async with cluster.consumer("g", options=FIRST) as consumer:
            consumer.subscribe("T", tags="Aa || D")
            assert await bodies_acked(consumer, 1) == ["wanted"]
            assert await nothing_comes(consumer, 60)

    gantry_sim(story)


def test_a_new_group_skips_history_unless_told_otherwise(gantry_sim: Simulate) -> None:
    """
    A new group begins at the end or at a time, as its options say.
    """

    async def story(cluster: Cluster) -> None:
        await send(cluster, "T", "history")
        await asyncio.sleep(3600)
        await send(cluster, "T", "recent")
        await asyncio.sleep(60)
        skip = ConsumerOptions(from_last_skips_young_queues=True)
        by_time = ConsumerOptions(
            consume_from_where="CONSUME_FROM_TIMESTAMP", from_last_skips_young_queues=True
        )
        async with (
            cluster.consumer("last", options=skip) as last,
            cluster.consumer("timed", options=by_time) as timed,
            cluster.consumer("first", options=FIRST) as first,
        ):
            for consumer in (last, timed, first):
                consumer.subscribe("T")
                await consumer.wait_assigned(4)
            await send(cluster, "T", "new")
            assert await bodies_acked(last, 1) == ["new"]
            assert await bodies_acked(timed, 2) == ["new", "recent"]
            assert await bodies_acked(first, 3) == ["history", "new", "recent"]

    gantry_sim(story)


def test_members_share_the_queues_and_take_over_from_each_other(gantry_sim: Simulate) -> None:
    """
    Members of a group divide the queues, and take over those of a member that leaves.
    """

    async def story(cluster: Cluster) -> None:
        await send(cluster, "T", "0")
        loop = asyncio.get_running_loop()
        async with cluster.consumer("g") as one:
            one.subscribe("T")
            everything = await one.wait_assigned(4)
            async with cluster.consumer("g") as two:
                two.subscribe("T")
                started = loop.time()
                theirs = await two.wait_assigned(2)
                await asyncio.sleep(0.5)
                assert sorted(one.assignment + theirs) == everything
                assert len(one.assignment) == 2
                assert loop.time() - started < 1
            await asyncio.sleep(1)
            assert one.assignment == everything

    gantry_sim(story)


def test_each_message_reaches_one_member_only(gantry_sim: Simulate) -> None:
    """
    With two members each message is handled by exactly one.
    """

    async def story(cluster: Cluster) -> None:
        await send(cluster, "T", "0")
        seen: dict[str, list[str]] = {"one": [], "two": []}
        async with cluster.consumer("g") as one, cluster.consumer("g") as two:
            for name, consumer in (("one", one), ("two", two)):

                def note(message: Delivery, name: str = name) -> None:
                    seen[name].append(message.body.decode())

                consumer.handler(note)
                consumer.subscribe("T")
                await consumer.wait_assigned(2)
            await asyncio.sleep(2)
            await send(cluster, "T", *map(str, range(1, 41)))
            await asyncio.sleep(5)
        both = [body for body in seen["one"] + seen["two"] if body != "0"]
        assert sorted(both, key=int) == [str(number) for number in range(1, 41)]
        assert len(seen["one"]) >= 20 <= len(seen["two"]) + 1

    gantry_sim(story)


def test_a_slow_reader_stops_pulling(gantry_sim: Simulate) -> None:
    """
    A consumer stops pulling a queue whose unfinished messages reach the threshold.
    """

    async def story(cluster: Cluster) -> None:
        queue = Queue("T", "broker-a", 0)
        async with cluster.producer("sender") as producer:
            await producer.send(Message("T", "0"))
            for number in range(1, 200):
                await producer.send(Message("T", str(number)), queue=queue)
        tight = ConsumerOptions(
            consume_from_where="CONSUME_FROM_FIRST_OFFSET", pull_threshold_for_queue=50
        )
        async with cluster.consumer("g", options=tight) as consumer:
            consumer.subscribe("T")
            await asyncio.sleep(30)
            held = max(
                process_queue.progress.count
                for process_queue in consumer._running.process_queues.held.values()
            )
            assert 50 < held <= 50 + 32
            for _ in range(200):
                await bodies_acked(consumer, 1)

    gantry_sim(story)


def test_a_held_consumer_hands_nothing_out(gantry_sim: Simulate) -> None:
    """
    A paused consumer delivers nothing until its time is over or it is resumed.
    """

    async def story(cluster: Cluster) -> None:
        await send(cluster, "T", "1")
        async with cluster.consumer("g", options=FIRST) as consumer:
            consumer.subscribe("T")
            await bodies_acked(consumer, 1)
            consumer.pause(30)
            await send(cluster, "T", "2")
            assert await nothing_comes(consumer, 29)
            assert await bodies_acked(consumer, 1) == ["2"]
            consumer.pause(1000)
            await send(cluster, "T", "3")
            consumer.resume()
            assert await bodies_acked(consumer, 1) == ["3"]

    gantry_sim(story)


def test_a_topic_that_is_made_later_is_read_when_it_exists(gantry_sim: Simulate) -> None:
    """
    A topic that is created after the subscription is read as soon as it has a route.
    """

    async def story(cluster: Cluster) -> None:
        async with cluster.consumer("g", options=FIRST) as consumer:
            consumer.subscribe("later")
            await asyncio.sleep(10)
            await send(cluster, "later", "1")
            async with asyncio.timeout(20):
                assert await bodies_acked(consumer, 1) == ["1"]

    gantry_sim(story)


def test_a_topic_can_be_left(gantry_sim: Simulate) -> None:
    """
    After `unsubscribe` the queues of the topic are given back and its messages are not
    delivered.
    """

    async def story(cluster: Cluster) -> None:
        await send(cluster, "A", "a")
        await send(cluster, "B", "b")
        async with cluster.consumer("g", options=FIRST) as consumer:
            consumer.subscribe("A")
            consumer.subscribe("B")
            assert await bodies_acked(consumer, 2) == ["a", "b"]
            consumer.unsubscribe("A")
            await asyncio.sleep(1)
            assert {queue.topic for queue in consumer.assignment} == {"B"}
            await send(cluster, "A", "unread")
            await send(cluster, "B", "read")
            assert await bodies_acked(consumer, 1) == ["read"]

    gantry_sim(story)


def test_nothing_is_lost_when_the_broker_restarts(gantry_sim: Simulate) -> None:
    """
    A restart of the broker loses no message and no acknowledgement.
    """

    async def story(cluster: Cluster) -> None:
        await send(cluster, "T", "1", "2")
        async with cluster.consumer("g", options=FIRST) as consumer:
            consumer.subscribe("T")
            first, second = await take(consumer, 2)
            await first.ack()
            await cluster.stop_broker()
            await asyncio.sleep(5)
            await second.ack()
            await cluster.start_broker()
            await send(cluster, "T", "3")
            async with asyncio.timeout(60):
                assert await bodies_acked(consumer, 1) == ["3"]
            assert await nothing_comes(consumer, 120)

    gantry_sim(story)


def test_a_message_that_cannot_be_sent_back_is_tried_again_here(gantry_sim: Simulate) -> None:
    """
    A retry that no broker takes is delivered again by the client itself.
    """

    async def story(cluster: Cluster) -> None:
        await send(cluster, "T", "1")
        async with cluster.consumer("g", options=FIRST) as consumer:
            consumer.subscribe("T")
            (message,) = await take(consumer, 1)
            await cluster.stop_broker()
            await message.retry()
            async with asyncio.timeout(30):
                (again,) = await take(consumer, 1)
            assert (again.body, again.reconsume_times) == (b"1", 1)
            await cluster.start_broker()
            await again.ack()

    gantry_sim(story)


def test_using_it_wrongly_says_how(gantry_sim: Simulate) -> None:
    """
    A call at the wrong time or with contradicting arguments raises an error that says what to
    do.
    """

    async def story(cluster: Cluster) -> None:
        consumer = cluster.consumer("g")
        with pytest.raises(NotStarted):
            await anext(aiter(consumer))
        async with consumer:
            with pytest.raises(ConsumerMisused, match="tags or sql"):
                consumer.subscribe("T", tags="a", sql="b = 1")
            consumer.handler(lambda message: None)
            with pytest.raises(ConsumerMisused, match="one handler"):
                consumer.handler(lambda message: None)
            with pytest.raises(ConsumerMisused, match="iterated"):
                await anext(aiter(consumer))
        with pytest.raises(Closed):
            await consumer.run()
        with pytest.raises(ConsumerMisused, match="reserved"):
            cluster.consumer("DEFAULT_CONSUMER")
        with pytest.raises(ConfigError, match="AVG_BY_CIRCLE"):
            ConsumerOptions(allocate_strategy="MACHINE_ROOM")  # type: ignore[arg-type]

    gantry_sim(story)
