"""`gantry history`: the history of one message, from send to ack; `gantry why` is the same."""

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
from gantrymq.client.admin.messages.history_query import (
    GroupSource,
    HistorySource,
    IdSource,
    Stored,
    Traces,
)
from gantrymq.client.admin.messages.history_query import why as find_history
from gantrymq.client.admin.messages.message_history import Event, MessageHistory, Standing
from gantrymq.model import TRACE_TOPIC


@click.command("history")
@click.argument("msgid")
@click.option("--topic", help="Its topic; without it all topics are searched.")
@click.option(
    "--trace-topic",
    default=TRACE_TOPIC,
    show_default=True,
    help="The topic that clients trace into.",
)
@archive_option
@namesrv_option
@output_option
def history(
    msgid: str,
    topic: str | None,
    trace_topic: str,
    archive: str | None,
    namesrv: str | None,
    output: str,
) -> None:
    """Show the history of message MSGID: sent, stored, retried, consumed, and by whom."""
    try:
        found = asyncio.run(_look(msgid, topic, trace_topic, archive, namesrv))
    except GantryError as error:
        fail(error)
    if output == "table":
        _print(found)
    elif output == "json":
        print_rows([as_row(found)], "json")
    else:
        for event in found.events:
            print_line({"kind": "event", **_event_row(event)})
        for standing in found.groups:
            print_line({"kind": "group", **_group_row(standing)})
        for text in found.unknown:
            print_line({"kind": "unknown", "text": text})


why = click.Command("why", params=history.params, callback=history.callback, help=history.help)
"""The name that the command had first."""


async def _look(
    msg_id: str, topic: str | None, trace_topic: str, archive: str | None, namesrv: str | None
) -> MessageHistory:
    async with Admin(namesrv) as admin:
        archived = _archived(archive)
        if topic is not None and archive is None:
            await check_topic(admin, topic)
        elif topic is not None and archive is not None:
            await check_topic_or_archived(admin, archive, topic)
        return await find_history(
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


def as_row(history: MessageHistory) -> Row:
    """The whole history as one object."""
    return {
        "msgId": history.msg_id,
        "topic": history.topic,
        "tags": history.tags or None,
        "keys": list(history.keys),
        "state": history.state,
        "text": history.text,
        "dueTime": history.due_ms,
        "events": [_event_row(event) for event in history.events],
        "groups": [_group_row(standing) for standing in history.groups],
        "unknown": history.unknown,
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


def _print(history: MessageHistory) -> None:
    marks = [history.msg_id, f"topic {history.topic or '?'}"]
    marks += [f"tag {history.tags}"] if history.tags else []
    marks += [f"keys {' '.join(history.keys)}"] if history.keys else []
    print(*marks, sep="  ")
    print(f"{history.state}: {_until(history.text, history.due_ms)}")
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
        for event in history.events
    )
    if history.groups:
        print()
        print_table(
            {"group": each.group, "state": each.state, "story": _until(each.text, each.due_ms)}
            for each in history.groups
        )
    for text in history.unknown:
        print(f"not known: {text}")


def _until(text: str, due_ms: int | None) -> str:
    return text if due_ms is None else f"{text} until {shown(due_ms)}"
