"""A raft group: a leader is lost and another one goes on, members come, go and are replaced."""

import asyncio
import errno

import pytest
from groups import (
    agreed,
    followers,
    in_group,
    lose_leader,
    network_of,
    node_of,
    read,
    send,
    until,
)
from peer import Run

from gantrymq import SendFailed
from gantrymq.base.errors import ConfigError
from gantrymq.model import GroupConfig
from gantrymq.testing.cluster import HOST, Cluster
from gantrymq.testing.disk import MemoryDisk
from gantrymq.testing.loop import simulate


def test_what_was_acknowledged_survives_the_leader() -> None:
    """It dies at once; its messages and those sent to the next one are read."""

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("orders")
        assert await send(cluster, *"abcd") == ["SEND_OK"] * 4
        await lose_leader(cluster)
        assert await send(cluster, *"efgh") == ["SEND_OK"] * 4
        assert sorted(await read(cluster, 8)) == list("abcdefgh")

    in_group(work)


def test_a_leader_that_stops_hands_leadership_on(run: Run) -> None:
    """At once, in memory and over real sockets; the next leader has everything."""

    async def work(cluster: Cluster) -> None:
        old = await cluster.wait_for_leader()
        await cluster.create_topic("orders")
        assert await send(cluster, *"abcd") == ["SEND_OK"] * 4
        began = asyncio.get_running_loop().time()
        await cluster.stop_broker(old)
        await cluster.wait_for_leader(other_than=old)
        assert asyncio.get_running_loop().time() - began < 5
        assert await send(cluster, *"efgh") == ["SEND_OK"] * 4
        assert sorted(await read(cluster, 8)) == list("abcdefgh")

    run(work, members=3)


def test_a_producer_and_a_consumer_go_on() -> None:
    """Both are connected when the leader is lost; neither sees an error."""

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("orders")
        async with cluster.consumer("g") as consumer:
            got: list[str] = []
            consumer.subscribe("orders")

            async def consume() -> None:
                async for message in consumer:
                    got.append(message.body.decode())
                    await message.ack()

            task = asyncio.create_task(consume())
            await send(cluster, *"abc")
            await until(lambda: len(got) == 3)
            await lose_leader(cluster)
            await send(cluster, *"def")
            await until(lambda: len(set(got)) == 6)
            assert set(got) == set("abcdef")
            task.cancel()

    in_group(work)


def test_members_have_the_same_log() -> None:
    """To the byte, and queues and index that follow from it."""

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("orders")
        await send(cluster, *"abcdefgh", keys=["k"])
        await agreed(cluster)
        logs, offsets = set(), set()
        for name in cluster.running:
            store = cluster.broker(name).store
            logs.add(store.group_log.read(0, store.log_max))
            offsets.add(tuple(store.queues.max_offset("orders", at) for at in range(4)))
        assert len(logs) == len(offsets) == 1

    in_group(work)


def test_a_topic_is_known_to_the_next_leader() -> None:
    """As soon as it was acknowledged, with its number of queues; so is a group."""

    async def work(cluster: Cluster) -> None:
        async with cluster.admin() as admin:
            await admin.create_topic("orders", queues=7)
            await admin.update_group(GroupConfig(group_name="g", retry_max_times=3))
        _, new = await lose_leader(cluster)
        registry = cluster.broker(new).registry
        topic, group = registry.topics.get("orders"), registry.groups.get("g")
        assert topic is not None
        assert group is not None
        assert (topic.write_queue_nums, group.retry_max_times) == (7, 3)

    in_group(work)


def test_a_deleted_topic_stays_deleted() -> None:
    """Made again under its name it has no old messages, on no member."""

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("orders", queues=1)
        await send(cluster, *"abc")
        async with cluster.admin() as admin:
            await admin.delete_topic("orders")
        await cluster.create_topic("orders", queues=1)
        await send(cluster, "new")
        await agreed(cluster)
        ends = {
            cluster.broker(name).store.queues.max_offset("orders", 0) for name in cluster.running
        }
        assert ends == {1}
        await lose_leader(cluster)
        assert await read(cluster, 1) == ["new"]

    in_group(work)


def test_progress_follows_within_a_second() -> None:
    """What a group has consumed it does not get again from the next leader."""

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("orders", queues=1)
        await send(cluster, *"abc")
        await read(cluster, 3)
        await asyncio.sleep(2)
        await lose_leader(cluster)
        await send(cluster, "d")
        assert await read(cluster, 1) == ["d"]

    in_group(work)


