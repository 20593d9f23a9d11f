"""`gantry tail`: print the messages of a topic between two places, or as they arrive."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import click

from gantrymq.base.errors import GantryError
from gantrymq.base.plurals import counted
from gantrymq.cli.common.output import (
    Row,
    body_fields,
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
@click.option(
    "--tags", default="*", show_default=True, help="Only messages with one of these tags: 'a || b'."
)
@namesrv_option
@output_option
def tail(
    topic: str, start: str, end: str | None, tags: str, namesrv: str | None, output: str
) -> None:
    """Print the messages of TOPIC as they arrive, or up to --until."""
    begin = _place(start, {"first": PullConsumer.min_offset, "last": PullConsumer.max_offset})
    stop = _place(end, {"now": PullConsumer.max_offset}) if end is not None else None
    try:
        with suppress(KeyboardInterrupt):
            asyncio.run(_tail(topic, begin, stop, tags, namesrv, output))
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


async def _tail(
    topic: str, start: Place, end: Place | None, tags: str, namesrv: str | None, output: str
) -> None:
    async with PullConsumer(namesrv, group=GROUP) as consumer, while_read():
        queues = await consumer.queues(topic)
        if end is None:
            async with asyncio.TaskGroup() as tasks:
                for queue in queues:
                    tasks.create_task(_follow(consumer, queue, start, tags, output))
            return
        rows: list[Row] = []
        for queue in queues:
            limit = await end(consumer, queue)
            rows += await _range(consumer, queue, await start(consumer, queue), limit, tags)
        rows.sort(key=lambda row: (row["storeTime"], row["queueId"], row["queueOffset"]))
        print_rows(rows, output)


async def _range(
    consumer: PullConsumer, queue: Queue, offset: int, end: int, tags: str
) -> list[Row]:
    rows: list[Row] = []
    while offset < end:
        found = await consumer.pull(queue, offset, tags=tags, max_count=BATCH)
        rows += [message_row(message) for message in found.messages if message.offset < end]
        moved = _next(found, offset)
        if moved == offset:
            break
        offset = moved
    return rows


async def _follow(
    consumer: PullConsumer, queue: Queue, start: Place, tags: str, output: str
) -> None:
    offset = await start(consumer, queue)
    while True:
        found = await consumer.pull_blocking(queue, offset, tags=tags, max_count=BATCH)
        for message in found.messages:
            if output == "table":
                print(_text(message), flush=True)
            else:
                print_line(message_row(message))
        offset = _next(found, offset)


def _next(found: PullResult, offset: int) -> int:
    return offset if found.status is PullStatus.NO_NEW else found.next_offset


def _text(message: Received) -> str:
    body = body_fields(message.body).get("body", f"<{counted(len(message.body), 'byte')}>")
    place = f"{message.queue.broker_name}:{message.queue.queue_id}@{message.offset}"
    return f"{shown(message.store_ms)} {place} {message.tags or '-'} {body}"
