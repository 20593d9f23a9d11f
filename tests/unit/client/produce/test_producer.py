"""The producer against real brokers, in memory and in virtual time."""

import asyncio
import os
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from gantrymq.base.errors import ConfigError
from gantrymq.client.core.errors import (
    Closed,
    ForkedError,
    MessageRefused,
    NoRoute,
    NotStarted,
    SendFailed,
    WindowFull,
)
from gantrymq.client.core.options import ClientOptions, ProducerOptions
from gantrymq.client.produce.producer import Producer
from gantrymq.client.sending.send_policy import sharded
from gantrymq.model import Message, NameRefused, Queue, SendResult
from gantrymq.testing import Cluster

Simulate = Callable[..., None]
Story = Callable[[Cluster], Coroutine[Any, Any, None]]


async def stored(cluster: Cluster, topic: str) -> dict[Queue, int]:
    """How many messages each queue of a topic holds."""
    async with cluster.admin() as admin:
        table = await admin.topic_stats(topic)
    return {queue: row.max_offset for queue, row in table.items()}


async def body_of(cluster: Cluster, result: SendResult) -> bytes:
    async with cluster.admin() as admin:
        return (await admin.message(result.offset_msg_id)).body


def test_a_result_says_where_the_message_is(gantry_sim: Simulate) -> None:
    """
    The result of a send has status, queue, offset and a message id of its own.
    """

    async def story(cluster: Cluster) -> None:
        await cluster.create_topic("T", queues=1)
        async with cluster.producer() as producer:
            first = await producer.send(Message("T", "one"))
            second = await producer.send(Message("T", "two"))
        assert (first.status, first.queue) == ("SEND_OK", Queue("T", "broker-a", 0))
        assert (first.offset, second.offset) == (0, 1)
        assert len(first.msg_id) == 32
        assert first.msg_id != second.msg_id
        assert await body_of(cluster, second) == b"two"

    gantry_sim(story)


def test_the_first_send_makes_the_topic_with_four_queues(gantry_sim: Simulate) -> None:
    """
    The first send to an unknown topic creates it with four queues.
    """

    async def story(cluster: Cluster) -> None:
        async with cluster.producer() as producer:
            await producer.send(Message("new", "x"))
            assert len(await stored(cluster, "new")) == 4

    gantry_sim(story)


def test_without_auto_creation_an_unknown_topic_has_no_route(gantry_sim: Simulate) -> None:
    """
    Without automatic creation a send to an unknown topic raises NoRoute.
    """

    async def story(cluster: Cluster) -> None:
        async with cluster.producer() as producer:
            with pytest.raises(NoRoute, match="'new'"):
                await producer.send(Message("new", "x"))
            with pytest.raises(NoRoute):
                await producer.submit(Message("new", "x"))

    gantry_sim(story, auto_create_topic_enable=False)


@pytest.mark.parametrize("way", ["send", "submit"])
def test_queues_of_all_brokers_take_turns(gantry_sim: Simulate, way: str) -> None:
    """
    Sends without a key go to the queues of all brokers in turn.
    """

    async def story(cluster: Cluster) -> None:
        await cluster.create_topic("T", queues=4)
        async with cluster.producer() as producer:
            for _ in range(80):
                message = Message("T", "x")
                await (producer.send(message) if way == "send" else producer.submit(message))
        assert list((await stored(cluster, "T")).values()) == [10] * 8

    gantry_sim(story, brokers=2)


def test_a_sharding_key_keeps_its_queue(gantry_sim: Simulate) -> None:
    """
    Messages with one sharding key go to one queue, chosen by RocketMQ's hash.
    """

    async def story(cluster: Cluster) -> None:
        await cluster.create_topic("T", queues=4)
        async with cluster.producer() as producer:
            queues = await producer.queues("T")
            for key in ("alice", "bob", "carol"):
                sent = [await producer.send(Message("T", "x", sharding_key=key)) for _ in range(3)]
                assert {result.queue for result in sent} == {sharded(queues, key)}

    gantry_sim(story, brokers=2)


def test_a_queue_can_be_given_or_selected(gantry_sim: Simulate) -> None:
    """
    A send can name its queue, or a selector that chooses it.
    """

    async def story(cluster: Cluster) -> None:
        await cluster.create_topic("T", queues=4)
        wanted = Queue("T", "broker-b", 2)
        async with cluster.producer() as producer:
            given = await producer.send(Message("T", "x"), queue=wanted)
            chosen = await producer.send(Message("T", "x"), selector=lambda queues: queues[0])
            later = await producer.submit(Message("T", "x"), queue=wanted)
        assert (given.queue, later.queue) == (wanted, wanted)
        assert chosen.queue == Queue("T", "broker-a", 0)

    gantry_sim(story, brokers=2)


