"""`gantry tail`: print the messages of a topic between two places, or as they arrive."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

import click

from gantrymq.base.errors import GantryError
from gantrymq.base.plurals import counted
from gantrymq.cli.common.output import (
    Row,
    fail,
    message_row,
    namesrv_option,
    output_option,
    print_line,
    print_rows,
)
from gantrymq.cli.common.pipes import while_read
from gantrymq.cli.common.times import as_place, shown
from gantrymq.client.consume.pull.pull_consumer import PullConsumer, PullResult
from gantrymq.client.consume.queues.pull_request import PullStatus
from gantrymq.client.messages.received import Received
from gantrymq.filter import condition
from gantrymq.model import Queue

GROUP = "gantry-cli"
BATCH = 512

Place = Callable[[PullConsumer, Queue], Awaitable[int]]


@click.command("tail")
@click.argument("topic")
@click.option(
    "--from",
    "start",
    default="last",
    show_default=True,
    metavar="PLACE",
    help="first, last, an offset, or a time ('yesterday 00:00', -15m).",
)
@click.option(
    "--until",
    "end",
    metavar="PLACE",
    help="Stop at: now, an offset, or a time. Without it the command goes on.",
)
@click.option("--tags", help="Only messages with one of these tags: 'a || b'.")
@click.option("--sql", help="Only messages for which this condition holds: 'amount > 10'.")
@click.option("--key", "keys", multiple=True, help="Only messages with this key; repeatable.")
@click.option("--grep", "text", help="Only messages with this text in their body.")
@click.option("--limit", type=click.IntRange(1), help="Stop after so many messages.")
@click.option(
    "--body",
    "form",
    type=click.Choice(["text", "json", "hex"]),
    default="text",
    show_default=True,
    help="How bodies are shown; json and hex for all outputs.",
)
@namesrv_option
@output_option
def tail(
    topic: str,
    start: str,
    end: str | None,
    tags: str | None,
    sql: str | None,
    keys: tuple[str, ...],
    text: str | None,
    limit: int | None,
    form: str,
    namesrv: str | None,
    output: str,
) -> None:
    """Print the messages of TOPIC as they arrive, or up to --until.

    Tags and SQL conditions are checked by the brokers, keys and text here.
    """
    if tags is not None and sql is not None:
        raise click.UsageError("say --tags or --sql: a broker checks one of them")
    if sql is not None:
        try:
            condition(sql)
        except GantryError as error:
            raise click.UsageError(f"--sql: {error}") from None
    wanted = MessageFilter(tags or "*", sql, frozenset(keys), text, limit)
    begin = _place(start, {"first": PullConsumer.min_offset, "last": PullConsumer.max_offset})
    stop = _place(end, {"now": PullConsumer.max_offset}) if end is not None else None
    try:
        with suppress(KeyboardInterrupt):
            asyncio.run(_tail(topic, begin, stop, wanted, form, namesrv, output))
    except GantryError as error:
        fail(error)


def _place(text: str, words: dict[str, Place]) -> Place:
    """A function that finds the offset of a place in a queue."""
    place = as_place(text, *words)
    if isinstance(place, str):
        return words[place]

    async def ask(consumer: PullConsumer, queue: Queue) -> int:
        return place if isinstance(place, int) else await consumer.search_offset(queue, place)

    return ask


@dataclass(frozen=True)
class MessageFilter:
    """Which messages are shown."""

    tags: str = "*"
    sql: str | None = None
    keys: frozenset[str] = frozenset()
    text: str | None = None
    limit: int | None = None

    def takes(self, message: Received) -> bool:
        """What brokers do not check: keys, and the text of the body."""
        if self.keys and self.keys.isdisjoint(message.keys):
            return False
        return self.text is None or self.text.encode() in message.body


class _Enough(Exception):
    """As many messages were printed as were asked for."""


async def _tail(
    topic: str,
    start: Place,
    end: Place | None,
    wanted: MessageFilter,
    form: str,
    namesrv: str | None,
    output: str,
) -> None:
    async with PullConsumer(namesrv, group=GROUP) as consumer, while_read():
        queues = await consumer.queues(topic)
        if end is None:
            printer = _Printer(form, output, wanted.limit)
            try:
                async with asyncio.TaskGroup() as tasks:
                    for queue in queues:
                        tasks.create_task(_follow(consumer, queue, start, wanted, printer))
            except* _Enough:
                pass
            return
        rows: list[Row] = []
        for queue in queues:
            limit = await end(consumer, queue)
            begin = await start(consumer, queue)
            found = await _range(consumer, queue, begin, limit, wanted)
            rows += [shown_row(message, form) for message in found]
        rows.sort(key=lambda row: (row["storeTime"], row["queueId"], row["queueOffset"]))
        rows = rows[: wanted.limit]
        print_rows([row | _body_text(row) for row in rows] if output == "table" else rows, output)


async def _range(
    consumer: PullConsumer, queue: Queue, offset: int, end: int, wanted: MessageFilter
) -> list[Received]:
    messages: list[Received] = []
    while offset < end:
        found = await consumer.pull(
            queue, offset, tags=wanted.tags, sql=wanted.sql, max_count=BATCH
        )
        messages += [each for each in found.messages if each.offset < end and wanted.takes(each)]
        moved = _next(found, offset)
        enough = wanted.limit is not None and len(messages) >= wanted.limit
        if moved == offset or enough:
            break
        offset = moved
    return messages


async def _follow(
    consumer: PullConsumer, queue: Queue, start: Place, wanted: MessageFilter, printer: "_Printer"
) -> None:
    offset = await start(consumer, queue)
    while True:
        found = await consumer.pull_blocking(
            queue, offset, tags=wanted.tags, sql=wanted.sql, max_count=BATCH
        )
        for message in found.messages:
            if wanted.takes(message):
                printer.print(message)
        offset = _next(found, offset)


class _Printer:
    """Prints messages as they arrive; raises _Enough after the last one."""

    def __init__(self, form: str, output: str, limit: int | None) -> None:
        self._form, self._output, self._left = form, output, limit

    def print(self, message: Received) -> None:
        row = shown_row(message, self._form)
        if self._output == "table":
            print(_text(message, row), flush=True)
        else:
            print_line(row)
        if self._left is not None:
            self._left -= 1
            if not self._left:
                raise _Enough


def _next(found: PullResult, offset: int) -> int:
    return offset if found.status is PullStatus.NO_NEW else found.next_offset


def shown_row(message: Received, form: str) -> Row:
    """A message as a row, its body as text, as JSON, or in hexadecimal digits."""
    row = message_row(message)
    if form == "hex":
        row.pop("body", None)
        row.pop("bodyBase64", None)
        row["bodyHex"] = message.body.hex(" ")
    elif form == "json":
        with suppress(ValueError, UnicodeDecodeError):
            row["body"] = json.loads(message.body)
            row.pop("bodyBase64", None)
    return row


def _body_text(row: Row) -> Row:
    """A body that is JSON as text, for people."""
    if isinstance(row.get("body"), str) or "body" not in row:
        return {}
    return {"body": json.dumps(row["body"], ensure_ascii=False)}


def _text(message: Received, row: Row) -> str:
    row = row | _body_text(row)
    body = row.get("bodyHex") or row.get("body", f"<{counted(len(message.body), 'byte')}>")
    place = f"{message.queue.broker_name}:{message.queue.queue_id}@{message.offset}"
    return f"{shown(message.store_ms)} {place} {message.tags or '-'} {body}"
