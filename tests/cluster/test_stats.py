"""What RocketMQ's exporter and dashboard read: statistics over time, and who produces."""

import asyncio
import json
from typing import Any

from peer import Peer, Run, messages

from gantrymq.protocol import fastjson
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.loop import simulate

VIEW, PRODUCERS, PROGRESS, BACK, HEARTBEAT, UNREGISTER = 315, 328, 208, 36, 34, 35
DELETE_TOPIC, DELETE_GROUP = 215, 207
HOUR = 3600.0
CLUSTER = "DefaultCluster"


async def view(peer: Peer, name: str, key: str) -> dict[str, Any]:
    answer = await peer.call(VIEW, statsName=name, statsKey=key)
    assert 0 == answer.code, answer.remark
    found: dict[str, Any] = fastjson.loads(answer.body)
    return found


async def minute(peer: Peer, name: str, key: str) -> tuple[int, float, float]:
    found = (await view(peer, name, key))["statsMinute"]
    return found["sum"], found["tps"], found["avgpt"]


async def trade(cluster: Cluster, peer: Peer) -> int:
    """Twelve messages are sent, nine got in two pulls, one given back; returns their bytes."""
    await cluster.create_topic("orders", queues=1)
    for _ in range(12):
        await peer.send("orders", b"a book")
    got = [
        *messages(await peer.pull("orders", 0, count=5)),
        *messages(await peer.pull("orders", 5, count=4)),
    ]
    back = await peer.call(
        BACK, offset=got[0].physical_offset, group="g", delayLevel=18, originTopic="orders"
    )
    assert 0 == back.code
    return len((await peer.pull("orders", 0, count=32, group="other")).body)


def test_a_minute_tells_what_went_in_and_out() -> None:
    """
    Sums, rates and averages by topic, by group and of the broker; after a minute they are over.
    """

    async def main() -> None:
        async with Cluster(memory=True) as cluster:
            peer = await Peer.to(cluster)
            size = await trade(cluster, peer)
            await asyncio.sleep(35)  # three samples: 30 s

            assert (12, 0.4, 1.0) == await minute(peer, "TOPIC_PUT_NUMS", "orders")
            assert (size, size / 30, size / 12) == await minute(peer, "TOPIC_PUT_SIZE", "orders")
            assert (9, 0.3, 4.5) == await minute(peer, "GROUP_GET_NUMS", "orders@g")
            got = size // 12 * 9
            assert (got, got / 30, got / 2) == await minute(peer, "GROUP_GET_SIZE", "orders@g")
            assert (1, 1 / 30, 1.0) == await minute(peer, "SNDBCK_PUT_NUMS", "orders@g")
            assert (1, 1 / 30, 1.0) == await minute(peer, "TOPIC_PUT_NUMS", "SCHEDULE_TOPIC_XXXX")
            assert (13, 13 / 30, 0.0) == await minute(peer, "BROKER_PUT_NUMS", CLUSTER)
            assert (21, 0.7, 0.0) == await minute(peer, "BROKER_GET_NUMS", CLUSTER)
            await asyncio.sleep(60)
            for name, key in (("TOPIC_PUT_NUMS", "orders"), ("BROKER_GET_NUMS", CLUSTER)):
                assert (0, 0.0, 0.0) == await minute(peer, name, key)

    simulate(main)


def test_hours_and_days_are_sampled_as_rocketmq_does() -> None:
    """
    Every 10 minutes and every hour; what is older than an hour or a day is no longer told.
    """

    async def main() -> None:
        async with Cluster(memory=True) as cluster:
            await trade(cluster, await Peer.to(cluster))

            async def seen(name: str, key: str) -> dict[str, Any]:
                return await view(await Peer.to(cluster), name, key)  # the last one was idle

            async def sums() -> tuple[int, int]:
                found = await seen("TOPIC_PUT_NUMS", "orders")
                return found["statsHour"]["sum"], found["statsDay"]["sum"]

            assert (0, 0) == await sums()
            await asyncio.sleep(605)
            assert (12, 0) == await sums()
            found = (await seen("TOPIC_PUT_NUMS", "orders"))["statsHour"]
            assert (12 / 600, 1.0) == (found["tps"], found["avgpt"])
            await asyncio.sleep(HOUR)
            assert (0, 12) == await sums()
            found = (await seen("GROUP_GET_NUMS", "orders@g"))["statsDay"]
            assert (9, 9 / HOUR, 4.5) == (found["sum"], found["tps"], found["avgpt"])
            await (await Peer.to(cluster)).send("orders", b"late")
            await asyncio.sleep(22 * HOUR)
            assert (0, 13) == await sums()
            await asyncio.sleep(2 * HOUR)
            assert (0, 1) == await sums()
            await asyncio.sleep(HOUR)
            assert (0, 0) == await sums()

    simulate(main)


