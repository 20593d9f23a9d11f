"""A master and its slave: sends, reads from the slave, tables, accidents."""

import asyncio
from collections.abc import Callable

import pytest
from peer import Peer, Run

from gantrymq import Consumer, Message, SendFailed
from gantrymq.broker.identity import IdentityTaken
from gantrymq.model import GroupConfig
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.loop import simulate
from gantrymq.testing.network import MemoryNetwork

SLAVE = "broker-a-s1"


async def until(holds: Callable[[], bool], seconds: float = 20.0) -> None:
    """Wait until something holds."""
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.02)


async def copied(cluster: Cluster, slave: str = SLAVE) -> None:
    """Wait until the slave has the whole log of its master."""
    await until(lambda: cluster.broker(slave).store.log_max == cluster.broker().store.log_max > 0)


async def send(cluster: Cluster, *bodies: str, topic: str = "orders") -> list[str]:
    """Send messages, one after the other; returns their statuses."""
    async with cluster.producer() as producer:
        return [(await producer.send(Message(topic, body.encode()))).status for body in bodies]


async def bodies_of(consumer: Consumer, count: int) -> list[str]:
    """The next messages of a consumer, acknowledged."""
    found = []
    async with asyncio.timeout(60):
        async for message in consumer:
            found.append(message.body.decode())
            await message.ack()
            if len(found) == count:
                return found
    return found


def test_a_sync_master_waits_for_its_slave(run: Run) -> None:
    """SEND_OK means that the slave has the message; the log of both is the same."""

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("orders")
        await send(cluster, *"abcdefgh")
        await copied(cluster)
        assert await send(cluster, *"ijkl") == ["SEND_OK"] * 4
        slave, master = cluster.broker(SLAVE).store, cluster.broker().store
        assert slave.log_max == master.log_max
        assert slave.queues.topics() == master.queues.topics()

    run(work, slaves=1, broker_role="SYNC_MASTER")


def test_after_a_cut_the_copy_goes_on_at_once() -> None:
    """A link that was cut for four seconds is made anew within a second and a half."""

    async def story() -> None:
        async with Cluster(memory=True, slaves=1, broker_role="SYNC_MASTER") as cluster:
            assert isinstance(cluster.network, MemoryNetwork)
            await cluster.create_topic("orders")
            await send(cluster, "a")
            await copied(cluster)
            cluster.network.part("127.0.0.1", "127.0.0.1")
            await asyncio.sleep(4)
            cluster.network.join("127.0.0.1", "127.0.0.1")
            await asyncio.sleep(1.5)
            assert await send(cluster, "b") == ["SEND_OK"]

    simulate(story)


def test_without_a_slave_a_sync_master_says_so(run: Run) -> None:
    """SLAVE_NOT_AVAILABLE: stored, visible, but on one machine only."""

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("orders")
        assert await send(cluster, "a") == ["SLAVE_NOT_AVAILABLE"]
        async with cluster.consumer(start="first") as consumer:
            consumer.subscribe("orders")
            assert await bodies_of(consumer, 1) == ["a"]

    run(work, broker_role="SYNC_MASTER")


def test_an_async_master_waits_for_nobody(run: Run) -> None:
    """SEND_OK without a slave as with one."""

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("orders")
        assert await send(cluster, "a") == ["SEND_OK"]
        await copied(cluster)
        await cluster.stop_broker(SLAVE)
        assert await send(cluster, "b") == ["SEND_OK"]

    run(work, slaves=1)


def test_a_slave_refuses_messages(run: Run) -> None:
    """A slave stores only what its master sends, and says who takes messages."""

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("orders")
        slave = cluster.broker(SLAVE).store
        assert slave.writable is not None
        assert "send to the master" in slave.writable

    run(work, slaves=1)


