"""The admin client against real brokers."""

import asyncio
from collections.abc import Callable

import pytest

from gantrymq.base.errors import ProtocolError
from gantrymq.client.admin.admin import Admin
from gantrymq.client.admin.messages.message_query import MessageMissing
from gantrymq.client.admin.tables import group_table, progress, topic_offsets
from gantrymq.client.core.errors import BrokerRefused, ClientError, Closed, NoRoute, NotStarted
from gantrymq.client.core.options import ConsumerOptions
from gantrymq.model import GroupConfig, Message, NameRefused, Queue
from gantrymq.testing import Cluster

Simulate = Callable[..., None]
FIRST = ConsumerOptions(consume_from_where="CONSUME_FROM_FIRST_OFFSET")


def test_a_topic_is_made_on_every_master_and_known_at_once(gantry_sim: Simulate) -> None:
    """
    `create_topic` makes the topic on every master and registers it before it returns.
    """

    async def story(cluster: Cluster) -> None:
        async with cluster.admin() as admin:
            made = await admin.create_topic("T", queues=3)
            assert list(made) == ["broker-a", "broker-b"]
            assert "T" in await admin.topics()
            route = await admin.topic_route("T")
            assert [(d.broker_name, d.write_queue_nums) for d in route.queue_datas] == [
                ("broker-a", 3),
                ("broker-b", 3),
            ]
            await admin.create_topic("T", read_queues=4, write_queues=2, broker="broker-b", perm=4)
            configs = await admin.topic_configs(made["broker-b"])
            assert (configs["T"].read_queue_nums, configs["T"].write_queue_nums) == (4, 2)
            assert configs["T"].perm == 4

    gantry_sim(story, brokers=2, nameservers=2)


def test_a_deleted_topic_is_gone_everywhere(gantry_sim: Simulate) -> None:
    """
    `delete_topic` deletes the topic on brokers and name servers.
    """

    async def story(cluster: Cluster) -> None:
        async with cluster.admin() as admin:
            await admin.create_topic("T")
            await admin.delete_topic("T")
            assert "T" not in await admin.topics()
            with pytest.raises(NoRoute):
                await admin.topic_route("T")

    gantry_sim(story, brokers=2)


def test_the_cluster_is_told_by_name_and_address(gantry_sim: Simulate) -> None:
    """
    `cluster`, `masters`, `broker_runtime` and the broker's settings answer by name and address.
    """

    async def story(cluster: Cluster) -> None:
        async with cluster.admin() as admin:
            info = await admin.cluster()
            assert info.cluster_addr_table == {"DefaultCluster": ["broker-a", "broker-b"]}
            masters = await admin.masters(cluster="DefaultCluster", broker="broker-b")
            assert list(masters) == ["broker-b"]
            runtime = await admin.broker_runtime(masters["broker-b"])
            assert runtime["brokerActive"] == "true"
            config = await admin.broker_config(masters["broker-b"])
            assert config["brokerName"] == "broker-b"
            with pytest.raises(ClientError, match="known: DefaultCluster"):
                await admin.masters(cluster="other")
            with pytest.raises(ClientError, match="known: broker-a, broker-b"):
                await admin.create_topic("T", broker="broker-c")

    gantry_sim(story, brokers=2)


def test_messages_are_found_by_both_ids_and_by_key(gantry_sim: Simulate) -> None:
    """
    A message is found by its unique id, by its offset id and by each of its keys.
    """

    async def story(cluster: Cluster) -> None:
        await cluster.create_topic("T")
        async with cluster.producer() as producer, cluster.admin() as admin:
            sent = [
                await producer.send(Message("T", str(number), keys=["all", f"k{number}"]))
                for number in range(8)
            ]
            third = sent[3]
            assert (await admin.message(third.offset_msg_id)).body == b"3"
            assert (await admin.message(third.offset_msg_id)).queue == third.queue
            assert (await admin.message(third.msg_id, topic="T")).body == b"3"
            assert [m.body for m in await admin.query("T", "k5")] == [b"5"]
            assert len(await admin.query("T", "all")) == 8
            assert len(await admin.query("T", "all", count_max=2)) == 2
            assert await admin.query("T", "nothing") == []

    gantry_sim(story, brokers=2)


def test_what_is_not_there_is_said_to_be_missing(gantry_sim: Simulate) -> None:
    """
    An id behind the end of the log, and a text that is no id, raise MessageMissing.
    """

    async def story(cluster: Cluster) -> None:
        async with cluster.producer() as producer, cluster.admin() as admin:
            sent = await producer.send(Message("T", "x"))
            beyond = f"{int(sent.offset_msg_id, 16) + 10_000:032X}"
            with pytest.raises(MessageMissing):
                await admin.message(beyond)
            with pytest.raises(MessageMissing, match="no message id"):
                await admin.message("hello")

    gantry_sim(story)


