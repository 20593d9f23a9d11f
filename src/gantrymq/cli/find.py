"""`gantry find`: search stored messages by id, key, place or time."""

import asyncio
import sys
from typing import TYPE_CHECKING

import click

from gantrymq.base.errors import GantryError
from gantrymq.cli.common.known import check_topic, check_topic_or_archived
from gantrymq.cli.common.output import (
    Row,
    archive_option,
    fail,
    message_row,
    namesrv_option,
    needs_lake,
    output_option,
    print_rows,
)
from gantrymq.cli.common.times import TIME
from gantrymq.client.admin.admin import Admin
from gantrymq.client.admin.messages.message_query import FOREVER_MS
from gantrymq.client.admin.messages.message_search import FOUND_MAX, Finder, Found
from gantrymq.client.messages.received import Received
from gantrymq.model import Queue

if TYPE_CHECKING:
    from gantrymq.pipelines.lake.combined_search import HotAndCold


@click.command("find")
@click.argument("topic")
@click.option("--id", "msg_id", help="Message id or offset message id.")
@click.option("--key", help="A key of the message.")
@click.option("--queue", metavar="BROKER:N", help="The queue; needs --offset.")
@click.option("--offset", type=click.IntRange(0), help="The offset in the queue; needs --queue.")
@click.option("--from", "begin", type=TIME, help="Stored then or later: 'today 08:30', -15m.")
@click.option("--until", "end", type=TIME, help="Stored then or earlier.")
@click.option(
    "--tags",
    default="*",
    show_default=True,
    help="With --from or --until, only these tags: 'a || b'.",
)
@click.option("--limit", default=FOUND_MAX, show_default=True, type=click.IntRange(1))
@archive_option
@namesrv_option
@output_option
def find(
    topic: str,
    msg_id: str | None,
    key: str | None,
    queue: str | None,
    offset: int | None,
    begin: int | None,
    end: int | None,
    tags: str,
    limit: int,
    archive: str | None,
    namesrv: str | None,
    output: str,
) -> None:
    """Find messages of TOPIC by --id, --key, --queue and --offset, or --from and --until.

    Times are local unless they name a zone. The exit code is 1 when nothing is found.
    """
    begin_ms = 0 if begin is None else begin
    end_ms = FOREVER_MS if end is None else end
    ways = [msg_id is not None, key is not None, queue is not None or offset is not None]
    if sum(ways) > 1 or not (any(ways) or begin is not None or end is not None):
        raise click.UsageError("say one of --id, --key, --queue with --offset, --from/--until")
    place = _place(topic, queue, offset) if ways[2] else None

    async def search() -> Found:
        async with Admin(namesrv) as admin:
            finder = _finder(admin, archive)
            if archive is None:
                await check_topic(admin, topic)
            else:
                await check_topic_or_archived(admin, archive, topic)
            if msg_id is not None:
                return await finder.by_id(msg_id, topic=topic)
            if key is not None:
                return await finder.by_key(
                    topic, key, begin_ms=begin_ms, end_ms=end_ms, limit=limit
                )
            if place is not None:
                return await finder.at(*place)
            return await finder.by_time(topic, begin_ms, end_ms, tags=tags, limit=limit)

    try:
        found = asyncio.run(search())
    except GantryError as error:
        fail(error)
    print_rows([_row(message, archive) for message in found.messages], output)
    word = "complete" if found.complete else f"not complete: {found.why}"
    print(f"{len(found.messages)} found, {word}", file=sys.stderr)
    if not found.messages:
        raise SystemExit(1)


def _finder(admin: Admin, archive: str | None) -> "Finder | HotAndCold":
    if archive is None:
        return Finder(admin)
    try:
        from gantrymq.pipelines.lake import open_table
        from gantrymq.pipelines.lake.combined_search import HotAndCold
        from gantrymq.pipelines.lake.lookup import Lookup
    except ImportError as error:
        raise needs_lake(error) from error
    return HotAndCold(admin, Lookup(open_table(archive)))


def _row(message: Received, archive: str | None) -> Row:
    if archive is None:
        return message_row(message)
    hot = message.origin == Received.origin
    return {**message_row(message), "from": "broker" if hot else message.origin}


def _place(topic: str, queue: str | None, offset: int | None) -> tuple[Queue, int]:
    name, mark, number = (queue or "").rpartition(":")
    if offset is None or not mark or not name or not number.isdecimal():
        raise click.UsageError("a place is --queue BROKER:N together with --offset M")
    return Queue(topic, name, int(number)), offset
