"""The stream of alarms: what goes over a threshold is told once, and once when it is over."""

import asyncio
from contextlib import aclosing

from peer import Peer, Run
from test_publishing_retention import expire, small_files

from gantrymq import Message
from gantrymq.client.admin.monitoring.alarms import Alarm, watch_alarms
from gantrymq.client.admin.monitoring.monitor_round import Thresholds
from gantrymq.model import GroupConfig
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.loop import simulate


def test_an_alarm_begins_and_ends_once(run: Run) -> None:
    """
    Rounds in between that see the same problem add nothing; the end says since when it stood.
    """

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("orders", 1)
        async with cluster.admin() as admin, cluster.producer() as producer:
            await admin.put_group(cluster.broker().address, GroupConfig(group_name="billing"))
            peer = await Peer.to(cluster)
            await peer.call(15, consumerGroup="billing", topic="orders", queueId=0, commitOffset=0)
            for _ in range(3):
                await producer.send(Message("orders", b"x"))
            found: list[Alarm] = []
            limits = Thresholds(waiting=2)
            async with aclosing(watch_alarms(admin, every=0.2, thresholds=limits)) as alarms:
                async for alarm in alarms:
                    found.append(alarm)
                    if alarm.is_over:
                        break
                    await asyncio.sleep(1)  # several rounds
                    await peer.call(
                        15, consumerGroup="billing", topic="orders", queueId=0, commitOffset=3
                    )
            begun, over = found
            assert ("waiting", "billing", 3) == (
                begun.problem.kind, begun.problem.group, begun.problem.value,
            )  # fmt: skip
            assert not begun.is_over
            assert over.problem == begun.problem
            assert begun.at_ms == over.since_ms < over.at_ms
            peer.close()

    run(work)


def test_what_was_deleted_is_told_at_once() -> None:
    """
    An event about a moved offset does not wait for the next round, ten minutes later.
    """

    async def story() -> None:
        async with small_files() as cluster:
            await cluster.create_topic("orders", 1)
            peer = await Peer.to(cluster)
            await peer.pull("orders", 700)  # makes the topic of the events
            async with cluster.producer() as producer:
                for _ in range(4):
                    await producer.send(Message("orders", bytes(100)))
            assert await expire(cluster, "broker-a")
            clock = asyncio.get_running_loop()
            async with cluster.admin() as admin, aclosing(watch_alarms(admin, every=600)) as alarms:
                began, first = clock.time(), asyncio.ensure_future(anext(alarms))
                while not first.done():
                    await peer.pull("orders", 1)
                    await asyncio.wait({first}, timeout=0.5)
                assert clock.time() - began < 60
                problem = first.result().problem
                assert ("deleted", "g") == (problem.kind, problem.group)
                assert "deleted before g read them: it asked for offset 1" in problem.text

    simulate(story)
