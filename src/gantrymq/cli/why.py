"""`gantry why`: the life of one message, from send to ack."""

import asyncio
import sys

import click

from gantrymq.base.errors import GantryError
from gantrymq.cli.common.known import check_topic, check_topic_or_archived
from gantrymq.cli.common.output import (
    Row,
    archive_option,
    fail,
    namesrv_option,
    needs_lake,
    output_option,
    print_line,
    print_rows,
    print_table,
)
from gantrymq.cli.common.times import shown
from gantrymq.client.admin.admin import Admin
from gantrymq.client.admin.history_query import GroupSource, HistorySource, IdSource, Stored, Traces
from gantrymq.client.admin.history_query import why as life_of
from gantrymq.client.admin.message_history import Event, MessageHistory, Standing
from gantrymq.model import TRACE_TOPIC


@click.command("why")
@click.argument("msgid")
@click.option("--topic", help="Its topic; without it all topics are searched.")
@click.option("--trace-topic", default=TRACE_TOPIC, show_default=True, help="Where trace lies.")
@archive_option
@namesrv_option
@output_option
def why(
    msgid: str,
    topic: str | None,
    trace_topic: str,
    archive: str | None,
    namesrv: str | None,
    output: str,
) -> None:
    """Tell the life of the message MSGID: sent, stored, retried, consumed, and by whom."""
    try:
        life = asyncio.run(_look(msgid, topic, trace_topic, archive, namesrv))
    except GantryError as error:
        fail(error)
    if output == "table":
        _print(life)
    elif output == "json":
        print_rows([as_row(life)], "json")
    else:
        for event in life.events:
            print_line({"kind": "event", **_event_row(event)})
        for standing in life.groups:
            print_line({"kind": "group", **_group_row(standing)})
        for text in life.unknown:
            print_line({"kind": "unknown", "text": text})


async def _look(
    msg_id: str, topic: str | None, trace_topic: str, archive: str | None, namesrv: str | None
) -> MessageHistory:
    async with Admin(namesrv) as admin:
        archived = _archived(archive)
        if topic is not None and archive is None:
            await check_topic(admin, topic)
        elif topic is not None and archive is not None:
            await check_topic_or_archived(admin, archive, topic)
        return await life_of(
            admin,
            msg_id,
            topic=topic,
            sources=(IdSource(), Traces(trace_topic), Stored(), *archived, GroupSource()),
            say=lambda line: print(line, file=sys.stderr, flush=True),
        )


def _archived(archive: str | None) -> tuple[HistorySource, ...]:
    if archive is None:
        return ()
    try:
        from gantrymq.pipelines.lake.combined_search import ArchivedCopies
    except ImportError as error:
        raise needs_lake(error) from error
    return (ArchivedCopies(archive),)


def as_row(life: MessageHistory) -> Row:
    """The whole life as one object."""
    return {
        "msgId": life.msg_id,
        "topic": life.topic,
        "tags": life.tags or None,
        "keys": list(life.keys),
        "state": life.state,
        "text": life.text,
        "dueTime": life.due_ms,
        "events": [_event_row(event) for event in life.events],
        "groups": [_group_row(standing) for standing in life.groups],
        "unknown": life.unknown,
    }


def _event_row(event: Event) -> Row:
    return {
        "time": event.at_ms,
        "what": event.what,
        "text": event.text,
        "group": event.group or None,
        "place": event.place or None,
        "dueTime": event.due_ms,
        "source": event.source,
    }


def _group_row(standing: Standing) -> Row:
    return {
        "group": standing.group,
        "state": standing.state,
        "text": standing.text,
        "dueTime": standing.due_ms,
    }


def _print(life: MessageHistory) -> None:
    marks = [life.msg_id, f"topic {life.topic or '?'}"]
    marks += [f"tag {life.tags}"] if life.tags else []
    marks += [f"keys {' '.join(life.keys)}"] if life.keys else []
    print(*marks, sep="  ")
    print(f"{life.state}: {_until(life.text, life.due_ms)}")
    print()
    print_table(
        {
            "time": shown(event.at_ms),
            "what": event.what,
            "group": event.group or None,
            "story": _until(event.text, event.due_ms),
            "where": event.place or None,
            "known from": event.source,
        }
        for event in life.events
    )
    if life.groups:
        print()
        print_table(
            {"group": each.group, "state": each.state, "story": _until(each.text, each.due_ms)}
            for each in life.groups
        )
    for text in life.unknown:
        print(f"not known: {text}")


def _until(text: str, due_ms: int | None) -> str:
    return text if due_ms is None else f"{text} until {shown(due_ms)}"
