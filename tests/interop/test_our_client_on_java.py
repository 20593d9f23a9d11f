"""Our producer, admin and blocking client against RocketMQ's own servers of two releases."""

import asyncio
import random
from dataclasses import replace

import pytest
from clients import JAVA_CLIENTS, JavaClient
from expect import bodies
from our_client import (
    FIRST,
    OLD_JAVA,
    PATIENT,
    SECOND_LATER,
    Scene,
    eventually,
    offsets_by_queue,
    on_real_servers,
    story,
    take,
    take_and_ack,
    texts,
)

from gantrymq import (
    ClientOptions,
    GroupConfig,
    NoNameServer,
    NoRoute,
    NotReady,
    ProducerOptions,
    SendFailed,
    SendResult,
    sync,
)
from gantrymq.client.admin.messages.message_query import MessageMissing
from gantrymq.model import READ, dead_topic

pytestmark = [on_real_servers, pytest.mark.timeout(120)]

MESSAGE_ILLEGAL = 13


class TestFindingServers:
    @story
    async def test_a_brokers_port_is_recognised(self, scene: Scene) -> None:
        """A broker answers what only name servers know with REQUEST_CODE_NOT_SUPPORTED."""
        await scene.create_topic()
        wrong = replace(scene, namesrv=scene.broker)
        async with wrong.producer() as producer:
            with pytest.raises(NoNameServer, match=f"{scene.broker} is no name server"):
                await producer.send(scene.message("x"))
        async with wrong.consumer(start_timeout=3) as consumer:
            consumer.subscribe(scene.topic)
            with pytest.raises(NotReady, match="it answers as a broker does"):
                await consumer.run()