def test_what_is_submitted_before_the_topic_is_known_keeps_its_order(gantry_sim: Simulate) -> None:
    """
    Messages that are submitted before the route is known are stored in their order.
    """

    async def story(cluster: Cluster) -> None:
        async with cluster.producer() as producer:
            futures = [
                producer.submit(Message("new", str(number), sharding_key="k"))
                for number in range(200)
            ]
            await asyncio.sleep(0.001)
            futures += [
                producer.submit(Message("new", str(number), sharding_key="k"))
                for number in range(200, 400)
            ]
            results = await asyncio.gather(*futures)
        assert [result.offset for result in results] == list(range(400))
        assert await body_of(cluster, results[399]) == b"399"

    gantry_sim(story)


def test_a_batch_is_stored_as_single_messages_in_a_row(gantry_sim: Simulate) -> None:
    """
    A batch is stored as single messages with consecutive offsets.
    """

    async def story(cluster: Cluster) -> None:
        await cluster.create_topic("T", queues=1)
        async with cluster.producer() as producer:
            result = await producer.send_batch([Message("T", text) for text in ("1", "2", "3")])
        assert (result.status, result.offset) == ("SEND_OK", 0)
        assert len(result.msg_id.split(",")) == 3
        assert await stored(cluster, "T") == {Queue("T", "broker-a", 0): 3}

    gantry_sim(story)


def test_a_large_body_arrives_as_it_was(gantry_sim: Simulate) -> None:
    """
    A body that is large enough for compression arrives unchanged.
    """

    async def story(cluster: Cluster) -> None:
        body = os.urandom(100) * 1000
        async with cluster.producer() as producer:
            result = await producer.send(Message("T", body))
        assert await body_of(cluster, result) == body

    gantry_sim(story)


def test_a_one_way_message_arrives_without_an_answer(gantry_sim: Simulate) -> None:
    """
    `send_oneway` stores the message without an answer.
    """

    async def story(cluster: Cluster) -> None:
        await cluster.create_topic("T", queues=1)
        async with cluster.producer() as producer:
            await producer.send_oneway(Message("T", "x"))
            await producer.send(Message("T", "y"))
        assert await stored(cluster, "T") == {Queue("T", "broker-a", 0): 2}

    gantry_sim(story)


def test_a_full_window_refuses_and_room_waits(gantry_sim: Simulate) -> None:
    """
    `submit` raises WindowFull when the window is full, and `room` waits until it is not.
    """

    async def story(cluster: Cluster) -> None:
        options = ProducerOptions(window_messages=8)
        async with cluster.producer(options=options) as producer:
            futures = [producer.submit(Message("T", "x")) for _ in range(8)]
            with pytest.raises(WindowFull, match="room"):
                producer.submit(Message("T", "x"))
            await producer.room()
            futures.append(producer.submit(Message("T", "x")))
            assert {result.status for result in await asyncio.gather(*futures)} == {"SEND_OK"}

    gantry_sim(story)


def test_the_window_counts_bytes_as_well(gantry_sim: Simulate) -> None:
    """
    The window limits the bytes of pending sends, too.
    """

    async def story(cluster: Cluster) -> None:
        options = ProducerOptions(window_bytes=1000)
        async with cluster.producer(options=options) as producer:
            producer.submit(Message("T", "x" * 600))
            producer.submit(Message("T", "x" * 600))
            with pytest.raises(WindowFull):
                producer.submit(Message("T", "x"))
            sent = await producer.send_many(Message("T", "x" * 600) for _ in range(50))
            assert [r.status for r in sent if isinstance(r, SendResult)] == ["SEND_OK"] * 50

    gantry_sim(story)


def test_leaving_the_block_waits_for_what_is_under_way(gantry_sim: Simulate) -> None:
    """
    Leaving the `async with` block waits for all pending sends.
    """

    async def story(cluster: Cluster) -> None:
        async with cluster.producer() as producer:
            futures = [producer.submit(Message("T", "x")) for _ in range(100)]
        assert all(future.done() for future in futures)
        assert sum((await stored(cluster, "T")).values()) == 100

    gantry_sim(story)


def test_sends_survive_a_lost_connection(gantry_sim: Simulate) -> None:
    """
    A send after a lost connection opens a new one.
    """

    async def story(cluster: Cluster) -> None:
        async with cluster.producer() as producer:
            await producer.send(Message("T", "x"))
            cluster.network.cut_all()  # type: ignore[attr-defined]
            assert (await producer.send(Message("T", "x"))).status == "SEND_OK"

    gantry_sim(story)


