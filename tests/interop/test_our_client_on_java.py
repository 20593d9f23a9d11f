"""Our client against RocketMQ's own name server and broker, unchanged, of two releases."""

import asyncio
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import toolchain
from clients import JAVA_CLIENTS, JavaClient
from expect import bodies
from our_client import (
    FIRST,
    PATIENT,
    by_key,
    create_topic,
    eventually,
    java_run,
    nothing_more,
    offsets_by_queue,
    read_queue,
    read_topic,
    send,
    send_bodies,
    story,
    take,
    take_and_ack,
    texts,
)
from real import RealCluster

from gantrymq import (
    Admin,
    Consumer,
    ConsumerOptions,
    Delivery,
    GantryError,
    GroupConfig,
    LitePullConsumer,
    Message,
    NoRoute,
    Producer,
    ProducerOptions,
    PullConsumer,
    Queue,
    SendFailed,
    SendResult,
    sync,
)
from gantrymq.client.message_query import MessageMissing
from gantrymq.client.pulling import PullStatus
from gantrymq.model import dead_topic

pytestmark = pytest.mark.timeout(120)

Fresh = Callable[[str], str]
OLD_JAVA, NEW_JAVA = JAVA_CLIENTS
SECOND_LATER = 1
"""The delay level of one second."""


@pytest.fixture(scope="module", params=list(toolchain.JAVA_SERVERS))
def cluster(programs: None, request: pytest.FixtureRequest) -> Iterator[RealCluster]:
    """One real cluster a release, for all tests of this file."""
    with RealCluster(request.param) as servers:
        yield servers


def java_clients() -> pytest.MarkDecorator:
    return pytest.mark.parametrize("java", JAVA_CLIENTS, ids=repr)


