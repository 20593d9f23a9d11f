"""A broker whose master is away: its slave is in the route, and nobody takes a send."""

import asyncio

import pytest
from peer import Run

from gantrymq import Message, NoRoute
from gantrymq.testing.cluster import Cluster

AWAY_SECONDS = 2.0


async def _without_master(cluster: Cluster) -> None:
    """A topic that a slave has, too, and no master."""
    await cluster.create_topic("orders")
    slave, master = cluster.broker("broker-a-s1"), cluster.broker()
    async with asyncio.timeout(20):
        while slave.store.log_max != master.store.log_max:
            await asyncio.sleep(0.02)
    await cluster.stop_broker()


@pytest.mark.parametrize("is_known", [True, False])
def test_a_send_waits_for_a_master(run: Run, is_known: bool) -> None:
    """Also the first send of a producer, which has never seen a master of the topic."""

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("orders")
        async with cluster.producer() as producer:
            if is_known:
                await producer.send(Message("orders", b"before"))
            await _without_master(cluster)
            sending = asyncio.create_task(producer.send(Message("orders", b"x"), timeout=10))
            await asyncio.sleep(AWAY_SECONDS)
            assert not sending.done()
            await cluster.start_broker()
            assert (await sending).queue.broker_name == "broker-a"

    run(work, slaves=1)


def test_a_send_fails_when_no_master_comes_in_time(run: Run) -> None:
    """The error says what is missing."""

    async def work(cluster: Cluster) -> None:
        await _without_master(cluster)
        async with cluster.producer() as producer:
            with pytest.raises(NoRoute, match="no broker with a master"):
                await producer.send(Message("orders", b"x"), timeout=1)

    run(work, slaves=1)