def test_when_a_broker_is_down_the_others_take_the_messages(gantry_sim: Simulate) -> None:
    """
    Sends go to the other brokers while one is down.
    """

    async def story(cluster: Cluster) -> None:
        await cluster.create_topic("T")
        async with cluster.producer() as producer:
            await producer.send(Message("T", "x"))
            await cluster.stop_broker("broker-a")
            results = [await producer.send(Message("T", "x")) for _ in range(20)]
            results += await asyncio.gather(*(producer.submit(Message("T", "x")) for _ in range(9)))
        assert {result.queue.broker_name for result in results} == {"broker-b"}

    gantry_sim(story, brokers=2)


def test_a_send_that_nobody_answers_fails_when_its_time_is_over(gantry_sim: Simulate) -> None:
    """
    A send without an answer raises SendFailed when its timeout is over.
    """

    async def story(cluster: Cluster) -> None:
        loop = asyncio.get_running_loop()
        producer = cluster.producer()
        await producer.start()
        await producer.send(Message("T", "x"))
        cluster.network.part("127.0.0.1", "127.0.0.1")  # type: ignore[attr-defined]
        began = loop.time()
        with pytest.raises(SendFailed, match="in time"):
            await producer.send(Message("T", "x"))
        assert loop.time() - began == pytest.approx(3.0, abs=0.1)
        began = loop.time()
        with pytest.raises(SendFailed):
            await producer.send(Message("T", "x"), timeout=0.5)
        assert loop.time() - began == pytest.approx(0.5, abs=0.1)
        cluster.network.join("127.0.0.1", "127.0.0.1")  # type: ignore[attr-defined]
        assert (await producer.send(Message("T", "x"))).status == "SEND_OK"
        await producer.close()

    gantry_sim(story)


def test_a_cancelled_caller_leaves_nothing_behind(gantry_sim: Simulate) -> None:
    """
    A cancelled send gives its place in the window back.
    """

    async def story(cluster: Cluster) -> None:
        async with cluster.producer(options=ProducerOptions(window_messages=1)) as producer:
            await producer.send(Message("T", "x"))
            task = asyncio.create_task(producer.send(Message("T", "y")))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert (await producer.send(Message("T", "z"))).status == "SEND_OK"

    gantry_sim(story)


def test_brokers_know_the_producer_until_it_leaves(gantry_sim: Simulate) -> None:
    """
    Brokers list the producer until it closes.
    """

    async def story(cluster: Cluster) -> None:
        async with cluster.admin() as admin:
            async with cluster.producer("shop") as producer:
                await producer.send(Message("T", "x"))
                await producer.instance.heartbeat_now()
                known = (await admin.producers("shop", "T")).connection_set
                assert [member.client_id for member in known] == [producer.instance.client_id]
            assert (await admin.producers("shop", "T")).connection_set == []

    gantry_sim(story)


def test_a_producer_that_cannot_work_says_why() -> None:
    """
    A producer that is not started, is closed, or gets a bad message raises an error that says
    so.
    """

    async def story() -> None:
        producer = Producer("127.0.0.1:1", group="g")
        with pytest.raises(NotStarted, match="async with"):
            await producer.send(Message("T", "x"))
        async with producer:
            with pytest.raises(NameRefused):
                await producer.send(Message("no good", "x"))
            with pytest.raises(MessageRefused):
                producer.submit(Message("T", bytes(5_000_000)))
        with pytest.raises(Closed):
            producer.submit(Message("T", "x"))
        with pytest.raises(Closed):
            await producer.start()

    asyncio.run(story())


def test_a_forked_child_is_told_that_the_producer_is_its_parents() -> None:
    """
    A producer used in a forked child raises ForkedError.
    """

    async def story() -> int:
        async with Producer("127.0.0.1:1", group="g") as producer:
            child = os.fork()
            if child == 0:
                try:
                    producer.submit(Message("T", "x"))
                except ForkedError:
                    os._exit(17)
                os._exit(1)
            return child

    child = asyncio.run(story())
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 17


@pytest.mark.parametrize("group", ["DEFAULT_PRODUCER", "", "a b", "g" * 256])
def test_a_group_must_have_a_name_of_its_own(group: str) -> None:
    """
    An invalid or reserved group name is refused.
    """
    with pytest.raises(NameRefused):
        Producer("127.0.0.1:1", group=group)


@pytest.mark.parametrize(
    "bad",
    [{"compression": "gzip"}, {"latency_table": "5"}, {"retries": -1}, {"send_timeout_ms": 0}],
)
def test_an_option_that_cannot_be_is_refused(bad: dict[str, Any]) -> None:
    """
    An option outside its limits raises ConfigError with its name.
    """
    with pytest.raises(ConfigError, match=next(iter(bad))):
        ProducerOptions(**bad)


def test_a_misspelt_option_is_an_error() -> None:
    """
    A misspelt option raises TypeError with its name.
    """
    with pytest.raises(TypeError, match="namesvr"):
        ClientOptions(namesvr="127.0.0.1:1")  # type: ignore[call-arg]