class TestSending:
    @story
    async def test_a_message_lies_where_its_answer_says(self, scene: Scene) -> None:
        """A pull finds it under the queue, the offset and both ids of the answer."""
        await scene.create_topic()
        properties = {"colour": "grün", "名": "值"}
        async with scene.producer() as producer, scene.reader() as reader:
            for body in bodies(8):
                message = scene.message(body, "a", keys=["k", "l"], properties=properties, flag=7)
                sent = await producer.send(message)
                pulled = await reader.pull_blocking(sent.queue, sent.offset)
                (found,) = pulled.messages

                assert sent.status == "SEND_OK"
                assert (found.queue, found.offset) == (sent.queue, sent.offset)
                assert (found.msg_id, found.offset_msg_id) == (sent.msg_id, sent.offset_msg_id)
                assert (found.body.decode(), found.tags, found.flag) == (body, "a", 7)
                assert found.keys == ("k", "l")
                assert properties.items() <= found.properties.items()

    @story
    async def test_pipelined_sends_are_each_answered(self, scene: Scene) -> None:
        """Of hundreds under way at once every one has a place of its own, and none is lost."""
        await scene.create_topic()
        async with scene.producer() as producer:
            futures = [producer.submit(scene.message(body)) for body in bodies(400)]
            results = await asyncio.gather(*futures)
        stored = await scene.stored(400)

        assert {result.status for result in results} == {"SEND_OK"}
        places = {message.msg_id: (message.queue, message.offset) for message in stored}
        assert {r.msg_id: (r.queue, r.offset) for r in results} == places
        assert sorted(texts(stored)) == sorted(bodies(400))
        for offsets in offsets_by_queue(stored).values():
            assert offsets == list(range(len(offsets)))

    @story
    async def test_sends_without_an_answer_arrive(self, scene: Scene) -> None:
        """One-way sends are stored like all others."""
        await scene.create_topic()
        async with scene.producer() as producer:
            for body in bodies(20):
                await producer.send_oneway(scene.message(body))

        assert sorted(texts(await scene.stored(20))) == sorted(bodies(20))

    @story
    async def test_a_batch_lies_side_by_side(self, scene: Scene) -> None:
        """Its messages follow each other in one queue, each with its own id and properties."""
        await scene.create_topic()
        messages = [
            scene.message(body, "t", keys=f"k{n}", properties={"n": f"{n}"})
            for n, body in enumerate(bodies(10))
        ]
        async with scene.producer() as producer:
            await producer.send_batch(messages[:3], queue=scene.queue(1))
            sent = await producer.send_batch(messages, queue=scene.queue(1))
        stored = (await scene.stored(13))[3:]

        assert (sent.status, sent.queue, sent.offset) == ("SEND_OK", scene.queue(1), 3)
        assert [message.msg_id for message in stored] == sent.msg_id.split(",")
        assert [message.offset_msg_id for message in stored] == sent.offset_msg_id.split(",")
        assert [(m.queue, m.offset) for m in stored] == [(sent.queue, 3 + n) for n in range(10)]
        assert texts(stored) == bodies(10)
        assert [m.keys for m in stored] == [(f"k{n}",) for n in range(10)]
        assert [m.properties["n"] for m in stored] == [f"{n}" for n in range(10)]

    @story
    async def test_a_bulk_send_is_stored_as_its_results_say(self, scene: Scene) -> None:
        """Batches of many messages, and those that go alone among them, lie where it is said."""
        await scene.create_topic(queues=3)
        messages = [
            scene.message(body, "t", keys=f"k{n}", sharding_key="one" if n % 100 == 0 else None)
            for n, body in enumerate(bodies(1_000))
        ]
        async with scene.producer() as producer:
            results = await producer.send_all(messages)
        results.raise_failures()
        there = {(message.queue, message.offset): message for message in await scene.stored(1_000)}

        assert len(there) == 1_000
        for message, result in zip(messages, results, strict=True):
            assert isinstance(result, SendResult)
            found = there[result.queue, result.offset]
            assert (found.body, found.keys) == (message.body, message.keys)
            assert (found.msg_id, found.offset_msg_id) == (result.msg_id, result.offset_msg_id)

    @story
    async def test_a_sharding_key_or_a_selector_chooses_the_queue(self, scene: Scene) -> None:
        """Messages of one key share a queue, and a selector's choice is kept."""
        await scene.create_topic(queues=8)
        async with scene.producer() as producer:
            keyed = [
                await producer.send(scene.message(body, sharding_key=f"customer-{n % 5}"))
                for n, body in enumerate(bodies(20))
            ]
            chosen = await producer.send(scene.message("x"), selector=lambda queues: queues[5])

        assert all(len({result.queue for result in keyed[n::5]}) == 1 for n in range(5))
        assert len({result.queue for result in keyed}) > 1
        assert chosen.queue == scene.queue(5)

    @pytest.mark.parametrize("java", JAVA_CLIENTS, ids=repr)
    @story
    async def test_compressed_bodies_are_read_by_java(self, scene: Scene, java: JavaClient) -> None:
        """Large bodies travel packed: zlib is known to everybody, the others to Java 5."""
        await scene.create_topic(queues=1)
        kinds = ["zlib"] if java is OLD_JAVA else ["zlib", "lz4", "zstd"]
        whole = [f"{kind} ".ljust(20_000, ".") for kind in kinds]
        for kind, body in zip(kinds, whole, strict=True):
            options = ProducerOptions(compression=kind, send_timeout_ms=10_000)
            async with scene.producer(options) as producer:
                await producer.send(scene.message(body))
        stored = await scene.stored(len(kinds))
        got = await scene.java(java, "consume-concurrently", expected=len(kinds))

        assert all(len(message.stored_body) < 1000 for message in stored)
        assert texts(stored) == whole
        assert sorted(got.bodies) == sorted(whole)
        assert {line["msgId"] for line in got.messages} == {message.msg_id for message in stored}

    @story
    async def test_a_delayed_message_comes_late(self, scene: Scene) -> None:
        """Delay level 1 keeps a message back for a second, under its own topic and id."""
        await scene.create_topic(queues=1)
        async with scene.producer() as producer, scene.consumer() as consumer:
            consumer.subscribe(scene.topic)
            sent = await producer.send(scene.message("late", delay_level=SECOND_LATER))
            (got,) = await take_and_ack(consumer, 1)

        assert (got.msg_id, got.topic, got.body) == (sent.msg_id, scene.topic, b"late")
        assert got.store_ms - got.born_ms >= 1000

    @story
    async def test_the_first_send_creates_its_topic(self, scene: Scene) -> None:
        """Brokers that allow it make a topic when it is first sent to."""
        await scene.send(*bodies(5))

        assert sorted(texts(await scene.stored(5))) == bodies(5)

    @story
    async def test_a_topic_that_does_not_exist_is_named(self, scene: Scene) -> None:
        """Reading and sending say which topic is missing, and what to do about it."""
        wanted = f"{scene.topic}.*create the topic first"
        for template in ("no_such_template", "SELF_TEST_TOPIC"):
            async with scene.producer(ProducerOptions(create_topic_key=template)) as producer:
                with pytest.raises(NoRoute, match=wanted):
                    await producer.send(scene.message("lost"))
        async with scene.reader() as reader, scene.admin() as admin:
            with pytest.raises(NoRoute, match=wanted):
                await reader.queues(scene.topic)
            assert scene.topic not in await admin.topics()

    @story
    async def test_what_a_broker_has_against_a_message_is_passed_on(self, scene: Scene) -> None:
        """A body beyond the broker's limit: its code; a topic that may only be read: why."""
        options = ProducerOptions(max_message_bytes=8 << 20, send_timeout_ms=10_000)
        large = random.Random(1).randbytes(5 << 20).decode("latin-1")
        await scene.create_topic(queues=1)
        async with scene.producer(options) as producer:
            with pytest.raises(SendFailed, match=f"{scene.topic}.*broker-a") as refused:
                await producer.send(scene.message(large))
            assert refused.value.refused_code == MESSAGE_ILLEGAL
        async with scene.admin() as admin, scene.producer() as producer:
            await admin.create_topic(scene.topic, queues=1, perm=READ)
            with pytest.raises(NoRoute, match="none with a queue to write to"):
                await producer.send(scene.message("late"))


