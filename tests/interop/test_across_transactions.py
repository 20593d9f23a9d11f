"""Transactions of every kind of producer, on every kind of server."""

import asyncio
import contextlib

import pytest
from clients import Client
from our_client import (
    GO,
    NEW_JAVA,
    OLD_JAVA,
    SILENCE_SECONDS,
    Scene,
    at_home,
    story,
    take_and_ack,
    texts,
    with_java,
)

from gantrymq import Consumer, Delivery, Received

pytestmark = pytest.mark.timeout(240)

# What becomes of each message: the word of the local transaction, then those of the checks.
PLAN = ["commit", "rollback", "unknown commit", "unknown rollback", "unknown unknown commit"]
DELIVERED = ["m-0", "m-2", "m-4"]


async def committed(consumer: Consumer, count: int) -> list[Delivery]:
    """So many different messages, and no other comes.

    A broker may ask once more about what it was just told, and then delivers it once more.
    """
    found: dict[str, Delivery] = {}
    while len(found) < count:
        for message in await take_and_ack(consumer, 1):
            found[message.msg_id] = message
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(SILENCE_SECONDS):
            while True:
                (message,) = await take_and_ack(consumer, 1)
                assert message.msg_id in found
    return list(found.values())


class TestForeignProducers:
    @pytest.mark.parametrize("foreign", [OLD_JAVA, NEW_JAVA, GO], ids=repr)
    @at_home
    @story
    async def test_only_committed_messages_are_delivered(
        self, scene: Scene, foreign: Client
    ) -> None:
        """At once, never, or after a check: each message once, under the id it was sent with."""
        await scene.create_topic()
        async with scene.consumer() as consumer:
            consumer.subscribe(scene.topic)
            lines = await scene.java(foreign, "send-transaction", count=5, body="m", plan=PLAN)
            got = await committed(consumer, 3)

        ids = {line["index"]: line["msgId"] for line in lines.sent}
        assert sorted(texts(got)) == DELIVERED
        assert {message.body.decode(): message.msg_id for message in got} == {
            f"m-{n}": ids[n] for n in (0, 2, 4)
        }
        assert {message.topic for message in got} == {scene.topic}
        assert {line["body"] for line in lines.of("checked")} >= {"m-2", "m-3", "m-4"}


class TestOurProducer:
    @story
    async def test_only_committed_messages_are_delivered(self, scene: Scene) -> None:
        """On every broker: by leaving the block, by an exception, and by answering its checks."""
        await scene.create_topic()
        checked: list[str] = []
        async with scene.producer() as producer, scene.consumer() as consumer:
            consumer.subscribe(scene.topic)

            @producer.check
            async def look(message: Received) -> str:
                body = message.body.decode()
                checked.append(body)
                if body == "m-4" and checked.count(body) == 1:
                    return "unknown"
                return "rollback" if body == "m-3" else "commit"

            async with producer.transaction(scene.message("m-0", keys="k")):
                pass
            with pytest.raises(ZeroDivisionError):
                async with producer.transaction(scene.message("m-1")):
                    raise ZeroDivisionError
            for n in (2, 3, 4):
                async with producer.transaction(scene.message(f"m-{n}")) as transaction:
                    transaction.unknown()
            while "m-3" not in checked:
                await asyncio.sleep(0.05)
            got = await committed(consumer, 3)

        assert sorted(texts(got)) == DELIVERED
        assert {message.topic for message in got} == {scene.topic}
        assert set(checked) >= {"m-2", "m-3", "m-4"}

    @story
    async def test_java_reads_what_we_committed(self, scene: Scene) -> None:
        """The message is a common one: its transaction is not seen any more."""
        await scene.create_topic(queues=1)
        async with (
            scene.producer() as producer,
            producer.transaction(scene.message("m-0", "t", keys="k")) as transaction,
        ):
            sent = transaction.result
        (got,) = (await scene.java(OLD_JAVA, "consume-concurrently")).messages

        assert (got["body"], got["tags"], got["keys"]) == ("m-0", "t", "k")
        assert got["msgId"] == sent.msg_id


class TestAnsweringForOthers:
    @with_java
    @story
    async def test_we_answer_for_a_java_producer(self, scene: Scene, java: Client) -> None:
        """A producer that is gone is spoken for by any other member of its group."""
        await scene.create_topic()
        await scene.java(
            java, "send-transaction", count=2, body="m", plan=["unknown"], abandon=True
        )
        async with scene.producer() as producer, scene.consumer() as consumer:
            consumer.subscribe(scene.topic)

            @producer.check
            async def look(message: Received) -> str:
                return "commit" if message.body == b"m-1" else "rollback"

            await producer.queues(scene.topic)
            got = await committed(consumer, 1)

        assert texts(got) == ["m-1"]

    @with_java
    @story
    async def test_a_java_producer_answers_for_us(self, scene: Scene, java: Client) -> None:
        """The same the other way round."""
        await scene.create_topic()
        async with scene.producer() as producer:
            for n in range(2):
                async with producer.transaction(scene.message(f"m-{n}")) as transaction:
                    transaction.unknown()
        async with scene.consumer() as consumer:
            consumer.subscribe(scene.topic)
            lines = await scene.java(
                java, "answer-checks", count=2, plan=["unknown rollback", "unknown commit"]
            )
            got = await committed(consumer, 1)

        assert texts(got) == ["m-1"]
        assert {line["body"] for line in lines.of("checked")} == {"m-0", "m-1"}