class TestSending:
    @story
    async def test_a_message_lies_where_its_answer_says(self, namesrv: str, topic: str) -> None:
        """
        Queue, offset and both ids of the answer are those under which a pull finds the message.
        """
        await create_topic(namesrv, topic, queues=4)
        properties = {"colour": "grün", "名": "值"}
        async with (
            Producer(namesrv, group="our_producer", options=PATIENT) as producer,
            PullConsumer(namesrv, group="our_reader") as reader,
        ):
            for body in bodies(8):
                message = Message(topic, body, "a", ["k1", "k2"], properties=properties, flag=7)
                sent = await producer.send(message)
                pulled = await reader.pull(sent.queue, sent.offset, max_count=1)
                (found,) = pulled.messages

                assert sent.status == "SEND_OK"
                assert (found.queue, found.offset) == (sent.queue, sent.offset)
                assert (found.msg_id, found.offset_msg_id) == (sent.msg_id, sent.offset_msg_id)
                assert (found.body.decode(), found.tags, found.flag) == (body, "a", 7)
                assert found.keys == ("k1", "k2")
                assert properties.items() <= found.properties.items()

    @story
    async def test_pipelined_sends_are_each_answered(self, namesrv: str, topic: str) -> None:
        """
        Hundreds of sends under way at once: every one has an offset of its own, none is lost.
        """
        await create_topic(namesrv, topic, queues=4)
        async with Producer(namesrv, group="our_producer", options=PATIENT) as producer:
            futures = [producer.submit(Message(topic, body)) for body in bodies(400)]
            results = await asyncio.gather(*futures)
        stored = await read_topic(namesrv, topic)

        assert {result.status for result in results} == {"SEND_OK"}
        where = {message.msg_id: (message.queue, message.offset) for message in stored}
        assert {r.msg_id: (r.queue, r.offset) for r in results} == where
        assert sorted(texts(stored)) == sorted(bodies(400))
        for offsets in offsets_by_queue(stored).values():
            assert offsets == list(range(len(offsets)))

    @story
    async def test_sends_without_an_answer_arrive(
        self, namesrv: str, topic: str, group: str
    ) -> None:
        """
        One-way sends are stored and consumed like all others.
        """
        await create_topic(namesrv, topic)
        async with (
            Producer(namesrv, group="our_producer") as producer,
            Consumer(namesrv, group=group, options=FIRST) as consumer,
        ):
            consumer.subscribe(topic)
            for body in bodies(20):
                await producer.send_oneway(Message(topic, body))
            got = await take_and_ack(consumer, 20)

        assert sorted(texts(got)) == sorted(bodies(20))

    @story
    async def test_a_batch_lies_side_by_side(self, namesrv: str, topic: str) -> None:
        """
        The messages of a batch follow each other in one queue, each with its id and properties.
        """
        await create_topic(namesrv, topic)
        messages = [
            Message(topic, body, tags="t", keys=f"k{index}", properties={"n": str(index)})
            for index, body in enumerate(bodies(10))
        ]
        async with Producer(namesrv, group="our_producer", options=PATIENT) as producer:
            await producer.send_batch(messages[:3], queue=Queue(topic, "broker-a", 1))
            sent = await producer.send_batch(messages, queue=Queue(topic, "broker-a", 1))
        stored = (await read_topic(namesrv, topic))[3:]

        assert (sent.status, sent.offset) == ("SEND_OK", 3)
        assert [message.msg_id for message in stored] == sent.msg_id.split(",")
        assert [message.offset_msg_id for message in stored] == sent.offset_msg_id.split(",")
        assert [(m.queue, m.offset) for m in stored] == [(sent.queue, 3 + n) for n in range(10)]
        assert texts(stored) == bodies(10)
        assert [m.keys for m in stored] == [(f"k{index}",) for index in range(10)]
        assert [m.properties["n"] for m in stored] == [str(index) for index in range(10)]

    @story
    async def test_a_sharding_key_or_a_selector_chooses_the_queue(
        self, namesrv: str, topic: str
    ) -> None:
        """
        Messages of one sharding key share a queue, and a selector's choice is kept.
        """
        await create_topic(namesrv, topic, queues=8)
        async with Producer(namesrv, group="our_producer", options=PATIENT) as producer:
            keyed = [
                await producer.send(Message(topic, body, sharding_key=f"customer-{index % 5}"))
                for index, body in enumerate(bodies(20))
            ]
            chosen = await producer.send(Message(topic, "x"), selector=lambda queues: queues[5])

        assert all(len({result.queue for result in keyed[n::5]}) == 1 for n in range(5))
        assert len({result.queue for result in keyed}) > 1
        assert chosen.queue.queue_id == 5

    @story
    async def test_compressed_bodies_are_read_by_everybody(
        self, namesrv: str, topic: str, fresh: Fresh
    ) -> None:
        """
        A large body travels packed; our consumers and both Java clients unpack it.
        """
        await create_topic(namesrv, topic, queues=1)
        body = "".join(bodies(5000))
        await send_bodies(namesrv, topic, body)
        (stored,) = await read_topic(namesrv, topic)
        for java in JAVA_CLIENTS:
            arguments = {"namesrv": namesrv, "topic": topic, "group": fresh("java")}
            assert (await java_run(java, "consume-concurrently", **arguments)).bodies == [body]

        assert stored.body.decode() == body
        assert len(stored.stored_body) < len(body) / 4

    @story
    async def test_newer_compressions_are_read_by_the_newer_client(
        self, namesrv: str, topic: str, group: str
    ) -> None:
        """
        Bodies packed with lz4 and zstd pass through both brokers to Java 5.3.
        """
        await create_topic(namesrv, topic, queues=1)
        whole = {kind: f"{kind} ".ljust(20_000, ".") for kind in ("lz4", "zstd")}
        for kind, body in whole.items():
            options = ProducerOptions(compression=kind, send_timeout_ms=10_000)
            async with Producer(namesrv, group=f"our_{kind}", options=options) as producer:
                await producer.send(Message(topic, body))
        stored = await read_topic(namesrv, topic)
        got = await java_run(
            NEW_JAVA, "consume-concurrently", namesrv=namesrv, topic=topic, group=group, expected=2
        )

        assert all(len(message.stored_body) < 2000 for message in stored)
        assert texts(stored) == list(whole.values())
        assert sorted(got.bodies) == sorted(whole.values())

    @story
    async def test_a_delayed_message_comes_late(self, namesrv: str, topic: str, group: str) -> None:
        """
        Delay level 1 keeps a message back for a second, under its own topic and id.
        """
        await create_topic(namesrv, topic, queues=1)
        async with (
            Producer(namesrv, group="our_producer", options=PATIENT) as producer,
            Consumer(namesrv, group=group, options=FIRST) as consumer,
        ):
            consumer.subscribe(topic)
            sent = await producer.send(Message(topic, "late", delay_level=SECOND_LATER))
            (got,) = await take_and_ack(consumer, 1)

        assert (got.msg_id, got.topic, got.body) == (sent.msg_id, topic, b"late")
        assert got.store_ms - got.born_ms >= 1000

    @story
    async def test_the_first_send_creates_its_topic(self, namesrv: str, topic: str) -> None:
        """
        Brokers that allow it make a topic when it is first sent to.
        """
        await send_bodies(namesrv, topic, *bodies(5))

        assert sorted(texts(await read_topic(namesrv, topic))) == bodies(5)


