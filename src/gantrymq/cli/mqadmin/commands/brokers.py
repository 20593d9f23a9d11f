"""Commands about one broker or all of a cluster: figures, settings, clean-up."""

import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import msgspec

from gantrymq.cli.mqadmin.command import AdminOption, Invocation, command
from gantrymq.cli.mqadmin.output import Column
from gantrymq.cli.mqadmin.targets import BROKER, CLUSTER, ONE_OF, masters, members
from gantrymq.cli.mqadmin.values import address, number, shown_second, truth, whole
from gantrymq.client.admin.at_each import at_each
from gantrymq.client.core.errors import ClientError
from gantrymq.model import Queue
from gantrymq.protocol.bodies import GroupConsumeStats, OffsetWrapper
from gantrymq.protocol.headers.progress import ConsumeQueueRequest

ANY_CLUSTER = AdminOption("c", "cluster", "Name of the cluster; all clusters without it.")
FIGURES = (
    Column("address", "", 24),
    Column("key", "", 32),
    Column("value", "", show=lambda value: f": {value}"),
)


@command("brokerStatus", "Fetch broker runtime status data.", BROKER, CLUSTER, one_of=ONE_OF)
async def broker_status(call: Invocation) -> None:
    """One broker without its address in each line, as RocketMQ prints it."""
    row = call.out.table(FIGURES[1:] if call["brokerAddr"] else FIGURES)
    for place in await members(call):
        for key, value in sorted((await call.admin.broker_runtime(place)).items()):
            row(*([] if call["brokerAddr"] else [place]), key, value)


SETTINGS = (
    Column("key", "", 50),
    Column("value", "", show=lambda value: f"=  {value}"),
    Column("address", "", show=lambda place: ""),
)


@command(
    "getBrokerConfig",
    "Get broker config by cluster or special broker.",
    BROKER,
    CLUSTER,
    one_of=ONE_OF,
)
async def get_broker_config(call: Invocation) -> None:
    for place, title in await _titles(call):
        call.out.text(f"============{title}============")
        row = call.out.table(SETTINGS)
        for key, value in sorted((await call.admin.broker_config(place)).items()):
            row(key, value, place)
        call.out.text()


@command(
    "updateBrokerConfig",
    "Update broker's config.",
    BROKER,
    CLUSTER,
    AdminOption("a", "updateAllBroker", "true: slaves, too.", read=truth, default=False),
    AdminOption("k", "key", "The setting.", required=True),
    AdminOption("v", "value", "Its value.", required=True),
    one_of=ONE_OF,
)
async def update_broker_config(call: Invocation) -> None:
    changes = {call["key"]: call["value"]}

    async def update(place: str) -> None:
        remark = await call.admin.update_broker_config(place, changes)
        call.out.done(f"update broker config success, {place}")
        if remark:
            call.out.done(f"{place}: {remark}")

    places = await (members if call["updateAllBroker"] else masters)(call)
    await at_each(f"set {call['key']}", places, update)


async def _titles(call: Invocation) -> list[tuple[str, str]]:
    """Each address with its heading: of a cluster it says who is whose slave, as in RocketMQ."""
    if call["brokerAddr"]:
        return [(call["brokerAddr"], call["brokerAddr"])]
    found = []
    for by_id in (await call.admin.members(cluster=call["clusterName"])).values():
        master = by_id.get(0, "NO_MASTER")
        for at, place in sorted(by_id.items()):
            title = f"My Master: {master}=====Slave: {place}" if at else f"Master: {place}"
            found.append((place, title))
    return found


CONSUMED = (
    Column("topic", "#Topic", 64),
    Column("group", "#Group", 64),
    Column("brokerName", "#Broker Name", 32),
    Column("queueId", "#QID", 4),
    Column("brokerOffset", "#Broker Offset", 20),
    Column("consumerOffset", "#Consumer Offset", 20),
    Column("diff", "#Diff", 20),
    Column("lastTime", "#LastTime", show=shown_second),
)


@command(
    "brokerConsumeStats",
    "Fetch broker consume stats data.",
    AdminOption("b", "brokerAddr", "Address of the broker, ip:port.", required=True, read=address),
    AdminOption(
        "t", "timeoutMillis", "How long to wait; 50000 by default.", read=whole, default=50_000
    ),
    AdminOption("l", "level", "Only queues with at least this diff.", read=whole, default=0),
    AdminOption("o", "order", "true: order topics only.", read=truth, default=False),
)
async def broker_consume_stats(call: Invocation) -> None:
    found = await call.admin.broker_consume_stats(
        call["brokerAddr"], order=call["order"], timeout=call["timeoutMillis"] / 1000
    )
    row = call.out.table(CONSUMED)
    groups = [pair for by_group in found.consume_stats_list for pair in by_group.items()]
    for group, parts in groups:
        for queue, at in _in_order(parts):
            diff = at.broker_offset - at.consumer_offset
            if diff >= call["level"]:
                row(queue.topic, group, queue.broker_name, queue.queue_id,
                    at.broker_offset, at.consumer_offset, diff, at.last_timestamp)  # fmt: skip
    call.out.text()
    call.out.field("diffTotal", found.total_diff, f"Diff Total: {found.total_diff}")


