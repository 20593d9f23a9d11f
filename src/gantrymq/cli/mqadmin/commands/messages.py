"""Commands that find stored messages and tell what became of them."""

from typing import Any

from gantrymq.base.clock import SystemClock
from gantrymq.cli.mqadmin.command import AdminOption, Invocation, WrongOption, command
from gantrymq.cli.mqadmin.message_text import (
    body_text,
    fields_of,
    known_charset,
    lines_of,
    save_body,
)
from gantrymq.cli.mqadmin.output import Column, Columns
from gantrymq.cli.mqadmin.values import moment, shown_second, truth, whole
from gantrymq.client.admin.messages.message_query import (
    FOREVER_MS,
    QUERY_MESSAGES_MAX,
    MessageMissing,
)
from gantrymq.client.admin.messages.message_search import Finder
from gantrymq.client.admin.messages.message_track import GroupTrack, track_of
from gantrymq.client.admin.messages.trace_query import trace_of
from gantrymq.client.core.identity import month_bounds_ms
from gantrymq.client.messages.received import Received
from gantrymq.client.produce.producer import Producer
from gantrymq.model import TRACE_TOPIC, Message, Queue
from gantrymq.protocol.ids import read_unique_id
from gantrymq.protocol.trace import Pub, SubAfter

TOPIC = AdminOption("t", "topic", "Name of the topic.", required=True)
MSG_ID = AdminOption("i", "msgId", "Id of the message.", required=True)
GROUP = AdminOption("g", "consumerGroup", "With -d: let a member of this group consume it.")
CLIENT = AdminOption("d", "clientId", "With -g: let this member consume it now, and report.")
CHARSET = AdminOption(
    "f", "bodyFormat", "Print the body in this character set.", read=known_charset
)
ROUTE = AdminOption("c", "cluster", "Accepted: the topic's route tells the brokers.")
BEGIN = AdminOption("b", "beginTimestamp", "Stored at this time or later.", read=moment, default=0)
END = AdminOption(
    "e", "endTimestamp", "Stored at this time or before.", read=moment, default=FOREVER_MS
)


@command(
    "queryMsgById",
    "Query Message by Id.",
    AdminOption("i", "msgId", "Ids of messages, commas between.", required=True),
    AdminOption("t", "topic", "The topic; needed for ids that producers gave."),
    GROUP,
    CLIENT,
    AdminOption("s", "sendMessage", "true: send it again.", read=truth, default=False),
    AdminOption("u", "unitName", "Accepted, without effect."),
    CHARSET,
    ROUTE,
)
async def query_msg_by_id(call: Invocation) -> None:
    ids = [each.strip() for each in call["msgId"].split(",") if each.strip()]
    found = [await call.admin.message(each, topic=call["topic"]) for each in ids]
    for message in found:
        if call["sendMessage"]:
            await _resend(call, message)
        elif call["consumerGroup"] and call["clientId"]:
            await _consume(call, message)
        elif call["consumerGroup"] or call["clientId"]:
            raise WrongOption("-g and -d are given together")
        else:
            await show(call, message, charset=call["bodyFormat"])


async def show(
    call: Invocation, message: Received, *, charset: str | None = None, track: bool = True
) -> None:
    """Print a message with all its fields, and what became of it in each group."""
    tracks = await track_of(call.admin, message) if track else []
    call.out.item(
        {**fields_of(message), "track": [track_fields(each) for each in tracks]},
        lambda: _text(message, charset, tracks if track else None),
    )


def _text(message: Received, charset: str | None, tracks: list[GroupTrack] | None) -> list[str]:
    if charset:
        body = "Message Body:", body_text(message, charset)
    else:
        body = "Message Body Path:", str(save_body(message))
    lines = lines_of(message, body)
    if tracks is None:
        return lines
    if not tracks:
        return [*lines, "", "", "WARN: No Consumer"]
    return [*lines, "", "", *map(track_text, tracks)]


def track_fields(track: GroupTrack) -> dict[str, Any]:
    return {"consumerGroup": track.group, "trackType": track.state, "exceptionDesc": track.why}


def track_text(track: GroupTrack) -> str:
    inner = ", ".join(f"{k}={'null' if v is None else v}" for k, v in track_fields(track).items())
    return f"MessageTrack [{inner}]"


async def _resend(call: Invocation, message: Received) -> None:
    """Send a copy to its topic; the copy has an id of its own."""
    call.out.text(f"prepare resend msg. originalMsgId={message.msg_id}")
    async with Producer(client=call.admin.instance.options, group="ReSendMsgById") as producer:
        copy = Message(message.topic, message.body, tags=message.tags, keys=message.keys)
        result = await producer.send(copy)
    call.out.done(
        f"SendResult [sendStatus={result.status}, msgId={result.msg_id}, "
        f"messageQueue={result.queue}, queueOffset={result.offset}]"
    )


async def _consume(call: Invocation, message: Received) -> None:
    """Let one member consume a message now; its group's progress does not move."""
    result = await call.admin.consume_directly(message, call["consumerGroup"], call["clientId"])
    inner = ", ".join(f"{key}={value}" for key, value in result.items())
    call.out.field("result", result, f"ConsumeMessageDirectlyResult [{inner}]")


