"""A bulk send: what goes as a batch, what goes alone, and the table of results."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gantrymq import (
    BrokerRefused,
    GantryError,
    Message,
    ProducerOptions,
    PullConsumer,
    Queue,
    Received,
    SendFailed,
    SendResult,
    SendsFailed,
    TopicConfig,
)
from gantrymq.base.errors import WrongType
from gantrymq.model import READ
from gantrymq.testing import Cluster

Simulate = Callable[..., None]


async def stored(cluster: Cluster, topic: str) -> list[Received]:
    """Everything in a topic, queue by queue."""
    found: list[Received] = []
    async with PullConsumer(
        cluster.namesrv, group="r", network=cluster.network, clock=cluster.clock, rng=cluster.rng
    ) as consumer:
        for queue in await consumer.queues(topic):
            offset = 0
            while (pulled := await consumer.pull(queue, offset)).messages:
                found += pulled.messages
                offset = pulled.next_offset
    return found


def placed(results: Any) -> list[SendResult]:
    """The results, none of which is an error."""
    assert all(isinstance(result, SendResult) for result in results)
    return list(results)


def test_every_message_is_stored_where_its_result_says(gantry_sim: Simulate) -> None:
    """
    Ids, queues and offsets of 5,000 results are those of the stored messages, body by body.
    """

    async def story(cluster: Cluster) -> None:
        await cluster.create_topic("T", queues=3)
        options = ProducerOptions(batch_max_bytes=4_000)
        messages = [
            Message("T", f"{n}", "a" if n % 2 else None, [f"k{n}"], properties={"n": f"{n}"})
            if n % 3
            else Message("T", f"{n}", flag=n)
            for n in range(5_000)
        ]
        async with cluster.producer(options=options) as producer:
            results = await producer.send_all(messages)
            assert len(results) == 5_000
            results.raise_failures()
        there = {(m.queue, m.offset): m for m in await stored(cluster, "T")}
        assert len(there) == 5_000
        for message, result in zip(messages, placed(results), strict=True):
            found = there[result.queue, result.offset]
            assert found.body == message.body
            assert (found.msg_id, found.offset_msg_id) == (result.msg_id, result.offset_msg_id)
            assert (found.tags or None, found.keys) == (message.tags, message.keys)
            assert (found.flag, found.properties.get("n")) == (
                message.flag, message.properties.get("n"),
            )  # fmt: skip
        assert len({result.msg_id for result in placed(results)}) == 5_000
        assert set(Counter(queue for queue, _ in there)) == {
            Queue("T", "broker-a", n) for n in range(3)
        }

    gantry_sim(story)


def test_the_order_of_a_topic_with_one_queue_is_kept(gantry_sim: Simulate) -> None:
    """
    Messages of one queue lie in the order in which they were given, batches and single ones.
    """

    async def story(cluster: Cluster) -> None:
        await cluster.create_topic("T", queues=1)
        bodies = [b"%d" % n + (b"x" * 5_000 if n % 50 == 0 else b"") for n in range(700)]
        async with cluster.producer() as producer:
            await producer.send_all(Message("T", body) for body in bodies)
        assert [message.body for message in await stored(cluster, "T")] == bodies

    gantry_sim(story)


def test_what_no_batch_can_hold_goes_alone(gantry_sim: Simulate) -> None:
    """
    Messages with a delay, a sharding key or a large body are sent as they would be by `send`.
    """

    async def story(cluster: Cluster) -> None:
        await cluster.create_topic("T", queues=4)
        own = {"sharding_key": "customer"}
        messages = [
            Message("T", "a"), Message("T", "b"), Message("T", "wait", delay=5),
            *(Message("T", f"k{n}", **own) for n in range(5)), Message("T", b"z" * 9_000),
            Message("T", "c", wait_store_ok=False), Message("T", "d"), Message("T", "e"),
        ]  # fmt: skip
        async with cluster.producer() as producer:
            results = placed(await producer.send_all(messages))
        assert results[2].recall_handle
        assert len({result.queue for result in results[3:8]}) == 1
        await asyncio.sleep(10)  # of virtual time
        there = await stored(cluster, "T")
        assert sorted(m.body for m in there) == sorted(m.body for m in messages)

    gantry_sim(story)


def test_several_topics_keep_their_own(gantry_sim: Simulate) -> None:
    """
    A stream of messages to several topics is cut where the topic changes.
    """

    async def story(cluster: Cluster) -> None:
        topics = ["A", "A", "B", "B", "B", "A", "C"] * 100
        async with cluster.producer() as producer:
            results = placed(await producer.send_all(Message(topic, topic) for topic in topics))
        assert [result.queue.topic for result in results] == topics
        for topic in "ABC":
            assert len(await stored(cluster, topic)) == topics.count(topic)

    gantry_sim(story)


def test_one_refused_message_does_not_fail_the_others(gantry_sim: Simulate) -> None:
    """
    What a broker finds illegal in a batch is told apart; the error is in the row of its message.
    """

    async def story(cluster: Cluster) -> None:
        many = {f"p{n}": "x" for n in range(2_000)}
        messages = [Message("T", f"{n}") for n in range(20)]
        messages[7] = Message("T", "7", properties=many)
        messages[9] = Message("T", b"x" * 5_000_000)
        async with cluster.producer() as producer:
            results = await producer.send_all(messages)
        assert [place for place, _ in results.failures] == [7, 9]
        assert isinstance(results[7], SendFailed | BrokerRefused)
        assert "userPropertyMaxNum" in str(results[7])
        assert "max_message_bytes" in str(results[9])
        with pytest.raises(SendsFailed, match="2 of 20 messages not sent, the first is number 7"):
            results.raise_failures()
        good = [f"{n}".encode() for n in range(20) if n not in (7, 9)]
        assert sorted(message.body for message in await stored(cluster, "T")) == sorted(good)

    gantry_sim(story)


def test_the_table_can_be_read_in_every_way(gantry_sim: Simulate) -> None:
    """
    Rows by place, from the end, as slices, in turn, and as columns.
    """

    async def story(cluster: Cluster) -> None:
        async with cluster.producer() as producer:
            results = await producer.send_all(Message("T", f"{n}") for n in range(600))
            none = await producer.send_all([])
        rows = list(results)
        assert [results[n] for n in range(600)] == rows
        assert (results[-1], results[590:]) == (rows[599], rows[590:])
        with pytest.raises(IndexError):
            results[600]
        columns = results.columns()
        assert columns["offset"] == [row.offset for row in rows if isinstance(row, SendResult)]
        assert set(columns["error"]) == {None}
        assert (len(none), list(none), none.columns()["status"]) == (0, [], [])
        assert repr(results) == "SendResults(600 messages, 0 failed)"

    gantry_sim(story)


def test_what_was_given_before_an_error_of_the_caller_is_sent(gantry_sim: Simulate) -> None:
    """
    If the caller's iterable raises, or gives no message, that error comes out, after the answers to
    all that was under way.
    """

    def given() -> Iterator[Message]:
        for n in range(2_000):
            yield Message("T", f"{n}")
        raise ZeroDivisionError

    async def story(cluster: Cluster) -> None:
        async with cluster.producer() as producer:
            with pytest.raises(ZeroDivisionError):
                await producer.send_all(given())
            assert len(await stored(cluster, "T")) == 1_024
            with pytest.raises(WrongType, match="a Message"):
                await producer.send_all([Message("T", "x"), "y"])  # type: ignore[list-item]
            assert len(await stored(cluster, "T")) == 1_024

    gantry_sim(story)


def test_errors_of_a_whole_topic_are_in_every_row(gantry_sim: Simulate) -> None:
    """
    A topic that takes no messages gives each message its error, and the others are sent.
    """

    async def story(cluster: Cluster) -> None:
        closed = TopicConfig(topic_name="closed", perm=READ)
        async with cluster.admin() as admin:
            await admin.put_topics(cluster.broker().address, [closed])
        async with cluster.producer() as producer:
            results = await producer.send_all(
                [*(Message("closed", "x") for _ in range(5)), Message("T", "y"), Message("T", "z")]
            )
        assert [isinstance(row, GantryError) for row in results] == [True] * 5 + [False] * 2
        assert len(await stored(cluster, "T")) == 2

    gantry_sim(story)
