"""What RocketMQ's own test module asks of masters with slaves and of DLedger groups, asked here.

Its cases are in `test/.../container` and `test/.../dledger`; `docs/decisions/replication.md` has
the table of them. Those about brokers that share a process, slaves that act as masters, and replica
counts are not built here, and are named there.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from peer import Peer, bodies

from gantrymq import Admin, ConsumerOptions, Delivery, Message, SimpleConsumer, Unfinished
from gantrymq.client.consume.pop.pop_requests import Popped
from gantrymq.model import Queue
from gantrymq.protocol.codes import RequestCode
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.loop import simulate

SLAVES = ("broker-a-s1", "broker-a-s2")
FIRST = ConsumerOptions(consume_from_where="CONSUME_FROM_FIRST_OFFSET")


def in_cluster(work: Callable[[Cluster], Awaitable[None]], **options: Any) -> None:
    """Run `work` with a SYNC_MASTER and its two slaves, in virtual time."""

    async def story() -> None:
        settings = {"slaves": 2, "broker_role": "SYNC_MASTER", **options}
        async with Cluster(memory=True, **settings) as cluster:
            await work(cluster)

    simulate(story)


async def until(holds: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait until something holds."""
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.05)


async def copied(cluster: Cluster) -> None:
    """Wait until all slaves have the master's log and topics."""
    master = cluster.broker()
    for name in SLAVES:
        slave = cluster.broker(name)
        await until(
            lambda slave=slave: (  # type: ignore[misc]
                slave.store.log_max == master.store.log_max
                and slave.registry.topics.table.keys() == master.registry.topics.table.keys()
            )
        )


async def send(cluster: Cluster, count: int, **more: Any) -> None:
    """Send so many messages, each answered with SEND_OK."""
    async with cluster.producer() as producer:
        for number in range(count):
            sent = await producer.send(Message("orders", f"{number}".encode(), **more))
            assert sent.status == "SEND_OK"


async def ready(cluster: Cluster, queues: int = 4) -> None:
    """A topic, and slaves that follow."""
    await cluster.create_topic("orders", queues=queues)
    await asyncio.sleep(5)
    await copied(cluster)


def total(cluster: Cluster, name: str, group: str, queues: int = 4) -> int:
    """The progress of a group over all queues, as one broker knows it."""
    offsets = cluster.broker(name).registry.offsets
    return sum(offsets.get(group, "orders", queue) or 0 for queue in range(queues))


class Handled:
    """What a consumer was given, in order."""

    def __init__(self) -> None:
        self.bodies: list[str] = []

    async def __call__(self, message: Delivery) -> None:
        self.bodies.append(message.body.decode())


def test_every_slave_answers_a_pull() -> None:
    """PullMultipleReplicasIT: the same message from the master and from each slave."""

    async def work(cluster: Cluster) -> None:
        await ready(cluster)
        await send(cluster, 1)
        await copied(cluster)
        for name in ("broker-a", *SLAVES):
            peer = await Peer.at(cluster, name)
            found = [body for queue in range(4) for body in await pulled(peer, queue)]
            assert found == [b"0"]

    in_cluster(work)


async def pulled(peer: Peer, queue: int) -> list[bytes]:
    answer = await peer.pull("orders", 0, queue)
    return bodies(answer) if answer.code == 0 else []


def test_a_new_consumer_begins_on_the_slave() -> None:
    """PushMultipleReplicasIT: the group is made while the master is away; it gets everything, and
    its progress stands on the slave."""

    async def work(cluster: Cluster) -> None:
        await ready(cluster)
        await send(cluster, 100)
        await copied(cluster)
        await cluster.kill_broker()
        handled = Handled()
        async with cluster.consumer("g", options=FIRST) as consumer:
            consumer.handler(handled)
            consumer.subscribe("orders")
            await until(lambda: len(handled.bodies) == 100)
        assert sorted(handled.bodies, key=int) == [str(number) for number in range(100)]
        assert max(total(cluster, name, "g") for name in SLAVES) == 100

    in_cluster(work)


