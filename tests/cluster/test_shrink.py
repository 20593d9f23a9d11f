"""Fewer queues for a topic, safely; and advice on unequal counts."""

import asyncio

import pytest
from peer import Peer, Run

from gantrymq import Message
from gantrymq.client.admin.topics.shrink import NotDrained, shrink_topic
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.loop import simulate


async def counts(cluster: Cluster) -> tuple[int, int]:
    topic = cluster.broker().registry.topics.table["orders"]
    return topic.read_queue_nums, topic.write_queue_nums


async def fill(cluster: Cluster) -> None:
    await cluster.create_topic("orders", queues=4)
    async with cluster.producer() as producer:
        for number in range(40):
            await producer.send(Message("orders", b"%d" % number))


def test_read_queues_go_when_everybody_has_read_them() -> None:
    """
    Write queues at once, read queues only after the reader has caught up; nothing is unread.
    """

    async def story() -> None:
        said: list[str] = []
        async with Cluster(memory=True) as cluster, cluster.admin() as admin:
            await fill(cluster)
            async with cluster.consumer(group="g") as consumer:
                consumer.subscribe("orders")
                found = [await anext(consumer)]
                shrinking = asyncio.ensure_future(
                    shrink_topic(admin, "orders", 1, timeout=600, say=said.append)
                )
                await asyncio.sleep(60)
                assert (4, 1) == await counts(cluster)
                while len(found) < 40:
                    found.append(await anext(consumer))
                for message in found:
                    await message.ack()
                await shrinking
                assert (1, 1) == await counts(cluster)
            assert {b"%d" % n for n in range(40)} == {message.body for message in found}
            assert any("waiting for g" in line for line in said)

    simulate(story)


def test_a_topic_that_is_small_enough_is_left_alone_at_once() -> None:
    """
    Nobody has to notice anything, so nobody is waited for.
    """

    async def story() -> None:
        said: list[str] = []
        async with Cluster(memory=True) as cluster, cluster.admin() as admin:
            await fill(cluster)
            before = asyncio.get_running_loop().time()
            await shrink_topic(admin, "orders", 4, timeout=600, say=said.append)
            assert asyncio.get_running_loop().time() - before < 1
            assert (4, 4) == await counts(cluster)
        assert ["no broker has more than 4 queues of it: nothing to do"] == said

    simulate(story)


@pytest.mark.parametrize("reader", [False, True])
def test_what_nobody_reads_is_not_hidden(reader: bool) -> None:
    """
    The read queues stay, and the error says who is behind and that it can be run again.
    """

    async def story() -> None:
        async with Cluster(memory=True) as cluster, cluster.admin() as admin:
            await fill(cluster)
            if reader:
                peer = await Peer.to(cluster)
                await peer.pull("orders", 0)
                await peer.call(15, consumerGroup="g", topic="orders", queueId=0, commitOffset=1)
            with pytest.raises(NotDrained, match="g: " if reader else "nobody reads it"):
                await shrink_topic(admin, "orders", 1, timeout=5, say=lambda line: None)
            assert (4, 1) == await counts(cluster)

    simulate(story)


def test_unequal_counts_are_made_with_a_warning(run: Run) -> None:
    """
    The answer says what is wrong with them; equal ones need no words.
    """

    async def work(cluster: Cluster) -> None:
        peer = await Peer.to(cluster)
        for read, write, words in ((2, 4, "nobody reads"), (4, 2, "stay idle"), (4, 4, None)):
            answer = await peer.call(
                17, topic="orders", readQueueNums=read, writeQueueNums=write, perm=6
            )
            assert 0 == answer.code
            assert (words is None) == (answer.remark is None)
            assert words is None or words in (answer.remark or "")

    run(work)