def test_consumers_read_on_from_the_slave(run: Run) -> None:
    """When the master is gone a consumer goes on with the slave by itself, and its progress
    counts for the master when that is back."""

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("orders", queues=1)
        await send(cluster, *"abcd")
        await copied(cluster)
        async with cluster.consumer("readers", start="first") as consumer:
            consumer.subscribe("orders")
            assert await bodies_of(consumer, 2) == ["a", "b"]
            await consumer.commit()
            await until(
                lambda: cluster.broker(SLAVE).registry.offsets.get("readers", "orders", 0) == 2
            )
            await cluster.stop_broker()
        async with cluster.consumer("readers", start="first") as consumer:
            consumer.subscribe("orders")
            assert await bodies_of(consumer, 2) == ["c", "d"]
        await cluster.start_broker()
        offsets = cluster.broker().registry.offsets
        await until(lambda: offsets.get("readers", "orders", 0) == 4)
        await send(cluster, "e")
        async with cluster.consumer("readers", start="first") as consumer:
            consumer.subscribe("orders")
            assert await bodies_of(consumer, 1) == ["e"]

    run(work, slaves=1)


def test_a_running_consumer_survives_the_loss_of_the_master() -> None:
    """It reads the rest from the slave and new messages from the returned master, each once."""

    async def story() -> None:
        async with Cluster(memory=True, slaves=1) as cluster:
            await cluster.create_topic("orders", queues=1)
            await send(cluster, *"abc")
            await copied(cluster)
            async with cluster.consumer("readers", start="first") as consumer:
                consumer.subscribe("orders")
                assert await bodies_of(consumer, 1) == ["a"]
                await cluster.kill_broker()
                assert await bodies_of(consumer, 2) == ["b", "c"]
                await asyncio.sleep(40)
                await cluster.start_broker()
                await send(cluster, "d")
                assert await bodies_of(consumer, 1) == ["d"]

    simulate(story)


def test_a_master_at_another_address_is_found_soon() -> None:
    """It was started on another port: the slave asks the name servers, and follows it there."""

    async def story() -> None:
        async with Cluster(memory=True, slaves=1) as cluster:
            await cluster.create_topic("orders")
            await send(cluster, "a")
            await copied(cluster)
            await cluster.stop_broker()
            port = cluster.broker(SLAVE).config.listen_port + 1_000
            cluster.reconfigure("broker-a", listen_port=port)
            await cluster.start_broker()
            await send(cluster, "b")
            async with asyncio.timeout(15):
                await copied(cluster)

    simulate(story)


def test_tables_are_copied(run: Run) -> None:
    """Topics, groups, offsets and delay offsets of the master stand in the slave's files; a
    table that has not changed is not written again."""

    async def work(cluster: Cluster) -> None:
        async with cluster.admin() as admin:
            await admin.create_topic("orders", queues=3)
            await admin.update_group(GroupConfig(group_name="billing", retry_max_times=7))
        await send(cluster, "a")
        master, slave = cluster.broker().registry, cluster.broker(SLAVE).registry
        master.offsets.commit("billing", "orders", 0, 1)
        await until(lambda: slave.topics.version == master.topics.version)
        await until(lambda: slave.groups.version == master.groups.version)
        await until(lambda: slave.offsets.get("billing", "orders", 0) == 1)
        topic, group = slave.topics.get("orders"), slave.groups.get("billing")
        assert topic is not None
        assert topic.read_queue_nums == 3
        assert group is not None
        assert group.retry_max_times == 7
        assert slave.topics.table == master.topics.table
        async with cluster.admin() as admin:
            await admin.delete_topic("orders")
        await until(lambda: slave.topics.get("orders") is None)

    run(work, slaves=1)


def test_delayed_messages_wait_on_the_slave_too() -> None:
    """A slave delivers nothing itself, and as a master it goes on where its master was."""

    async def story() -> None:
        async with Cluster(memory=True, slaves=1) as cluster:
            await cluster.create_topic("orders", queues=1)
            async with cluster.producer() as producer:
                await producer.send(Message("orders", b"soon", delay_level=1))
                await producer.send(Message("orders", b"later", delay_level=5))
            await asyncio.sleep(20)
            await copied(cluster)
            await until(lambda: bool(cluster.broker(SLAVE).registry.delays.table.get(1)))
            await cluster.kill_broker()
            await cluster.stop_broker(SLAVE)
            cluster.reconfigure(SLAVE, broker_role="ASYNC_MASTER", broker_id=0)
            await cluster.start_broker(SLAVE)
            async with cluster.consumer("readers", start="first") as consumer:
                consumer.subscribe("orders")
                assert await bodies_of(consumer, 2) == ["soon", "later"]
                await asyncio.sleep(60)
            assert cluster.broker(SLAVE).store.queues.max_offset("orders", 0) == 2

    simulate(story)