def test_progress_is_on_all_slaves() -> None:
    """SyncConsumerOffsetIT: what a group has consumed from the master, each slave knows."""

    async def work(cluster: Cluster) -> None:
        await ready(cluster)
        handled = Handled()
        async with cluster.consumer("g", options=FIRST) as consumer:
            consumer.handler(handled)
            consumer.subscribe("orders")
            await send(cluster, 100)
            await until(lambda: len(handled.bodies) == 100)
        for name in ("broker-a", *SLAVES):
            await until(lambda name=name: total(cluster, name, "g") == 100)  # type: ignore[misc]

    in_cluster(work)


def test_progress_made_on_a_slave_goes_back_to_the_master() -> None:
    """GetMetadataReverseIT: consumed while the master was away, and not consumed again."""

    async def work(cluster: Cluster) -> None:
        await ready(cluster)
        await send(cluster, 32)
        await copied(cluster)
        await cluster.kill_broker()
        handled = Handled()
        async with cluster.consumer("g", options=FIRST) as consumer:
            consumer.handler(handled)
            consumer.subscribe("orders")
            await until(lambda: len(handled.bodies) == 32)
        await cluster.start_broker()
        await until(lambda: total(cluster, "broker-a", "g") == 32)
        async with cluster.consumer("g", options=FIRST) as consumer:
            consumer.handler(handled)
            consumer.subscribe("orders")
            await asyncio.sleep(60)
        assert len(handled.bodies) == 32

    in_cluster(work)


def test_progress_in_a_topic_that_the_master_lost_stops_no_copy() -> None:
    """A master from an old backup does not know the topic: its other tables are copied all the
    same, and the progress is dropped."""

    async def work(cluster: Cluster) -> None:
        await ready(cluster)
        await send(cluster, 8)
        await copied(cluster)
        await cluster.stop_broker()
        handled = Handled()
        async with cluster.consumer("g", options=FIRST) as consumer:
            consumer.handler(handled)
            consumer.subscribe("orders")
            await until(lambda: len(handled.bodies) == 8)
        for end in ("", ".bak"):
            cluster.disk_of("broker-a").delete(f"{root_of(cluster)}/config/topics.json{end}")
        await cluster.start_broker()
        assert cluster.broker().registry.topics.get("orders") is None
        await cluster.create_topic("bills")
        await until(lambda: cluster.broker(SLAVES[0]).registry.topics.get("bills") is not None)
        await until(lambda: not cluster.broker(SLAVES[0]).registry.offsets.committed_here)

    in_cluster(work)


def root_of(cluster: Cluster) -> str:
    return cluster.broker(SLAVES[0]).config.store_path_root_dir.replace(SLAVES[0], "broker-a")


def test_offsets_are_told_by_a_slave() -> None:
    """GetMaxOffsetFromSlaveIT: the ends of all queues are the same with and without the master."""

    async def work(cluster: Cluster) -> None:
        await ready(cluster)
        await send(cluster, 100)
        await copied(cluster)

        async def ends(admin: Admin) -> list[int]:
            queues = [Queue("orders", "broker-a", number) for number in range(4)]
            return [await admin.max_offset(queue) for queue in queues]

        async with cluster.admin() as admin:
            before = await ends(admin)
            await cluster.kill_broker()
            await asyncio.sleep(40)
            assert await ends(admin) == before
            assert sum(before) == 100
        async with cluster.admin() as admin:
            assert await ends(admin) == before

    in_cluster(work)