class TestRefusals:
    @story
    async def test_a_topic_that_does_not_exist_is_named(self, namesrv: str, topic: str) -> None:
        """
        Reading and sending say which topic is missing and what to do about it.
        """
        unlisted = ProducerOptions(create_topic_key="no_such_template")
        async with (
            Producer(namesrv, group="our_producer", options=unlisted) as producer,
            PullConsumer(namesrv, group="our_reader") as reader,
        ):
            with pytest.raises(NoRoute, match=f"{topic}.*create the topic first"):
                await reader.queues(topic)
            with pytest.raises(GantryError, match=f"{topic}.*create the topic first"):
                await producer.send(Message(topic, "lost"))

    @story
    async def test_what_the_broker_says_against_a_message_is_passed_on(
        self, namesrv: str, topic: str
    ) -> None:
        """
        A topic that may not be created and a body beyond the broker's limit: its code, its words.
        """
        options = ProducerOptions(
            create_topic_key="SELF_TEST_TOPIC", max_message_bytes=8 << 20, send_timeout_ms=10_000
        )
        async with Producer(namesrv, group="our_producer", options=options) as producer:
            with pytest.raises(SendFailed, match="not exist") as refused:
                await producer.send(Message(topic, "lost"))
            assert refused.value.refused_code == 17
            await create_topic(namesrv, f"{topic}_large", queues=1)
            large = Message(f"{topic}_large", random.Random(1).randbytes(5 << 20))
            with pytest.raises(SendFailed) as refused:
                await producer.send(large)
            assert refused.value.refused_code == 13


