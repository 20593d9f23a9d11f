"""`gantry reset`: move the progress of a group, after a preview."""

import asyncio
import sys
from typing import cast

import click

from gantrymq.base.errors import GantryError
from gantrymq.base.plurals import counted
from gantrymq.cli.common.known import check_group, check_topic
from gantrymq.cli.common.output import Row, fail, namesrv_option, output_option, print_rows
from gantrymq.cli.common.times import as_place
from gantrymq.client.admin.admin import Admin
from gantrymq.client.admin.groups.reset_offsets import ResetRow, To
from gantrymq.client.admin.groups.reset_offsets import reset as move
from gantrymq.model import Queue


@click.command("reset")
@click.argument("group")
@click.argument("topic")
@click.option(
    "--to",
    "place",
    required=True,
    metavar="PLACE",
    help="first, last, an offset, or a time ('yesterday 00:00', -15m).",
)
@click.option("--queue", metavar="BROKER:N", help="Only this queue.")
@click.option("--dry-run", is_flag=True, help="Only print the preview.")
@click.option("--force", is_flag=True, help="Also move forwards, which skips messages.")
@namesrv_option
@output_option
def reset(
    group: str,
    topic: str,
    place: str,
    queue: str | None,
    dry_run: bool,
    force: bool,
    namesrv: str | None,
    output: str,
) -> None:
    """Reset the progress of GROUP on TOPIC to an earlier place, whether members run or not.

    Prints each queue with its progress before and after, how many messages are read again and
    how many are skipped. Without --force no queue is moved forwards.
    """
    to = cast(To, as_place(place, "first", "last"))
    only = _queue(topic, queue) if queue else None

    async def run() -> list[ResetRow]:
        async with Admin(namesrv) as admin:
            await check_topic(admin, topic)
            await check_group(admin, group)
            rows = await admin.preview_reset(group, topic, to, queue=only, force=force)
            if not dry_run:
                await move(admin.instance, group, rows)
            return rows

    try:
        rows = asyncio.run(run())
    except GantryError as error:
        fail(error)
    else:
        print_rows([_row(row) for row in rows], output)
        print(_summary(rows, dry_run), file=sys.stderr)


def _queue(topic: str, text: str) -> Queue:
    name, mark, number = text.rpartition(":")
    if not mark or not name or not number.isdecimal():
        raise click.UsageError(f"--queue is BROKER:N, for instance broker-a:0, not {text!r}")
    return Queue(topic, name, int(number))


def _row(row: ResetRow) -> Row:
    return {
        "broker": row.queue.broker_name,
        "queueId": row.queue.queue_id,
        "now": row.now,
        "new": row.new,
        "again": row.again,
        "skipped": row.skipped,
    }


def _summary(rows: list[ResetRow], dry_run: bool) -> str:
    again, skipped = sum(row.again for row in rows), sum(row.skipped for row in rows)
    moved = sum(row.changes for row in rows)
    done = "would be moved" if dry_run else "moved"
    queues = f"{moved} of {counted(len(rows), 'queue')} {done}"
    return f"{queues}: {counted(again, 'message')} again, {skipped} skipped"
