"""Our consumers of all kinds against RocketMQ's own servers of two releases."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from clients import JAVA_CLIENTS, JavaClient
from expect import bodies
from our_client import (
    OLD_JAVA,
    SECOND_LATER,
    Scene,
    by_key,
    eventually,
    nothing_more,
    on_real_servers,
    read_queue,
    story,
    take,
    take_and_ack,
    texts,
)

from gantrymq import Delivery
from gantrymq.client.consume.queues.pull_request import PullStatus
from gantrymq.model import dead_topic

pytestmark = [on_real_servers, pytest.mark.timeout(120)]


class TestConsuming:
    @pytest.mark.parametrize("java", JAVA_CLIENTS, ids=repr)
    @story
    async def test_messages_of_a_java_producer(self, scene: Scene, java: JavaClient) -> None:
        """Tags choose; ids, keys, properties and packed bodies arrive as they were sent."""
        await scene.create_topic()
        sent = (
            await scene.java(
                java, "send-sync", count=12, size=20_000,
                tags=["a", "b", "c"], keys="k", properties={"colour": "grün"},
            )
        ).sent  # fmt: skip
        async with scene.consumer() as consumer:
            consumer.subscribe(scene.topic, tags="a || c")
            got = {message.msg_id: message for message in await take_and_ack(consumer, 8)}
            assert await nothing_more(consumer)

        expected = {line["msgId"]: line for line in sent if line["index"] % 3 != 1}
        assert got.keys() == expected.keys()
        for msg_id, line in expected.items():
            message, n = got[msg_id], line["index"]
            place = (message.queue.queue_id, message.offset, message.offset_msg_id)
            assert place == (line["queueId"], line["queueOffset"], line["offsetMsgId"])
            assert message.body.decode() == f"body-{n}".ljust(20_000, ".")
            assert (message.tags, message.keys) == ("abc"[n % 3], (f"k{n}",))
            assert message.properties["colour"] == "grün"

    @pytest.mark.parametrize("java", JAVA_CLIENTS, ids=repr)
    @story
    async def test_a_batch_of_a_java_producer(self, scene: Scene, java: JavaClient) -> None:
        """Every message of the batch comes by itself, in the order of the batch."""
        await scene.create_topic(queues=1)
        (sent,) = (await scene.java(java, "send-batch", count=10, keys="k")).sent
        async with scene.consumer() as consumer:
            consumer.subscribe(scene.topic)
            got = await take_and_ack(consumer, 10)

        assert texts(got) == bodies(10)
        assert [message.offset_msg_id for message in got] == sent["offsetMsgId"].split(",")
        assert [message.keys for message in got] == [(f"k{n}",) for n in range(10)]

    @story
    async def test_a_condition_chooses_messages(self, scene: Scene) -> None:
        """An SQL condition over properties is checked by the broker."""
        await scene.create_topic()
        async with scene.consumer() as consumer:
            consumer.subscribe(scene.topic, sql="size > 10 AND colour = 'red'")
            await consumer.wait_assigned(4)
            await scene.send(
                scene.message("small", properties={"size": "9", "colour": "red"}),
                scene.message("right", properties={"size": "11", "colour": "red"}),
                scene.message("blue", properties={"size": "12", "colour": "blue"}),
                scene.message("bare"),
            )
            got = await take_and_ack(consumer, 1)
            assert await nothing_more(consumer)

        assert texts(got) == ["right"]

    @story
    async def test_handlers_run_side_by_side(self, scene: Scene) -> None:
        """A concurrent consumer works on several messages at once, on each exactly once."""
        await scene.create_topic()
        seen: list[Delivery] = []
        together, everything = asyncio.Event(), asyncio.Event()

        async def work(message: Delivery) -> None:
            seen.append(message)
            if len(seen) == 10:
                together.set()
            if len(seen) == 60:
                everything.set()
            await together.wait()  # nobody ends before ten have begun

        async with scene.consumer(concurrency=10) as consumer:
            consumer.subscribe(scene.topic)
            consumer.handler(work)
            await scene.send(*bodies(60))
            await everything.wait()

        assert sorted(texts(seen)) == sorted(bodies(60))

    @story
    async def test_an_ordered_consumer_keeps_the_order_of_each_key(self, scene: Scene) -> None:
        """Also when a message fails: it is tried again in place, and what follows waits."""
        await scene.create_topic()
        done: list[Delivery] = []
        failed: list[Delivery] = []
        everything = asyncio.Event()

        async def work(message: Delivery) -> None:
            if message.body == b"1-7" and message.reconsume_times == 0:
                failed.append(message)
                raise ValueError("not this time")
            done.append(message)
            if len(done) == 60:
                everything.set()

        async with scene.consumer(ordered=True) as consumer:
            consumer.subscribe(scene.topic)
            consumer.handler(work)
            await scene.send(
                *(
                    scene.message(f"{shop}-{n}", keys=f"{shop}", sharding_key=f"shop {shop}")
                    for n in range(12)
                    for shop in range(5)
                )
            )
            await everything.wait()

        assert by_key(done) == {f"{k}": [f"{k}-{n}" for n in range(12)] for k in range(5)}
        assert texts(failed) == ["1-7"]
        assert [m.reconsume_times for m in done if m.body == b"1-7"] == [1]

    @story
    async def test_broadcasting_reaches_every_member(self, scene: Scene, tmp_path: Path) -> None:
        """Each member gets every message and keeps its own progress."""
        await scene.create_topic(queues=2)
        mine, yours = str(tmp_path / "one"), str(tmp_path / "other")
        async with (
            scene.consumer(broadcast=True, offset_dir=mine) as one,
            scene.consumer(broadcast=True, offset_dir=yours) as other,
        ):
            one.subscribe(scene.topic)
            other.subscribe(scene.topic)
            await scene.send(*bodies(6))
            assert sorted(texts(await take_and_ack(one, 6))) == bodies(6)
            assert sorted(texts(await take_and_ack(other, 6))) == bodies(6)
        async with scene.consumer(broadcast=True, offset_dir=mine) as again:
            again.subscribe(scene.topic)
            await scene.send("new")
            assert texts(await take_and_ack(again, 1)) == ["new"]

    @story
    async def test_members_share_the_queues_and_inherit_them(self, scene: Scene) -> None:
        """The broker tells when a member came or left, and the queues are shared out anew."""
        await scene.create_topic()
        async with scene.consumer() as stays:
            stays.subscribe(scene.topic)
            await stays.wait_assigned(4)
            shared = asyncio.Event()
            stays.on_assignment(lambda _: shared.set() if len(stays.assignment) == 2 else None)
            async with scene.consumer() as leaves:
                leaves.subscribe(scene.topic)
                await leaves.wait_assigned(2)
                await shared.wait()
                assert not set(stays.assignment) & set(leaves.assignment)
            await stays.wait_assigned(4)


class TestProgress:
    @story
    async def test_a_retried_message_comes_again_until_it_succeeds(self, scene: Scene) -> None:
        """The count of its deliveries grows; topic, id and content stay what they were."""
        await scene.create_topic()
        async with scene.producer() as producer, scene.consumer() as consumer:
            consumer.subscribe(scene.topic)
            sent = await producer.send(scene.message("stubborn", "t", keys="k"))
            deliveries = []
            for _ in range(2):
                deliveries.append(await anext(consumer))
                await deliveries[-1].retry(delay_level=SECOND_LATER)
            deliveries += await take_and_ack(consumer, 1)
            assert await nothing_more(consumer)

        assert [message.reconsume_times for message in deliveries] == [0, 1, 2]
        for message in deliveries:
            assert (message.msg_id, message.topic) == (sent.msg_id, scene.topic)
            assert (message.body, message.tags, message.keys) == (b"stubborn", "t", ("k",))
            origin = message.properties.get("ORIGIN_MESSAGE_ID", sent.offset_msg_id)
            assert origin == sent.offset_msg_id

    @pytest.mark.parametrize("max_retries", [0, 1])
    @story
    async def test_after_its_last_retry_a_message_is_dead(
        self, scene: Scene, max_retries: int
    ) -> None:
        """It lies among the dead letters of the group, and says where it comes from."""
        await scene.create_topic()
        await scene.send("hopeless")
        async with scene.consumer(max_retries=max_retries) as consumer:
            consumer.subscribe(scene.topic)
            for times in range(max_retries + 1):
                message = await anext(consumer)
                assert message.reconsume_times == times
                await message.retry(delay_level=SECOND_LATER)
            assert await nothing_more(consumer)
        (dead,) = await scene.stored(1, dead_topic(scene.group))

        assert (dead.body, dead.properties["RETRY_TOPIC"]) == (b"hopeless", scene.topic)
        assert dead.msg_id == message.msg_id

    @pytest.mark.parametrize("ordered", [False, True])
    @story
    async def test_dead_sends_a_message_away_at_once(self, scene: Scene, ordered: bool) -> None:
        """The verb needs no retry before, and the queue goes on."""
        await scene.create_topic(queues=1)
        await scene.send("poison", "good")
        async with scene.consumer(ordered=ordered) as consumer:
            consumer.subscribe(scene.topic)
            poison = await anext(consumer)
            await poison.dead()
            good = await take_and_ack(consumer, 1)

        assert texts(good) == ["good"]
        assert texts(await scene.stored(1, dead_topic(scene.group))) == ["poison"]

    @story
    async def test_a_group_goes_on_where_it_stopped(self, scene: Scene) -> None:
        """What was finished is stored: neither our next member nor Java's gets it again."""
        await scene.create_topic()
        for word in ("first", "second", "third"):
            await scene.send(*bodies(5, word))
            async with scene.consumer() as consumer:
                consumer.subscribe(scene.topic)
                assert sorted(texts(await take_and_ack(consumer, 5))) == bodies(5, word)
        await scene.send(*bodies(5, "last"))
        got = await scene.java(OLD_JAVA, "consume-concurrently", expected=5, lingerMs=500)

        assert sorted(got.bodies) == bodies(5, "last")

    @story
    async def test_unfinished_messages_are_delivered_again(self, scene: Scene) -> None:
        """Only what was finished counts, whatever was handed out and pulled."""
        await scene.create_topic(queues=1)
        await scene.send(*bodies(10))
        for n in range(8):
            async with scene.consumer() as consumer:
                consumer.subscribe(scene.topic)
                first, second, third = await take(consumer, 3)
                assert texts([first, second, third]) == bodies(10)[n : n + 3]
                await first.ack()


