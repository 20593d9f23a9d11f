"""A disk damages a record of a member of a raft group: nothing is lost, nothing false copied."""

import asyncio
import logging

import pytest
from groups import agreed, followers, in_group, network_of, node_of, read, send, until

from gantrymq.kernel import walk_records
from gantrymq.testing.cluster import Cluster

FLUSHES = ("ASYNC_FLUSH", "SYNC_FLUSH")


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Members say loudly what the tests provoke."""
    caplog.set_level(logging.CRITICAL + 1, "gantrymq")


def damage(cluster: Cluster, name: str, body: bytes) -> None:
    """Turn a bit of a message over."""
    config, disk = cluster.config_of(name).store, cluster.disk_of(name)
    path = f"{config.commit_log_directory}/{0:020}"
    data = disk.part_of(path, 0, config.segment_bytes) or b""
    records, _, _ = walk_records(data, 0, config.segment_bytes, True)
    (at,) = [
        record[3] for record in records if record[0] == b"orders" and body in _of(data, record)
    ]
    disk.flip_bit(path, at + 88)


def _of(data: bytes, record: tuple[object, ...]) -> bytes:
    at, size = int(str(record[3])), int(str(record[4]))
    return data[at : at + size]


@pytest.mark.parametrize("flush", FLUSHES)
def test_a_damaged_member_does_not_elect_one_that_lacks_messages(flush: str) -> None:
    """It was one of the two that had them, and the other is away: there is no leader until then."""

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("orders")
        leader = await cluster.wait_for_leader()
        holder, laggard = followers(cluster)
        await agreed(cluster)
        for other in (leader, holder):
            network_of(cluster).part(cluster.host_of(laggard), cluster.host_of(other))
        assert await send(cluster, *"abc") == ["SEND_OK"] * 3
        await cluster.kill_broker(holder)
        await cluster.kill_broker(leader)
        damage(cluster, holder, b"b")
        for other in (leader, holder):
            network_of(cluster).join(cluster.host_of(laggard), cluster.host_of(other))
        await cluster.start_broker(holder)
        await asyncio.sleep(10)
        assert cluster.leader is None
        await cluster.start_broker(leader)
        assert await cluster.wait_for_leader() == leader
        await agreed(cluster)
        assert node_of(cluster, holder).core.stored.may_vote
        assert sorted(set(await read(cluster, 3))) == list("abc")

    in_group(work, flush_disk_type=flush)


def test_a_leader_does_not_send_damaged_records() -> None:
    """It leaves the group, the others go on, and the one that was behind gets what was sent."""

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("orders")
        leader = await cluster.wait_for_leader()
        holder, laggard = followers(cluster)
        await cluster.kill_broker(laggard)
        assert await send(cluster, *"abc") == ["SEND_OK"] * 3
        damage(cluster, leader, b"b")
        await cluster.start_broker(laggard)
        assert await cluster.wait_for_leader(other_than=leader) == holder
        assert "damaged" in node_of(cluster, leader).trouble
        await until(lambda: node_of(cluster, laggard).core.commit > 0)
        await cluster.stop_broker(leader)
        await agreed(cluster)
        assert sorted(set(await read(cluster, 3))) == list("abc")
        cluster.empty_disk(leader)
        await cluster.start_broker(leader)
        await agreed(cluster)

    in_group(work)