class TestConsuming:
    @java_clients()
    @story
    async def test_messages_of_a_java_producer(
        self, namesrv: str, topic: str, group: str, java: JavaClient
    ) -> None:
        """
        Tags choose among them; ids, keys, properties and packed bodies arrive as they were sent.
        """
        await create_topic(namesrv, topic)
        sent = (
            await java_run(
                java, "send-sync", namesrv=namesrv, topic=topic, count=12, size=20_000,
                tags=["a", "b", "c"], keys="k", properties={"colour": "grün"},
            )
        ).sent  # fmt: skip
        async with Consumer(namesrv, group=group, options=FIRST) as consumer:
            consumer.subscribe(topic, tags="a || c")
            got = {message.msg_id: message for message in await take_and_ack(consumer, 8)}
            assert await nothing_more(consumer)

        assert set(got) == {line["msgId"] for line in sent if line["index"] % 3 != 1}
        for line in sent:
            if line["index"] % 3 == 1:
                continue
            message = got[line["msgId"]]
            assert message.body.decode() == f"body-{line['index']}".ljust(20_000, ".")
            assert message.tags == "abc"[line["index"] % 3]
            assert message.keys == (f"k{line['index']}",)
            assert message.properties["colour"] == "grün"
            assert message.offset_msg_id == line["offsetMsgId"]
            assert (message.queue.queue_id, message.offset) == (
                line["queueId"], line["queueOffset"],
            )  # fmt: skip

    @java_clients()
    @story
    async def test_a_batch_of_a_java_producer(
        self, namesrv: str, topic: str, group: str, java: JavaClient
    ) -> None:
        """
        Every message of the batch comes by itself, in the order of the batch.
        """
        await create_topic(namesrv, topic, queues=1)
        (sent,) = (
            await java_run(java, "send-batch", namesrv=namesrv, topic=topic, count=10, keys="k")
        ).sent
        async with Consumer(namesrv, group=group, options=FIRST) as consumer:
            consumer.subscribe(topic)
            got = await take_and_ack(consumer, 10)

        assert texts(got) == bodies(10)
        assert [message.offset_msg_id for message in got] == sent["offsetMsgId"].split(",")
        assert [message.keys for message in got] == [(f"k{index}",) for index in range(10)]

    @story
    async def test_a_condition_chooses_messages(self, namesrv: str, topic: str, group: str) -> None:
        """
        An SQL condition over properties is checked by the broker.
        """
        await create_topic(namesrv, topic)
        async with Consumer(namesrv, group=group, options=FIRST) as consumer:
            consumer.subscribe(topic, sql="size > 10 AND colour = 'red'")
            await consumer.wait_assigned(4)
            await send(
                namesrv,
                Message(topic, "small", properties={"size": "9", "colour": "red"}),
                Message(topic, "right", properties={"size": "11", "colour": "red"}),
                Message(topic, "blue", properties={"size": "12", "colour": "blue"}),
                Message(topic, "bare"),
            )
            got = await take_and_ack(consumer, 1)
            assert await nothing_more(consumer)

        assert texts(got) == ["right"]

    @story
    async def test_handlers_run_side_by_side(self, namesrv: str, topic: str, group: str) -> None:
        """
        A concurrent consumer works on several messages at once and on each exactly once.
        """
        await create_topic(namesrv, topic)
        seen: list[Delivery] = []
        together, everything = asyncio.Event(), asyncio.Event()

        async def work(message: Delivery) -> None:
            seen.append(message)
            if len(seen) == 10:
                together.set()
            if len(seen) == 60:
                everything.set()
            await together.wait()  # nobody ends before ten have begun

        async with Consumer(namesrv, group=group, concurrency=10, options=FIRST) as consumer:
            consumer.subscribe(topic)
            consumer.handler(work)
            await send_bodies(namesrv, topic, *bodies(60))
            await everything.wait()

        assert sorted(texts(seen)) == sorted(bodies(60))

    @story
    async def test_an_ordered_consumer_keeps_the_order_of_each_key(
        self, namesrv: str, topic: str, group: str
    ) -> None:
        """
        Also when a message fails: it is tried again in place, and what follows waits.
        """
        await create_topic(namesrv, topic)
        done: list[Delivery] = []
        failed: list[Delivery] = []
        everything = asyncio.Event()

        async def work(message: Delivery) -> None:
            if message.body == b"shop-1-7" and message.reconsume_times == 0:
                failed.append(message)
                raise ValueError("not this time")
            done.append(message)
            if len(done) == 60:
                everything.set()

        async with Consumer(namesrv, group=group, ordered=True, options=FIRST) as consumer:
            consumer.subscribe(topic)
            consumer.handler(work)
            await send(
                namesrv,
                *(
                    Message(topic, f"shop-{shop}-{n}", keys=f"{shop}", sharding_key=f"s{shop}")
                    for n in range(12)
                    for shop in range(5)
                ),
            )
            await everything.wait()

        assert by_key(done) == {
            f"{shop}": [f"shop-{shop}-{n}" for n in range(12)] for shop in range(5)
        }
        assert texts(failed) == ["shop-1-7"]
        assert [m.reconsume_times for m in done if m.body == b"shop-1-7"] == [1]

    @story
    async def test_broadcasting_reaches_every_member(
        self, namesrv: str, topic: str, group: str, tmp_path: Path
    ) -> None:
        """
        Each member of a broadcasting group gets every message and keeps its own progress.
        """
        await create_topic(namesrv, topic, queues=2)

        def member(name: str) -> Consumer:
            options = ConsumerOptions(
                consume_from_where=FIRST.consume_from_where, offset_dir=str(tmp_path / name)
            )
            return Consumer(namesrv, group=group, broadcast=True, options=options)

        async with member("one") as one, member("other") as other:
            one.subscribe(topic)
            other.subscribe(topic)
            await send_bodies(namesrv, topic, *bodies(6))
            assert sorted(texts(await take_and_ack(one, 6))) == bodies(6)
            assert sorted(texts(await take_and_ack(other, 6))) == bodies(6)
        async with member("one") as again:
            again.subscribe(topic)
            await send_bodies(namesrv, topic, "new")
            assert texts(await take_and_ack(again, 1)) == ["new"]

    @story
    async def test_members_share_the_queues_and_inherit_them(
        self, namesrv: str, topic: str, group: str
    ) -> None:
        """
        The broker's word that a member came or left shares the queues out anew, at once.
        """
        await create_topic(namesrv, topic)
        async with Consumer(namesrv, group=group, options=FIRST) as stays:
            stays.subscribe(topic)
            await stays.wait_assigned(4)
            async with Consumer(namesrv, group=group, options=FIRST) as leaves:
                leaves.subscribe(topic)
                await leaves.wait_assigned(2)

                async def held() -> list[Queue]:
                    return stays.assignment

                mine = await eventually(held, lambda queues: len(queues) == 2)
                assert not set(mine) & set(leaves.assignment)
            await stays.wait_assigned(4)


