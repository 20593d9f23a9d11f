"""A broker that comes back knows its clients as soon as they talk to it again."""

import asyncio

from gantrymq import Message, SendFailed
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.loop import simulate

BEAT_SECONDS = 30


def test_a_producer_is_known_again_with_its_first_send() -> None:
    """
    Also when a heartbeat had failed meanwhile: the next regular one may be half a minute away.
    """

    async def story() -> list[str]:
        async with Cluster(memory=True) as cluster, cluster.producer("bank") as producer:
            await producer.send(Message("orders", b"before"))
            await asyncio.sleep(BEAT_SECONDS - 2)
            await cluster.kill_broker()
            await asyncio.sleep(4)  # a heartbeat goes nowhere
            await cluster.start_broker()
            for _ in range(50):
                try:
                    await producer.send(Message("orders", b"after"))
                    break
                except SendFailed:
                    await asyncio.sleep(0.1)
            await asyncio.sleep(0.5)
            async with cluster.admin() as admin:
                rows = await admin.producers("bank", "orders")
                return [row.client_id for row in rows.connection_set]

    assert 1 == len(simulate(story))
