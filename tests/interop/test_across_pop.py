"""Messages that are borrowed: Java's consumer in POP mode, and our simple consumer."""

import asyncio
import dataclasses

import pytest
from clients import Client
from clusters import AGAINST
from expect import bodies
from our_client import (
    GO,
    NEW_JAVA,
    OLD_JAVA,
    Scene,
    long_story,
    on_servers_of_5,
    story,
    texts,
)

from gantrymq import Popped, PopUnsupported, SimpleConsumer

pytestmark = pytest.mark.timeout(240)

SHARED_BY_ALL = "8"
POP_MODE = {"brokerRebalance": True, "timeout": 90}


async def popping(scene: Scene, queues: int = 4) -> None:
    """A topic that the group's members of 5.x are to pop."""
    await scene.create_topic(queues)
    await scene.introduce_group()
    said = await scene.mqadmin(
        NEW_JAVA, "setConsumeMode", "-b", scene.broker, "-t", scene.topic, "-g", scene.group,
        "-m", "POP", "-q", SHARED_BY_ALL,
    )  # fmt: skip
    assert "success" in said


async def borrow(consumer: SimpleConsumer, count: int) -> list[Popped]:
    """So many messages, not acknowledged yet."""
    found: list[Popped] = []
    while len(found) < count:
        found += await consumer.receive(wait=10)
    return found


class TestJavaInPopMode:
    @on_servers_of_5
    @story
    async def test_it_gets_every_message_once(self, scene: Scene) -> None:
        """The tool sets the mode, the broker assigns, and handles come with the messages."""
        await popping(scene)
        await scene.send(*bodies(20))
        got = await scene.java(
            NEW_JAVA, "consume-concurrently", expected=20, lingerMs=1000, **POP_MODE
        )

        assert sorted(got.bodies) == sorted(bodies(20))
        assert all(line["properties"]["POP_CK"] for line in got.messages)

    @on_servers_of_5
    @story
    async def test_a_waiting_member_is_told_of_a_message(self, scene: Scene) -> None:
        """A pop that found nothing is answered when something comes."""
        await popping(scene, queues=1)
        async with scene.beside(
            NEW_JAVA, "consume-concurrently", expected=2, **POP_MODE
        ) as consumer:
            await scene.send("first")
            await consumer.until("message")
            await scene.send("second")
            second = await consumer.until("message")

        started = int(second["properties"]["CONSUME_START_TIME"])
        assert second["body"] == "second"
        assert started - second["storeTime"] < 5000

    @pytest.mark.parametrize("where", [AGAINST if AGAINST != "4.9.7" else "5.3.3"])
    @long_story
    async def test_a_failed_message_comes_again(self, scene: Scene) -> None:
        """It is hidden for longer, then delivered anew, counted, under the same id."""
        await popping(scene, queues=1)
        await scene.send("stubborn")
        got = await scene.java(NEW_JAVA, "consume-concurrently", failures=1, **POP_MODE)

        (failed,), (message,) = got.of("failed"), got.messages
        assert (failed["reconsumeTimes"], message["reconsumeTimes"]) == (0, 1)
        assert (message["msgId"], message["topic"]) == (failed["msgId"], scene.topic)

    @on_servers_of_5
    @long_story
    async def test_java_and_ours_share_a_group(self, scene: Scene) -> None:
        """No queue belongs to anybody; each message goes to one of the two."""
        await popping(scene)
        ours: list[str] = []
        async with (
            scene.beside(NEW_JAVA, "consume-concurrently", expected=1, **POP_MODE) as member,
            scene.borrower() as consumer,
        ):
            consumer.subscribe(scene.topic)
            await member.until("ready")
            sent = 0
            reading = asyncio.create_task(keep_reading(consumer, ours))
            other = asyncio.create_task(member.finish())
            while not other.done():
                await scene.send(f"body-{sent}")
                sent += 1
                await asyncio.sleep(0.1)
            theirs = (await other).bodies
            while len(ours) + len(theirs) < sent:
                await asyncio.sleep(0.1)
            reading.cancel()

        assert sorted([*ours, *theirs]) == sorted(bodies(sent))


async def keep_reading(consumer: SimpleConsumer, into: list[str]) -> None:
    async for message in consumer:
        into.append(message.body.decode())
        await message.ack()


class TestOurSimpleConsumer:
    @pytest.mark.parametrize("foreign", [OLD_JAVA, NEW_JAVA, GO], ids=repr)
    @on_servers_of_5
    @story
    async def test_it_borrows_messages_of_foreign_producers(
        self, scene: Scene, foreign: Client
    ) -> None:
        """Tags, keys and packed bodies as they were sent; acknowledged ones do not come again."""
        await scene.create_topic()
        await scene.java(foreign, "send-sync", count=6, tags=["a", "b"], keys="k", size=20_000)
        async with scene.borrower(invisible=3) as consumer:
            consumer.subscribe(scene.topic, tags="a")
            got = await borrow(consumer, 3)
            await consumer.ack_many(got)
            assert await consumer.receive(wait=5) == []

        assert sorted(texts(got)) == [f"body-{n}".ljust(20_000, ".") for n in (0, 2, 4)]
        assert {(message.tags, *message.keys) for message in got} == {
            ("a", f"k{n}") for n in (0, 2, 4)
        }

    @on_servers_of_5
    @long_story
    async def test_a_loan_ends_and_can_be_extended(self, scene: Scene) -> None:
        """Who does not acknowledge in time loses the message; who extends keeps it."""
        await scene.create_topic(queues=1)
        await scene.send("kept", "lost")
        async with scene.borrower(invisible=3) as consumer:
            consumer.subscribe(scene.topic)
            found = {message.body: message for message in await borrow(consumer, 2)}
            await found[b"kept"].extend(60)
            (again,) = await borrow(consumer, 1)
            await again.ack()
            await found[b"kept"].ack()

        assert (again.body, again.reconsume_times) == (b"lost", 1)
        assert (again.msg_id, again.topic) == (found[b"lost"].msg_id, scene.topic)

    @on_servers_of_5
    @long_story
    async def test_a_group_with_a_long_name_gets_it_again_as_well(self, scene: Scene) -> None:
        """Its retry topic has more than 127 characters: version 2 of a record, on either broker."""
        scene = dataclasses.replace(scene, group=scene.group.ljust(160, "g"))
        await scene.create_topic(queues=1)
        await scene.send("lost")
        async with scene.borrower(invisible=2) as consumer:
            consumer.subscribe(scene.topic)
            (first,) = await borrow(consumer, 1)
            (again,) = await borrow(consumer, 1)
            await again.ack()

        assert (first.reconsume_times, again.reconsume_times) == (0, 1)
        assert (again.body, again.topic) == (b"lost", scene.topic)

    @pytest.mark.parametrize("where", ["4.9.7"])
    @story
    async def test_an_old_broker_is_refused_clearly(self, scene: Scene) -> None:
        """RocketMQ 4.9 knows no pop."""
        await scene.create_topic(queues=1)
        async with scene.borrower() as consumer:
            consumer.subscribe(scene.topic)
            with pytest.raises(PopUnsupported):
                await consumer.receive(wait=1)