FOUND = (
    Column("msgId", "#Message ID", 50),
    Column("queueId", "#QID", 4, right=True),
    Column("queueOffset", "#Offset", 40, right=True),
)


@command(
    "queryMsgByKey",
    "Query Message by Key.",
    TOPIC,
    AdminOption("k", "msgKey", "The key.", required=True),
    BEGIN,
    END,
    AdminOption(
        "m", "maxNum", "At most so many; 64 by default.", read=whole, default=QUERY_MESSAGES_MAX
    ),
    ROUTE,
)
async def query_msg_by_key(call: Invocation) -> None:
    found = await Finder(call.admin).by_key(
        call["topic"], call["msgKey"], limit=call["maxNum"],
        begin_ms=call["beginTimestamp"], end_ms=call["endTimestamp"],
    )  # fmt: skip
    row = call.out.table(FOUND)
    for message in found.messages:
        row(message.msg_id, message.queue.queue_id, message.offset)
    if not found.complete:
        call.out.field("incomplete", found.why, f"not all: {found.why}")


@command(
    "queryMsgByUniqueKey",
    "Query Message by Unique key.",
    MSG_ID,
    TOPIC,
    GROUP,
    CLIENT,
    AdminOption("a", "showAll", "All copies with this id, not only the first.", is_flag=True),
    ROUTE,
)
async def query_msg_by_unique_key(call: Invocation) -> None:
    found = await Finder(call.admin).by_key(call["topic"], call["msgId"], unique=True)
    if not found.messages:
        raise MessageMissing(f"no message {call['msgId']} in topic {call['topic']!r}")
    if call["consumerGroup"] and call["clientId"]:
        await _consume(call, found.messages[0])
        return
    for message in found.messages if call["showAll"] else found.messages[:1]:
        await show(call, message)


@command(
    "queryMsgByOffset",
    "Query Message by offset.",
    TOPIC,
    AdminOption("b", "brokerName", "Name of the broker.", required=True),
    AdminOption("i", "queueId", "Number of the queue.", required=True, read=whole),
    AdminOption("o", "offset", "Offset in the queue.", required=True, read=whole),
    CHARSET,
)
async def query_msg_by_offset(call: Invocation) -> None:
    await call.admin.topic_route(call["topic"])
    queue = Queue(call["topic"], call["brokerName"], call["queueId"])
    found = await Finder(call.admin).at(queue, call["offset"])
    if not found.messages:
        raise MessageMissing(f"no message at offset {call['offset']}: {found.why}")
    await show(call, found.messages[0], charset=call["bodyFormat"])


SENT = (
    Column("type", "#Type", 10),
    Column("group", "#ProducerGroup", 20),
    Column("clientHost", "#ClientHost", 20),
    Column("time", "#SendTime", 20, show=shown_second),
    Column("costMs", "#CostTimes", 10, show=lambda ms: f"{ms}ms"),
    Column("status", "#Status", 10),
)
CONSUMED = (SENT[0], Column("group", "#ConsumerGroup", 20), SENT[2],
    Column("time", "#ConsumerTime", 20, show=shown_second), *SENT[4:])  # fmt: skip


@command(
    "queryMsgTraceById",
    "Query a message trace.",
    MSG_ID,
    AdminOption("t", "traceTopic", "The trace topic.", default=TRACE_TOPIC),
    BEGIN,
    END,
    AdminOption("c", "maxNum", "Accepted: all records are read.", read=whole),
)
async def query_msg_trace_by_id(call: Invocation) -> None:
    trace = await trace_of(call.admin, call["msgId"], topic=call["traceTopic"])
    events = [
        each
        for each in trace.events
        if call["beginTimestamp"] <= each.at_ms <= call["endTimestamp"]
    ]
    kinds: tuple[tuple[str, Columns, type[Pub] | type[SubAfter]], ...] = (
        ("Pub", SENT, Pub),
        ("Sub", CONSUMED, SubAfter),
    )
    for name, columns, kind in kinds:
        part = [(each, each.record) for each in events if isinstance(each.record, kind)]
        if not part:
            continue
        row = call.out.table(columns)
        for each, record in part:
            status = "success" if record.ok else "failed"
            row(name, record.group, each.client, each.at_ms, record.cost_ms, status)
        call.out.text()
    for gap in trace.gaps:
        call.out.field("incomplete", trace.gaps, f"not all: {gap}")
    if not events and not trace.gaps:
        raise MessageMissing(f"no trace of message {call['msgId']} is stored")


@command(
    "DecodeMessageId",
    "Decode unique message ID.",
    AdminOption("i", "messageId", "An id that a producer gave.", required=True),
    needs_name_server=False,
)
async def decode_message_id(call: Invocation) -> None:
    host, since_ms = read_unique_id(call["messageId"])
    now_ms = SystemClock().now_ms()
    begin_ms, _ = month_bounds_ms(now_ms)
    if begin_ms + since_ms > now_ms:  # the id does not name its month: it was the one before
        begin_ms, _ = month_bounds_ms(begin_ms - 1)
    call.out.field("ip", host, f"ip={host}")
    call.out.field("date", begin_ms + since_ms, f"date={shown_second(begin_ms + since_ms)}")


COMMANDS = (
    query_msg_by_id,
    query_msg_by_key,
    query_msg_by_unique_key,
    query_msg_by_offset,
    query_msg_trace_by_id,
    decode_message_id,
)
