"""What a broker tells operators and their tools: counts, progress, events, topics of its own."""

import asyncio
import json
from typing import Any

import pytest
from peer import Peer, Run, messages

from gantrymq.broker.figures import readable_bytes
from gantrymq.protocol import fastjson
from gantrymq.store.writing.write_counts import WriteCounts
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.loop import simulate
from gantrymq.testing.network import MemoryNetwork

RUNTIME, PROGRESS, CREATE, SYSTEM_TOPICS, BACK, ROUTE = 28, 208, 17, 305, 36, 105
MOVED = "OFFSET_MOVED_EVENT"


async def figures(peer: Peer) -> dict[str, str]:
    table: dict[str, str] = fastjson.loads((await peer.call(RUNTIME)).body)["table"]
    return table


async def until(peer: Peer, topic: str, count: int) -> None:
    """Wait until a topic's first queue holds so many messages."""
    while len(messages(await peer.pull(topic, 0, hold=3_000))) < count:
        await asyncio.sleep(0.05)


def test_what_waited_is_counted_twice(run: Run) -> None:
    """
    A delayed, a timed and a retried message are written twice, and the totals say so, as
    RocketMQ's do; rates of topics tell the rooms from the topics.
    """

    async def work(cluster: Cluster) -> None:
        peer = await Peer.to(cluster)
        await cluster.create_topic("orders", queues=1)
        before = await figures(peer)

        async def written() -> int:
            return int((await figures(peer))["putMessageTimesTotal"]) - int(
                before["putMessageTimesTotal"]
            )

        await peer.send("orders", b"plain")
        assert 1 == await written()
        await peer.send("orders", b"delayed", props="DELAY\x011\x02")
        await until(peer, "orders", 2)
        assert 3 == await written()
        due = cluster.clock.now_ms() + 300
        await peer.send("orders", b"timed", props=f"UNIQ_KEY\x01u\x02TIMER_DELIVER_MS\x01{due}\x02")
        await until(peer, "orders", 3)
        assert 5 == await written()
        first = messages(await peer.pull("orders", 0))[0]
        back = await peer.call(BACK, offset=first.physical_offset, group="g", delayLevel=1)
        assert 0 == back.code
        await until(peer, "%RETRY%g", 1)

        after = await figures(peer)
        assert 7 == await written()
        assert after["msgPutTotalTodayNow"] == after["putMessageTimesTotal"]
        grown = int(after["putMessageSizeTotal"]) - int(before["putMessageSizeTotal"])
        assert grown > 7 * 90
        assert "1,1" != after["scheduleMessageOffset_1"] == "2,2"

    run(work)


EXPORTED = """
msgPutTotalTodayNow putMessageDistributeTime putTps getMissTps getTransferedTps getTransferredTps
getTotalTps getFoundTps commitLogDirCapacity sendThreadPoolQueueHeadWaitTimeMills
queryThreadPoolQueueHeadWaitTimeMills remainHowManyDataToFlush msgGetTotalTodayNow
queryThreadPoolQueueSize bootTimestamp msgPutTotalYesterdayMorning msgGetTotalYesterdayMorning
pullThreadPoolQueueSize commitLogMinOffset pullThreadPoolQueueHeadWaitTimeMills runtime
dispatchMaxBuffer brokerVersion consumeQueueDiskRatio pageCacheLockTimeMills commitLogDiskRatio
commitLogMaxOffset getMessageEntireTimeMax msgPutTotalTodayMorning putMessageTimesTotal
msgGetTotalTodayMorning brokerVersionDesc sendThreadPoolQueueSize startAcceptSendRequestTimeStamp
putMessageEntireTimeMax earliestMessageTimeStamp remainTransientStoreBufferNumbs
queryThreadPoolQueueCapacity putMessageAverageSize dispatchBehindBytes putMessageSizeTotal
sendThreadPoolQueueCapacity pullThreadPoolQueueCapacity putLatency99 putLatency999
"""
"""What RocketMQ's exporter and clusterList of 4.9 and 5.x read; they fail if one is missing."""


def test_every_figure_that_rocketmqs_tools_read_is_there(run: Run) -> None:
    """
    Under each release's spelling, and in the form that the exporter takes apart.
    """

    async def work(cluster: Cluster) -> None:
        found = await figures(await Peer.to(cluster))

        assert set() == {*EXPORTED.split()} - found.keys()
        words = found["commitLogDirCapacity"].split(" ")
        assert ["Total", ":", "Free", ":"] == [words[at] for at in (0, 1, 4, 5)]
        assert float(words[2]) >= float(words[6].rstrip(".")) > 0
        classes = dict(part.split(":") for part in found["putMessageDistributeTime"].split(" "))
        assert 13 == len(classes)
        assert all(count.isdigit() for count in classes.values())
        float(found["remainHowManyDataToFlush"].split(" ")[0])

    run(work)


def test_held_pulls_do_not_fill_the_queue_of_a_thread_pool(run: Run) -> None:
    """
    RocketMQ's figure counts requests that wait for a thread: held pulls have one of their own.
    """

    async def work(cluster: Cluster) -> None:
        peer = await Peer.to(cluster)
        await cluster.create_topic("orders", queues=1)
        held = asyncio.ensure_future(peer.pull("orders", 0, hold=3_000))
        other = await Peer.to(cluster)
        while "1" != (found := await figures(other))["pullsHeld"]:
            await asyncio.sleep(0.01)

        assert ("0", "100000", "20000", "10000") == tuple(
            found[name]
            for name in (
                "pullThreadPoolQueueSize", "pullThreadPoolQueueCapacity",
                "queryThreadPoolQueueCapacity", "sendThreadPoolQueueCapacity",
            )
        )  # fmt: skip
        await peer.send("orders", b"one")
        assert 1 == len(messages(await held))

    run(work)


