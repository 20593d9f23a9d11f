"""Transactions of every kind of producer, on every kind of server."""

import asyncio

import pytest
from clients import Client
from our_client import (
    GO,
    NEW_JAVA,
    OLD_JAVA,
    Scene,
    at_home,
    nothing_more,
    story,
    take_and_ack,
    texts,
    with_java,
)

from gantrymq import Received

pytestmark = pytest.mark.timeout(240)

# What becomes of each message: the word of the local transaction, then those of the checks.
PLAN = ["commit", "rollback", "unknown commit", "unknown rollback", "unknown unknown commit"]
DELIVERED = ["m-0", "m-2", "m-4"]


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
            got = await take_and_ack(consumer, 3)
            assert await nothing_more(consumer)

        ids = {line["index"]: line["msgId"] for line in lines.sent}
        assert sorted(texts(got)) == DELIVERED
        assert {message.body.decode(): message.msg_id for message in got} == {
            f"m-{n}": ids[n] for n in (0, 2, 4)
        }
        assert {message.topic for message in got} == {scene.topic}
        assert {line["body"] for line in lines.of("checked")} >= {"m-2", "m-3", "m-4"}

    @pytest.mark.parametrize("foreign", [OLD_JAVA, NEW_JAVA], ids=repr)
    @at_home
    @story
    async def test_a_delay_begins_when_the_transaction_is_committed(
        self, scene: Scene, foreign: Client
    ) -> None:
        """Both properties on one message: first the word, then the wait."""
        await scene.create_topic(queues=1)
        async with scene.consumer() as consumer:
            consumer.subscribe(scene.topic)
            await scene.java(foreign, "send-transaction", plan=["commit"], delayLevel=1, lingerMs=0)
            (got,) = await take_and_ack(consumer, 1)

        assert got.store_ms - got.born_ms >= 1000


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
            got = await take_and_ack(consumer, 3)
            while "m-3" not in checked:
                await asyncio.sleep(0.05)
            assert await nothing_more(consumer)

        assert sorted(texts(got)) == DELIVERED
        assert {message.topic for message in got} == {scene.topic}
        assert set(checked) >= {"m-2", "m-3", "m-4"}

    @story
    async def test_java_reads_what_we_committed(self, scene: Scene) -> None:
        """The message is a common one: its transaction is not seen any more."""
        await scene.create_topic(queues=1)
        async with scene.producer() as producer:
            async with producer.transaction(scene.message("m-0", "t", keys="k")) as transaction:
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
            got = await take_and_ack(consumer, 1)
            assert await nothing_more(consumer)

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
            got = await take_and_ack(consumer, 1)
            assert await nothing_more(consumer)

        assert texts(got) == ["m-1"]
        assert {line["body"] for line in lines.of("checked")} == {"m-0", "m-1"}
