"""Progress of groups as tools ask for it, its corrections and copies, and entries of queues."""

import asyncio
from typing import Any

from peer import Peer, Run, bodies

from gantrymq.model import Queue
from gantrymq.protocol import fastjson
from gantrymq.protocol.bodies import ConsumeStatsList, OffsetWrapper
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.loop import simulate

ALL_STATS, SPANS, CORRECTIONS, CLONE, ENTRIES = 317, 303, 308, 314, 321
TOPICS_OF, SUBSCRIPTION, FORBIDDEN, GROUPS, COMMIT, PROGRESS = 343, 345, 353, 201, 15, 14
VIEW, CREATE, DELETE_GROUP = 315, 17, 207
LONG_MAX = 2**63 - 1


async def commit(peer: Peer, group: str, topic: str, offset: int, queue: int = 0) -> None:
    place = {"consumerGroup": group, "topic": topic, "queueId": queue}
    await peer.call(11, **place, queueOffset=0, maxMsgNums=0, sysFlag=4, commitOffset=0,
                    suspendTimeoutMillis=0, subscription="*", subVersion=0)  # fmt: skip
    answer = await peer.call(COMMIT, **place, commitOffset=offset)
    assert 0 == answer.code, answer.remark


async def progress(peer: Peer, group: str, topic: str, queue: int = 0) -> int:
    place = {"consumerGroup": group, "topic": topic, "queueId": queue}
    answer = await peer.call(PROGRESS, **place, setZeroIfNotFound="false")
    return int(answer.ext["offset"]) if answer.code == 0 else -1


async def loaded(peer: Peer, code: int, **ext: Any) -> Any:
    answer = await peer.call(code, **ext)
    assert 0 == answer.code, answer.remark
    return fastjson.loads(answer.body)


async def with_orders(cluster: Cluster, count: int = 5) -> Peer:
    await cluster.create_topic("orders", queues=2)
    peer = await Peer.to(cluster)
    for number in range(count):
        await peer.send("orders", b"book %d" % number)
    return peer


def test_one_request_tells_the_progress_of_every_group(run: Run) -> None:
    """
    Each group with one table a topic; totals count what waits, and what is under way.
    """

    async def work(cluster: Cluster) -> None:
        peer = await with_orders(cluster)
        await cluster.create_topic("bills", queues=1)
        await peer.send("bills", b"a bill")
        await peer.pull("orders", 0, count=4, group="readers")
        await commit(peer, "readers", "orders", 3)
        await commit(peer, "readers", "bills", 0)
        await commit(peer, "others", "orders", 5)

        answer = await peer.call(ALL_STATS, isOrder="false")

        found = fastjson.load_as(answer.body, ConsumeStatsList)
        tables = {
            group: tables for row in found.consume_stats_list for group, tables in row.items()
        }
        offsets = {
            group: {
                queue: (row.broker_offset, row.consumer_offset)
                for table in tables[group]
                for queue, row in table.offset_table.items()
                if row.broker_offset
            }
            for group in ("readers", "others")
        }
        first, bills = Queue("orders", "broker-a", 0), Queue("bills", "broker-a", 0)
        assert {first: (5, 3), bills: (1, 0)} == offsets["readers"]
        assert {first: (5, 5)} == offsets["others"]
        assert cluster.broker().address == found.broker_addr
        assert (3, 1) == (found.total_diff, found.total_inflight_diff)
        rows = [row for table in tables["readers"] for row in table.offset_table.values()]
        assert all(isinstance(row, OffsetWrapper) for row in rows)

    run(work)


def test_ordered_topics_are_told_alone(run: Run) -> None:
    """
    With isOrder only topics count that are ordered; groups without any are listed empty.
    """

    async def work(cluster: Cluster) -> None:
        peer = await with_orders(cluster)
        ordered = {"topic": "rows", "readQueueNums": 1, "writeQueueNums": 1, "order": "true"}
        await peer.call(
            CREATE, **ordered, defaultTopic="TBW102", perm=6, topicFilterType="SINGLE_TAG"
        )
        await peer.send("rows", b"a row")
        await commit(peer, "readers", "orders", 1)
        await commit(peer, "readers", "rows", 0)

        found = await loaded(peer, ALL_STATS, isOrder="true")

        rows = {group: tables for row in found["consumeStatsList"] for group, tables in row.items()}
        assert 1 == len(rows["readers"])
        assert 1 == found["totalDiff"]
        assert [] == rows["TOOLS_CONSUMER"]

    run(work)


