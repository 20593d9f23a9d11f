"""A power cut under a whole broker: progress never stands where new messages will be."""

import asyncio
import random

import pytest
from peer import Peer, bodies

from gantrymq.testing.cluster import Cluster
from gantrymq.testing.disk import MemoryDisk
from gantrymq.testing.loop import simulate

MESSAGES = 10


async def progress_saved_and_log_not(disk: MemoryDisk, seed: int) -> MemoryDisk:
    """A group has read and committed what the log has not flushed yet; then the power goes."""
    async with Cluster(memory=True, disk=disk) as cluster:
        peer = await Peer.to(cluster)
        await peer.send("orders", b"first")
        await asyncio.sleep(12)  # everything so far is flushed, tables included
        for _ in range(MESSAGES):
            await peer.send("orders", b"unflushed")
        await peer.pull("orders", 0)
        await peer.call(15, consumerGroup="g", topic="orders", queueId=0, commitOffset=MESSAGES + 1)
        await cluster.broker().registry.offsets.save()
        return disk.image(random.Random(seed))


@pytest.mark.parametrize("seed", range(20))
def test_a_new_message_is_never_behind_a_groups_progress(seed: int) -> None:
    """
    Whatever the cut took, the group's next pull finds the first message sent after it.
    """

    async def story() -> tuple[int, int, list[bytes]]:
        left = await progress_saved_and_log_not(MemoryDisk(), seed)
        async with Cluster(memory=True, disk=left) as cluster:
            peer = await Peer.to(cluster)
            end = cluster.broker().store.queues.max_offset("orders", 0)
            answer = await peer.call(14, consumerGroup="g", topic="orders", queueId=0)
            progress = int(answer.ext["offset"])
            await peer.send("orders", b"after")
            return end, progress, bodies(await peer.pull("orders", progress))

    end, progress, found = simulate(story)

    assert 1 <= end <= MESSAGES + 1
    assert progress <= end
    assert b"after" == found[-1]


def test_the_cuts_really_take_something() -> None:
    """
    Otherwise the test above would prove nothing.
    """

    async def story(seed: int) -> int:
        left = await progress_saved_and_log_not(MemoryDisk(), seed)
        async with Cluster(memory=True, disk=left) as cluster:
            return cluster.broker().store.queues.max_offset("orders", 0)

    assert min(simulate(lambda s=seed: story(s)) for seed in range(20)) < MESSAGES + 1
