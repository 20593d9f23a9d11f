"""RocketMQ's Prometheus exporter finds in our answers what its metric families need.

The table says for each of its 89 families which request and which field it reads, and how Java
parses it. Three of them the exporter never fills, whatever a broker answers.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from peer import Peer

from gantrymq import Delivery, Message
from gantrymq.protocol import fastjson
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.loop import simulate

CLUSTER, TOPIC, GROUP = "DefaultCluster", "orders", "readers"
RETRY, DEAD = f"%RETRY%{GROUP}", f"%DLQ%{GROUP}"
FAMILIES = 89
FILLED_MIN = 86
UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "PiB": 2**50}
"""What the exporter's Utils.machineReadableByteCount takes; it knows them all."""


@dataclass
class Asked:
    """A running cluster, as the exporter sees it."""

    master: Peer
    slave: Peer
    client_id: str

    async def ask(self, code: int, peer: Peer | None = None, **ext: Any) -> Any:
        answer = await (peer or self.master).call(code, **ext)
        assert 0 == answer.code, f"{code}: {answer.remark}"
        return fastjson.loads(answer.body)

    async def runtime(self, peer: Peer | None = None) -> dict[str, str]:
        table: dict[str, str] = (await self.ask(28, peer))["table"]
        return table


Read = Callable[[Asked], Awaitable[float]]


def java_long(text: str) -> int:
    assert re.fullmatch(r"[+-]?\d+", text), f"Long.parseLong fails on {text!r}"
    return int(text)


