"""Commands about the progress of groups, and rates of topics and groups."""

from contextlib import suppress
from typing import Any, NamedTuple

from gantrymq.base.errors import GantryError
from gantrymq.cli.mqadmin.command import AdminOption, Invocation, command
from gantrymq.cli.mqadmin.output import Column
from gantrymq.cli.mqadmin.values import shown_second, truth
from gantrymq.client.admin.admin import Admin
from gantrymq.client.admin.groups.all_progress import all_progress
from gantrymq.client.admin.groups.members import together
from gantrymq.client.core.errors import ClientError
from gantrymq.model import DEAD_PREFIX, RETRY_PREFIX, Queue
from gantrymq.protocol.bodies import BrokerStatsData, ConsumerConnections
from gantrymq.protocol.versions import version_name

PROGRESS = (
    Column("topic", "#Topic", 64),
    Column("brokerName", "#Broker Name", 32),
    Column("queueId", "#QID", 4),
    Column("brokerOffset", "#Broker Offset", 20),
    Column("consumerOffset", "#Consumer Offset", 20),
)
HOLDER = Column("clientIp", "#Client IP", 20, show=lambda client: client or "N/A")
REST = (
    Column("diff", "#Diff", 20),
    Column("inflight", "#Inflight", 20),
    Column("lastTime", "#LastTime", show=shown_second),
)


@command(
    "consumerProgress",
    "Query consumer's progress, speed.",
    AdminOption("g", "groupName", "Name of the group; all groups without it."),
    AdminOption("t", "topicName", "Only this topic."),
    AdminOption(
        "s", "showClientIP", "true: which member holds each queue.", read=truth, default=False
    ),
    AdminOption("c", "cluster", "Only brokers of this cluster."),
)
async def consumer_progress(call: Invocation) -> None:
    if call["groupName"] is None:
        await _all_groups(call)
        return
    group, holders = call["groupName"], dict[Queue, str]()
    found = await call.admin.consume_stats(group, call["topicName"])
    if not found.queues:
        raise ClientError(
            f"Not found the consumer group consume stats, because return offset table is empty, "
            f"maybe the consumer not consume any message (group {group!r})"
        )
    rows = found.queues
    if call["cluster"]:
        brokers = await call.admin.members(cluster=call["cluster"])
        rows = {queue: row for queue, row in rows.items() if queue.broker_name in brokers}
    if call["showClientIP"]:
        holders = await _holders(call.admin, group, sorted({queue.topic for queue in rows}))
    add = call.out.table([*PROGRESS, *([HOLDER] if call["showClientIP"] else []), *REST])
    for queue, at in rows.items():
        holder = [holders.get(queue)] if call["showClientIP"] else []
        add(queue.topic, queue.broker_name, queue.queue_id, at.broker_offset, at.consumer_offset,
            *holder, at.broker_offset - at.consumer_offset,
            at.pull_offset - at.consumer_offset, at.last_timestamp)  # fmt: skip
    diff = sum(at.broker_offset - at.consumer_offset for at in rows.values())
    inflight = sum(at.pull_offset - at.consumer_offset for at in rows.values())
    call.out.text()
    call.out.field("consumeTps", found.tps, f"Consume TPS: {found.tps:.2f}")
    call.out.field("diffTotal", diff, f"Consume Diff Total: {diff}")
    call.out.field("inflightTotal", inflight, f"Consume Inflight Total: {inflight}")


async def _holders(admin: Admin, group: str, topics: list[str]) -> dict[Queue, str]:
    """The address of the member that holds each queue, as the members themselves say."""
    found: dict[Queue, str] = {}
    for topic in topics:
        try:
            by_client = await admin.consumer_status(group, topic)
        except GantryError:  # nobody is online, or the broker is too old to ask its members
            continue
        for client_id, queues in by_client.items():
            found |= dict.fromkeys(queues, client_id.partition("@")[0])
    return found


GROUPS = (
    Column("group", "#Group", 64),
    Column("count", "#Count", 6),
    Column("version", "#Version", 24),
    Column("type", "#Type", 5),
    Column("model", "#Model", 14),
    Column("tps", "#TPS", 7),
    Column("diffTotal", "#Diff Total"),
)


async def _all_groups(call: Invocation) -> None:
    topics = await call.admin.topics(cluster=call["cluster"])
    names = [name.removeprefix(RETRY_PREFIX) for name in topics if name.startswith(RETRY_PREFIX)]
    add = call.out.table(GROUPS)
    for row in await together(_group_row(call.admin, name) for name in names):
        add(*row)