class TestProgress:
    @story
    async def test_a_retried_message_comes_again_until_it_succeeds(
        self, namesrv: str, topic: str, group: str
    ) -> None:
        """
        The count of deliveries grows; topic, id and body stay what they were.
        """
        await create_topic(namesrv, topic)
        async with (
            Producer(namesrv, group="our_producer", options=PATIENT) as producer,
            Consumer(namesrv, group=group, options=FIRST) as consumer,
        ):
            consumer.subscribe(topic)
            sent = await producer.send(Message(topic, "stubborn", "t", "k"))
            deliveries = []
            for _ in range(2):
                deliveries.append(await anext(consumer))
                await deliveries[-1].retry(delay_level=SECOND_LATER)
            deliveries += await take_and_ack(consumer, 1)
            assert await nothing_more(consumer)

        assert [message.reconsume_times for message in deliveries] == [0, 1, 2]
        for message in deliveries:
            assert (message.msg_id, message.topic) == (sent.msg_id, topic)
            assert (message.body, message.tags, message.keys) == (b"stubborn", "t", ("k",))
            assert message.properties.get("ORIGIN_MESSAGE_ID", sent.offset_msg_id) == (
                sent.offset_msg_id
            )

    @pytest.mark.parametrize("max_retries", [0, 1])
    @story
    async def test_a_message_that_never_succeeds_is_a_dead_letter(
        self, namesrv: str, topic: str, group: str, max_retries: int
    ) -> None:
        """
        After the last retry it lies among the dead letters of the group, with its origin.
        """
        await create_topic(namesrv, topic)
        await send_bodies(namesrv, topic, "hopeless")
        async with Consumer(
            namesrv, group=group, max_retries=max_retries, options=FIRST
        ) as consumer:
            consumer.subscribe(topic)
            for times in range(max_retries + 1):
                message = await anext(consumer)
                assert message.reconsume_times == times
                await message.retry(delay_level=SECOND_LATER)
            assert await nothing_more(consumer)
        (dead,) = await read_topic(namesrv, dead_topic(group))

        assert (dead.body, dead.properties["RETRY_TOPIC"]) == (b"hopeless", topic)
        assert dead.msg_id == message.msg_id

    @pytest.mark.parametrize("ordered", [False, True])
    @story
    async def test_dead_sends_a_message_away_at_once(
        self, namesrv: str, topic: str, group: str, ordered: bool
    ) -> None:
        """
        The verb `dead` needs no retry before, and the queue goes on.
        """
        await create_topic(namesrv, topic, queues=1)
        await send_bodies(namesrv, topic, "poison", "good")
        async with Consumer(namesrv, group=group, ordered=ordered, options=FIRST) as consumer:
            consumer.subscribe(topic)
            poison = await anext(consumer)
            await poison.dead()
            good = await take_and_ack(consumer, 1)

        assert texts(good) == ["good"]
        assert texts(await read_topic(namesrv, dead_topic(group))) == ["poison"]

    @story
    async def test_a_group_goes_on_where_it_stopped(
        self, namesrv: str, topic: str, group: str
    ) -> None:
        """
        What was finished is stored by the broker: neither our next member nor Java's reads it.
        """
        await create_topic(namesrv, topic)
        await send_bodies(namesrv, topic, *bodies(5, "first"))
        async with Consumer(namesrv, group=group, options=FIRST) as consumer:
            consumer.subscribe(topic)
            await take_and_ack(consumer, 5)
        await send_bodies(namesrv, topic, *bodies(5, "second"))
        async with Consumer(namesrv, group=group, options=FIRST) as consumer:
            consumer.subscribe(topic)
            assert sorted(texts(await take_and_ack(consumer, 5))) == bodies(5, "second")
            assert await nothing_more(consumer)
        await send_bodies(namesrv, topic, *bodies(5, "third"))
        got = await java_run(
            OLD_JAVA, "consume-concurrently",
            namesrv=namesrv, topic=topic, group=group, expected=5, lingerMs=500,
        )  # fmt: skip

        assert sorted(got.bodies) == bodies(5, "third")

    @story
    async def test_unfinished_messages_are_delivered_again(
        self, namesrv: str, topic: str, group: str
    ) -> None:
        """
        Only what was finished counts, whatever was handed out.
        """
        await create_topic(namesrv, topic, queues=1)
        await send_bodies(namesrv, topic, *bodies(3))
        async with Consumer(namesrv, group=group, options=FIRST) as consumer:
            consumer.subscribe(topic)
            first, _, _ = await take(consumer, 3)
            await first.ack()
        async with Consumer(namesrv, group=group, options=FIRST) as consumer:
            consumer.subscribe(topic)
            assert texts(await take_and_ack(consumer, 2)) == bodies(3)[1:]