def test_a_slave_that_leaves_and_comes_back() -> None:
    """SlaveBrokerIT, BrokerMemberGroupIT: name servers have three members, two, and three again;
    the master has as many connections, and both slaves are in sync."""

    async def work(cluster: Cluster) -> None:
        await ready(cluster)

        async def members() -> dict[str, str]:
            async with cluster.admin() as admin:
                return dict((await admin.cluster()).broker_addr_table["broker-a"].broker_addrs)

        async def group() -> int:
            namesrv = await Peer.to_namesrv(cluster)
            code = RequestCode.GET_BROKER_MEMBER_GROUP
            ext = {"clusterName": "DefaultCluster", "brokerName": "broker-a"}
            return (await namesrv.call(code, **ext)).body.count(b'"127.0.0.1:')

        async def in_sync() -> int:
            async with cluster.admin() as admin:
                return (await admin.ha_status(cluster.broker().address)).in_sync_slave_nums

        assert (sorted(await members()), await group(), await in_sync()) == (["0", "1", "2"], 3, 2)
        await cluster.stop_broker(SLAVES[0])
        assert (sorted(await members()), await group(), await in_sync()) == (["0", "2"], 2, 1)
        await cluster.start_broker(SLAVES[0])
        await asyncio.sleep(3)
        assert (sorted(await members()), await group(), await in_sync()) == (["0", "1", "2"], 3, 2)

    in_cluster(work)


def test_one_slave_is_enough_for_a_sync_master() -> None:
    """SendMultipleReplicasIT: SEND_OK with two slaves and with one; with none the answer says so,
    and the message is stored, as with enableAutoInSyncReplicas."""

    async def work(cluster: Cluster) -> None:
        await ready(cluster)
        statuses = []
        async with cluster.producer() as producer:
            for name in (*SLAVES, None):
                statuses.append((await producer.send(Message("orders", b"x"))).status)
                if name is not None:
                    await cluster.stop_broker(name)
        assert statuses == ["SEND_OK", "SEND_OK", "SLAVE_NOT_AVAILABLE"]

    in_cluster(work)


def test_what_fails_on_the_slave_comes_again() -> None:
    """PullMultipleReplicasIT, a message sent back to a slave: a slave takes no retries, so the
    retry goes to another master; nothing is lost, and nothing waits for the lost one."""

    async def work(cluster: Cluster) -> None:
        await ready(cluster)
        async with cluster.producer() as producer:
            await producer.send(Message("orders", b"x"), queue=Queue("orders", "broker-a", 0))
        await copied(cluster)
        await cluster.kill_broker()
        tries: list[int] = []
        async with cluster.consumer("g", options=FIRST) as consumer:

            @consumer.handler
            async def handle(message: Delivery) -> None:
                tries.append(message.reconsume_times)
                if len(tries) == 1:
                    raise ValueError("not yet")

            consumer.subscribe("orders")
            await until(lambda: len(tries) == 2, 120)
        assert tries == [0, 1]

    in_cluster(work, brokers=2)


def test_ordered_consuming_waits_for_the_master() -> None:
    """RebalanceLockOnSlaveIT: queues are locked by the master alone, so that two consumers never
    have one queue; without it nothing is handed out twice or out of order, and it goes on after."""

    async def work(cluster: Cluster) -> None:
        await ready(cluster, queues=1)
        await send(cluster, 10)
        await copied(cluster)
        handled = Handled()
        async with cluster.consumer("g", options=FIRST, ordered=True) as consumer:
            consumer.handler(handled)
            consumer.subscribe("orders")
            await until(lambda: len(handled.bodies) == 10)
            await cluster.kill_broker()
            await asyncio.sleep(90)
            await cluster.start_broker()
            await asyncio.sleep(5)
            await copied(cluster)
            await send(cluster, 10)
            await until(lambda: len(handled.bodies) >= 20, 120)
        numbers = [str(number) for number in range(10)]
        assert handled.bodies == numbers + numbers

    in_cluster(work)


def test_delayed_messages_come_in_time_with_slaves() -> None:
    """ScheduledMessageIT: 128 of them, each within a second of its time."""

    async def work(cluster: Cluster) -> None:
        await ready(cluster)
        loop, late = asyncio.get_running_loop(), []
        async with cluster.consumer("g", options=FIRST) as consumer:

            @consumer.handler
            async def handle(message: Delivery) -> None:
                late.append(loop.time() - float(message.body))

            consumer.subscribe("orders")
            async with cluster.producer() as producer:
                for _ in range(128):
                    body = f"{loop.time()}".encode()
                    sent = await producer.send(Message("orders", body, delay_level=2))
                    assert sent.status == "SEND_OK"
            await until(lambda: len(late) == 128)
        assert min(late) >= 4.9
        assert max(late) <= 6

    in_cluster(work)


