"""A disk refuses the cut that a raft group wants of a member: nothing is confirmed before it."""

import asyncio
import logging

import pytest
from groups import agreed, in_group, network_of, node_of, read, send, until

from gantrymq import GantryError, Message
from gantrymq.testing.cluster import Cluster


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Members say loudly what the tests provoke."""
    caplog.set_level(logging.CRITICAL + 1, "gantrymq")


@pytest.mark.parametrize("size", [100, 3_000], ids=["in one file", "over files"])
@pytest.mark.parametrize("operation", ["sync", "pwrite", "delete", "sync_dir"])
def test_what_is_not_cut_is_not_confirmed(operation: str, size: int) -> None:
    """An old leader has a tail that nobody else has; it joins the others with a failing disk."""

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("orders", queues=1)
        old = await cluster.wait_for_leader()
        others = [name for name in cluster.running if name != old]
        for name in others:
            network_of(cluster).part(cluster.host_of(old), cluster.host_of(name))
        await lose(cluster, 8, size)
        new = await cluster.wait_for_leader(other_than=old)
        await until(lambda: node_of(cluster, new).position.leads)
        failed: list[str] = []

        def fault(asked: str, path: str) -> OSError | None:
            if asked != operation or "commitlog" not in path:
                return None
            failed.append(path)
            return OSError("the disk refuses it")

        cluster.disk_of(old).fault = fault
        for name in others:
            network_of(cluster).join(cluster.host_of(old), cluster.host_of(name))
        assert await send(cluster, "a") == ["SEND_OK"]
        await asyncio.sleep(3)
        leadership = node_of(cluster, new).core.leadership
        assert leadership is not None
        confirmed = leadership.followers[old].match
        logs = [cluster.broker(name).store.group_log for name in (old, new)]
        assert confirmed <= min(log.end for log in logs)
        assert len({log.read(0, confirmed) for log in logs}) == 1
        cluster.disk_of(old).fault = None
        await agreed(cluster)
        assert await read(cluster, 1) == ["a"]

    in_group(work, flush_disk_type="SYNC_FLUSH", mapped_file_size_commit_log=16 * 1024)


async def lose(cluster: Cluster, count: int, size: int) -> None:
    """Send messages to a leader that has no majority."""

    async def one(number: int) -> None:
        try:
            async with asyncio.timeout(0.5):
                await producer.send(Message("orders", str(number).ljust(size)))
        except (GantryError, TimeoutError):
            pass

    async with cluster.producer("lost") as producer:
        await asyncio.gather(*(one(number) for number in range(count)))