class TestAdministration:
    @story
    async def test_a_topic_is_created_listed_and_deleted(self, scene: Scene) -> None:
        """With more queues to read than to write; after the deletion nobody knows it."""
        topic = scene.topic
        async with scene.admin() as admin:
            created = await admin.create_topic(topic, read_queues=6, write_queues=3)
            route = await admin.topic_route(topic)
            config = (await admin.topic_configs(scene.broker))[topic]

            assert created == {"broker-a": scene.broker}
            assert [data.master for data in route.broker_datas] == [scene.broker]
            (queues,) = route.queue_datas
            assert (queues.read_queue_nums, queues.write_queue_nums, queues.perm) == (6, 3, 6)
            assert (config.read_queue_nums, config.write_queue_nums) == (6, 3)
            assert topic in await admin.topics()
            assert topic in await admin.topics(cluster="DefaultCluster")

            await admin.delete_topic(topic)
            assert topic not in await admin.topics()
            assert topic not in await admin.topic_configs(scene.broker)
            with pytest.raises(NoRoute, match=topic):
                await admin.topic_route(topic)

    @story
    async def test_the_cluster_and_its_broker_describe_themselves(self, scene: Scene) -> None:
        """Names and addresses, figures, and a setting that is changed and read back."""
        async with scene.admin() as admin:
            info = await admin.cluster()
            runtime = await admin.broker_runtime(scene.broker)
            before = await admin.broker_config(scene.broker)
            await admin.update_broker_config(scene.broker, {"maxTransferCountOnMessageInDisk": "9"})
            after = await admin.broker_config(scene.broker)

        assert info.cluster_addr_table == {"DefaultCluster": ["broker-a"]}
        assert info.broker_addr_table["broker-a"].master == scene.broker
        assert int(runtime["bootTimestamp"]) > 0
        assert before["brokerName"] == after["brokerName"] == "broker-a"
        assert before["maxTransferCountOnMessageInDisk"] == "8"
        assert after["maxTransferCountOnMessageInDisk"] == "9"

    @story
    async def test_topics_and_groups_have_figures(self, scene: Scene) -> None:
        """How much lies in each queue, how far a group is, and who is connected."""
        await scene.create_topic(queues=2)
        async with (
            scene.admin() as admin,
            scene.producer() as producer,
            scene.consumer() as consumer,
        ):
            consumer.subscribe(scene.topic, tags="a || b")
            for body in bodies(10):
                await producer.send(scene.message(body, "a"))
            await take_and_ack(consumer, 10)
            await consumer.commit()
            stats = await admin.topic_stats(scene.topic)
            progress = await admin.consume_stats(scene.group, scene.topic)
            members = await admin.consumers(scene.group)
            senders = await admin.producers(producer.group, scene.topic)
            seen_by_java = await scene.java(OLD_JAVA, "consumer-connection")

            assert list(stats) == [scene.queue(0), scene.queue(1)]
            assert sum(row.max_offset - row.min_offset for row in stats.values()) == 10
            assert progress.lag == 0
            assert sum(row.consumer_offset for row in progress.queues.values()) == 10
            assert scene.group in await admin.topic_groups(scene.topic)
            assert [member.language for member in members.connection_set] == ["PYTHON"]
            assert members.consume_type == "CONSUME_PASSIVELY"
            assert members.subscription_table[scene.topic].sub_string == "a || b"
            assert [member.language for member in senders.connection_set] == ["PYTHON"]
            assert [client["language"] for client in seen_by_java.value["clients"]] == ["PYTHON"]

    @story
    async def test_messages_are_found_by_key_and_by_id(self, scene: Scene) -> None:
        """By any key, by the producer's id and by the broker's; an unknown id says so."""
        await scene.create_topic(queues=1)
        async with scene.admin() as admin, scene.producer() as producer:
            sent = await producer.send(scene.message("sought", "t", keys=["red", "large"]))
            await producer.send(scene.message("other", "t", keys=["red"]))
            red = await eventually(lambda: admin.query(scene.topic, "red"), lambda m: len(m) == 2)
            large = await admin.query(scene.topic, "large")
            by_producers_id = await admin.message(sent.msg_id, topic=scene.topic)
            by_brokers_id = await admin.message(sent.offset_msg_id)
            with pytest.raises(MessageMissing):
                await admin.message(f"{sent.offset_msg_id[:-8]}7FFFFFFF")

        assert texts(red) == ["sought", "other"]
        for found in (*large, by_producers_id, by_brokers_id):
            assert (found.body, found.topic, found.msg_id) == (b"sought", scene.topic, sent.msg_id)
            assert (found.queue, found.offset) == (sent.queue, sent.offset)

    @story
    async def test_a_group_is_created_changed_and_deleted(self, scene: Scene) -> None:
        """A group's settings are kept by the broker."""
        async with scene.admin() as admin:
            for times in (3, 5):
                await admin.update_group(GroupConfig(group_name=scene.group, retry_max_times=times))
                assert (await admin.groups())[scene.group].retry_max_times == times
            await admin.delete_group(scene.group)
            assert scene.group not in await admin.groups()