def test_a_leader_that_is_cut_off_acknowledges_nothing() -> None:
    """rmq#7017: no two masters. It refuses, the others elect, and its tail is cut in the end."""

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("orders", queues=1)
        await send(cluster, "a")
        old, network = await cluster.wait_for_leader(), network_of(cluster)
        for other in followers(cluster):
            network.part(cluster.host_of(old), cluster.host_of(other))
        sending = asyncio.create_task(send(cluster, "b"))
        new = await cluster.wait_for_leader(other_than=old)
        await until(lambda: not node_of(cluster, old).position.leads)
        assert await sending == ["SEND_OK"]
        assert await send(cluster, "c") == ["SEND_OK"]
        for other in (new, *followers(cluster)):
            network.join(cluster.host_of(old), cluster.host_of(other))
        await agreed(cluster)
        assert {"a", "b", "c"} == set(await read(cluster, 3))

    in_group(work)


def test_the_tail_of_a_returning_leader_is_cut() -> None:
    """What it wrote alone was never acknowledged, and is gone when it is back."""

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("orders", queues=1)
        await send(cluster, "a")
        old, network = await cluster.wait_for_leader(), network_of(cluster)
        others = followers(cluster)
        for name in (*others, None):
            host = HOST if name is None else cluster.host_of(name)
            network.part_one_way(cluster.host_of(old), host)
        with pytest.raises(SendFailed):
            await send(cluster, "alone")
        await cluster.wait_for_leader(other_than=old)
        for name in (*others, None):
            host = HOST if name is None else cluster.host_of(name)
            network.join(cluster.host_of(old), host)
        await send(cluster, "b")
        await agreed(cluster)
        assert set(await read(cluster, 2)) == {"a", "b"}

    in_group(work)


def test_a_lost_member_is_replaced_by_an_empty_one() -> None:
    """It gets everything, and then its vote: with it the group survives another loss."""

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("orders")
        await send(cluster, *"abcd")
        lost = followers(cluster)[0]
        await cluster.kill_broker(lost)
        cluster.empty_disk(lost)
        await cluster.start_broker(lost)
        assert not node_of(cluster, lost).core.stored.may_vote
        await until(lambda: node_of(cluster, lost).core.stored.may_vote)
        await lose_leader(cluster)
        assert sorted(await read(cluster, 4)) == list("abcd")
        assert cluster.broker(lost).registry.topics.get("orders") is not None

    in_group(work)


def test_an_empty_member_alone_elects_nobody() -> None:
    """It does not know whether the group is new; the member that has the log is waited for."""

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("orders")
        await send(cluster, "a")
        leader, (lost, other) = await cluster.wait_for_leader(), followers(cluster)
        for name in (lost, other, leader):
            await cluster.kill_broker(name)
        cluster.empty_disk(lost)
        await cluster.start_broker(lost)
        await cluster.start_broker(other)
        await asyncio.sleep(20)
        assert cluster.leader is None
        await cluster.start_broker(leader)
        await cluster.wait_for_leader()
        assert await read(cluster, 1) == ["a"]

    in_group(work)


@pytest.mark.parametrize("seed", range(6))
def test_a_group_is_restored_from_one_member(seed: int) -> None:
    """Two disks are lost, or a backup of one member is all there is: it is started first, and the
    empty ones take its log. They do not begin a new group, because they meet one that has a log."""

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("orders")
        await send(cluster, *"abc")
        await agreed(cluster)
        left, *lost = cluster.running
        for name in (left, *lost):
            await cluster.stop_broker(name)
        for name in lost:
            cluster.empty_disk(name)
        for name in (left, *lost):
            await cluster.start_broker(name)
        assert await cluster.wait_for_leader() == left
        assert sorted(await read(cluster, 3)) == list("abc")
        await until(lambda: all(node_of(cluster, name).core.stored.may_vote for name in lost))

    in_group(work, seed=seed)


def test_a_member_older_than_retention_begins_anew() -> None:
    """The leader's log begins behind the end of its own: it starts at the leader's first file."""

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("orders", queues=1)
        away = followers(cluster)[0]
        await send(cluster, "old")
        await agreed(cluster)
        await cluster.stop_broker(away)
        await send(cluster, *(f"{n}".ljust(3_000) for n in range(12)))
        for name in cluster.running:
            store = cluster.broker(name).store
            await store.upkeep.checkpoint()
            store.config.retention_hours = 0
            await asyncio.sleep(1)
            await store.upkeep.delete_expired()
        store = cluster.broker(await cluster.wait_for_leader()).store
        assert store.log_min > 0
        await cluster.start_broker(away)
        await send(cluster, "new")
        await agreed(cluster)
        assert cluster.broker(away).store.log_min == store.log_min
        ends = [
            cluster.broker(name).store.queues.max_offset("orders", 0) for name in cluster.running
        ]
        assert len(set(ends)) == 1

    in_group(work, mapped_file_size_commit_log=16 * 1024, max_message_size=4096)


