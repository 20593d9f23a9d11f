"""Wounds of RocketMQ's users that no other test holds; `docs/wounds.md` has the whole list."""

import asyncio
from collections import Counter

import pytest
from peer import Peer, Run, bodies
from test_slaves import SLAVE, copied, send, until

from gantrymq import ConsumerOptions, Delivery, GantryError, Message, ProducerOptions, SendFailed
from gantrymq.client.core.errors import WindowFull
from gantrymq.replication.ha.wire import REPORT
from gantrymq.store.log.syncer import InlineSyncer
from gantrymq.testing.cluster import HOST, Cluster
from gantrymq.testing.disk import MemoryDisk
from gantrymq.testing.loop import simulate
from gantrymq.testing.network import MemoryNetwork

FIRST = ConsumerOptions(consume_from_where="CONSUME_FROM_FIRST_OFFSET")
HOUR = 3_600


def test_wound_network_isolation_makes_two_masters() -> None:
    """apache/rocketmq#7017: the members of a broker lose sight of each other and of the name
    servers. A slave never becomes a master by itself, however long that lasts, and a send that
    the slave does not have is not answered with SEND_OK."""

    async def story() -> None:
        async with Cluster(memory=True, slaves=1, broker_role="SYNC_MASTER") as cluster:
            network = cluster.network
            assert isinstance(network, MemoryNetwork)
            await cluster.create_topic("orders", queues=1)
            await send(cluster, "before")
            await copied(cluster)
            await asyncio.sleep(10)
            acknowledged = [b for b in "abc" if await send(cluster, b) == ["SEND_OK"]]
            peer = await Peer.to(cluster)
            ha_port = cluster.broker().config.ha_listen_port
            network.deafen(ha_port)  # the master hears nothing of its slave, clients reach it
            network.cut_port(ha_port)
            alone = await peer.send("orders", b"alone")
            network.part(HOST, HOST)
            await asyncio.sleep(HOUR)
            slave = cluster.broker(SLAVE)
            assert alone.code != 0
            assert slave.config.is_slave
            assert "send to the master" in (slave.store.writable or "")
            network.join(HOST, HOST)
            network.hear(ha_port)
            network.cut_all()
            await asyncio.sleep(60)
            await copied(cluster)
            async with cluster.admin() as admin:
                members = (await admin.cluster()).broker_addr_table["broker-a"].broker_addrs
            assert members == {"0": cluster.broker().address, "1": slave.address}
            await cluster.kill_broker()
            reader = await Peer.to(cluster, slave.config.listen_port)
            found = [body.decode() for body in bodies(await reader.pull("orders", 0))]
            assert acknowledged == ["a", "b", "c"]
            assert found == ["before", *acknowledged, "alone"]

    simulate(story)


class Stranger(asyncio.Protocol):
    """Somebody who connects to the HA port and claims to have everything."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self.transport = transport

    def claim(self, offset: int) -> None:
        self.transport.write(REPORT.pack(offset))


def test_wound_any_client_on_the_ha_port_fakes_progress(run: Run) -> None:
    """apache/rocketmq#3015, #1155: whoever sends 8 bytes to the HA port counts as a slave there.
    Here sends are answered with SLAVE_NOT_AVAILABLE, whatever a stranger claims."""

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("orders", queues=1)
        assert await send(cluster, "a") == ["SLAVE_NOT_AVAILABLE"]
        port, end = cluster.broker().config.ha_listen_port, cluster.broker().store.log_max
        strangers = [await cluster.network.connect(HOST, port, Stranger, 3) for _ in range(3)]
        for stranger, claimed in zip(strangers, (0, end, end + (1 << 40)), strict=True):
            stranger.claim(claimed)
        await asyncio.sleep(0.2)
        for stranger in strangers:
            stranger.claim(end + (1 << 30))
        statuses = await send(cluster, "b", "c")
        async with cluster.admin() as admin:
            status = await admin.ha_status(cluster.broker().address)
        for stranger in strangers:
            stranger.transport.abort()
        assert statuses == ["SLAVE_NOT_AVAILABLE"] * 2
        assert status.in_sync_slave_nums == 0

    run(work, broker_role="SYNC_MASTER")


def test_wound_days_are_consumed_again_after_a_network_cut() -> None:
    """apache/rocketmq#1440: a cut, and a broker that is killed meanwhile. What a group had
    finished before is not consumed again, be it a minute old or a day."""

    async def story() -> None:
        async with Cluster(memory=True) as cluster:
            network = cluster.network
            assert isinstance(network, MemoryNetwork)
            await cluster.create_topic("orders", queues=4)
            seen: Counter[str] = Counter()
            async with cluster.consumer("g", options=FIRST) as consumer:

                @consumer.handler
                async def handle(message: Delivery) -> None:
                    seen[message.body.decode()] += 1

                consumer.subscribe("orders")
                for day in range(3):
                    await send(cluster, *(f"{day}-{number}" for number in range(20)))
                    await asyncio.sleep(24 * HOUR)
                network.part(HOST, HOST)
                await asyncio.sleep(120)
                await cluster.kill_broker()
                network.join(HOST, HOST)
                await cluster.start_broker()
                await asyncio.sleep(60)
                await send(cluster, *(f"new-{number}" for number in range(20)))
                await until(lambda: len(seen) == 80, 60)
            assert {1} == set(seen.values())

    simulate(story)


class NearlyFullDisk(MemoryDisk):
    """A laptop's disk: 91 % of it are taken, and the rest are many GiB."""

    def used_ratio(self, root: str) -> float:
        return 0.91