SMALL_FILES = {
    "mapped_file_size_commit_log": 16 * 1024,
    "max_message_size": 4_096,
    "file_reserved_time": 0,
    "ha_copy_whole_log": True,
}


def test_a_slave_deletes_what_its_master_has_deleted() -> None:
    """It keeps nothing for timers or epochs, which its master looks after; but until the master
    has deleted a file, the slave keeps it as well, however short its own retention is."""

    async def story() -> None:
        async with Cluster(memory=True, slaves=1, **SMALL_FILES) as cluster:
            await cluster.create_topic("orders")
            await send(cluster, *(str(number).ljust(3_000) for number in range(30)))
            await copied(cluster)
            master, slave = cluster.broker().store, cluster.broker(SLAVE).store
            await asyncio.sleep(30)
            assert await slave.upkeep.delete_expired() == 0
            assert await master.upkeep.delete_expired() > 0
            await slave.upkeep.delete_expired()
            assert slave.log_min == master.log_min > 0
            await send(cluster, "new")
            await copied(cluster)

    simulate(story)


def test_what_waits_in_old_files_is_on_the_slave_when_its_master_is_lost() -> None:
    """The slave has a shorter retention than its master, which still has a delayed message in an
    old file: as the new master it delivers the message."""

    async def story() -> None:
        async with Cluster(memory=True, slaves=1, **SMALL_FILES) as cluster:
            await cluster.create_topic("orders", queues=1)
            async with cluster.producer() as producer:
                await producer.send(Message("orders", b"later", delay_level=14))  # 10 min
            await cluster.create_topic("other")
            bodies = (str(number).ljust(3_000) for number in range(30))
            await send(cluster, *bodies, topic="other")
            await copied(cluster)
            await asyncio.sleep(30)
            await cluster.broker(SLAVE).store.upkeep.delete_expired()
            await cluster.kill_broker()
            await asyncio.sleep(30)
            await cluster.broker(SLAVE).store.upkeep.delete_expired()
            await cluster.stop_broker(SLAVE)
            cluster.reconfigure(SLAVE, broker_role="ASYNC_MASTER", broker_id=0)
            await cluster.start_broker(SLAVE)
            async with cluster.consumer("readers", start="first") as consumer:
                consumer.subscribe("orders")
                await asyncio.sleep(600)
                assert await bodies_of(consumer, 1) == ["later"]

    simulate(story)


def test_nothing_acknowledged_is_lost_with_the_master() -> None:
    """SYNC_MASTER: the disk of the master is gone, and the slave has every SEND_OK."""

    async def story() -> None:
        async with Cluster(memory=True, slaves=1, broker_role="SYNC_MASTER") as cluster:
            await cluster.create_topic("orders", queues=2)
            await send(cluster, "first")
            await copied(cluster)
            acknowledged = []
            async with cluster.producer() as producer:
                for number in range(200):
                    if number == 150:
                        await cluster.kill_broker(power_cut=True)
                    try:
                        sent = await producer.send(Message("orders", str(number).encode()))
                    except SendFailed:
                        break
                    if sent.status == "SEND_OK":
                        acknowledged.append(str(number))
            assert len(acknowledged) == 150
            async with cluster.consumer("readers", start="first") as consumer:
                consumer.subscribe("orders")
                found = await bodies_of(consumer, 151)
            assert set(acknowledged) <= set(found)

    simulate(story)


def test_an_async_master_loses_at_most_its_last_moment() -> None:
    """ASYNC_MASTER: of 3,000 messages before the loss of the machine the slave has over 99 %."""

    async def story() -> tuple[int, int]:
        async with Cluster(memory=True, slaves=1) as cluster:
            await cluster.create_topic("orders", queues=2)
            await send(cluster, "first")
            await copied(cluster)
            async with cluster.producer() as producer:
                for number in range(3_000):
                    await producer.send(Message("orders", str(number).encode()))
            await cluster.kill_broker()
            queues = cluster.broker(SLAVE).store.queues
            return 3_001, sum(queues.max_offset("orders", number) for number in range(2))

    acknowledged, kept = simulate(story)
    assert 0.99 * acknowledged < kept <= acknowledged


