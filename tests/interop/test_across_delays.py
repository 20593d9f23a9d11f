"""Messages that wait: by level and until a time of their own, across clients and servers."""

import time

import pytest
from clients import JAVA_CLIENTS, Client
from our_client import (
    GO,
    NEW_JAVA,
    NODE,
    SECOND_LATER,
    Scene,
    at_home,
    nothing_more,
    on_servers_of_5,
    story,
    take_and_ack,
    texts,
)

from gantrymq import RecallRefused

pytestmark = pytest.mark.timeout(240)

# RocketMQ's timer counts in whole seconds.
TIMER_STEP_MS = 1000
LATE_MS_MAX = 5000  # a busy machine


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class TestLevels:
    @pytest.mark.parametrize("foreign", [*JAVA_CLIENTS, GO, NODE], ids=repr)
    @at_home
    @story
    async def test_foreign_messages_reach_us_late(self, scene: Scene, foreign: Client) -> None:
        """A second later, under their own topic."""
        await scene.create_topic(queues=1)
        async with scene.consumer() as consumer:
            consumer.subscribe(scene.topic)
            await scene.java(foreign, "send-sync", count=2, delayLevel=SECOND_LATER)
            got = await take_and_ack(consumer, 2)

        assert texts(got) == ["body-0", "body-1"]
        assert {message.topic for message in got} == {scene.topic}
        for message in got:
            assert 1000 <= message.store_ms - message.born_ms < 1000 + LATE_MS_MAX

    @pytest.mark.parametrize("foreign", [*JAVA_CLIENTS, GO, NODE], ids=repr)
    @at_home
    @story
    async def test_our_messages_reach_foreign_consumers_late(
        self, scene: Scene, foreign: Client
    ) -> None:
        """With the properties by which Java tells where a message was meant to go."""
        await scene.create_topic(queues=1)
        before = now_ms()
        await scene.send(scene.message("late", "t", keys="k", delay_level=SECOND_LATER))
        (got,) = (await scene.java(foreign, "consume-concurrently")).messages

        assert (got["body"], got["tags"], got["topic"]) == ("late", "t", scene.topic)
        assert got["properties"]["REAL_TOPIC"] == scene.topic
        if foreign is not NODE:  # it does not tell when a message was stored
            assert got["storeTime"] - before >= 1000


class TestTimers:
    @pytest.mark.parametrize("how", ["deliverAtMs", "delayMs", "delaySec"])
    @on_servers_of_5
    @story
    async def test_javas_messages_reach_us_at_their_time(self, scene: Scene, how: str) -> None:
        """Until a time, for milliseconds or for seconds: each property that Java 5 can set."""
        await scene.create_topic(queues=1)
        amount = {"deliverAtMs": now_ms() + 3000, "delayMs": 3000, "delaySec": 3}[how]
        async with scene.consumer() as consumer:
            consumer.subscribe(scene.topic)
            lines = await scene.java(NEW_JAVA, "send-sync", **{how: amount})
            (got,) = await take_and_ack(consumer, 1)

        due = amount if how == "deliverAtMs" else got.born_ms + 3000
        assert due - TIMER_STEP_MS <= got.store_ms < due + LATE_MS_MAX
        assert (got.topic, got.msg_id) == (scene.topic, lines.sent[0]["msgId"])

    @pytest.mark.parametrize("java", JAVA_CLIENTS, ids=repr)
    @on_servers_of_5
    @story
    async def test_our_messages_reach_java_at_their_time(self, scene: Scene, java: Client) -> None:
        """Also clients that cannot ask for a time themselves; a time in the past is now."""
        await scene.create_topic(queues=1)
        due = now_ms() + 3000
        await scene.send(
            scene.message("later", deliver_at=due),
            scene.message("past", deliver_at=due - 60_000),
        )
        lines = await scene.java(java, "consume-concurrently", expected=2)
        # Java's threads may swap what it got at once: a busy machine starts it after both are due.
        stored = {line["body"]: line["storeTime"] for line in lines.messages}

        assert sorted(stored) == ["later", "past"]
        assert stored["past"] < due
        assert due - TIMER_STEP_MS <= stored["later"] < due + LATE_MS_MAX

    @story
    async def test_a_broker_without_timers_delivers_at_once(self, scene: Scene, where: str) -> None:
        """RocketMQ 4.9 passes on what it does not understand; the answer has no handle then."""
        await scene.create_topic(queues=1)
        async with scene.producer() as producer, scene.consumer() as consumer:
            consumer.subscribe(scene.topic)
            sent = await producer.send(scene.message("timed", delay=2))
            (got,) = await take_and_ack(consumer, 1)

        assert (sent.recall_handle is None) == (where == "4.9.7")
        assert (got.store_ms - got.born_ms >= 1000) == (where != "4.9.7")


class TestRecall:
    @on_servers_of_5
    @story
    async def test_java_recalls_its_message_and_ours(self, scene: Scene) -> None:
        """By the handle that the broker gave with its answer."""
        await scene.create_topic(queues=1)
        due = now_ms() + 5000
        lines = await scene.java(NEW_JAVA, "send-sync", count=2, deliverAtMs=due, body="java")
        async with scene.producer() as producer, scene.consumer() as consumer:
            consumer.subscribe(scene.topic)
            ours = await producer.send(scene.message("ours", deliver_at=due))
            last = await producer.send(scene.message("last", deliver_at=due + 1000))
            handles = [lines.sent[0]["recallHandle"], ours.recall_handle]
            recalled = await scene.java(NEW_JAVA, "recall", handles=handles)
            got = await take_and_ack(consumer, 2)

        assert [line["msgId"] for line in recalled.of("recalled")] == [
            lines.sent[0]["msgId"],
            ours.msg_id,
        ]
        assert {message.msg_id for message in got} == {lines.sent[1]["msgId"], last.msg_id}

    @on_servers_of_5
    @story
    async def test_we_recall_javas_message(self, scene: Scene) -> None:
        """The others arrive; one that has arrived cannot be recalled any more."""
        await scene.create_topic(queues=1)
        due = now_ms() + 4000
        lines = await scene.java(NEW_JAVA, "send-sync", count=2, deliverAtMs=due, body="java")
        async with scene.producer() as producer, scene.consumer() as consumer:
            consumer.subscribe(scene.topic)
            first, second = (line["recallHandle"] for line in lines.sent)
            recalled = await producer.recall(scene.topic, first)
            assert recalled.msg_id == lines.sent[0]["msgId"]
            got = await take_and_ack(consumer, 1)
            assert await nothing_more(consumer)
            with pytest.raises(RecallRefused):
                await producer.recall(scene.topic, second)

        assert [message.msg_id for message in got] == [lines.sent[1]["msgId"]]