def test_durations_of_writes_are_classed() -> None:
    """
    What is shown is the last whole period.
    """
    written = WriteCounts()
    for milliseconds, count in ((0, 90), (4, 5), (60, 4), (20_000, 1)):
        written.took(count, milliseconds / 1000)

    assert "[<=0ms]:0" == written.classes().split(" ")[0]
    written.turn()
    shown = dict(part.split(":") for part in written.classes().split(" "))

    assert ("90", "5", "4", "1") == tuple(
        shown[name] for name in ("[<=0ms]", "[0~10ms]", "[50~100ms]", "[10s~]")
    )
    assert [0.0, 4.0, 75.0, 20_000.0] == [
        written.percentile_ms(share) for share in (0.9, 0.95, 0.99, 0.999)
    ]


@pytest.mark.parametrize(
    "count, text",
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1536, "1.5 KiB"), (5 << 30, "5.0 GiB")],
)
def test_sizes_are_printed_as_rocketmq_does(count: int, text: str) -> None:
    """
    A number of bytes becomes the same text as in RocketMQ's runtime info.
    """
    assert text == readable_bytes(count)


async def progress(peer: Peer) -> dict[str, Any]:
    answer = await peer.call(PROGRESS, consumerGroup="g", topic="orders")
    (row,) = fastjson.loads(answer.body)["offsetTable"].values()
    return dict(row)


def test_what_is_pulled_and_not_finished_shows_as_in_flight(run: Run) -> None:
    """
    pullOffset follows each pull, consumerOffset each commit; a reset takes both.
    """

    async def work(cluster: Cluster) -> None:
        peer = await Peer.to(cluster)
        await cluster.create_topic("orders", queues=1)
        for number in range(5):
            await peer.send("orders", b"%d" % number)
        place = {"consumerGroup": "g", "topic": "orders", "queueId": 0}
        await peer.call(15, **place, commitOffset=0)

        await peer.pull("orders", 0, count=3)
        row = await progress(peer)
        assert (5, 0, 3) == (row["brokerOffset"], row["consumerOffset"], row["pullOffset"])
        await peer.pull("orders", 3)
        await peer.call(15, **place, commitOffset=2)
        row = await progress(peer)
        assert (2, 5) == (row["consumerOffset"], row["pullOffset"])
        await peer.call(222, group="g", topic="orders", timestamp=0, isForce="true")
        row = await progress(peer)
        assert (0, 0) == (row["consumerOffset"], row["pullOffset"])

    run(work)


def test_a_pull_outside_its_queue_leaves_an_event(run: Run) -> None:
    """
    As RocketMQ 4.9 writes it, so that operators see who jumped from where to where.
    """

    async def work(cluster: Cluster) -> None:
        peer = await Peer.to(cluster)
        await cluster.create_topic("orders", queues=1)
        await peer.send("orders", b"one")

        answer = await peer.pull("orders", 700)
        (event,) = messages(await peer.pull(MOVED, 0, hold=3_000))

        assert 21 == answer.code
        assert ("g", "g") == (event.properties["TAGS"], event.properties["KEYS"])
        assert {
            "consumerGroup": "g",
            "messageQueue": {"brokerName": "broker-a", "queueId": 0, "topic": "orders"},
            "offsetNew": int(answer.ext["nextBeginOffset"]),
            "offsetRequest": 700,
        } == json.loads(event.body)

    run(work)


def test_a_topic_is_routable_when_its_creation_is_answered(run: Run) -> None:
    """
    Whoever made a topic may use it at once, on every name server.
    """

    async def work(cluster: Cluster) -> None:
        peer = await Peer.to(cluster)
        servers = [await Peer.to_namesrv(cluster, number) for number in range(2)]
        fields = {"defaultTopic": "TBW102", "perm": 6, "topicFilterType": "SINGLE_TAG"}
        for number in range(50):
            made = await peer.call(
                CREATE, topic=f"t{number}", readQueueNums=1, writeQueueNums=1, **fields
            )
            routes = [await server.call(ROUTE, topic=f"t{number}") for server in servers]
            assert [0, 0, 0] == [made.code, *(route.code for route in routes)]

    run(work, nameservers=2)


def test_a_topic_is_routable_when_its_creation_is_answered_over_slow_lines() -> None:
    """
    The broker answers after the name servers have the topic, however long a message takes.
    """

    async def main() -> None:
        async with Cluster(memory=True, nameservers=2) as cluster:
            peer = await Peer.to(cluster)
            servers = [await Peer.to_namesrv(cluster, number) for number in range(2)]
            assert isinstance(cluster.network, MemoryNetwork)
            cluster.network.set_delay(0.001, 0.3)
            fields = {"defaultTopic": "TBW102", "perm": 6, "topicFilterType": "SINGLE_TAG"}
            for number in range(30):
                made = await peer.call(
                    CREATE, topic=f"t{number}", readQueueNums=1, writeQueueNums=1, **fields
                )
                routes = [await server.call(ROUTE, topic=f"t{number}") for server in servers]
                assert [0, 0, 0] == [made.code, *(route.code for route in routes)]

    simulate(main)


def test_topics_of_our_own_are_listed_as_the_systems(run: Run) -> None:
    """
    Tools hide what a broker calls a system topic.
    """

    async def work(cluster: Cluster) -> None:
        peer = await Peer.to(cluster)
        await cluster.create_topic("orders", queues=1)
        names = fastjson.loads((await peer.call(SYSTEM_TOPICS)).body)["topicList"]

        assert {"RMQ_SYS_STAGE_TOPIC", "RMQ_SYS_PUBLISH_TOPIC", MOVED, "TBW102"} <= {*names}
        assert "orders" not in names
        assert len(names) == len({*names})

    run(work)