def test_time_spans_tell_how_late_a_group_is() -> None:
    """
    Store times of the first, the last and the last finished message, and how long the next waits.
    """

    async def main() -> None:
        async with Cluster(memory=True) as cluster:
            await cluster.create_topic("orders", queues=2)
            peer = await Peer.to(cluster)
            stored = []
            for _ in range(3):
                stored.append(cluster.clock.now_ms())
                await peer.send("orders", b"book")
                await asyncio.sleep(10)
            await commit(peer, "readers", "orders", 1)
            now = cluster.clock.now_ms()
            spans = (await loaded(peer, SPANS, topic="orders", group="readers"))[
                "consumeTimeSpanSet"
            ]

            first, empty = spans
            near = [first[name] - wanted for name, wanted in (
                ("minTimeStamp", stored[0]), ("maxTimeStamp", stored[2]),
                ("consumeTimeStamp", stored[0]), ("delayTime", now - stored[1]),
            )]  # fmt: skip
            assert all(abs(difference) < 1000 for difference in near), near
            assert (-1, -1, 0) == (empty["minTimeStamp"], empty["maxTimeStamp"], empty["delayTime"])
            await commit(peer, "readers", "orders", 3)
            spans = (await loaded(peer, SPANS, topic="orders", group="readers"))[
                "consumeTimeSpanSet"
            ]
            assert 0 == spans[0]["delayTime"]

    simulate(main)


def test_corrections_are_the_smallest_progress_and_change_nothing(run: Run) -> None:
    """
    Groups that are left out do not count and keep their progress, which RocketMQ deletes.
    """

    async def work(cluster: Cluster) -> None:
        peer = await with_orders(cluster)
        for group, offset in (("slow", 1), ("fast", 4), ("middle", 2)):
            await commit(peer, group, "orders", offset)

        async def corrections(**asked: str) -> dict[str, int]:
            found: dict[str, int] = (await loaded(peer, CORRECTIONS, topic="orders", **asked))[
                "correctionOffsets"
            ]
            return found

        assert {"0": 1} == await corrections(compareGroup="fast")
        assert {"0": 2} == await corrections(compareGroup="fast", filterGroups="slow")
        assert {"0": LONG_MAX} == await corrections(compareGroup="slow", filterGroups="slow")
        assert 1 == await progress(peer, "slow", "orders")

    run(work)


def test_a_group_gets_the_progress_of_another(run: Run) -> None:
    """
    In one topic or in all of them; topics that an online source does not read only if asked to.
    """

    async def work(cluster: Cluster) -> None:
        peer = await with_orders(cluster)
        await cluster.create_topic("bills", queues=1)
        await commit(peer, "source", "orders", 3)
        await commit(peer, "source", "bills", 0)
        await commit(peer, "one", "bills", 0)
        for group in ("one", "all"):
            await commit(peer, group, "bills", 0)

        await peer.call(CLONE, srcGroup="source", destGroup="one", topic="orders", offline="true")
        assert 3 == await progress(peer, "one", "orders")
        await peer.heartbeat("c", "source", "bills")
        await peer.call(CLONE, srcGroup="source", destGroup="all", offline="false")
        assert -1 == await progress(peer, "all", "orders")
        await peer.call(CLONE, srcGroup="source", destGroup="all", offline="true")
        assert 3 == await progress(peer, "all", "orders")
        assert [b"book 3", b"book 4"] == bodies(await peer.pull("orders", 3, group="all"))
        await cluster.stop_broker()
        await cluster.start_broker()
        assert 3 == await progress(await Peer.to(cluster), "all", "orders")

    run(work)


def test_a_groups_topics_and_subscription_are_told(run: Run) -> None:
    """
    Topics with progress of the group; the subscription only while a member is online.
    """

    async def work(cluster: Cluster) -> None:
        peer = await with_orders(cluster)
        await commit(peer, "readers", "orders", 1)
        assert ["orders"] == (await loaded(peer, TOPICS_OF, group="readers"))["topicList"]
        assert [] == (await loaded(peer, TOPICS_OF, group="nobody"))["topicList"]
        found = await loaded(peer, SUBSCRIPTION, group="readers", topic="orders")
        assert "subscriptionData" not in found
        await peer.heartbeat("c", "readers", "orders")
        found = await loaded(peer, SUBSCRIPTION, group="readers", topic="orders")
        assert "*" == found["subscriptionData"]["subString"]

    run(work)


def test_a_forbidden_topic_is_refused_until_it_is_allowed(run: Run) -> None:
    """
    For the group alone, also after a restart; the table of groups tells it.
    """

    async def work(cluster: Cluster) -> None:
        peer = await with_orders(cluster)
        await peer.pull("orders", 0, group="readers")
        place = {"group": "readers", "topic": "orders"}
        assert (await loaded(peer, FORBIDDEN, **place))["readable"]
        assert not (await loaded(peer, FORBIDDEN, **place, readable="false"))["readable"]

        refused = await peer.pull("orders", 0, group="readers")
        assert (16, True) == (refused.code, "forbidden for topic[orders]" in (refused.remark or ""))
        assert 5 == len(bodies(await peer.pull("orders", 0, group="others")))
        assert {"readers": {"orders": 4}} == (await loaded(peer, GROUPS))["forbiddenTable"]
        await cluster.stop_broker()
        await cluster.start_broker()
        peer = await Peer.to(cluster)
        assert 16 == (await peer.pull("orders", 0, group="readers")).code
        assert (await loaded(peer, FORBIDDEN, **place, readable="true"))["readable"]
        assert 5 == len(bodies(await peer.pull("orders", 0, group="readers")))
        assert {} == (await loaded(peer, GROUPS))["forbiddenTable"]
        await peer.call(FORBIDDEN, **place, readable="false")
        await peer.call(DELETE_GROUP, groupName="readers")
        assert {} == (await loaded(peer, GROUPS))["forbiddenTable"]

    run(work)


