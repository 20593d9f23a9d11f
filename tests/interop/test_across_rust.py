"""The Rust crate `rocketmq-client-rust` beside our own clients.

Release 1.0.0 takes the hash of a tag with the blanks around it, so that a subscription to `a || c`
gets nothing, from RocketMQ's brokers as well: its tags are written without blanks here.
"""

import asyncio

import pytest
from clients import RustClient
from expect import assert_offsets_are_consecutive, bodies, by_shard
from our_client import SECOND_LATER, Scene, at_home, story, take_and_ack, texts

from gantrymq import Delivery, Message

pytestmark = [pytest.mark.timeout(240), at_home]

RUST = RustClient()
PLAN = ["commit", "rollback", "unknown commit", "unknown rollback"]


class TestSending:
    @pytest.mark.parametrize("verb", ["send-sync", "send-async"])
    @story
    async def test_ours_reads_what_rust_sends(self, scene: Scene, verb: str) -> None:
        """Every send is answered with where it lies, and comes with its tag, key and body."""
        await scene.create_topic()
        lines = await scene.java(RUST, verb, count=10, tags=["a"], keys="k", size=20_000)

        stored = await scene.stored(10)
        assert {line["status"] for line in lines.sent} == {"SEND_OK"}
        assert sorted(texts(stored)) == [body.ljust(20_000, ".") for body in bodies(10)]
        assert {message.tags for message in stored} == {"a"}
        assert {message.keys for message in stored} == {(f"k{n}",) for n in range(10)}
        assert {(m.queue.queue_id, m.offset, m.offset_msg_id) for m in stored} == {
            (line["queueId"], line["queueOffset"], line["offsetMsgId"]) for line in lines.sent
        }

    @story
    async def test_sends_without_an_answer_arrive(self, scene: Scene) -> None:
        """They are stored all the same."""
        await scene.create_topic()
        await scene.java(RUST, "send-oneway", count=10)

        assert sorted(texts(await scene.stored(11))) == [*bodies(10), "fence"]

    @story
    async def test_a_batch_lies_in_one_queue(self, scene: Scene) -> None:
        """Its messages have consecutive offsets, each its own key."""
        await scene.create_topic()
        await scene.java(RUST, "send-batch", count=5, keys="k")

        stored = await scene.stored(5)
        assert texts(stored) == bodies(5)
        assert [message.keys for message in stored] == [(f"k{n}",) for n in range(5)]
        assert len({message.queue for message in stored}) == 1

    @story
    async def test_a_delayed_message_comes_later(self, scene: Scene) -> None:
        """Not before its second is over."""
        await scene.create_topic()
        await scene.java(RUST, "send-sync", delayLevel=SECOND_LATER)

        (message,) = await scene.stored(1)
        assert (message.store_time - message.born_time).total_seconds() >= 0.9

    @story
    async def test_only_committed_messages_are_delivered(self, scene: Scene) -> None:
        """At once, never, or after the broker has asked."""
        await scene.create_topic()
        lines = await scene.java(
            RUST, "send-transaction", count=4, plan=PLAN, producer=f"{scene.group}_rust"
        )

        assert {line["body"] for line in lines.of("checked")} == {"body-2", "body-3"}
        assert set(texts(await scene.stored(2))) == {"body-0", "body-2"}

    @story
    async def test_a_question_is_answered(self, scene: Scene) -> None:
        """The reply of our consumer finds the client that asked."""
        await scene.create_topic()
        async with scene.producer() as producer, scene.consumer() as consumer:
            consumer.subscribe(scene.topic)

            @consumer.handler
            async def answer(question: Delivery) -> None:
                # This client misses a reply that comes before it waits (`Notify::notify_waiters`).
                await asyncio.sleep(1)
                await producer.reply(question, f"re: {question.body.decode()}")

            asked = await scene.java(
                RUST, "request", count=2, body="why", producer=f"{scene.group}_rust"
            )

        assert asked.of("late") == []
        assert [line["body"] for line in asked.of("reply")] == ["re: why-0", "re: why-1"]


class TestConsuming:
    @story
    async def test_rust_reads_what_ours_sends(self, scene: Scene) -> None:
        """All bodies with tags, keys and properties, at the offsets where they lie."""
        await scene.create_topic()
        await scene.send(
            *(scene.message(body, "a", keys=["k"], properties={"shop": "7"}) for body in bodies(10))
        )
        got = await scene.java(RUST, "consume-concurrently", expected=10)

        assert sorted(got.bodies) == bodies(10)
        assert {(line["tags"], line["keys"]) for line in got.messages} == {("a", "k")}
        assert {line["properties"]["shop"] for line in got.messages} == {"7"}
        assert_offsets_are_consecutive(got.messages)
        await scene.all_read()

    @story
    async def test_tags_are_filtered(self, scene: Scene) -> None:
        """A subscription to some tags gets these and no others."""
        await scene.create_topic()
        await scene.send(*(scene.message(tag, tag) for tag in "abcabc"))
        got = await scene.java(
            RUST, "consume-concurrently", expression="a||c", expected=4, lingerMs=500
        )

        assert sorted(got.bodies) == ["a", "a", "c", "c"]

    @story
    async def test_order_is_kept_in_each_queue(self, scene: Scene) -> None:
        """An ordered consumer locks its queues and handles each in the order of the sends."""
        await scene.create_topic()
        async with scene.producer() as producer:
            for n in range(20):
                message = scene.message(f"m-{n % 4}-{n}")
                await producer.send(message, queue=scene.queue(n % 4))
        got = await scene.java(RUST, "consume-orderly", expected=20)

        expected = {str(shard): list(range(shard, 20, 4)) for shard in range(4)}
        assert by_shard(got.messages) == expected

    @story
    async def test_a_failed_message_comes_again(self, scene: Scene) -> None:
        """Through the retry topic, counted; a member of ours has nothing left to read then."""
        await scene.create_topic()
        await scene.introduce_group()
        await scene.send("body-0")
        got = await scene.java(RUST, "consume-concurrently", failures=1, lingerMs=1000)
        assert [(line["body"], line["reconsumeTimes"]) for line in got.messages] == [("body-0", 1)]

        async with scene.consumer() as consumer:
            consumer.subscribe(scene.topic)
            await scene.send(Message(scene.topic, "next"))
            assert texts(await take_and_ack(consumer, 1)) == ["next"]
