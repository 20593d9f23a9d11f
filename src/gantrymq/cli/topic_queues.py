"""`gantry topic shrink` and `gantry topic spread`: fewer queues, or more for a backlog."""

import asyncio
import sys

import click

from gantrymq.base.errors import GantryError
from gantrymq.base.plurals import counted
from gantrymq.cli.common.output import (
    ABOVE_0,
    INTERRUPTED,
    Row,
    fail,
    namesrv_option,
    output_option,
    print_rows,
)
from gantrymq.client.admin.admin import Admin
from gantrymq.client.admin.topics.shrink import shrink_topic
from gantrymq.client.admin.topics.spread import RATE_DEFAULT, Keyless, Spread, SpreadRow


@click.command("shrink")
@click.argument("name", metavar="TOPIC")
@click.option(
    "--queues", type=click.IntRange(1), required=True, help="Queues on each broker afterwards."
)
@click.option("--timeout", default=3600.0, show_default=True, help="Seconds to wait for readers.")
@namesrv_option
def shrink(name: str, queues: int, timeout: float, namesrv: str | None) -> None:
    """Give TOPIC fewer queues.

    The surplus queues are closed for writing first, and for reading once every group has read them.
    """

    async def run() -> None:
        async with Admin(namesrv) as admin:
            await shrink_topic(
                admin,
                name,
                queues,
                timeout=timeout,
                say=lambda line: print(line, file=sys.stderr, flush=True),
            )

    try:
        asyncio.run(run())
    except GantryError as error:
        fail(error)


@click.command("spread")
@click.argument("name", metavar="TOPIC")
@click.option(
    "--to",
    "to",
    required=True,
    metavar="NEW",
    help="The topic with more queues; created if it is missing.",
)
@click.option(
    "--queues", type=click.IntRange(1), required=True, help="Queues of NEW on each broker."
)
@click.option("--group", required=True, help="The group whose unread messages are moved.")
@click.option(
    "--rate",
    type=ABOVE_0,
    default=RATE_DEFAULT,
    show_default=True,
    help="Messages a second, at most.",
)
@click.option(
    "--keyless",
    type=click.Choice(["spread", "queue", "keys"]),
    help="Where messages without a sharding key go: anywhere (default), where their "
    "queue goes (default of order topics), or by their first key.",
)
@click.option("--force", is_flag=True, help="Also while members of the group read TOPIC.")
@click.option("--dry-run", is_flag=True, help="Only show what would be moved.")
@namesrv_option
@output_option
def spread(
    name: str,
    to: str,
    queues: int,
    group: str,
    rate: float,
    keyless: Keyless | None,
    force: bool,
    dry_run: bool,
    namesrv: str | None,
    output: str,
) -> None:
    """Copy the unread messages of a group from TOPIC into a topic with more queues.

    More consumers can then share them. Messages with one sharding key stay in order. The progress
    of the group on TOPIC follows the copies: if the command is stopped, run it again to go on.
    """

    async def run() -> list[SpreadRow]:
        async with Admin(namesrv) as admin:
            work = Spread(
                admin,
                name,
                group=group,
                to=to,
                queues=queues,
                rate=rate,
                keyless=keyless,
                force=force,
                say=lambda line: print(line, file=sys.stderr, flush=True),
            )
            return await (work.plan() if dry_run else work.run())

    try:
        rows = asyncio.run(run())
    except KeyboardInterrupt:
        print("stopped: the same command goes on where it was", file=sys.stderr)
        raise SystemExit(INTERRUPTED) from None
    except GantryError as error:
        fail(error)
    else:
        print_rows([_spread_row(row, dry_run) for row in rows], output)
        _say_next(rows, to, group, dry_run)


def _spread_row(row: SpreadRow, dry_run: bool) -> Row:
    found: Row = {
        "broker": row.queue.broker_name,
        "queueId": row.queue.queue_id,
        "from": row.start,
        "to": row.end,
        "waiting": row.waiting,
    }
    return found if dry_run else {**found, "moved": row.moved, "skipped": row.skipped}


def _say_next(rows: list[SpreadRow], to: str, group: str, dry_run: bool) -> None:
    if dry_run:
        waiting = sum(row.waiting for row in rows)
        print(f"{counted(waiting, 'message')} would be moved", file=sys.stderr)
        return
    moved, skipped = sum(row.moved for row in rows), sum(row.skipped for row in rows)
    print(
        f"{counted(moved, 'message')} moved to {to}, {skipped} had been before: "
        f"let {group} subscribe to {to}",
        file=sys.stderr,
    )