def test_a_forbidden_topic_cannot_be_popped(run: Run) -> None:
    """
    POP asks the same question as a pull.
    """

    async def work(cluster: Cluster) -> None:
        peer = await with_orders(cluster)
        await peer.pull("orders", 0, group="readers")
        await peer.call(FORBIDDEN, group="readers", topic="orders", readable="false")
        popped = await peer.call(
            200050, consumerGroup="readers", topic="orders", queueId=-1, maxMsgNums=1,
            invisibleTime=60_000, pollTime=0, bornTime=cluster.clock.now_ms(), initMode=0,
        )  # fmt: skip
        assert (16, True) == (popped.code, "forbidden" in (popped.remark or ""))

    run(work)


def test_what_a_group_may_not_read_is_copied_to_slaves() -> None:
    """
    A slave refuses the group as its master does.
    """

    async def main() -> None:
        async with Cluster(memory=True, slaves=1) as cluster:
            peer = await with_orders(cluster)
            await peer.pull("orders", 0, group="readers")
            await peer.call(FORBIDDEN, group="readers", topic="orders", readable="false")
            await asyncio.sleep(5)
            slave = await Peer.at(cluster, "broker-a-s1")
            assert 16 == (await slave.pull("orders", 0, group="readers")).code

    simulate(main)


def test_entries_tell_whether_the_groups_filter_takes_them(run: Run) -> None:
    """
    By tags and by SQL; without a group nobody's filter is asked.
    """

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("orders", queues=1)
        peer = await Peer.to(cluster)
        for tag, price in (("new", 5), ("old", 50), ("new", 50)):
            await peer.send("orders", b"book", props=f"TAGS\x01{tag}\x02price\x01{price}\x02")
        place = {"topic": "orders", "queueId": 0, "index": 0, "count": 10}

        async def takes(group: str) -> list[bool]:
            found = await loaded(peer, ENTRIES, **place, consumerGroup=group)
            return [row["eval"] for row in found["queueData"]]

        async with cluster.consumer("tagged") as tagged, cluster.consumer("asking") as asking:
            tagged.subscribe("orders", "new")
            asking.subscribe("orders", sql="price > 10")
            while not all([(await loaded(peer, ENTRIES, **place, consumerGroup=name)).get(
                "subscriptionData") for name in ("tagged", "asking")]):  # fmt: skip
                await asyncio.sleep(0.1)
            assert [True, False, True] == await takes("tagged")
            assert [False, True, True] == await takes("asking")
            await peer.send("orders", b"book", props="TAGS\x01new\x02price\x0160\x02")
            assert [False, True, True, True] == await takes("asking")
        plain = await loaded(peer, ENTRIES, **place)
        assert (0, 4) == (plain["minQueueIndex"], plain["maxQueueIndex"])
        codes = [row["tagsCode"] for row in plain["queueData"]]
        assert codes[0] == codes[2] == codes[3] != codes[1]
        last = await loaded(peer, ENTRIES, **{**place, "index": 3})
        assert [plain["queueData"][3]["physicOffset"]] == [
            row["physicOffset"] for row in last["queueData"]
        ]

    run(work)


def test_how_far_a_group_is_behind_is_told_in_bytes_and_time() -> None:
    """
    From its next message to the end of the log, and to now; 0 for one that has all.
    """

    async def main() -> None:
        async with Cluster(memory=True) as cluster:
            peer = await with_orders(cluster)
            await commit(peer, "readers", "orders", 1)
            await commit(peer, "others", "orders", 5)
            await peer.pull("orders", 0, count=2, group="readers")
            await asyncio.sleep(20)

            async def behind(name: str, group: str) -> int:
                key = f"0@orders@{group}"
                found = await loaded(peer, VIEW, statsName=name, statsKey=key)
                return int(found["statsMinute"]["sum"])

            entries = await loaded(peer, ENTRIES, topic="orders", queueId=0, index=2, count=1)
            end = cluster.broker().store.log_max
            first = entries["queueData"][0]["physicOffset"]
            assert end - first == await behind("GROUP_GET_FALL_SIZE", "readers") > 0
            assert 19_000 < await behind("GROUP_GET_FALL_TIME", "readers") < 25_000
            assert 0 == await behind("GROUP_GET_FALL_SIZE", "others")
            unknown = await peer.call(VIEW, statsName="GROUP_GET_FALL_TIME", statsKey="0@orders@no")
            assert 1 == unknown.code

    simulate(main)