class TestFaces:
    @story
    async def test_everything_speaks_the_binary_header(self, scene: Scene) -> None:
        """Producer, consumer and admin with ROCKETMQ headers in place of JSON."""
        options = ClientOptions(serialize="ROCKETMQ", call_timeout_ms=10_000)
        scene = replace(scene, client=options)
        await scene.create_topic(queues=1)
        async with (
            scene.producer() as producer,
            scene.consumer(max_retries=0) as consumer,
            scene.admin() as admin,
        ):
            consumer.subscribe(scene.topic)
            await producer.send(scene.message("grün", "t", keys="名"))
            await producer.send_batch([scene.message(body) for body in bodies(3)])
            await producer.submit(scene.message("last"))
            first, *others = await take(consumer, 5)
            assert (first.body.decode(), first.tags, first.keys) == ("grün", "t", ("名",))
            assert texts(others) == [*bodies(3), "last"]
            await first.retry()
            for message in others:
                await message.ack()
            await consumer.commit()
            assert (await admin.consume_stats(scene.group, scene.topic)).lag == 0
        assert texts(await scene.stored(1, dead_topic(scene.group))) == ["grün"]

    def test_the_same_without_async(self, scene: Scene) -> None:
        """The blocking producer, consumer and admin speak to the same servers."""
        with (
            sync.Admin(scene.namesrv) as admin,
            sync.Producer(scene.namesrv, group="blocking", options=PATIENT) as producer,
            sync.Consumer(scene.namesrv, group=scene.group, options=FIRST) as consumer,
        ):
            admin.create_topic(scene.topic, queues=2)
            consumer.subscribe(scene.topic)
            results = [producer.send(scene.message("single"))]
            for result in producer.send_many(scene.message(body) for body in bodies(50)):
                assert isinstance(result, SendResult)
                results.append(result)
            got: list[sync.Delivery] = []
            while len(got) < 51:
                found = consumer.poll(timeout=30)
                assert found
                consumer.finish_many(found)
                got += found
            consumer.commit()

            assert admin.consume_stats(scene.group, scene.topic).lag == 0
        assert {(r.queue, r.offset) for r in results} == {(m.queue, m.offset) for m in got}
        assert sorted(texts(got)) == sorted(["single", *bodies(50)])