class TestPulling:
    @story
    async def test_offsets_and_times_of_a_queue(self, namesrv: str, topic: str) -> None:
        """
        First and next offset, the offset of a time, and pulls inside, at and beyond the end.
        """
        await create_topic(namesrv, topic, queues=1)
        queue = Queue(topic, "broker-a", 0)
        await send_bodies(namesrv, topic, *bodies(3))
        await asyncio.sleep(0.01)  # the next message gets a later millisecond
        await send_bodies(namesrv, topic, "later")
        async with PullConsumer(namesrv, group="our_reader") as reader:
            messages = await read_queue(reader, queue)
            inside = await reader.pull(queue, 1, max_count=2)
            at_end = await reader.pull(queue, 4)
            beyond = await reader.pull(queue, 100)

            assert await reader.queues(topic) == [queue]
            assert (await reader.min_offset(queue), await reader.max_offset(queue)) == (0, 4)
            assert await reader.search_offset(queue, messages[3].store_time) == 3
            assert await reader.search_offset(queue, 0) == 0
        assert texts(messages) == [*bodies(3), "later"]
        assert (inside.status, inside.next_offset) == (PullStatus.FOUND, 3)
        assert texts(inside.messages) == bodies(3)[1:]
        assert (inside.min_offset, inside.max_offset) == (0, 4)
        assert (at_end.status, at_end.next_offset) == (PullStatus.NO_NEW, 4)
        assert (beyond.status, beyond.next_offset) == (PullStatus.OFFSET_MOVED, 4)

    @story
    async def test_a_held_pull_returns_with_the_message(self, namesrv: str, topic: str) -> None:
        """
        A pull at the end of a queue waits at the broker, and the next send ends the wait.
        """
        await create_topic(namesrv, topic, queues=1)
        await send_bodies(namesrv, topic, "before")
        async with PullConsumer(namesrv, group="our_reader") as reader:
            held = asyncio.create_task(reader.pull_blocking(Queue(topic, "broker-a", 0), 1))
            await send_bodies(namesrv, topic, "awaited")
            pulled = await held

        assert texts(pulled.messages) == ["awaited"]

    @story
    async def test_a_pull_filters_and_its_progress_is_stored(
        self, namesrv: str, topic: str, group: str
    ) -> None:
        """
        By tags or by a condition; and a group's committed offset is read back by another reader.
        """
        await create_topic(namesrv, topic, queues=1)
        queue = Queue(topic, "broker-a", 0)
        await send(
            namesrv,
            *(Message(topic, tag, tag, properties={"n": f"{n}"}) for n, tag in enumerate("abca")),
        )
        async with PullConsumer(namesrv, group=group) as reader:
            tagged = await reader.pull(queue, 0, tags="a || c")
            chosen = await reader.pull(queue, 0, sql="n BETWEEN 1 AND 2")
            assert await reader.committed(queue) is None
            await reader.commit(queue, 3)
        async with PullConsumer(namesrv, group=group) as reader:
            assert await reader.committed(queue) == 3

        assert texts(tagged.messages) == ["a", "c", "a"]
        assert texts(chosen.messages) == ["b", "c"]

    @story
    async def test_a_lite_consumer_reads_what_it_is_assigned(
        self, namesrv: str, topic: str, group: str
    ) -> None:
        """
        It begins where it is told to, polls on, and its commit is taken up by the next one.
        """
        await create_topic(namesrv, topic, queues=2)
        one, other = Queue(topic, "broker-a", 0), Queue(topic, "broker-a", 1)
        async with Producer(namesrv, group="our_producer", options=PATIENT) as producer:
            for body in bodies(5):
                await producer.send(Message(topic, body), queue=one)
            await producer.send(Message(topic, "not ours"), queue=other)
        async with LitePullConsumer(namesrv, group=group) as consumer:
            consumer.assign([one])
            await consumer.wait_assigned()
            await consumer.seek(one, 2)
            assert texts(await consumer.poll()) == bodies(5)[2:]
            await consumer.seek_to_begin(one)
            assert texts(await consumer.poll()) == bodies(5)
            await consumer.commit()
            assert await consumer.committed(one) == 5
        async with LitePullConsumer(namesrv, group=group) as consumer:
            consumer.assign([one])
            await consumer.wait_assigned()
            await send_bodies(namesrv, topic, "new", "new")
            assert texts(await consumer.poll()) == ["new"]

    @story
    async def test_a_lite_consumer_subscribes(self, namesrv: str, topic: str, group: str) -> None:
        """
        It joins its group, gets every queue, and the messages of its tags.
        """
        await create_topic(namesrv, topic)
        async with LitePullConsumer(namesrv, group=group) as consumer:
            consumer.subscribe(topic, tags="a")
            await consumer.wait_assigned(4)
            await send(namesrv, *(Message(topic, f"{n}", "ab"[n % 2]) for n in range(12)))
            got: list[str] = []
            while len(got) < 6:
                got += texts(await consumer.poll())

        assert sorted(got, key=int) == ["0", "2", "4", "6", "8", "10"]