def test_transactions_with_slaves() -> None:
    """TransactionMessageIT: committed ones are consumed, each once."""

    async def work(cluster: Cluster) -> None:
        await ready(cluster)
        handled = Handled()
        async with cluster.consumer("g", options=FIRST) as consumer:
            consumer.handler(handled)
            consumer.subscribe("orders")
            async with cluster.producer("payers") as producer:
                for number in range(16):
                    body = f"{number}".encode()
                    async with producer.transaction(Message("orders", body)):
                        pass
            await until(lambda: len(handled.bodies) == 16)
        assert sorted(handled.bodies, key=int) == [str(number) for number in range(16)]

    in_cluster(work)


def test_an_open_transaction_survives_its_master() -> None:
    """TransactionMessageIT, escape: the master is lost before the decision; the slave that was made
    the master asks for it, and the message is consumed."""

    async def work(cluster: Cluster) -> None:
        await ready(cluster)
        heir = SLAVES[0]
        async with cluster.producer("payers") as producer:

            @producer.check
            def check(message: Unfinished) -> str:
                return "commit"

            async with producer.transaction(Message("orders", b"paid")) as transaction:
                transaction.unknown()
            await copied(cluster)
            await cluster.kill_broker()
            await cluster.stop_broker(heir)
            cluster.reconfigure(heir, broker_role="SYNC_MASTER", broker_id=0)
            await cluster.start_broker(heir)
            handled = Handled()
            async with cluster.consumer("g", options=FIRST) as consumer:
                consumer.handler(handled)
                consumer.subscribe("orders")
                await until(lambda: handled.bodies == ["paid"], 300)

    in_cluster(work, transaction_check_interval=5_000, transaction_time_out=5_000)


def test_popped_messages_wait_for_the_master() -> None:
    """PopSlaveActingMasterIT: no slave hands out popped messages; what was not acknowledged comes
    again from the master that is back, and what was acknowledged does not."""

    async def work(cluster: Cluster) -> None:
        await ready(cluster, queues=1)
        await send(cluster, 2)
        async with cluster.simple_consumer("g", invisible=15) as consumer:
            consumer.subscribe("orders")
            first = await received(consumer, 2)
            await first[0].ack()
            await asyncio.sleep(2)
            await copied(cluster)
            await cluster.stop_broker()
            await asyncio.sleep(20)
            await cluster.start_broker()
            again = await received(consumer, 1)
            assert [each.body for each in again] == [first[1].body]
            await again[0].ack()

    in_cluster(work)


async def received(consumer: SimpleConsumer, count: int) -> list[Popped]:
    found: list[Popped] = []
    async with asyncio.timeout(300):
        while len(found) < count:
            found += await consumer.receive(count - len(found))
    return found


@pytest.mark.parametrize("members", [1, 3])
def test_a_group_produces_and_consumes(members: int) -> None:
    """DLedgerProduceAndConsumeIT, also for three members: the leader is a SYNC_MASTER, offsets
    count from 0, and a pull brings all ten."""

    async def story() -> None:
        async with Cluster(memory=True, members=members) as cluster:
            leader = cluster.broker(await cluster.wait_for_leader())
            assert leader.config.broker_role == "SYNC_MASTER"
            await cluster.create_topic("orders", queues=1)
            async with cluster.producer() as producer:
                for number in range(10):
                    sent = await producer.send(Message("orders", f"Hello{number}".encode()))
                    assert sent.status == "SEND_OK"
                    assert (sent.queue.queue_id, sent.offset) == (0, number)
                    assert sent.queue.broker_name == leader.config.broker_name
                    assert sent.msg_id
                    assert sent.offset_msg_id
            queues = leader.store.queues
            assert (queues.min_offset("orders", 0), queues.max_offset("orders", 0)) == (0, 10)
            peer = await Peer.at(cluster, await cluster.wait_for_leader())
            found = bodies(await peer.pull("orders", 0))
            assert found == [f"Hello{number}".encode() for number in range(10)]

    simulate(story)