def test_far_behind_consumers_are_sent_to_the_slave(run: Run) -> None:
    """With slaveReadEnable a group that is behind by more than the share of memory reads from
    the slave, and from the master again when it has caught up."""

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("orders", queues=1)
        await send(cluster, *(str(number) for number in range(30)))
        await copied(cluster)
        async with cluster.consumer("readers", start="first") as consumer:
            consumer.subscribe("orders")
            assert len(await bodies_of(consumer, 30)) == 30
            await send(cluster, "new")
            assert await bodies_of(consumer, 1) == ["new"]
        async with cluster.admin() as admin:
            figures = await admin.broker_runtime(cluster.broker(SLAVE).address)
            assert int(figures["msgGetTotalTodayNow"]) >= 5

    run(
        work,
        slaves=1,
        slave_read_enable=True,
        access_message_in_memory_max_ratio=0,
        max_transfer_count_on_message_in_memory=5,
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"broker_cluster_name": "Other"}, "brokerClusterName"),
        ({"mapped_file_size_commit_log": 8 * 1024 * 1024}, "mappedFileSizeCommitLog"),
    ],
)
def test_a_slave_that_does_not_fit_is_refused(
    changes: dict[str, object], words: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Another cluster or another file size: neither messages nor tables are copied, and the log
    says what to change."""

    async def story() -> None:
        async with Cluster(memory=True, slaves=1) as cluster:
            await cluster.create_topic("orders")
            await cluster.stop_broker(SLAVE)
            cluster.empty_disk(SLAVE)
            cluster.reconfigure(SLAVE, **changes)
            await cluster.start_broker(SLAVE)
            await send(cluster, "a")
            await asyncio.sleep(30)
            assert cluster.broker(SLAVE).store.log_max == 0
            assert cluster.broker(SLAVE).registry.topics.get("orders") is None

    simulate(story)
    assert words in caplog.text


def test_two_masters_with_one_name_are_refused(run: Run) -> None:
    """The second one does not start while the first one runs, and names it."""

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("orders")
        await send(cluster, "a")
        await copied(cluster)
        await cluster.stop_broker(SLAVE)
        cluster.reconfigure(SLAVE, broker_role="ASYNC_MASTER", broker_id=0)
        with pytest.raises(IdentityTaken, match=f"runs at {cluster.broker().address} already"):
            await cluster.start_broker(SLAVE)
        await cluster.stop_broker()
        await cluster.start_broker(SLAVE)
        assert await send(cluster, "b") == ["SEND_OK"]

    run(work, slaves=1)


def test_two_slaves_with_one_id_are_refused() -> None:
    """The second one does not start while the first one runs."""

    async def story() -> None:
        async with Cluster(memory=True, slaves=2) as cluster:
            await cluster.stop_broker("broker-a-s2")
            cluster.reconfigure("broker-a-s2", broker_id=1)
            with pytest.raises(IdentityTaken, match="brokerId=1 runs at"):
                await cluster.start_broker("broker-a-s2")
            await cluster.stop_broker(SLAVE)
            await cluster.start_broker("broker-a-s2")

    simulate(story)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "give each slave its own brokerId"),
        ({"brokerName": "broker-z"}, "its brokerClusterName and brokerName have to be"),
        ({"fileBytes": 1}, "give both the same size"),
        ({"logEnd": 1 << 40}, "the master has lost what the slave still has"),
        ({"logEnd": 100, "tailBytes": 50, "tailCrc": 1}, "the slave's log differs"),
    ],
)
def test_an_introduction_that_does_not_fit_is_refused(
    changes: dict[str, object], words: str
) -> None:
    """INTRODUCE_SLAVE: each reason has its own sentence."""

    async def story() -> None:
        async with Cluster(memory=True, slaves=1) as cluster:
            await cluster.create_topic("orders")
            await send(cluster, *"abc")
            await copied(cluster)
            peer = await Peer.to(cluster)
            fields: dict[str, object] = {
                "clusterName": "DefaultCluster",
                "brokerName": "broker-a",
                "brokerId": 1,
                "haClient": "127.0.0.1:1",
                "fileBytes": cluster.broker().config.store.segment_bytes,
                "logEnd": 0,
            }
            answer = await peer.call(40105, **{**fields, **changes})
            assert answer.code == (40110 if "logEnd" in changes else 1)
            assert words in (answer.remark or "")
            peer.close()

    simulate(story)


def test_ha_status_tells_how_far_slaves_are(run: Run) -> None:
    """GET_BROKER_HA_STATUS names each slave, its acknowledged offset and whether it is in sync."""

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("orders")
        await send(cluster, *"abc")
        await copied(cluster)
        async with cluster.admin() as admin:
            status = await admin.ha_status(cluster.broker().address)
            end = cluster.broker().store.log_max
            assert status.master
            assert status.master_commit_log_max_offset == end
            assert [row.in_sync for row in status.ha_connection_info] == [True]
            assert [row.broker_id for row in status.ha_connection_info] == [1]
            assert status.in_sync_slave_nums == 1
            other = await admin.ha_status(cluster.broker(SLAVE).address)
            assert not other.master
            assert other.ha_client_runtime_info.activated
            assert other.ha_client_runtime_info.max_offset == end

    run(work, slaves=1)


def test_admins_see_both(run: Run) -> None:
    """Name servers have master and slave under one name."""

    async def work(cluster: Cluster) -> None:
        async with cluster.admin() as admin:
            info = await admin.cluster()
            assert sorted(info.broker_addr_table["broker-a"].broker_addrs) == ["0", "1"]

    run(work, slaves=1)


def test_a_topic_deleted_on_the_master_does_not_come_back() -> None:
    """Without a master its slave makes topics readable that it has messages of and does not know:
    not those that the master has deleted."""

    async def story() -> None:
        async with Cluster(memory=True, slaves=1) as cluster:
            for topic in ("orders", "bills"):
                await cluster.create_topic(topic)
                await send(cluster, "a", topic=topic)
            await copied(cluster)
            await asyncio.sleep(3)
            async with cluster.admin() as admin:
                await admin.delete_topic("orders")
            await asyncio.sleep(3)
            await cluster.kill_broker()
            await asyncio.sleep(10)
            slave = cluster.broker(SLAVE)
            assert slave.registry.topics.get("orders") is None
            assert slave.registry.topics.get("bills") is not None

    simulate(story)


def test_a_slave_in_sync_has_the_tables() -> None:
    """A new slave is made the master in the moment in which it is in sync: it knows topics, with
    their queues, and groups."""

    async def story() -> None:
        async with Cluster(memory=True, slaves=1, ha_copy_whole_log=True) as cluster:
            await cluster.create_topic("orders", queues=7)
            async with cluster.admin() as admin:
                await admin.update_group(GroupConfig(group_name="g", retry_max_times=3))
            await send(cluster, "a")
            await cluster.stop_broker(SLAVE)
            cluster.empty_disk(SLAVE)
            await cluster.start_broker(SLAVE)
            await copied(cluster)
            await cluster.kill_broker()
            await cluster.stop_broker(SLAVE)
            cluster.reconfigure(SLAVE, broker_role="ASYNC_MASTER", broker_id=0)
            await cluster.start_broker(SLAVE)
            registry = cluster.broker(SLAVE).registry
            topic, group = registry.topics.get("orders"), registry.groups.get("g")
            assert topic is not None
            assert group is not None
            assert (topic.write_queue_nums, group.retry_max_times) == (7, 3)

    simulate(story)


def test_a_slave_that_stops_knows_the_topics_of_its_messages() -> None:
    """A topic was made, used, and lost with its master before the tables were copied again."""

    async def story() -> None:
        async with Cluster(memory=True, slaves=1) as cluster:
            await cluster.create_topic("orders")
            await send(cluster, "a")
            await copied(cluster)
            await asyncio.sleep(3)
            await cluster.create_topic("bills", queues=1)
            await send(cluster, "b", topic="bills")
            await until(lambda: "bills" in cluster.broker(SLAVE).store.queues.topics())
            assert cluster.broker(SLAVE).registry.topics.get("bills") is None
            await asyncio.gather(cluster.kill_broker(), cluster.stop_broker(SLAVE))
            cluster.reconfigure(SLAVE, broker_role="ASYNC_MASTER", broker_id=0)
            await cluster.start_broker(SLAVE)
            assert cluster.broker(SLAVE).registry.topics.get("bills") is not None

    simulate(story)