def _in_order(parts: list[GroupConsumeStats]) -> list[tuple[Queue, OffsetWrapper]]:
    rows = [pair for part in parts for pair in part.offset_table.items()]
    return sorted(rows, key=lambda pair: pair[0])


@command("producer", "Query producer's instances, connection, status, etc.",
    AdminOption("b", "broker", "Address of the broker, ip:port.", required=True, read=address),
)  # fmt: skip
async def producer(call: Invocation) -> None:
    table = (await call.admin.broker_producers(call["broker"])).data
    row = call.out.table([Column("group", ""), Column("member", "")])
    for group, members_of_group in sorted(table.items()):
        if not members_of_group:
            call.out.text(f"producer group ({group}) instances are empty")
        for member in members_of_group:
            row(f"producer group ({group}) instance :", json.dumps(msgspec.to_builtins(member)))


@command("cleanExpiredCQ", "Clean expired ConsumeQueue on broker.", BROKER, ANY_CLUSTER)
async def clean_expired_cq(call: Invocation) -> None:
    await _clean(call, "clean expired consume queues", call.admin.clean_expired_queues)


@command("cleanUnusedTopic", "Clean unused topic on broker.", BROKER, ANY_CLUSTER)
async def clean_unused_topic(call: Invocation) -> None:
    await _clean(call, "clean unused topics", call.admin.clean_unused_topics)


@command("deleteExpiredCommitLog", "Delete expired CommitLog files.", BROKER, ANY_CLUSTER)
async def delete_expired_commit_log(call: Invocation) -> None:
    await _clean(call, "delete expired commit log files", call.admin.delete_expired_log)


async def _clean(call: Invocation, what: str, work: Callable[[str], Awaitable[None]]) -> None:
    await at_each(what, await members(call, "cluster"), work)
    call.out.done("success")


@command(
    "queryCq",
    "Query cq command.",
    AdminOption("t", "topic", "Name of the topic.", required=True),
    AdminOption("q", "queue", "Number of the queue.", required=True, read=whole),
    AdminOption(
        "i", "index", "First offset; below 0 the newest entries.", required=True, read=number
    ),
    AdminOption("c", "count", "How many; 10 by default.", read=whole, default=10),
    AdminOption(
        "b", "broker", "Address of the broker; without it the topic's first.", read=address
    ),
    AdminOption("g", "consumer", "Apply the filter of this group to each entry."),
)
async def query_cq(call: Invocation) -> None:
    place = call["broker"]
    if place is None:
        route = await call.admin.topic_route(call["topic"])
        found = [data.master for data in route.broker_datas if data.master]
        if not found:
            raise ClientError(f"topic {call['topic']!r} has no master now; give one with -b")
        place = found[0]
    wanted = ConsumeQueueRequest(
        topic=call["topic"], queue_id=call["queue"], index=call["index"], count=call["count"],
        consumer_group=call["consumer"],
    )  # fmt: skip
    body = await call.admin.queue_entries(place, wanted)
    if body.subscription_data is not msgspec.UNSET:
        about = msgspec.to_builtins(body.subscription_data)
        call.out.field(
            "subscriptionData", about, f"Subscription data:\n{json.dumps(about, indent=2)}"
        )
    if body.filter_data is not msgspec.UNSET:
        call.out.field("filterData", body.filter_data, f"Filter data:\n{body.filter_data}")
    call.out.field("max", body.max_queue_index, "Queue data:")
    call.out.field(
        "min", body.min_queue_index, f"max: {body.max_queue_index}, min: {body.min_queue_index}"
    )
    first = call["index"] if call["index"] >= 0 else max(0, body.max_queue_index - call["count"])
    for at, entry in enumerate(body.queue_data, first):
        value = {"index": at, **msgspec.to_builtins(entry)}
        call.out.item(value, partial(_entry_lines, value))
    call.out.text(LINE)


LINE = "======================================"
ENTRY = ("physicOffset", "physicSize", "tagsCode", "extendDataJson", "bitMap", "eval", "msg")
"""The fields of an entry, in the order in which RocketMQ prints them."""


def _entry_lines(entry: dict[str, Any]) -> list[str]:
    def shown(name: str) -> str:
        value = entry.get(name)
        if name in ("extendDataJson", "bitMap", "msg"):
            return f"'{'null' if value is None else value}'"
        return str(value or False).lower() if name == "eval" else str(value)

    inner = ", ".join(f"{name}={shown(name)}" for name in ENTRY)
    return [LINE, f"idx: {entry['index']}", f"ConsumeQueueData{{{inner}}}"]


COMMANDS = (
    broker_status,
    get_broker_config,
    update_broker_config,
    broker_consume_stats,
    producer,
    clean_expired_cq,
    clean_unused_topic,
    delete_expired_commit_log,
    query_cq,
)