def test_offsets_of_a_queue_are_told(gantry_sim: Simulate) -> None:
    """
    Smallest, largest and by-time offsets of a queue are those of the broker.
    """

    async def story(cluster: Cluster) -> None:
        await cluster.create_topic("T", queues=1)
        queue = Queue("T", "broker-a", 0)
        async with cluster.producer() as producer, cluster.admin() as admin:
            for number in range(5):
                await producer.send(Message("T", str(number)))
                await asyncio.sleep(10)
            assert (await admin.min_offset(queue), await admin.max_offset(queue)) == (0, 5)
            second = (await admin.query("T", "x")) or await admin.topic_stats("T")
            assert queue in second
            now_ms = cluster.clock.now_ms()
            assert await admin.search_offset(queue, now_ms - 25_000) == 3
            assert await admin.search_offset(queue, 0) == 0

    gantry_sim(story)


def test_the_progress_of_a_group_is_its_lag_per_queue(gantry_sim: Simulate) -> None:
    """
    The lag of a group is the difference between the end of each queue and what it acknowledged.
    """

    async def story(cluster: Cluster) -> None:
        await cluster.create_topic("T", queues=1)
        async with cluster.producer() as producer, cluster.admin() as admin:
            for number in range(10):
                await producer.send(Message("T", str(number)))
            async with cluster.consumer("readers", options=FIRST) as consumer:
                consumer.subscribe("T")
                taken = 0
                async for message in consumer:
                    await message.ack()
                    taken += 1
                    if taken == 4:
                        break
                members = await admin.consumers("readers")
                assert [m.client_id for m in members.connection_set] == [
                    consumer.instance.client_id
                ]
                assert await admin.topic_groups("T") == ["readers"]
            found = await admin.consume_stats("readers", "T")
            assert found.queues[Queue("T", "broker-a", 0)].consumer_offset == 4
            assert found.lag == 6
            assert (await admin.consumers("readers")).connection_set == []

    gantry_sim(story)


def test_groups_are_made_changed_and_deleted(gantry_sim: Simulate) -> None:
    """
    A group can be created with settings, changed, and deleted together with its offsets.
    """

    async def story(cluster: Cluster) -> None:
        async with cluster.admin() as admin:
            await admin.update_group(GroupConfig(group_name="g", retry_max_times=3))
            assert (await admin.groups())["g"].retry_max_times == 3
            await admin.delete_group("g", with_offsets=True)
            assert "g" not in await admin.groups()
            with pytest.raises(NameRefused):
                await admin.update_group(GroupConfig(group_name="no good"))

    gantry_sim(story, brokers=2)


def test_a_broker_says_which_settings_it_does_not_know(gantry_sim: Simulate) -> None:
    """
    A broker answers a change of settings with the keys that it does not know, and refuses bad
    values.
    """

    async def story(cluster: Cluster) -> None:
        async with cluster.admin() as admin:
            address = (await admin.masters())["broker-a"]
            said = await admin.update_broker_config(address, {"noSuchKey": "1"})
            assert said == "unknown, passed over: noSuchKey"
            assert await admin.update_broker_config(address, {"fileReservedTime": "1"}) is None
            with pytest.raises(BrokerRefused):
                await admin.update_broker_config(address, {"fileReservedTime": "soon"})

    gantry_sim(story)


def test_an_admin_that_cannot_work_says_why() -> None:
    """
    An admin client raises NotStarted before its start and Closed after its end.
    """

    async def story() -> None:
        admin = Admin("127.0.0.1:1")
        with pytest.raises(NotStarted):
            await admin.topics()
        async with admin:
            pass
        with pytest.raises(Closed):
            await admin.topics()

    asyncio.run(story())


def test_tables_are_read_in_both_dialects_of_fastjson() -> None:
    """
    Offset tables are read from brokers that write keys as objects and from those that write
    strings.
    """
    objects = (
        b'{"offsetTable":{{"brokerName":"b","queueId":1,"topic":"T"}:'
        b'{"lastUpdateTimestamp":5,"maxOffset":7,"minOffset":2}}}'
    )
    strings = (
        b'{"offsetTable":{"{\\"brokerName\\":\\"b\\",\\"queueId\\":1,\\"topic\\":\\"T\\"}":'
        b'{"lastUpdateTimestamp":5,"maxOffset":7,"minOffset":2}},"topicPutTps":1.5}'
    )

    assert topic_offsets(objects) == topic_offsets(strings)
    assert topic_offsets(objects)[Queue("T", "b", 1)].max_offset == 7
    assert progress(b'{"consumeTps":2.5,"offsetTable":{}}').tps == 2.5
    assert group_table(b'{"subscriptionGroupTable":{"g":{"groupName":"g"}}}').keys() == {"g"}


@pytest.mark.parametrize("body", [b"[]", b"{}", b'{"offsetTable":{"{}":{}}}', b"7"])
def test_a_table_that_is_none_is_a_protocol_error(body: bytes) -> None:
    """
    A body that is no offset table raises ProtocolError.
    """
    with pytest.raises(ProtocolError):
        topic_offsets(body)
