"""A broker whose name server lost sight of it comes back by itself, and soon."""

import asyncio

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
