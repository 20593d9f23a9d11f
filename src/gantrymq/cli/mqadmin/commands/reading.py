"""Commands that print the messages of a topic."""

from collections import Counter
from collections.abc import AsyncIterator

from gantrymq.cli.mqadmin.command import AdminOption, Invocation, WrongOption, command
from gantrymq.cli.mqadmin.message_text import (
    body_text,
    fields_of,
    known_charset,
    queue_text,
    record_text,
)
from gantrymq.cli.mqadmin.output import Column
from gantrymq.cli.mqadmin.values import moment, truth, whole
from gantrymq.client.admin.admin import Admin
from gantrymq.client.admin.messages.message_query import read_records
from gantrymq.client.admin.messages.message_search import GROUP
from gantrymq.client.consume.queues.pull_request import PullStatus, pull_raw
from gantrymq.client.core.errors import ClientError
from gantrymq.client.messages.received import Received
from gantrymq.model import Queue
from gantrymq.protocol.subscription import subscription

PULL_MESSAGES = 512
TOPIC = AdminOption("t", "topic", "Name of the topic.", required=True)
CHARSET = AdminOption(
    "c",
    "charsetName",
    "Character set of bodies; UTF-8 by default.",
    read=known_charset,
    default="utf-8",
)
TAGS = AdminOption("s", "subExpression", "Only these tags, as 'TagA || TagB'.", default="*")
BEGIN = AdminOption(
    "b", "beginTimestamp", "From this time: milliseconds or yyyy-MM-dd#HH:mm:ss:SSS.", read=moment
)
END = AdminOption("e", "endTimestamp", "Up to this time.", read=moment)


async def queues_of(admin: Admin, topic: str) -> list[Queue]:
    """The queues of a topic that can be read."""
    route = await admin.topic_route(topic)
    return sorted(admin.instance.routes.subscribe_queues(route, topic))


async def bounds(
    admin: Admin, queue: Queue, begin_ms: int | None, end_ms: int | None
) -> tuple[int, int]:
    """The first offset and the one behind the last, of all messages or of those in a time."""
    first, end = await admin.min_offset(queue), await admin.max_offset(queue)
    if begin_ms is not None:
        first = await admin.search_offset(queue, begin_ms)
    if end_ms is not None:
        end = await admin.search_offset(queue, end_ms)
    return first, end


async def read(
    admin: Admin, queue: Queue, first: int, end: int, *, tags: str = "*", group: str = GROUP
) -> AsyncIterator[Received]:
    """The messages of a queue from one offset up to another, as long as there are any."""
    wanted, offset = subscription(queue.topic, tags), first
    while offset < end:
        pulled = await pull_raw(
            admin.instance, group, queue, offset, max_count=PULL_MESSAGES, subscription=wanted
        )
        for message in read_records(pulled.body, queue.broker_name):
            if message.offset < end and (not wanted.tags_set or message.tags in wanted.tags_set):
                yield message
        if pulled.status is PullStatus.NO_NEW or pulled.next_offset <= offset:
            return
        offset = pulled.next_offset


def show(call: Invocation, message: Received, charset: str, *, body: bool) -> None:
    text = body_text(message, charset) if body else "NOT PRINT BODY"
    value = {k: v for k, v in fields_of(message).items() if body or not k.startswith("body")}
    call.out.item(value, lambda: [f"MSGID: {message.msg_id} {record_text(message)} BODY: {text}"])


@command(
    "printMsg",
    "Print Message Detail.",
    TOPIC,
    CHARSET,
    TAGS,
    BEGIN,
    END,
    AdminOption("d", "printBody", "false: without bodies.", read=truth, default=True),
    AdminOption("l", "lmqParentTopic", "Accepted, without effect."),
)
async def print_msg(call: Invocation) -> None:
    for queue in await queues_of(call.admin, call["topic"]):
        first, end = await bounds(call.admin, queue, call["beginTimestamp"], call["endTimestamp"])
        call.out.text(f"minOffset={first}, maxOffset={end}, {queue_text(queue)}")
        async for message in read(call.admin, queue, first, end, tags=call["subExpression"]):
            show(call, message, call["charsetName"], body=call["printBody"])
        call.out.text("--------------------------------------------------------")


COUNTED = (
    Column("tag", "", show=lambda tag: f"Tag: {tag:<30}"),
    Column("count", "", show=lambda count: f"Count: {count}"),
)


@command(
    "printMsgByQueue",
    "Print Message Detail by queueId.",
    TOPIC,
    AdminOption("a", "brokerName", "Name of the broker.", required=True),
    AdminOption("i", "queueId", "Number of the queue.", required=True, read=whole),
    CHARSET,
    TAGS,
    BEGIN,
    END,
    AdminOption("p", "print", "true: print the messages.", read=truth, default=False),
    AdminOption("d", "printBody", "true: with their bodies.", read=truth, default=False),
    AdminOption("f", "calculate", "true: count messages by tag.", read=truth, default=False),
)
async def print_msg_by_queue(call: Invocation) -> None:
    queue = Queue(call["topic"], call["brokerName"], call["queueId"])
    if queue not in (known := await queues_of(call.admin, call["topic"])):
        raise ClientError(f"no queue {queue}; known: {', '.join(map(str, known))}")
    first, end = await bounds(call.admin, queue, call["beginTimestamp"], call["endTimestamp"])
    counts: Counter[str] = Counter()
    async for message in read(call.admin, queue, first, end, tags=call["subExpression"]):
        counts[message.tags or "null"] += 1
        if call["print"]:
            show(call, message, call["charsetName"], body=call["printBody"])
    if call["calculate"]:
        row = call.out.table(COUNTED)
        for tag, count in counts.most_common():
            row(tag, count)


@command(
    "consumeMessage",
    "Consume message.",
    TOPIC,
    AdminOption("b", "brokerName", "Only this broker."),
    AdminOption("i", "queueId", "With -b: only this queue.", read=whole),
    AdminOption("o", "offset", "With -b and -i: from this offset.", read=whole),
    AdminOption("g", "consumerGroup", "The group that reads; its progress does not move."),
    AdminOption(
        "s",
        "beginTimestamp",
        "From this time: milliseconds or yyyy-MM-dd#HH:mm:ss:SSS.",
        read=moment,
    ),
    AdminOption("e", "endTimestamp", "Up to this time.", read=moment),
    AdminOption("d", "endTimestampOld", "The same as -e, as older releases spell it.", read=moment),
    AdminOption("c", "MessageNumber", "At most so many; 128 by default.", read=whole, default=128),
)
async def consume_message(call: Invocation) -> None:
    if (call["queueId"] is not None and call["brokerName"] is None) or (
        call["offset"] is not None and call["queueId"] is None
    ):
        raise WrongOption("-i needs -b, and -o needs -i")
    left, end_ms = call["MessageNumber"], call["endTimestamp"] or call["endTimestampOld"]
    wanted = [
        queue
        for queue in await queues_of(call.admin, call["topic"])
        if call["brokerName"] in (None, queue.broker_name)
        and call["queueId"] in (None, queue.queue_id)
    ]
    if not wanted:
        raise ClientError(f"no such queue of {call['topic']!r}")
    for queue in wanted:
        first, end = await bounds(call.admin, queue, call["beginTimestamp"], end_ms)
        first = first if call["offset"] is None else call["offset"]
        group = call["consumerGroup"] or GROUP
        async for message in read(call.admin, queue, first, min(end, first + left), group=group):
            show(call, message, "utf-8", body=True)
            left -= 1
        if not left:
            break


COMMANDS = (print_msg, print_msg_by_queue, consume_message)