def test_a_member_that_begins_anew_counts_when_it_has_the_tables() -> None:
    """Topics older than its log come with the tables: without them it confirms nothing and has no
    vote, also after a crash in between."""

    async def work(cluster: Cluster) -> None:
        away = followers(cluster)[0]
        await cluster.kill_broker(away)
        cluster.empty_disk(away)
        await cluster.create_topic("orders", queues=7)
        await send(cluster, *(f"{n}".ljust(3_000) for n in range(12)))
        for name in cluster.running:
            store = cluster.broker(name).store
            await store.upkeep.checkpoint()
            store.config.retention_hours = 0
            await asyncio.sleep(1)
            await store.upkeep.delete_expired()
        leader = await cluster.wait_for_leader()
        network, port = network_of(cluster), cluster.broker(leader).config.listen_port
        network.deafen(port)  # the tables cannot be asked for
        for _ in range(2):
            await cluster.start_broker(away)
            await until(lambda: cluster.broker(away).store.log_min > 0)
            await asyncio.sleep(10)
            leadership = node_of(cluster, leader).core.leadership
            assert leadership is not None
            assert leadership.followers[away].match == 0
            assert not node_of(cluster, away).core.stored.may_vote
            assert "tables" in node_of(cluster, away).trouble
            await cluster.kill_broker(away)
        network.hear(port)
        network.cut_port(port)
        await cluster.start_broker(away)
        await until(lambda: node_of(cluster, away).core.stored.may_vote)
        topic = cluster.broker(away).registry.topics.get("orders")
        assert topic is not None
        assert topic.write_queue_nums == 7
        await agreed(cluster)

    in_group(work, mapped_file_size_commit_log=16 * 1024, max_message_size=4096)


def test_after_a_power_cut_of_all_the_group_is_there_again() -> None:
    """With SYNC_FLUSH nothing is lost; with ASYNC_FLUSH the newest log that is left is taken."""

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("orders")
        await send(cluster, *"abcd")
        names = list(cluster.running)
        for name in names:
            await cluster.kill_broker(name, power_cut=True)
        for name in names:
            await cluster.start_broker(name)
        await cluster.wait_for_leader()
        if cluster.broker("n0").config.flush_disk_type == "SYNC_FLUSH":
            assert sorted(await read(cluster, 4)) == list("abcd")
        await cluster.create_topic("orders")
        assert await send(cluster, "e") == ["SEND_OK"]

    in_group(work, flush_disk_type="SYNC_FLUSH")
    in_group(work, flush_disk_type="ASYNC_FLUSH")


class TestDisks:
    """dledger#287: a disk failure leaves no raft group without a master."""

    @pytest.mark.parametrize("operation", ["pwrite", "sync"])
    def test_a_leader_whose_disk_fails_hands_leadership_on(self, operation: str) -> None:
        """Another member serves at once, and nothing acknowledged is lost."""

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders")
            await send(cluster, *"ab")
            old = await cluster.wait_for_leader()
            disk = cluster._disks[old]
            assert isinstance(disk, MemoryDisk)
            disk.fault = lambda what, path: (
                OSError(errno.EIO, f"{what} fails") if what == operation and "commitlog" in path
                else None
            )  # fmt: skip
            assert await send(cluster, *"cd") == ["SEND_OK"] * 2
            assert cluster.leader != old
            assert {"a", "b", "c", "d"} == set(await read(cluster, 4))
            disk.fault = None

        in_group(work, flush_disk_type="SYNC_FLUSH")

    def test_a_follower_whose_syncs_fail_acknowledges_nothing(self) -> None:
        """Also with ASYNC_FLUSH: what it holds in memory may be gone any moment."""

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders")
            broken, other = followers(cluster)
            cluster.disk_of(broken).fault = lambda what, path: (
                OSError(errno.EIO, "no sync") if what == "sync" and "commitlog" in path else None
            )
            assert await send(cluster, "a") == ["SEND_OK"]
            await until(lambda: bool(cluster.broker(broken).store.writable))
            await asyncio.sleep(20)
            await cluster.kill_broker(other)
            with pytest.raises(SendFailed):
                await send(cluster, "b")
            await cluster.start_broker(other)
            assert await send(cluster, "c") == ["SEND_OK"]
            cluster.disk_of(broken).fault = None

        in_group(work)

    def test_a_leader_with_a_full_disk_leads_again_when_it_has_room(self) -> None:
        """The others go on meanwhile."""

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", queues=1)
            old = await cluster.wait_for_leader()
            disk = cluster._disks[old]
            assert isinstance(disk, MemoryDisk)
            disk.capacity = 1
            sent = 0
            while cluster.leader == old:
                try:
                    sent += len(await send(cluster, f"{sent}".ljust(3_000)))
                except SendFailed:
                    continue
            new = await cluster.wait_for_leader(other_than=old)
            assert await send(cluster, "on") == ["SEND_OK"]
            disk.capacity = None
            await until(lambda: not node_of(cluster, old).trouble)
            await agreed(cluster)
            node_of(cluster, new).transfer(old)
            await until(lambda: cluster.leader == old)
            assert len(set(await read(cluster, sent + 1))) == sent + 1

        in_group(work, mapped_file_size_commit_log=16 * 1024, max_message_size=4096)