class TestAdministration:
    @story
    async def test_a_topic_is_created_listed_and_deleted(
        self, cluster: RealCluster, namesrv: str, topic: str
    ) -> None:
        """
        With other queues to read than to write; after the deletion nobody knows it.
        """
        async with Admin(namesrv) as admin:
            created = await admin.create_topic(topic, read_queues=6, write_queues=3)
            route = await admin.topic_route(topic)
            config = (await admin.topic_configs(cluster.broker_addr))[topic]

            assert created == {"broker-a": cluster.broker_addr}
            assert [data.master for data in route.broker_datas] == [cluster.broker_addr]
            (queues,) = route.queue_datas
            assert (queues.read_queue_nums, queues.write_queue_nums, queues.perm) == (6, 3, 6)
            assert (config.read_queue_nums, config.write_queue_nums) == (6, 3)
            assert topic in await admin.topics()
            assert topic in await admin.topics(cluster="DefaultCluster")

            await admin.delete_topic(topic)
            assert topic not in await admin.topics()
            assert topic not in await admin.topic_configs(cluster.broker_addr)
            with pytest.raises(NoRoute, match=topic):
                await admin.topic_route(topic)

    @story
    async def test_the_cluster_and_its_broker_describe_themselves(
        self, cluster: RealCluster, namesrv: str
    ) -> None:
        """
        Names and addresses, the broker's figures, and a setting that is changed and read back.
        """
        async with Admin(namesrv) as admin:
            info = await admin.cluster()
            runtime = await admin.broker_runtime(cluster.broker_addr)
            await admin.update_broker_config(
                cluster.broker_addr, {"traceTopicEnable": "false", "maxMessageSize": "4194304"}
            )
            config = await admin.broker_config(cluster.broker_addr)

        assert info.cluster_addr_table == {"DefaultCluster": ["broker-a"]}
        assert info.broker_addr_table["broker-a"].master == cluster.broker_addr
        assert "bootTimestamp" in runtime
        assert config["brokerName"] == "broker-a"
        assert config["maxMessageSize"] == "4194304"

    @story
    async def test_topics_and_groups_have_figures(
        self, namesrv: str, topic: str, group: str
    ) -> None:
        """
        How much lies in each queue, how far a group is, and who is connected.
        """
        await create_topic(namesrv, topic, queues=2)
        async with (
            Admin(namesrv) as admin,
            Producer(namesrv, group=f"{group}_producer", options=PATIENT) as producer,
            Consumer(namesrv, group=group, options=FIRST) as consumer,
        ):
            consumer.subscribe(topic, tags="a || b")
            for body in bodies(10):
                await producer.send(Message(topic, body, "a"))
            await take_and_ack(consumer, 10)
            await consumer.commit()
            stats = await admin.topic_stats(topic)
            progress = await admin.consume_stats(group, topic)
            members = await admin.consumers(group)
            senders = await admin.producers(f"{group}_producer", topic)

            assert list(stats) == [Queue(topic, "broker-a", 0), Queue(topic, "broker-a", 1)]
            assert sum(row.max_offset - row.min_offset for row in stats.values()) == 10
            assert progress.lag == 0
            assert sum(row.consumer_offset for row in progress.queues.values()) == 10
            assert await admin.topic_groups(topic) == [group]
            assert [member.language for member in members.connection_set] == ["PYTHON"]
            assert members.consume_type == "CONSUME_PASSIVELY"
            assert members.subscription_table[topic].sub_string == "a || b"
            assert [member.language for member in senders.connection_set] == ["PYTHON"]
            seen = await java_run(OLD_JAVA, "consumer-connection", namesrv=namesrv, group=group)
            assert [client["language"] for client in seen.value["clients"]] == ["PYTHON"]

    @story
    async def test_messages_are_found_by_key_and_by_id(self, namesrv: str, topic: str) -> None:
        """
        By any of its keys, by the producer's id and by the broker's; an unknown id says so.
        """
        await create_topic(namesrv, topic, queues=1)
        async with (
            Admin(namesrv) as admin,
            Producer(namesrv, group="our_producer", options=PATIENT) as producer,
        ):
            sent = await producer.send(Message(topic, "sought", "t", ["red", "large"]))
            await producer.send(Message(topic, "other", "t", ["red"]))
            red = await eventually(lambda: admin.query(topic, "red"), lambda got: len(got) == 2)
            large = await admin.query(topic, "large")
            by_producers_id = await admin.message(sent.msg_id, topic=topic)
            by_brokers_id = await admin.message(sent.offset_msg_id)
            with pytest.raises(MessageMissing):
                await admin.message(f"{sent.offset_msg_id[:-8]}7FFFFFFF")

        assert texts(red) == ["sought", "other"]
        for found in (*large, by_producers_id, by_brokers_id):
            assert (found.body, found.topic, found.msg_id) == (b"sought", topic, sent.msg_id)
            assert (found.queue, found.offset) == (sent.queue, sent.offset)

    @story
    async def test_a_group_is_created_changed_and_deleted(self, namesrv: str, group: str) -> None:
        """
        A group's settings are kept by the broker.
        """
        async with Admin(namesrv) as admin:
            await admin.update_group(GroupConfig(group_name=group, retry_max_times=3))
            kept = (await admin.groups())[group]
            await admin.delete_group(group)

            assert (kept.group_name, kept.retry_max_times) == (group, 3)
            assert group not in await admin.groups()


class TestBlockingClient:
    def test_the_same_without_async(self, namesrv: str, topic: str, group: str) -> None:
        """
        The blocking producer, consumer and admin speak to the same servers.
        """
        with (
            sync.Admin(namesrv) as admin,
            sync.Producer(namesrv, group="our_producer", options=PATIENT) as producer,
            sync.Consumer(namesrv, group=group, options=FIRST) as consumer,
        ):
            admin.create_topic(topic, queues=2)
            consumer.subscribe(topic)
            single = producer.send(Message(topic, "single"))
            many = producer.send_many([Message(topic, body) for body in bodies(50)])
            got: list[sync.Delivery] = []
            while len(got) < 51:
                found = consumer.poll(timeout=30)
                assert found
                consumer.finish_many(found)
                got += found
            consumer.commit()

            assert admin.consume_stats(group, topic).lag == 0
        results = [single, *(result for result in many if isinstance(result, SendResult))]
        assert len(results) == 51
        assert {(r.queue, r.offset) for r in results} == {(m.queue, m.offset) for m in got}
        assert sorted(texts(got)) == sorted(["single", *bodies(50)])
