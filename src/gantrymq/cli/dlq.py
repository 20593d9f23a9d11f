"""`gantry dlq`: list, count by cause, show, resend and export the dead letters of a group."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from gantrymq.base.errors import GantryError
from gantrymq.cli.common.known import check_group
from gantrymq.cli.common.output import (
    ABOVE_0,
    INTERRUPTED,
    Row,
    body_fields,
    fail,
    namesrv_option,
    output_option,
    print_line,
    print_rows,
)
from gantrymq.cli.common.times import TIME, shown
from gantrymq.client.admin.admin import Admin
from gantrymq.client.admin.letters.dead_letters import Cause, DeadLetterFilter, DeadLetters, Letter
from gantrymq.client.admin.letters.resend import RATE_DEFAULT

F = TypeVar("F", bound=Callable[..., Any])

TO = click.Choice(["retry", "topic"])


@click.group("dlq")
def dlq() -> None:
    """List, show, resend and export dead letters: messages that a group could not consume."""


def _filters(function: F) -> F:
    """Add the options that choose letters."""
    options = [
        click.option("--fingerprint", help="Only letters with this cause; see `gantry dlq stats`."),
        click.option("--topic", help="Only letters that were sent to this topic."),
        click.option("--key", help="Only letters with this key, or this message id."),
        click.option("--since", type=TIME, help="Only those that died then or later."),
        click.option("--until", type=TIME, help="Only those that died then or before."),
    ]
    for option in reversed(options):
        function = option(function)
    return function


def _wanted(chosen: dict[str, Any]) -> DeadLetterFilter:
    return DeadLetterFilter(
        fingerprint=chosen.pop("fingerprint"),
        topic=chosen.pop("topic"),
        key=chosen.pop("key"),
        since_ms=chosen.pop("since"),
        until_ms=chosen.pop("until"),
    )


def _run(namesrv: str | None, group: str, work: Callable[[DeadLetters], Awaitable[None]]) -> None:
    async def main() -> None:
        async with Admin(namesrv) as admin:
            await check_group(admin, group)
        async with DeadLetters(namesrv, group=group) as letters:
            await work(letters)

    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None  # not everything was done
    except GantryError as error:
        fail(error)


@dlq.command("list")
@click.argument("group")
@_filters
@click.option(
    "--limit", type=click.IntRange(1), default=100, show_default=True, help="Letters of one page."
)
@click.option("--after", metavar="PLACE", help="Begin after the last page; it prints the value.")
@namesrv_option
@output_option
def list_letters(
    group: str, limit: int, after: str | None, namesrv: str | None, output: str, **chosen: Any
) -> None:
    """List the dead letters of GROUP, oldest first, one page at a time."""
    wanted = _wanted(chosen)

    async def work(letters: DeadLetters) -> None:
        page = await letters.page(wanted, limit=limit, after=after)
        print_rows([_row(letter, output) for letter in page.letters], output)
        more = f"more: --after {page.after}" if page.after else "these are all"
        print(more, file=sys.stderr)

    _run(namesrv, group, work)


def _row(letter: Letter, output: str) -> Row:
    row = letter.row()
    if output != "table":
        return row
    why = row["text"] or row["reason"] or ""
    return {
        "died": shown(row["diedTime"]),
        "deadId": row["deadId"],
        "topic": row["topic"],
        "keys": row["keys"],
        "tries": row["tries"],
        "fingerprint": row["fingerprint"],
        "error": row["error"],
        "why": why.splitlines()[0][:60] if why else None,
    }


@dlq.command("stats")
@click.argument("group")
@_filters
@namesrv_option
@output_option
def stats(group: str, namesrv: str | None, output: str, **chosen: Any) -> None:
    """Count the dead letters of GROUP by cause, the most frequent first."""
    wanted = _wanted(chosen)

    async def work(letters: DeadLetters) -> None:
        causes = await letters.statistics(wanted)
        print_rows([_cause(cause, output) for cause in causes], output)

    _run(namesrv, group, work)


def _cause(cause: Cause, output: str) -> Row:
    table = output == "table"
    return {
        "count": cause.count,
        "fingerprint": cause.fingerprint or None,
        "error": cause.error or None,
        "text": (cause.text[:60] if table else cause.text) or None,
        "reason": cause.reason or None,
        "topics": [f"{t}={n}" for t, n in cause.topics.items()] if table else cause.topics,
        "first": shown(cause.first_ms) if table else cause.first_ms,
        "last": shown(cause.last_ms) if table else cause.last_ms,
        "sample": cause.sample,
    }


@dlq.command("show")
@click.argument("group")
@click.argument("letter_id", metavar="ID")
@namesrv_option
@click.option("-o", "--output", type=click.Choice(["json", "jsonl"]), default="json")
def show(group: str, letter_id: str, namesrv: str | None, output: str) -> None:
    """Show one letter with body and properties, by its dead id or its message id."""

    async def work(letters: DeadLetters) -> None:
        print_rows([_whole(await letters.one(letter_id))], output)

    _run(namesrv, group, work)


def _whole(letter: Letter) -> Row:
    message = letter.message
    return {**letter.row(), "properties": message.properties, **body_fields(message.body)}


@dlq.command("export")
@click.argument("group")
@_filters
@namesrv_option
def export(group: str, namesrv: str | None, **chosen: Any) -> None:
    """Print every letter of GROUP as a line of JSON, with body and properties."""
    wanted = _wanted(chosen)

    async def work(letters: DeadLetters) -> None:
        async for letter in letters.all(wanted):
            print_line(_whole(letter))

    _run(namesrv, group, work)


@dlq.command("resend")
@click.argument("group")
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--all", "everything", is_flag=True, help="All letters that the options choose.")
@_filters
@click.option(
    "--to",
    type=TO,
    default="retry",
    show_default=True,
    help="retry: only GROUP gets them; topic: every group does.",
)
@click.option(
    "--rate",
    type=ABOVE_0,
    default=RATE_DEFAULT,
    show_default=True,
    help="Letters a second, at most.",
)
@click.option(
    "--progress",
    type=click.Path(path_type=Path),
    help="Keep a list of resent letters in this file.",
)
@click.option("--again", is_flag=True, help="Also letters that were resent before.")
@click.option("--dry-run", is_flag=True, help="Only count the letters.")
@namesrv_option
@output_option
def resend(
    group: str,
    ids: tuple[str, ...],
    everything: bool,
    to: Any,
    rate: float,
    again: bool,
    progress: Path | None,
    dry_run: bool,
    namesrv: str | None,
    output: str,
    **chosen: Any,
) -> None:
    """Resend letters of GROUP, each once: those with an ID, or with --all those chosen."""
    if bool(ids) == everything:
        raise click.UsageError("name the letters, or choose them with --all and filters")
    wanted = _wanted(chosen)

    async def work(letters: DeadLetters) -> None:
        if ids:
            rows = []
            for any_id in ids:
                letter = await letters.one(any_id)
                done = dry_run or await letters.resend(letter, to=to, again=again) is not None
                outcome = "would be resent" if dry_run else "resent" if done else "skipped"
                rows.append({"deadId": letter.dead_id, "outcome": outcome})
            print_rows(rows, output)
        elif dry_run:
            print_rows([{"letters": sum([1 async for _ in letters.all(wanted)])}], output)
        else:
            found = await letters.resend_all(
                wanted, to=to, rate=rate, progress=progress, again=again
            )
            failed = len(found.failed)
            row = {"resent": found.resent, "skipped": found.skipped, "failed": failed}
            print_rows([row], output)
            for dead_id, error in found.failed.items():
                print(f"error: {dead_id}: {error}", file=sys.stderr)
            if failed:
                raise SystemExit(1)

    _run(namesrv, group, work)


@dlq.command("mend")
@click.argument("group")
@namesrv_option
def mend(group: str, namesrv: str | None) -> None:
    """Make the dead letter topic of GROUP readable: brokers before 4.9.2 create it write-only."""

    async def work(letters: DeadLetters) -> None:
        mended = await letters.mend()
        print(f"readable now: {', '.join(mended)}" if mended else "was readable everywhere")

    _run(namesrv, group, work)
