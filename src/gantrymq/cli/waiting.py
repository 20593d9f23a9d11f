"""`gantry waiting`: delayed messages, retries and timer messages, and how late deliveries are."""

import asyncio
import sys

import click

from gantrymq.base.errors import GantryError
from gantrymq.base.plurals import counted
from gantrymq.cli.common.known import check_topic
from gantrymq.cli.common.output import Row, fail, namesrv_option, output_option, print_rows
from gantrymq.cli.common.times import TIME, shown_or_ms
from gantrymq.client.admin.admin import Admin
from gantrymq.protocol.waiting import WaitingMessage, WaitingRoom, WaitingTable, WaitingTopic


@click.command("waiting")
@click.argument("topic", required=False)
@click.option(
    "--show",
    type=click.Choice(["messages", "topics", "rooms"]),
    default="messages",
    show_default=True,
    help="Messages, or counts by topic or by room (delay levels, timers).",
)
@click.option(
    "--count",
    type=click.IntRange(1, 1000),
    default=20,
    show_default=True,
    help="Messages of each broker, at most.",
)
@click.option(
    "--from", "start", type=TIME, help="Only messages that are due at that time or later."
)
@namesrv_option
@output_option
def waiting(
    topic: str | None, show: str, count: int, start: int | None, namesrv: str | None, output: str
) -> None:
    """Show messages of TOPIC, or of all topics, that wait for their delivery time.

    These are delay levels, retries and timer messages. A summary is printed to standard error: how
    many wait, and how late the last deliveries were.
    """

    async def run() -> dict[str, WaitingTable]:
        async with Admin(namesrv) as admin:
            if topic is not None:
                await check_topic(admin, topic)
            return await admin.waiting(topic, count=count, from_ms=start or 0)

    try:
        tables = asyncio.run(run())
    except GantryError as error:
        fail(error)
    else:
        people = output == "table"
        rows: list[Row] = []
        for broker, table in tables.items():
            if show == "messages":
                rows += [_message(broker, row, people) for row in table.messages]
            elif show == "topics":
                rows += [_topic(broker, row, people) for row in table.topics]
            else:
                rows += [_room(broker, row, people) for row in table.rooms]
        print_rows(rows, output)
        print(_summary(tables, topic), file=sys.stderr)


def _message(broker: str, row: WaitingMessage, people: bool) -> Row:
    return {
        "due": shown_or_ms(row.due_ms, people),
        "topic": row.topic,
        "msgId": row.msg_id,
        "keys": row.keys,
        "tags": row.tags,
        "room": row.room,
        "broker": broker,
    }


def _topic(broker: str, row: WaitingTopic, people: bool) -> Row:
    return {
        "topic": row.topic,
        "room": row.room,
        "count": row.count,
        "nextDue": shown_or_ms(row.next_due_ms, people),
        "broker": broker,
    }


def _room(broker: str, row: WaitingRoom, people: bool) -> Row:
    return {
        "room": row.room,
        "count": row.count,
        "nextDue": shown_or_ms(row.next_due_ms, people),
        "overdueMs": row.overdue_ms,
        "delivered": row.delivered,
        "lastLateMs": row.last_late_ms,
        "maxLateMs": row.max_late_ms,
        "broker": broker,
    }


def _summary(tables: dict[str, WaitingTable], topic: str | None) -> str:
    rooms = [room for table in tables.values() for room in table.rooms]
    held = rooms if topic is None else [row for table in tables.values() for row in table.topics]
    count, overdue = sum(r.count for r in held), max((r.overdue_ms for r in rooms), default=0)
    late = max((room.max_late_ms for room in rooms), default=0)
    least = "at least " if topic is not None and any(room.uncounted for room in rooms) else ""
    text = f"{least}{counted(count, 'message')} wait{'s' if count == 1 else ''}"
    if overdue:
        text += f"; the most overdue should have been delivered {overdue} ms ago"
    return f"{text}; the latest delivery so far was {late} ms late"
