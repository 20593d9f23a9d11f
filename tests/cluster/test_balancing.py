"""Sharing queues in a group, rule by rule: the strategies, when they run, and who stays idle."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from peer import Run
from reading import FIRST, Pulls, fill, take, until

from gantrymq import ClientOptions, ConsumerOptions, GroupConfig, Queue
from gantrymq.client.consume.push.consumer import Consumer
from gantrymq.protocol.assignment import (
    Strategy,
    averagely,
    by_circle,
    by_config,
    by_machine_room,
    consistent_hash,
    machine_room_nearby,
)
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.loop import simulate


def member(cluster: Cluster, name: str, group: str = "g", **more: Any) -> Consumer:
    client = ClientOptions(client_ip="10.0.0.1", instance_name=name)
    return cluster.consumer(group, client=client, **more)


async def shares(cluster: Cluster, **by_name: dict[str, Any]) -> dict[str, list[int]]:
    """The queues that each member holds once the group has settled."""
    members = {name: member(cluster, name, **options) for name, options in by_name.items()}
    for consumer in members.values():
        await consumer.start()
        consumer.subscribe("orders")
    try:
        for _ in range(50):
            await asyncio.sleep(0.05)
            held = {name: consumer.assignment for name, consumer in members.items()}
            if 8 == sum(map(len, held.values())):
                break
        await asyncio.sleep(0.3)  # nothing moves any more
        return {
            name: [queue.queue_id for queue in consumer.assignment]
            for name, consumer in members.items()
        }
    finally:
        for consumer in members.values():
            await consumer.close()


class TestAStrategy:
    @pytest.mark.parametrize(
        "strategy, one, two, three",
        [
            (averagely, [0, 1, 2], [3, 4, 5], [6, 7]),
            (by_circle, [0, 3, 6], [1, 4, 7], [2, 5]),
        ],
    )
    def test_hands_out_pages_or_deals_in_turn(
        self, run: Run, strategy: Strategy, one: list[int], two: list[int], three: list[int]
    ) -> None:
        """
        Averagely, like pages of a book, is the default; by circle, like cards.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", 8)
            same: dict[str, Any] = {} if strategy is averagely else {"strategy": strategy}
            assert {"m1": one, "m2": two, "m3": three} == await shares(
                cluster, m1=same, m2=same, m3=same
            )

        run(work)

    def test_can_be_a_ring(self, run: Run) -> None:
        """
        Consistent hash, ten virtual nodes each: a member that leaves moves its own queues only.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", 8)
            ring = {"strategy": consistent_hash()}
            three = await shares(cluster, m1=ring, m2=ring, m3=ring)
            two = await shares(cluster, m1=ring, m2=ring)
            assert list(range(8)) == sorted(queue for mine in three.values() for queue in mine)
            assert all(set(three[name]) <= set(two[name]) for name in two)
            named = {"options": ConsumerOptions(allocate_strategy="CONSISTENT_HASH")}
            assert two == await shares(cluster, m1=named, m2=named)
            assert await shares(cluster, m1=ring, m2={"strategy": consistent_hash(10)}) == two

        run(work)

    def test_can_be_a_fixed_list(self, run: Run) -> None:
        """
        By config: exactly these queues, whoever else is there.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", 8)
            queues = [Queue("orders", "broker-a", number) for number in range(8)]
            found = await shares(
                cluster,
                m1={"strategy": by_config(queues[:1])},
                m2={"strategy": by_config(queues[1:])},
            )
            assert {"m1": [0], "m2": [1, 2, 3, 4, 5, 6, 7]} == found

        run(work)

    def test_can_keep_to_machine_rooms(self, run: Run) -> None:
        """
        Brokers are named `room@broker`; queues of other rooms are left to others.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", 8)
            here, there = (
                {"strategy": by_machine_room(["r1"])},
                {"strategy": by_machine_room(["r2"])},
            )
            assert {"m1": [0, 1, 2, 3], "m2": [4, 5, 6, 7]} == await shares(
                cluster, m1=here, m2=here
            )
            assert {"m1": []} == await shares(cluster, m1={**there, "group": "g2"})

        run(work, broker_name="r1@broker-a")

    def test_can_prefer_what_is_near(self, run: Run) -> None:
        """
        Each room's members share its queues; those of a room without members go to everybody.
        """

        def room_of_queue(queue: Queue) -> str:
            return "near" if queue.queue_id < 4 else "far"

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", 8)
            peopled = {
                "strategy": machine_room_nearby(averagely, room_of_queue, lambda c: rooms[c])
            }
            rooms = {"10.0.0.1@m1": "near", "10.0.0.1@m2": "far", "10.0.0.1@m3": "far"}
            assert {"m1": [0, 1, 2, 3], "m2": [4, 5], "m3": [6, 7]} == await shares(
                cluster, m1=peopled, m2=peopled, m3=peopled
            )
            rooms = dict.fromkeys(rooms, "near")
            assert {"m1": [0, 1, 4, 5], "m2": [2, 3, 6, 7]} == await shares(
                cluster, m1=peopled, m2=peopled
            )

        run(work)

    def test_can_be_a_function_of_ones_own(self, run: Run) -> None:
        """
        It gets the client id, the sorted queues and the sorted client ids.
        """
        seen: list[tuple[str, list[int], list[str]]] = []

        def greedy(me: str, queues: Sequence[Queue], clients: Sequence[str]) -> list[Queue]:
            seen.append((me, [queue.queue_id for queue in queues], list(clients)))
            return list(queues) if me == clients[-1] else []

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", 8)
            mine = {"strategy": greedy}
            assert {"m1": [], "m2": list(range(8))} == await shares(cluster, m1=mine, m2=mine)
            assert ("10.0.0.1@m1", list(range(8)), ["10.0.0.1@m1", "10.0.0.1@m2"]) in seen

        run(work)


class TestAChange:
    def test_of_members_is_followed_at_once(self, run: Run) -> None:
        """
        The broker tells the others when a member comes or goes: nobody waits for the 20 s.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", 4)
            loop = asyncio.get_running_loop()
            async with member(cluster, "one") as one:
                one.subscribe("orders")
                await one.wait_assigned(4)
                began = loop.time()
                async with member(cluster, "two") as two:
                    two.subscribe("orders")
                    await until(lambda: len(one.assignment) == len(two.assignment) == 2)
                await until(lambda: len(one.assignment) == 4)
                assert loop.time() - began < 5

        run(work)

    def test_that_nobody_tells_is_found_within_20_seconds(self) -> None:
        """
        With `notifyConsumerIdsChangedEnable` off only the clock helps.
        """

        async def story() -> float:
            loop = asyncio.get_running_loop()
            async with Cluster(memory=True) as cluster, cluster.admin() as admin:
                await cluster.create_topic("orders", 4)
                quiet = GroupConfig(group_name="g", notify_consumer_ids_changed_enable=False)
                await admin.update_group(quiet)
                async with member(cluster, "one") as one:
                    one.subscribe("orders")
                    await one.wait_assigned(4)
                    await asyncio.sleep(1)
                    async with member(cluster, "two") as two:
                        began = loop.time()
                        two.subscribe("orders")
                        await until(lambda: len(one.assignment) == 2, 60)
                        return loop.time() - began

        assert 5 < simulate(story) <= 20

    def test_gives_a_queue_to_one_owner_at_a_time(self, run: Run) -> None:
        """
        The member that lost a queue pulls it no more, and every message is handled once.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", 2)
            pulls = Pulls()
            async with member(cluster, "one", options=FIRST, hooks=[pulls]) as one:
                one.subscribe("orders")
                await one.wait_assigned(2)
                async with member(cluster, "two", options=FIRST) as two:
                    two.subscribe("orders")
                    await until(lambda: len(one.assignment) == len(two.assignment) == 1)
                    (lost,), (kept,) = two.assignment, one.assignment
                    pulls.fields.clear()
                    await fill(cluster, "a", queue=lost)
                    await fill(cluster, "b", queue=kept)
                    assert [["b"], ["a"]] == [await take(one, 1), await take(two, 1)]
                    asked = {f["queueId"] for f in pulls.fields if f["topic"] == "orders"}
                    assert str(lost.queue_id) not in asked

        run(work)


class TestMoreMembersThanQueues:
    def test_leaves_the_last_ones_idle_until_they_are_needed(self, run: Run) -> None:
        """
        The idle member holds nothing, and takes over when another leaves.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", 1)
            async with member(cluster, "m2") as second:
                second.subscribe("orders")
                async with member(cluster, "m1") as first:
                    first.subscribe("orders")
                    await until(lambda: len(first.assignment) == 1 and not second.assignment)
                    (only,) = first.assignment
                await until(lambda: len(second.assignment) == 1)
                assert {only} == set(second.assignment)

        run(work)