class TestRefusals:
    """Each says what to do."""

    def test_a_member_s_store_is_not_opened_without_its_group(self) -> None:
        """A single broker would write another log than the group's."""

        async def work(cluster: Cluster) -> None:
            name = followers(cluster)[0]
            await cluster.stop_broker(name)
            cluster.reconfigure(name, enable_d_leger_commit_log=False)
            with pytest.raises(ConfigError, match=r"that of n\d of raft group RaftNode00: start"):
                await cluster.start_broker(name)

        in_group(work)

    def test_a_store_of_a_single_broker_does_not_join(self) -> None:
        """Its messages would be no other member's."""

        async def work() -> None:
            async with Cluster(memory=True) as cluster:
                await cluster.create_topic("orders")
                await send(cluster, "a")
                await cluster.stop_broker()
                cluster.reconfigure(
                    "broker-a",
                    enable_d_leger_commit_log=True,
                    d_leger_group="g",
                    d_leger_peers=f"n0-{HOST}:1;n1-{HOST}:2;n2-{HOST}:3",
                    d_leger_self_id="n0",
                )
                with pytest.raises(ConfigError, match="belongs to no raft group: start the group"):
                    await cluster.start_broker()

        simulate(work)

    def test_another_member_s_store_is_refused(self) -> None:
        """The folder names whose it is."""

        async def work(cluster: Cluster) -> None:
            name = followers(cluster)[0]
            await cluster.stop_broker(name)
            cluster.reconfigure(name, d_leger_group="other")
            with pytest.raises(ConfigError, match=f"is that of {name} of raft group RaftNode00"):
                await cluster.start_broker(name)

        in_group(work)

    def test_members_that_disagree_are_not_connected(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Both logs say why; the others go on."""

        async def work(cluster: Cluster) -> None:
            name = followers(cluster)[0]
            await cluster.stop_broker(name)
            peers = cluster.broker(await cluster.wait_for_leader()).config.d_leger_peers
            more = f"{peers};n3-10.0.0.4:1;n4-10.0.0.5:1"
            cluster.reconfigure(name, d_leger_peers=more)
            await cluster.start_broker(name)
            await asyncio.sleep(5)
            assert node_of(cluster, name).connected == []
            assert await send(cluster, "a") == ["SEND_OK"]

        in_group(work)
        assert "give all members the same dLegerPeers" in caplog.text

    @pytest.mark.parametrize(
        "garbage", [b"GET / HTTP/1.1\r\n\r\n", bytes(64), b"\0\0\0\x05\xff1234"]
    )
    def test_garbage_on_the_raft_port_changes_nothing(self, garbage: bytes) -> None:
        """It is closed; the group serves."""

        async def work(cluster: Cluster) -> None:
            leader = await cluster.wait_for_leader()
            host, port = cluster.broker(leader).config.group_identity.addresses[leader]
            closed = asyncio.get_running_loop().create_future()

            class Stranger(asyncio.Protocol):
                def connection_made(self, transport: asyncio.BaseTransport) -> None:
                    transport.write(garbage)  # type: ignore[attr-defined]

                def connection_lost(self, exc: Exception | None) -> None:
                    closed.set_result(None)

            await network_of(cluster).connect(host, port, Stranger, 1.0)
            await asyncio.wait_for(closed, 10)
            assert await send(cluster, "a") == ["SEND_OK"]
            assert cluster.leader == leader

        in_group(work)
