"""Messages that fail: sent back, tried again and given up by clients of different kinds."""

import asyncio

import pytest
from clients import Client
from our_client import GO, Scene, story, take_and_ack, with_partners

from gantrymq import Delivery
from gantrymq.model import dead_topic

pytestmark = pytest.mark.timeout(240)

A_SECOND, FIVE_SECONDS = 1, 2


class TestDeadLetters:
    @with_partners
    @story
    async def test_what_a_foreign_consumer_gave_up_is_read_by_ours(
        self, scene: Scene, partner: Client
    ) -> None:
        """After its retries the message lies in %DLQ%group under the id it was sent with."""
        await scene.create_topic(queues=1)
        await scene.introduce_group()
        async with scene.producer() as producer:
            sent = await producer.send(scene.message("hopeless", "t", keys="k"))
        async with scene.beside(
            partner, "consume-concurrently",
            failures=100, maxReconsumeTimes=1, retryLevel=A_SECOND,
        ) as consumer:  # fmt: skip
            failed = [await consumer.until("failed") for _ in range(2)]
            (dead,) = await scene.stored(1, dead_topic(scene.group))

        assert [line["reconsumeTimes"] for line in failed] == [0, 1]
        assert (dead.body, dead.tags, dead.keys) == (b"hopeless", "t", ("k",))
        assert (dead.msg_id, dead.properties["RETRY_TOPIC"]) == (sent.msg_id, scene.topic)
        assert dead.properties["ORIGIN_MESSAGE_ID"] == sent.offset_msg_id

    @with_partners
    @story
    async def test_what_we_gave_up_is_read_by_a_foreign_consumer(
        self, scene: Scene, partner: Client
    ) -> None:
        """The reason that we keep with it disturbs nobody."""
        await scene.create_topic(queues=1)
        async with scene.producer() as producer, scene.consumer(max_retries=1) as consumer:
            consumer.subscribe(scene.topic)
            sent = await producer.send(scene.message("hopeless", "t", keys="k"))
            for _ in range(2):
                await (await anext(consumer)).retry(A_SECOND, reason="no such customer\nat all")
            dead = dead_topic(scene.group)
            await scene.stored(1, dead)
        (got,) = (
            await scene.java(partner, "consume-concurrently", topic=dead, group=f"{scene.group}_2")
        ).messages

        assert (got["body"], got["tags"], got["keys"]) == ("hopeless", "t", "k")
        assert got["properties"]["RETRY_TOPIC"] == scene.topic
        assert got["properties"]["ORIGIN_MESSAGE_ID"] == sent.offset_msg_id
        if partner is not GO:  # it tells the id of the copy
            assert got["msgId"] == sent.msg_id


class TestRetries:
    @with_partners
    @story
    async def test_our_member_gets_what_a_foreign_member_failed(
        self, scene: Scene, partner: Client
    ) -> None:
        """A retry belongs to the group, not to the member: it comes under its own topic."""
        await scene.create_topic(queues=1)
        await scene.introduce_group()
        async with scene.producer() as producer:
            sent = await producer.send(scene.message("later", "t"))
        async with scene.beside(
            partner, "consume-concurrently", failures=100, retryLevel=FIVE_SECONDS, persistMs=500
        ) as member:
            await member.until("failed")
            await scene.all_read()
        async with scene.consumer() as consumer:
            consumer.subscribe(scene.topic, tags="t")
            (got,) = await take_and_ack(consumer, 1)

        assert (got.body, got.topic, got.msg_id) == (b"later", scene.topic, sent.msg_id)
        assert got.reconsume_times >= 1  # a slow machine leaves time for another failure

    @with_partners
    @story
    async def test_a_foreign_member_gets_what_ours_failed(
        self, scene: Scene, partner: Client
    ) -> None:
        """The same the other way round."""
        await scene.create_topic(queues=1)
        failed = asyncio.Event()
        async with scene.producer() as producer, scene.consumer() as consumer:
            consumer.subscribe(scene.topic)

            @consumer.handler
            async def fail(message: Delivery) -> None:
                await message.retry(FIVE_SECONDS)
                failed.set()

            sent = await producer.send(scene.message("later", "t"))
            await failed.wait()
        (got,) = (await scene.java(partner, "consume-concurrently")).messages

        assert (got["body"], got["topic"], got["reconsumeTimes"]) == ("later", scene.topic, 1)
        assert got["properties"]["ORIGIN_MESSAGE_ID"] == sent.offset_msg_id
