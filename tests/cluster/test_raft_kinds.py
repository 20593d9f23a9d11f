"""Every kind of message survives the loss of a raft group's leader."""

import asyncio

import pytest
from epochs import publisher, stored, write
from groups import agreed, in_group, lose_leader, network_of, read, send, until

from gantrymq import Message, Unfinished
from gantrymq.client.produce.epochs import Epoch
from gantrymq.testing.cluster import Cluster

QUICK = {"transaction_time_out": 200, "transaction_check_interval": 400}


@pytest.mark.parametrize("wait", [{"delay_level": 3}, {"delay": 10.0}], ids=["level", "timer"])
def test_a_delayed_message_comes_from_the_next_leader(wait: dict[str, float]) -> None:
    """In its time; the one that was delivered before does not come again."""

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("orders", queues=1)
        await send(cluster, "early", **wait)
        assert await read(cluster, 1) == ["early"]
        await send(cluster, "late", **wait)
        await asyncio.sleep(2)
        await lose_leader(cluster)
        began = asyncio.get_running_loop().time()
        assert await read(cluster, 1) == ["late"]
        assert asyncio.get_running_loop().time() - began < 20

    in_group(work, flush_delay_offset_interval=1000)


def test_a_half_message_is_asked_for_by_the_next_leader() -> None:
    """Its producer lives and commits; nothing was seen before."""

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("orders", queues=1)
        asked: list[str] = []

        async with cluster.producer("payers") as producer:

            @producer.check
            def check(message: Unfinished) -> str:
                asked.append(message.body.decode())
                return "commit"

            async with producer.transaction(Message("orders", b"paid")) as transaction:
                transaction.unknown()
            await lose_leader(cluster)
            assert await read(cluster, 1) == ["paid"]
            assert set(asked) == {"paid"}

    in_group(work, **QUICK)


def test_a_popped_message_comes_back_from_the_next_leader() -> None:
    """It was lent by the old one and not acknowledged; what was acknowledged stays away."""

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("orders", queues=1)
        await send(cluster, *"ab")
        async with cluster.simple_consumer(invisible=10) as consumer:
            consumer.subscribe("orders")
            lent = {each.body: each for each in await consumer.receive(32, wait=5)}
            await lent[b"a"].ack()
            await asyncio.sleep(2)
            await lose_leader(cluster)
            again: list[bytes] = []
            async with asyncio.timeout(120):
                while not again:
                    again += [each.body for each in await consumer.receive(32, wait=5)]
            assert again == [b"b"]

    in_group(work)


def test_a_retried_message_comes_from_the_next_leader() -> None:
    """Its retry waits in the old leader's log."""

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("orders", queues=1)
        await send(cluster, "a")
        async with cluster.consumer("g") as consumer:
            consumer.subscribe("orders")
            first = await anext(consumer)
            await first.retry()
            await asyncio.sleep(1)
            await lose_leader(cluster)
            second = await anext(consumer)
            assert (second.body, second.reconsume_times) == (b"a", 1)
            await second.ack()

    in_group(work)


def test_an_epoch_is_published_once() -> None:
    """Staged on one leader and published on the next; a repeat of the number adds nothing."""

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("orders", queues=2)
        await write(cluster, 0, ["a", "b"])
        async with publisher(cluster) as one:
            epoch = Epoch(one, 1)
            await epoch.add([Message("orders", body) for body in "cd"])
            await epoch.publish()
        await lose_leader(cluster)
        await write(cluster, 1, ["c", "d"])
        await agreed(cluster)
        for name in cluster.running:
            found = sorted(each.body.decode() for each in stored(cluster, names=[name]))
            assert found == list("abcd")

    in_group(work)


def test_the_old_leader_comes_back_as_a_follower() -> None:
    """With the tables of the new one, and ready to lead again."""

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("orders", queues=1)
        old, new = await lose_leader(cluster)
        await cluster.create_topic("later", queues=3)
        await cluster.start_broker(old)
        await until(lambda: cluster.broker(old).registry.topics.get("later") is not None)
        await agreed(cluster)
        await cluster.stop_broker(new)
        await cluster.wait_for_leader(other_than=new)
        assert await send(cluster, "a", topic="later") == ["SEND_OK"]

    in_group(work)


def test_what_was_popped_without_a_majority_is_no_progress() -> None:
    """A leader that was cut off lends a message: it may lead again before it copies any table."""

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("orders", queues=1)
        assert await send(cluster, "a") == ["SEND_OK"]
        old = await cluster.wait_for_leader()
        async with cluster.simple_consumer("g", invisible=10, from_first=True) as consumer:
            consumer.subscribe("orders")
            await consumer.start()
            for name in cluster.running:
                network_of(cluster).part(cluster.host_of(old), cluster.host_of(name))
            assert [message.body for message in await consumer.receive(1, wait=0.5)] == [b"a"]
            broker = cluster.broker(old)
            assert broker.registry.offsets.get("g", "orders", 0) == 1
            await until(lambda: broker.config.is_slave)
            assert broker.registry.offsets.get("g", "orders", 0) == 0

    in_group(work)


def test_what_was_delivered_without_a_majority_is_no_progress() -> None:
    """A delayed message is due while its leader is cut off, which may lead again at once."""

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("orders", queues=1)
        old = await cluster.wait_for_leader()
        assert await send(cluster, "a", delay_level=1) == ["SEND_OK"]
        await asyncio.sleep(0.8)
        for name in cluster.running:
            network_of(cluster).part(cluster.host_of(old), cluster.host_of(name))
        broker = cluster.broker(old)
        await until(lambda: broker.registry.delays.table.get(1) == 1, 0.4)
        await until(lambda: broker.config.is_slave)
        assert broker.registry.delays.table.get(1, 0) == 0

    in_group(work)