@pytest.mark.parametrize(("profile", "code"), [("dev", 0), ("rocketmq", 14)])
def test_wound_maybe_disk_full_on_a_laptop(profile: str, code: int) -> None:
    """apache/rocketmq#4831, #2138, #3750: with the profile of `gantry up` a disk that is 91 % full
    takes messages; with RocketMQ's ratios the refusal says how full it is, and how full is too
    full."""

    async def story() -> None:
        disk = NearlyFullDisk()
        async with Cluster(memory=True, disk=disk, store_profile=profile) as cluster:
            peer = await Peer.to(cluster)
            answer = await peer.send("broker-a", b"a")
            assert answer.code == code
            if code:
                assert "the disk is 91% full, more than 90%" in (answer.remark or "")

    simulate(story)


def test_wound_clients_get_an_address_they_cannot_reach(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    """apache/rocketmq#3440: a broker in a container registers the container's address. The errors
    of producers and admins, and the log of consumers, name the address, who gave it, and what to
    set."""

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("orders", queues=1)
        await cluster.stop_broker()
        cluster.reconfigure("broker-a", broker_ip1="127.9.9.9")
        await cluster.start_broker()
        address = f"127.9.9.9:{cluster.broker().config.listen_port}"
        told = f"connect to {address} failed.*has registered this address.*set its brokerIP1"
        async with cluster.producer() as producer:
            with pytest.raises(SendFailed, match=f"{told}"):
                await producer.send(Message("orders", b"x"))
        async with cluster.admin() as admin:
            with pytest.raises(GantryError, match=told):
                await admin.create_topic("other")
        async with cluster.consumer("g") as consumer:
            consumer.subscribe("orders")
            await until(lambda: f"no broker of it answers (broker-a at {address})" in caplog.text)

    run(work)


def test_wound_async_sends_are_lost_or_exhaust_memory(run: Run) -> None:
    """apache/rocketmq#9445: a broker answers slowly, and a program sends on. What the window has no
    room for is refused at once, with an error that says how to wait; every send that was taken is
    answered, and no other message is stored."""

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("orders", queues=1)
        options = ProducerOptions(window_messages=50, send_timeout_ms=20_000)
        taken: list[asyncio.Future[object]] = []
        refused = 0
        async with cluster.producer(options=options) as producer:
            await producer.send(Message("orders", b"first"))
            for number in range(2_000):
                try:
                    taken.append(producer.submit(Message("orders", str(number))))  # type: ignore[arg-type]
                except WindowFull:
                    refused += 1
                if number % 100 == 0:
                    await asyncio.sleep(0.01)
                    assert sum(not each.done() for each in taken) <= 50
            await asyncio.gather(*taken)
        assert refused > 1_000
        assert len(taken) + refused == 2_000
        assert cluster.broker().store.queues.max_offset("orders", 0) == 1 + len(taken)

    run(work, flush_disk_type="SYNC_FLUSH", syncer=InlineSyncer(0.2))
