"""Commands that move the progress of groups, or show what members report of it."""

from datetime import UTC, datetime

from gantrymq.cli.mqadmin.command import AdminOption, Invocation, WrongOption, command
from gantrymq.cli.mqadmin.output import Column
from gantrymq.cli.mqadmin.values import address, moment, shown_time, truth, whole
from gantrymq.client.admin.groups.reset_offsets import ResetRow, To
from gantrymq.client.core.errors import ClientError
from gantrymq.model import Queue

GROUP = AdminOption("g", "group", "Name of the consumer group.", required=True)
TOPIC = AdminOption("t", "topic", "Name of the topic.", required=True)
FORCE = AdminOption("f", "force", "false: progress only moves back.", read=truth, default=True)
ROUTE = AdminOption("c", "cluster", "Only brokers of this cluster.")
MOVED = (
    Column("brokerName", "#brokerName", 40),
    Column("queueId", "#queueId", 40),
    Column("offset", "#offset", 40),
)
MOVED_OFFLINE = (
    Column("brokerName", "#brokerName", 20),
    Column("queueId", "#queueId", 20),
    Column("brokerOffset", "#brokerOffset", 20),
    Column("consumerOffset", "#consumerOffset", 20, show=lambda at: "-" if at is None else str(at)),
    Column("timestampOffset", "#timestampOffset", 20),
    Column("resetOffset", "#resetOffset", 20),
)


@command(
    "resetOffsetByTime",
    "Reset consumer offset by timestamp(without client restart).",
    GROUP,
    TOPIC,
    AdminOption(
        "s",
        "timestamp",
        "now, milliseconds, or yyyy-MM-dd#HH:mm:ss:SSS.",
        required=True,
        read=moment,
    ),
    FORCE,
    AdminOption("c", "cplus", "Accepted, without effect.", is_flag=True),
    AdminOption("b", "broker", "With -q: address of the broker.", read=address),
    AdminOption("q", "queue", "With -b: only this queue.", read=whole),
    AdminOption("o", "offset", "With -b and -q: the offset instead of a time.", read=whole),
)
async def reset_offset_by_time(call: Invocation) -> None:
    group, topic, at_ms = call["group"], call["topic"], call["timestamp"]
    queue, to = None, _when(at_ms)
    if call["broker"] is not None or call["queue"] is not None:
        if call["broker"] is None or call["queue"] is None:
            raise WrongOption("-b and -q are given together")
        queue = Queue(topic, await call.admin.broker_name_at(call["broker"]), call["queue"])
        to = call["offset"] if call["offset"] is not None else to
    elif call["offset"] is not None:
        raise WrongOption("-o needs -b and -q")
    call.out.text(
        f"start reset consumer offset by specified, group[{group}], topic[{topic}], "
        f"force[{str(call['force']).lower()}], timestamp(string)[{shown_time(at_ms)}], "
        f"timestamp(long)[{at_ms}]"
    )
    _print(call, await _reset(call, to, queue))


def _when(at_ms: int) -> To:
    return datetime.fromtimestamp(at_ms / 1000, UTC)


async def _reset(call: Invocation, to: To, queue: Queue | None = None) -> list[ResetRow]:
    """Carry out the reset; returns all queues, also those that stay where they are."""
    arguments = call["group"], call["topic"], to
    rows = await call.admin.preview_reset(*arguments, queue=queue, force=call["force"])
    if (cluster := call.values.get("cluster")) is None:
        await call.admin.reset(*arguments, queue=queue, force=call["force"])
        return rows
    brokers = await call.admin.members(cluster=cluster)
    rows = [row for row in rows if row.queue.broker_name in brokers]
    for row in rows:
        await call.admin.reset(*arguments, queue=row.queue, force=call["force"])
    return rows


def _print(call: Invocation, rows: list[ResetRow]) -> None:
    add = call.out.table(MOVED)
    for row in rows:
        add(row.queue.broker_name, row.queue.queue_id, row.new)


@command(
    "resetOffsetByTimeOld",
    "Reset consumer offset by timestamp(execute this command required client restart).",
    GROUP,
    TOPIC,
    AdminOption(
        "s", "timestamp", "Milliseconds, or yyyy-MM-dd#HH:mm:ss:SSS.", required=True, read=moment
    ),
    FORCE,
    ROUTE,
)
async def reset_offset_by_time_old(call: Invocation) -> None:
    add = call.out.table(MOVED_OFFLINE)
    for row in await _reset(call, _when(call["timestamp"])):
        add(row.queue.broker_name, row.queue.queue_id, row.end, row.now, row.new, row.new)


@command(
    "skipAccumulatedMessage",
    "Skip all messages that are accumulated (not consumed) currently.",
    GROUP,
    TOPIC,
    FORCE,
    ROUTE,
)
async def skip_accumulated_message(call: Invocation) -> None:
    _print(call, await _reset(call, "last"))


@command(
    "cloneGroupOffset",
    "Clone offset from other group.",
    AdminOption("s", "srcGroup", "The group whose progress is copied.", required=True),
    AdminOption("d", "destGroup", "The group that gets it.", required=True),
    TOPIC,
    AdminOption("o", "offline", "Accepted, without effect.", read=truth, default=False),
)
async def clone_group_offset(call: Invocation) -> None:
    source, target, topic = call["srcGroup"], call["destGroup"], call["topic"]
    known = await call.admin.groups()
    if source not in known:
        raise ClientError(f"no group {source!r}")
    if (await call.admin.consumers(target)).connection_set:
        raise ClientError(f"group {target!r} is running and would undo it: stop its members first")
    await call.admin.clone_offsets(source, target, topic)
    call.out.done(
        f"clone group offset success. srcGroup[{source}], destGroup=[{target}], topic[{topic}]"
    )


STATUS = (
    Column("clientId", "#clientId", 50),
    Column("brokerName", "#brokerName", 15),
    Column("queueId", "#queueId", 15),
    Column("offset", "#offset", 20),
)


@command(
    "getConsumerStatus",
    "Get consumer status from client.",
    GROUP,
    TOPIC,
    AdminOption("i", "originClientId", "Only this member."),
)
async def get_consumer_status(call: Invocation) -> None:
    group, topic, wanted = call["group"], call["topic"], call["originClientId"]
    found = await call.admin.consumer_status(group, topic)
    if wanted is not None and wanted not in found:
        raise ClientError(
            f"no member {wanted!r} of group {group!r}; online: {', '.join(found) or 'none'}"
        )
    call.out.text(
        f"get consumer status from client. group={group}, topic={topic}, "
        f"originClientId={wanted or ''}"
    )
    add = call.out.table(STATUS)
    for client_id, queues in sorted(found.items()):
        if wanted in (None, client_id):
            for queue, offset in sorted(queues.items()):
                add(client_id, queue.broker_name, queue.queue_id, offset)


COMMANDS = (
    reset_offset_by_time,
    reset_offset_by_time_old,
    skip_accumulated_message,
    clone_group_offset,
    get_consumer_status,
)
