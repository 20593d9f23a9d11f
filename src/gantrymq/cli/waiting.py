"""`gantry waiting`: messages that wait for their time, and how late deliveries are."""

import asyncio
import sys
from datetime import datetime

import click

from gantrymq.base.errors import GantryError
from gantrymq.cli.output import Row, fail, namesrv_option, output_option, print_rows
from gantrymq.client.admin import Admin
from gantrymq.protocol.waiting import WaitingMessage, WaitingRoom, WaitingTable, WaitingTopic


@click.command("waiting")
@click.argument("topic", required=False)
@click.option("--show", type=click.Choice(["messages", "topics", "rooms"]), default="messages",
              show_default=True, help="Messages, or figures of topics or rooms.")  # fmt: skip
@click.option("--count", type=click.IntRange(1, 1000), default=20, show_default=True,
              help="Most messages a broker.")  # fmt: skip
@click.option("--from", "start", metavar="TIME", help="Only messages that are due from then on.")
@namesrv_option
@output_option
def waiting(
    topic: str | None, show: str, count: int, start: str | None, namesrv: str | None, output: str
) -> None:
    """Show messages that wait, of TOPIC or of all: delay levels, retries and timers.

    A summary goes to standard error: how many wait, and how late the last deliveries were.
    """
    try:
        begin = datetime.fromisoformat(start) if start else None
    except ValueError as error:
        raise click.UsageError(f"--from {start}: {error}") from error
    from_ms = round(begin.timestamp() * 1000) if begin is not None else 0

    async def run() -> dict[str, WaitingTable]:
        async with Admin(namesrv) as admin:
            return await admin.waiting(topic, count=count, from_ms=from_ms)

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


def _time(ms: int, people: bool) -> object:
    """Local time for people, a number for scripts; nothing is no time at all."""
    if not people or not ms:
        return ms or None
    return datetime.fromtimestamp(ms / 1000).astimezone().isoformat(timespec="milliseconds")


def _message(broker: str, row: WaitingMessage, people: bool) -> Row:
    return {
        "due": _time(row.due_ms, people), "topic": row.topic, "msgId": row.msg_id,
        "keys": row.keys, "tags": row.tags, "room": row.room, "broker": broker,
    }  # fmt: skip


def _topic(broker: str, row: WaitingTopic, people: bool) -> Row:
    return {
        "topic": row.topic, "room": row.room, "count": row.count,
        "nextDue": _time(row.next_due_ms, people), "broker": broker,
    }  # fmt: skip


def _room(broker: str, row: WaitingRoom, people: bool) -> Row:
    return {
        "room": row.room, "count": row.count, "nextDue": _time(row.next_due_ms, people),
        "overdueMs": row.overdue_ms, "delivered": row.delivered, "lastLateMs": row.last_late_ms,
        "maxLateMs": row.max_late_ms, "broker": broker,
    }  # fmt: skip


def _summary(tables: dict[str, WaitingTable], topic: str | None) -> str:
    rooms = [room for table in tables.values() for room in table.rooms]
    held = rooms if topic is None else [row for table in tables.values() for row in table.topics]
    count, overdue = sum(r.count for r in held), max((r.overdue_ms for r in rooms), default=0)
    late = max((room.max_late_ms for room in rooms), default=0)
    least = "at least " if topic is not None and any(room.uncounted for room in rooms) else ""
    text = f"{least}{count} messages wait"
    if overdue:
        text += f"; the most overdue should have been delivered {overdue} ms ago"
    return f"{text}; the latest delivery so far was {late} ms late"
