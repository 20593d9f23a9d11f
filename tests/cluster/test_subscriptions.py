"""One group, different subscriptions: RocketMQ loses messages silently. Here it is loud."""

import asyncio
import logging

import pytest
from peer import Peer, Run

from gantrymq import Message
from gantrymq.protocol import fastjson
from gantrymq.protocol.bodies import SubscriptionConflict
from gantrymq.protocol.command import Command
from gantrymq.protocol.subscription import subscription
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.loop import simulate

GROUP = "divided"


async def beat(peer: Peer, client: str, tags: str, version: int) -> Command:
    wanted = subscription("orders", tags, version=version)
    consumer = {"groupName": GROUP, "subscriptionDataSet": [wanted]}
    body = {"clientID": client, "consumerDataSet": [consumer], "producerDataSet": []}
    return await peer.call(34, fastjson.dumps(body))


async def members(peer: Peer) -> list[str]:
    answer = await peer.call(38, consumerGroup=GROUP)
    found: list[str] = fastjson.loads(answer.body)["consumerIdList"] if answer.code == 0 else []
    return found


def conflict(refused: bool = False) -> SubscriptionConflict:
    return SubscriptionConflict(
        newer_client_id="two",
        newer_expression="b",
        older_client_id="one",
        older_expression="a",
        refused=refused,
        topic="orders",
    )


def test_a_divided_group_is_accepted_and_named(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    """
    Both members stay, as with RocketMQ. One line names them and what they want, however often
    they say it; a counter and the admin tool tell, too.
    """

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("orders")
        one, two = await Peer.to(cluster), await Peer.to(cluster)
        for version in range(3):
            assert (await beat(one, "one", "a", version)).code == 0
            assert (await beat(two, "two", "b", version)).code == 0

        assert ["one", "two"] == await members(one)
        async with cluster.admin() as admin:
            assert [conflict()] == await admin.subscription_conflicts(GROUP)
            address = f"127.0.0.1:{cluster.broker().config.listen_port}"
            assert "1" == (await admin.broker_runtime(address))["subscriptionConflicts"]
            two.close()
            await asyncio.sleep(0.1)
            assert [] == await admin.subscription_conflicts(GROUP)

    with caplog.at_level(logging.WARNING, "gantrymq.broker"):
        run(work)
    lines = [record.getMessage() for record in caplog.records if GROUP in record.getMessage()]
    assert [
        "group divided does not agree: of topic orders, member one wants 'a' but member two wants "
        "'b'. Messages are lost as long as this lasts."
    ] == lines


def test_members_that_agree_are_not_reported(run: Run) -> None:
    """
    The same tags in another order are the same subscription; nothing is added to the answer.
    """

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("orders")
        one, two = await Peer.to(cluster), await Peer.to(cluster)
        await beat(one, "one", "a || b", 1)
        await beat(two, "two", "b||a", 2)
        answer = await one.call(203, consumerGroup=GROUP)

        assert "subscriptionConflicts" not in fastjson.loads(answer.body)

    run(work)


def test_a_strict_group_keeps_the_newer_wish_out(run: Run) -> None:
    """
    After the grace the newer member's heartbeat is refused with both names and both wishes, it is
    no member any more, and the group wants again what its older member wants.
    """

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("orders")
        one, two = await Peer.to(cluster), await Peer.to(cluster)
        await beat(one, "one", "a", 1)
        assert (await beat(two, "two", "b", 2)).code == 0
        await asyncio.sleep(0.35)
        answer = await beat(two, "two", "b", 2)

        assert 16 == answer.code
        assert (
            "group divided is strict: of topic orders, "
            "member one wants 'a' but member two wants 'b'"
        ) == answer.remark
        assert ["one"] == await members(one)
        listed = fastjson.loads((await one.call(203, consumerGroup=GROUP)).body)
        assert "a" == listed["subscriptionTable"]["orders"]["subString"]
        async with cluster.admin() as admin:
            assert [conflict(refused=True)] == await admin.subscription_conflicts(GROUP)
        assert (await beat(one, "one", "a", 1)).code == 0

    run(work, strict_subscriptions=True, strict_subscriptions_grace_mills=300)


def test_a_rolling_deployment_passes_a_strict_group() -> None:
    """
    Within the grace old and new live side by side. What was refused later gets in as soon as the
    last older member has gone.
    """

    async def main() -> None:
        async with Cluster(memory=True, strict_subscriptions=True) as cluster:
            await cluster.create_topic("orders")
            one, two = await Peer.to(cluster), await Peer.to(cluster)
            codes = []
            for second in range(0, 150, 30):
                if second < 120:
                    await beat(one, "one", "a", 1)
                else:
                    one.close()
                    await asyncio.sleep(0.1)
                codes.append((await beat(two, "two", "b", 2)).code)
                await asyncio.sleep(30)

            assert [0, 0, 16, 16, 0] == codes
            assert ["two"] == await members(two)

    simulate(main)


def test_a_strict_group_loses_nothing() -> None:
    """
    The older member's messages all arrive, although somebody with other wishes tries to join.
    """

    async def main() -> None:
        settings = {"strict_subscriptions": True, "strict_subscriptions_grace_mills": 0}
        async with Cluster(memory=True, **settings) as cluster:
            await cluster.create_topic("orders", queues=4)
            stranger = await Peer.to(cluster)
            found: list[bytes] = []
            async with cluster.consumer(GROUP) as consumer:
                consumer.subscribe("orders", tags="a")
                got = consumer.__aiter__()
                async with cluster.producer() as producer:
                    for number in range(200):
                        await producer.send(Message("orders", f"{number}", tags="a"))
                        if number % 20 == 0:
                            assert (await beat(stranger, "two", "b", 10**15)).code in (0, 16)
                while len(found) < 200:
                    message = await asyncio.wait_for(got.__anext__(), 120)
                    found.append(message.body)
                    await message.ack()

            assert {b"%d" % number for number in range(200)} == set(found)

    simulate(main)