def test_the_pace_of_a_group_is_told_with_its_progress() -> None:
    """
    consumeTps: what it got in the last minute, over all its topics.
    """

    async def main() -> None:
        async with Cluster(memory=True) as cluster:
            peer = await Peer.to(cluster)
            await trade(cluster, peer)
            await cluster.create_topic("bills", queues=1)
            for _ in range(6):
                await peer.send("bills", b"a bill")
            await peer.pull("bills", 0)
            for topic in ("orders", "bills"):
                place = {"consumerGroup": "g", "topic": topic, "queueId": 0}
                await peer.call(15, **place, commitOffset=1)
            await asyncio.sleep(35)

            async def tps(**asked: str) -> float:
                answer = await peer.call(PROGRESS, consumerGroup="g", **asked)
                return float(fastjson.loads(answer.body)["consumeTps"])

            assert 0.5 == await tps()
            assert 0.2 == await tps(topic="bills")

    simulate(main)


def test_what_waited_counts_for_its_topic_when_it_arrives() -> None:
    """
    First for the topic it waits in, then for its own, as with RocketMQ.
    """

    async def main() -> None:
        async with Cluster(memory=True) as cluster:
            peer = await Peer.to(cluster)
            await cluster.create_topic("orders", queues=1)
            await peer.send("orders", b"delayed", props="DELAY\x011\x02")
            due = cluster.clock.now_ms() + 2_000
            await peer.send(
                "orders", b"timed", props=f"UNIQ_KEY\x01u\x02TIMER_DELIVER_MS\x01{due}\x02"
            )
            await asyncio.sleep(35)

            sums = {
                topic: (await minute(peer, "TOPIC_PUT_NUMS", topic))[0]
                for topic in ("SCHEDULE_TOPIC_XXXX", "rmq_sys_wheel_timer", "orders")
            }
            assert [1, 1, 2] == list(sums.values())

    simulate(main)


def test_what_was_not_counted_does_not_exist(run: Run) -> None:
    """
    In RocketMQ's words; what is deleted leaves no statistics behind.
    """

    async def work(cluster: Cluster) -> None:
        peer = await Peer.to(cluster)
        await trade(cluster, peer)

        async def said(name: str, key: str) -> str | None:
            return (await peer.call(VIEW, statsName=name, statsKey=key)).remark

        counted = [("TOPIC_PUT_NUMS", "orders"), ("GROUP_GET_NUMS", "orders@g"),
                   ("SNDBCK_PUT_NUMS", "orders@g")]  # fmt: skip
        missing = "The stats <{}> <{}> not exist"
        for place in [("TOPIC_PUT_NUMS", "bills"), ("NOSUCH", "orders")]:
            assert missing.format(*place) == await said(*place)
        assert [None] * 3 == [await said(*place) for place in counted]
        await peer.call(DELETE_GROUP, groupName="g")
        assert [False, True, True] == [bool(await said(*place)) for place in counted]
        await peer.pull("orders", 0)
        await peer.call(DELETE_TOPIC, topic="orders")
        assert all([await said(*place) for place in counted])
        assert None is await said("BROKER_PUT_NUMS", CLUSTER)

    run(work)


def test_producers_are_listed_by_group(run: Run) -> None:
    """
    With their address, language and version, and when they were heard of last.
    """

    async def work(cluster: Cluster) -> None:
        peer, other = await Peer.to(cluster), await Peer.to(cluster)

        async def table() -> dict[str, list[dict[str, Any]]]:
            found: dict[str, list[dict[str, Any]]] = fastjson.loads(
                (await other.call(PRODUCERS)).body
            )["data"]
            return found

        assert {} == await table()
        groups = [{"groupName": "shops"}, {"groupName": "bills"}]
        beat = {"clientID": "me", "consumerDataSet": [], "producerDataSet": groups}
        before_ms = cluster.clock.now_ms()
        await peer.call(HEARTBEAT, json.dumps(beat).encode())
        await asyncio.sleep(0.2)
        found = await table()

        assert ["bills", "shops"] == sorted(found)
        ((row,), _) = found.values()
        assert "me" == row["clientId"]
        assert row["remoteIP"].startswith("/")
        assert {"language", "version"} < row.keys()
        assert before_ms - 50 <= row["lastUpdateTimestamp"] <= before_ms + 150
        await peer.call(UNREGISTER, clientID="me", producerGroup="shops")
        assert ["bills"] == list(await table())

    run(work)
