"""What name servers know: a lost broker comes back by itself, and routes are those of now."""

import asyncio

import pytest
from peer import Run

from gantrymq import Admin, Message
from gantrymq.client.core.errors import NoRoute
from gantrymq.model import READ, WRITE
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.loop import simulate
from gantrymq.testing.network import MemoryNetwork


def test_a_broken_connection_to_the_name_server_costs_seconds_not_half_a_minute() -> None:
    """
    The name server drops a broker whose connection closed; the broker registers again at once.
    """

    async def story() -> float:
        async with Cluster(memory=True) as cluster:
            await cluster.create_topic("orders")
            assert isinstance(cluster.network, MemoryNetwork)
            async with cluster.admin() as admin:
                await asyncio.sleep(5)
                loop = asyncio.get_running_loop()
                cluster.network.cut_all()
                began = loop.time()
                while "orders" not in await admin.topics():
                    await asyncio.sleep(0.05)
                return loop.time() - began

    assert simulate(story) < 1.0


def test_a_name_server_that_comes_back_knows_the_broker_within_seconds() -> None:
    """
    A broker tries every 3 s as long as one of its name servers is away.
    """

    async def story() -> float:
        async with Cluster(memory=True, nameservers=2) as cluster:
            await cluster.create_topic("orders")
            assert isinstance(cluster.network, MemoryNetwork)
            port = int(cluster.namesrv.split(";")[1].rpartition(":")[2])
            factory = cluster.network._ports.pop(("127.0.0.1", port))
            cluster.network.cut_port(port)
            await asyncio.sleep(10)
            cluster.network._ports["127.0.0.1", port] = factory
            began = asyncio.get_running_loop().time()
            server = cluster._nameservers[1]
            while server.table.route("orders") is None:
                await asyncio.sleep(0.05)
            return asyncio.get_running_loop().time() - began

    assert simulate(story) < 4.0


def test_topics_created_at_the_same_time_all_get_a_route() -> None:
    """
    A name server takes topics only with a version that it does not know yet, so no registration may
    go out with the version of a topic that it leaves out.
    """
    created, sent = ([f"{kind}-{n}" for n in range(40)] for kind in ("created", "sent"))

    async def story() -> set[str]:
        async with Cluster() as cluster, cluster.admin() as admin, cluster.producer() as producer:
            work = []
            for one, other in zip(created, sent, strict=True):
                work.append(asyncio.create_task(admin.create_topic(one)))
                work.append(asyncio.create_task(producer.send(Message(other, b"first"))))
                await asyncio.sleep(0.002)
            await asyncio.gather(*work)
            await asyncio.sleep(0.5)
            return {*created, *sent} - set(await admin.topics())

    assert asyncio.run(story()) == set()


def test_a_route_that_was_asked_before_is_answered_as_it_is_now(run: Run) -> None:
    """
    A name server keeps the answers that it wrote, but none beyond a change of the route.
    """

    async def work(cluster: Cluster) -> None:
        async with cluster.admin() as admin:
            await cluster.create_topic("orders", queues=4)
            found = [await _queues_and_permission(admin)]
            await cluster.create_topic("orders", queues=6)
            found.append(await _queues_and_permission(admin))
            await admin.wipe_write_permission("broker-a")
            found.append(await _queues_and_permission(admin))
            await admin.delete_topic("orders")
            with pytest.raises(NoRoute):
                await admin.topic_route("orders")

        assert found == [(4, READ | WRITE), (6, READ | WRITE), (6, READ)]

    run(work)


async def _queues_and_permission(admin: Admin) -> tuple[int, int]:
    data = (await admin.topic_route("orders")).queue_datas[0]
    return data.read_queue_nums, data.perm