def java_double(text: str) -> float:
    assert re.fullmatch(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?", text), f"parseDouble fails on {text!r}"
    return float(text)


# Each of these makes the reader of one family.


def number(key: str) -> Read:
    async def read(asked: Asked) -> float:
        return java_long((await asked.runtime())[key])

    return read


def decimal(key: str) -> Read:
    async def read(asked: Asked) -> float:
        return java_double((await asked.runtime())[key].split(" ")[0])

    return read


def rate(key: str, part: int) -> Read:
    async def read(asked: Asked) -> float:
        return java_double((await asked.runtime())[key].split(" ")[part])

    return read


def duration(name: str) -> Read:
    async def read(asked: Asked) -> float:
        pairs = [
            part.split(":")
            for part in (await asked.runtime())["putMessageDistributeTime"].split(" ")
        ]
        found = {key.replace("[", "").replace("]", ""): int(value) for key, value in pairs}
        return found[name]

    return read


def capacity(at: int) -> Read:
    async def read(asked: Asked) -> float:
        words = (await asked.runtime())["commitLogDirCapacity"].split(" ")
        return java_double(words[at]) * UNITS[words[at + 1][:-1]]

    return read


def window(name: str, key: str, member: str = "tps") -> Read:
    async def read(asked: Asked) -> float:
        found = await asked.ask(315, statsName=name, statsKey=key)
        return float(found["statsMinute"][member])

    return read


def client(member: str) -> Read:
    async def read(asked: Asked) -> float:
        found = await asked.ask(
            307, consumerGroup=GROUP, clientId=asked.client_id, jstackEnable="false"
        )
        return float(found["statusTable"][TOPIC][member])

    return read


def stored(topic: str) -> Read:
    async def read(asked: Asked) -> float:
        rows = (await asked.ask(202, topic=topic))["offsetTable"].values()
        assert all(row["lastUpdateTimestamp"] >= 0 for row in rows)
        return float(sum(row["maxOffset"] for row in rows))

    return read


def lag(topic: str) -> Read:
    async def read(asked: Asked) -> float:
        rows = (await asked.ask(208, consumerGroup=GROUP, topic=topic))["offsetTable"].values()
        return float(sum(row["brokerOffset"] - row["consumerOffset"] for row in rows))

    return read


async def consumed(asked: Asked) -> float:
    rows = (await asked.ask(208, consumerGroup=GROUP, topic=TOPIC))["offsetTable"].values()
    return float(sum(row["consumerOffset"] for row in rows))


async def members(asked: Asked) -> float:
    found = (await asked.ask(203, consumerGroup=GROUP))["connectionSet"]
    assert all(row["clientAddr"] and row["clientId"] for row in found)
    return float(len(found))


async def producers(asked: Asked) -> float:
    return float(sum(len(group) for group in (await asked.ask(328))["data"].values()))


async def distance(asked: Asked) -> float:
    ends = [
        java_long((await asked.runtime(peer))["commitLogMaxOffset"])
        for peer in (asked.master, asked.slave)
    ]
    return float(ends[0] - ends[1])


async def waiting(asked: Asked) -> float:
    """The store time of the group's next message, which the exporter pulls."""
    rows = (await asked.ask(208, consumerGroup=GROUP, topic=TOPIC))["offsetTable"]
    for queue, row in rows.items():
        answer = await asked.master.pull(
            TOPIC, row["consumerOffset"], queue["queueId"], count=1, group="CID_RMQ_SYS_exporter"
        )
        assert answer.code in (0, 19)
    return float(len(rows))


RUNTIME: dict[str, Read] = {
    "pmdt_0ms": duration("<=0ms"),
    "pmdt_0to10ms": duration("0~10ms"),
    "pmdt_10to50ms": duration("10~50ms"),
    "pmdt_50to100ms": duration("50~100ms"),
    "pmdt_100to200ms": duration("100~200ms"),
    "pmdt_200to500ms": duration("200~500ms"),
    "pmdt_500to1s": duration("500ms~1s"),
    "pmdt_1to2s": duration("1~2s"),
    "pmdt_2to3s": duration("2~3s"),
    "pmdt_3to4s": duration("3~4s"),
    "pmdt_4to5s": duration("4~5s"),
    "pmdt_5to10s": duration("5~10s"),
    "pmdt_10stomore": duration("10s~"),
    "msg_put_total_today_now": number("msgPutTotalTodayNow"),
    "msg_gettotal_today_now": number("msgGetTotalTodayNow"),
    "dispatch_behind_bytes": number("dispatchBehindBytes"),
    "put_message_size_total": number("putMessageSizeTotal"),
    "put_message_average_size": decimal("putMessageAverageSize"),
    "query_threadpool_queue_capacity": number("queryThreadPoolQueueCapacity"),
    "remain_transientstore_buffer_numbs": number("remainTransientStoreBufferNumbs"),
    "earliest_message_timestamp": number("earliestMessageTimeStamp"),
    "putmessage_entire_time_max": number("putMessageEntireTimeMax"),
    "start_accept_sendrequest_time": number("startAcceptSendRequestTimeStamp"),
    "send_threadpool_queue_size": number("sendThreadPoolQueueSize"),
    "putmessage_times_total": number("putMessageTimesTotal"),
    "getmessage_entire_time_max": number("getMessageEntireTimeMax"),
    "pagecache_lock_time_mills": number("pageCacheLockTimeMills"),
    "commitlog_disk_ratio": decimal("commitLogDiskRatio"),
    "consumequeue_disk_ratio": decimal("consumeQueueDiskRatio"),
    **{
        f"{family}_tps{seconds}": rate(key, part)
        for family, key in (
            ("getfound", "getFoundTps"),
            ("gettotal", "getTotalTps"),
            ("gettransfered", "getTransferredTps"),
            ("getmiss", "getMissTps"),
            ("put", "putTps"),
        )
        for part, seconds in enumerate((10, 60, 600))
    },
    "dispatch_maxbuffer": number("dispatchMaxBuffer"),
    "pull_threadpoolqueue_capacity": number("pullThreadPoolQueueCapacity"),
    "send_threadpoolqueue_capacity": number("sendThreadPoolQueueCapacity"),
    "pull_threadpoolqueue_size": number("pullThreadPoolQueueSize"),
    "query_threadpoolqueue_size": number("queryThreadPoolQueueSize"),
    "pull_threadpoolqueue_headwait_timemills": number("pullThreadPoolQueueHeadWaitTimeMills"),
    "query_threadpoolqueue_headwait_timemills": number("queryThreadPoolQueueHeadWaitTimeMills"),
    "send_threadpoolqueue_headwait_timemills": number("sendThreadPoolQueueHeadWaitTimeMills"),
    "msg_gettotal_yesterdaymorning": number("msgGetTotalYesterdayMorning"),
    "msg_puttotal_yesterdaymorning": number("msgPutTotalYesterdayMorning"),
    "msg_gettotal_todaymorning": number("msgGetTotalTodayMorning"),
    "msg_puttotal_todaymorning": number("msgPutTotalTodayMorning"),
    "commitlogdir_capacity_free": capacity(6),
    "commitlogdir_capacity_total": capacity(2),
    "commitlog_maxoffset": number("commitLogMaxOffset"),
    "commitlog_minoffset": number("commitLogMinOffset"),
    "remain_howmanydata_toflush": decimal("remainHowManyDataToFlush"),
    "put_latency_99": decimal("putLatency99"),
    "put_latency_999": decimal("putLatency999"),
}
"""rocketmq_brokeruntime_*: all from GET_BROKER_RUNTIME_INFO."""

OTHERS: dict[str, Read] = {
    "group_diff": lag(TOPIC),
    "group_retrydiff": lag(RETRY),
    "group_count": members,
    "producer_count": producers,
    "producer_offset": stored(TOPIC),
    "topic_retry_offset": stored(RETRY),
    "topic_dlq_offset": stored(DEAD),
    "client_consume_fail_msg_count": client("consumeFailedMsgs"),
    "client_consume_fail_msg_tps": client("consumeFailedTPS"),
    "client_consume_ok_msg_tps": client("consumeOKTPS"),
    "client_consume_rt": client("consumeRT"),
    "client_consumer_pull_rt": client("pullRT"),
    "client_consumer_pull_tps": client("pullTPS"),
    "broker_tps": window("BROKER_PUT_NUMS", CLUSTER),
    "broker_qps": window("BROKER_GET_NUMS", CLUSTER),
    "broker_commitlog_diff": distance,
    "consumer_tps": window("GROUP_GET_NUMS", f"{TOPIC}@{GROUP}"),
    "consumer_offset": consumed,
    "consumer_message_size": window("GROUP_GET_SIZE", f"{TOPIC}@{GROUP}"),
    "send_back_nums": window("SNDBCK_PUT_NUMS", f"{TOPIC}@{GROUP}", "sum"),
    "group_get_latency_by_storetime": waiting,
    "producer_tps": window("TOPIC_PUT_NUMS", TOPIC),
    "producer_message_size": window("TOPIC_PUT_SIZE", TOPIC),
}

NEVER_FILLED = {
    "group_dlqdiff": "the exporter passes over topics of dead letters",
    "group_consume_tps": "the line that would fill it is a comment",
    "group_consume_total_offset": "nobody calls what would fill it",
}

READERS = {f"brokeruntime_{name}": read for name, read in RUNTIME.items()} | OTHERS
SOME = {"group_count": 1, "producer_count": 2, "producer_offset": 13, "topic_dlq_offset": 1,
        "topic_retry_offset": 1, "consumer_offset": 12, "group_diff": 1, "send_back_nums": 2,
        "broker_commitlog_diff": 0}  # fmt: skip
"""What some of them have to be in the story below."""


async def trade(cluster: Cluster, peer: Peer) -> None:
    """Twelve messages are consumed, one waits; one is sent back, one is dead."""
    for number_of in range(12):
        await peer.send(TOPIC, b"book %d" % number_of)
    for delay_level in (1, -1):
        answer = await peer.call(
            36, offset=0, group=GROUP, delayLevel=delay_level, originTopic=TOPIC
        )
        assert 0 == answer.code, answer.remark


def test_every_family_of_the_exporter_has_what_it_needs() -> None:
    """
    Each field is there and parses as Java parses it; figures that the story fixes are right.
    """

    async def main() -> None:
        async with Cluster(memory=True, slaves=1) as cluster:
            await cluster.create_topic(TOPIC, queues=1)
            peer = await Peer.to(cluster)
            async with (
                cluster.producer() as producer,
                cluster.consumer(GROUP, start="first") as consumer,
            ):
                await trade(cluster, peer)

                @consumer.handler
                async def take(delivery: Delivery) -> None:
                    if b"wait" in delivery.body:
                        await asyncio.sleep(3600)

                consumer.subscribe(TOPIC)
                await producer.send(Message(TOPIC, b"wait"))
                await asyncio.sleep(40)
                asked = Asked(
                    await Peer.to(cluster),
                    await Peer.at(cluster, "broker-a-s1"),
                    consumer.instance.client_id,
                )
                await asked.master.pull(TOPIC, 0, group="CID_RMQ_SYS_exporter")
                found = {name: await read(asked) for name, read in READERS.items()}
        assert SOME == {name: found[name] for name in SOME}
        assert found["brokeruntime_commitlogdir_capacity_total"] > 0

    simulate(main)


def test_the_table_has_every_family_of_the_exporter() -> None:
    """
    Its newest sources have 89 families; it fills 86 of them, from RocketMQ's brokers as well.
    """
    assert FAMILIES == len(READERS) + len(NEVER_FILLED)
    assert FILLED_MIN == len(READERS)
    assert not READERS.keys() & NEVER_FILLED.keys()