async def _group_row(admin: Admin, group: str) -> tuple[Any, ...]:
    """A group that cannot be asked about is listed without figures, as in RocketMQ."""
    tps, lag, found = 0.0, 0, ConsumerConnections()
    with suppress(GantryError):
        stats = await admin.consume_stats(group)
        tps, lag = stats.tps, stats.lag
        found = await admin.consumers(group)
    members = found.connection_set
    if not members:
        return group, 0, "OFFLINE", "", "", int(tps), lag
    oldest = min(each.version for each in members)
    kind = "PULL" if found.consume_type == "CONSUME_ACTIVELY" else "PUSH"
    model = found.message_model if kind == "PUSH" and found.message_model else ""
    return group, len(members), version_name(oldest), kind, model, int(tps), lag


STATS = (
    Column("topic", "#Topic", 64),
    Column("group", "#Consumer Group", 64),
    Column("accumulation", "#Accumulation", 12, right=True),
    Column("inTps", "#InTPS", 11, right=True, show=lambda rate: f"{rate:.2f}"),
    Column(
        "outTps", "#OutTPS", 11, right=True, show=lambda rate: "" if rate is None else f"{rate:.2f}"
    ),
    Column("in24Hours", "#InMsg24Hour", 14, right=True),
    Column(
        "out24Hours",
        "#OutMsg24Hour",
        14,
        right=True,
        show=lambda count: "NO_CONSUMER" if count is None else str(count),
    ),
)


class Traffic(NamedTuple):
    """Messages of a topic, in or out to one group."""

    rate: float
    day: int


@command(
    "statsAll",
    "Topic and Consumer tps stats.",
    AdminOption(
        "a", "activeTopic", "Only topics with messages in the last 24 hours.", is_flag=True
    ),
    AdminOption("t", "topic", "Only this topic."),
)
async def stats_all(call: Invocation) -> None:
    topics = await call.admin.topics()
    if call["topic"] is not None and call["topic"] not in topics:
        raise ClientError(f"no topic {call['topic']!r}")
    wanted = [
        name
        for name in topics
        if not name.startswith((RETRY_PREFIX, DEAD_PREFIX)) and call["topic"] in (None, name)
    ]
    lags = await _lags(call.admin)
    add = call.out.table(STATS)
    active = call["activeTopic"]
    for rows in await together(_topic_rows(call.admin, topic, lags, active) for topic in wanted):
        for row in rows:
            add(*row)


Lags = dict[str, dict[str, int]]
"""Topic to group to the messages that it has not finished."""


async def _lags(admin: Admin) -> Lags:
    """The lag of all groups, in one request a broker."""
    found: Lags = {}
    for group, rows in (
        await all_progress(admin, list(await admin.groups()), await admin.masters())
    ).items():
        for queue, at in rows.items():
            of_topic = found.setdefault(queue.topic, {})
            lag = max(at.broker_offset - at.consumer_offset, 0)
            of_topic[group] = of_topic.get(group, 0) + lag
    return found


async def _topic_rows(admin: Admin, topic: str, lags: Lags, active: bool) -> list[tuple[Any, ...]]:
    """One row a group of the topic; a topic whose broker is away has none."""
    try:
        route = await admin.topic_route(topic)
        masters = [data.master for data in route.broker_datas if data.master]
        sent = await _traffic(admin, masters, "TOPIC_PUT_NUMS", topic)
        groups = lags.get(topic) or dict.fromkeys(await admin.topic_groups(topic), 0)
        if not groups:
            if active and not sent.day:
                return []
            return [(topic, "", 0, sent.rate, None, sent.day, None)]
        rows = []
        for group, lag in sorted(groups.items()):
            got = await _traffic(admin, masters, "GROUP_GET_NUMS", f"{topic}@{group}")
            if not active or sent.day or got.day:
                rows.append((topic, group, lag, sent.rate, got.rate, sent.day, got.day))
        return rows
    except GantryError:
        return []


async def _traffic(admin: Admin, masters: list[str], name: str, key: str) -> Traffic:
    found = [await admin.broker_stats(place, name, key) for place in masters]
    parts = [stats for stats in found if stats is not None]
    return Traffic(sum(part.stats_minute.tps for part in parts), sum(map(day_total, parts)))


def day_total(stats: BrokerStatsData) -> int:
    """Of the last 24 hours, or of the longest window that has a value yet."""
    return stats.stats_day.sum or stats.stats_hour.sum or stats.stats_minute.sum


COMMANDS = (consumer_progress, stats_all)