class TestPulling:
    @story
    async def test_offsets_and_times_of_a_queue(self, scene: Scene) -> None:
        """First and next offset, the offset of a time, pulls inside, at and beyond the end."""
        await scene.create_topic(queues=1)
        queue = scene.queue(0)
        await scene.send(*bodies(3))
        await asyncio.sleep(0.01)  # the next message gets a later millisecond
        await scene.send("later")
        async with scene.reader() as reader:
            assert await reader.queues(scene.topic) == [queue]
            end = await eventually(lambda: reader.max_offset(queue), lambda end: end >= 4)
            messages = await read_queue(reader, queue)
            inside = await reader.pull(queue, 1, max_count=2)
            at_end = await reader.pull(queue, 4)
            beyond = await reader.pull(queue, 100)

            assert (await reader.min_offset(queue), end) == (0, 4)
            assert await reader.search_offset(queue, messages[3].store_ms) == 3
            assert await reader.search_offset(queue, 0) == 0
        assert texts(messages) == [*bodies(3), "later"]
        assert (inside.status, texts(inside.messages)) == (PullStatus.FOUND, bodies(3)[1:])
        assert (inside.next_offset, inside.min_offset, inside.max_offset) == (3, 0, 4)
        assert (at_end.status, at_end.next_offset) == (PullStatus.NO_NEW, 4)
        assert (beyond.status, beyond.next_offset) == (PullStatus.OFFSET_MOVED, 4)

    @story
    async def test_a_pull_waits_filters_and_its_progress_is_stored(self, scene: Scene) -> None:
        """Held until a message comes; by tags or by a condition; committed and read back."""
        await scene.create_topic(queues=1)
        queue = scene.queue(0)
        async with scene.reader() as reader:
            held = asyncio.create_task(reader.pull_blocking(queue, 0))
            for n, tag in enumerate("abca"):
                await scene.send(scene.message(tag, tag, properties={"n": f"{n}"}))
            assert texts((await held).messages)[0] == "a"
            await eventually(lambda: reader.max_offset(queue), lambda end: end == 4)
            tagged = await reader.pull(queue, 0, tags="a || c")
            chosen = await reader.pull(queue, 0, sql="n BETWEEN 1 AND 2")
            # RocketMQ 4.9 answers 0, not nothing, while a queue's first message is in memory.
            assert await reader.committed(queue) in (None, 0)
            await reader.commit(queue, 3)
        async with scene.reader() as reader:
            assert await reader.committed(queue) == 3

        assert texts(tagged.messages) == ["a", "c", "a"]
        assert texts(chosen.messages) == ["b", "c"]

    @story
    async def test_a_lite_consumer_reads_what_it_is_assigned(self, scene: Scene) -> None:
        """It begins where it is told to, polls on, and its commit is taken up by the next."""
        await scene.create_topic(queues=2)
        queue = scene.queue(0)
        async with scene.producer() as producer:
            for body in bodies(5):
                await producer.send(scene.message(body), queue=queue)
            await producer.send(scene.message("not ours"), queue=scene.queue(1))
            await scene.stored(6)
            async with scene.lite() as consumer:
                consumer.assign([queue])
                await consumer.wait_assigned()
                await consumer.seek(queue, 2)
                assert texts(await consumer.poll()) == bodies(5)[2:]
                await consumer.seek_to_begin(queue)
                assert texts(await consumer.poll()) == bodies(5)
                await consumer.commit()
                assert await consumer.committed(queue) == 5
            async with scene.lite() as consumer:
                consumer.assign([queue])
                await producer.send(scene.message("new"), queue=queue)
                assert texts(await consumer.poll()) == ["new"]

    @story
    async def test_a_lite_consumer_subscribes(self, scene: Scene) -> None:
        """It joins its group, gets every queue, and the messages of its tags."""
        await scene.create_topic()
        async with scene.lite() as consumer:
            consumer.subscribe(scene.topic, tags="a")
            await consumer.wait_assigned(4)
            await scene.send(*(scene.message(f"{n}", "ab"[n % 2]) for n in range(12)))
            got: list[str] = []
            while len(got) < 6:
                got += texts(await consumer.poll())

        assert sorted(got, key=int) == ["0", "2", "4", "6", "8", "10"]

    @story
    async def test_a_short_visit_leaves_progress_but_no_member(self, scene: Scene) -> None:
        """A group may commit before anything else, and one that leaves at once has left."""
        await scene.create_topic(queues=1)
        async with scene.admin() as admin:
            for n in range(1, 6):
                visit = replace(scene, group=f"{scene.group}_{n}")
                async with visit.reader() as reader:
                    await reader.commit(scene.queue(0), n)
                async with visit.reader() as reader:
                    assert await reader.committed(scene.queue(0)) == n
                assert (await admin.consumers(visit.group)).connection_set == []
