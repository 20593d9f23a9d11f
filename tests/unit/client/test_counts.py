"""What the client says of one thing is no plural."""

import asyncio
import logging
from collections.abc import Callable

import pytest

from gantrymq import ClientError, Delivery, Message, ProducerOptions
from gantrymq.base.plurals import counted
from gantrymq.client.admin.groups.lag import GroupLag, QueueLag, TopicLag
from gantrymq.client.admin.groups.lag_advice import advice
from gantrymq.client.admin.groups.members import HeldQueue, Member, Members
from gantrymq.client.core.errors import SendFailed, WindowFull
from gantrymq.model import Queue
from gantrymq.testing import Cluster

Simulate = Callable[..., None]


@pytest.mark.parametrize(
    "number, forms, said",
    [
        (0, ("message",), "0 messages"),
        (1, ("message",), "1 message"),
        (2, ("message",), "2 messages"),
        (1, ("try", "tries"), "1 try"),
        (3, ("try", "tries"), "3 tries"),
    ],
)
def test_a_number_decides_its_noun(number: int, forms: tuple[str, ...], said: str) -> None:
    """
    `counted` uses the singular for one and the plural for all others.
    """
    assert said == counted(number, *forms)


def test_a_message_of_one_byte_and_a_send_of_one_try() -> None:
    """
    Texts about one byte or one try use the singular.
    """
    assert "Message(topic='T', 1 byte, tags=None)" == repr(Message("T", "x"))
    assert "Message(topic='T', 2 bytes, tags=None)" == repr(Message("T", "xy"))
    assert "after 1 try (broker-a)" in str(SendFailed("T", ["broker-a"], ClientError("no")))
    assert "after 2 tries (a, b)" in str(SendFailed("T", ["a", "b"], ClientError("no")))


def test_a_window_with_one_message_in_it(gantry_sim: Simulate) -> None:
    """
    WindowFull uses the singular for one pending message.
    """

    async def story(cluster: Cluster) -> None:
        async with cluster.producer(options=ProducerOptions(window_messages=1)) as producer:
            producer.submit(Message("T", "x"))
            with pytest.raises(WindowFull, match=r"^1 message \(\d+ bytes?\) under way"):
                producer.submit(Message("T", "x"))

    gantry_sim(story)


def test_advice_for_one_queue_and_one_worker() -> None:
    """
    The advice about a lag uses the singular for one queue and one worker.
    """
    place = Queue("T", "broker-a", 0)
    member = Member("c", workers=1, queues={place: HeldQueue(cached_msg_count=2)})
    topic = TopicLag("T", (QueueLag(place, 5, 0),))

    said = "\n".join(advice(GroupLag("g", (topic,), Members((member,)))))

    assert "1 queue, each with a consumer" in said
    assert "2 messages in hand and 1 worker (" in said


def test_one_handler_that_is_cancelled(
    gantry_sim: Simulate, caplog: pytest.LogCaptureFixture
) -> None:
    """
    It is still at work when the time for closing is over.
    """
    begun = asyncio.Event()

    async def endless(message: Delivery) -> None:
        begun.set()
        await asyncio.sleep(3600)

    async def story(cluster: Cluster) -> None:
        await cluster.create_topic("T", queues=1)
        consumer = cluster.consumer("g", start="first", close_grace=1)
        consumer.subscribe("T")
        consumer.handler(endless)
        async with cluster.producer() as producer, consumer:
            await producer.send(Message("T", "x"))
            await begun.wait()

    with caplog.at_level(logging.WARNING):
        gantry_sim(story)
    assert "1 handler still running at the end: cancelled" in caplog.text
