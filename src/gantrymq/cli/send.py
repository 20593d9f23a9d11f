"""`gantry send`: send one message."""

import asyncio
import os
import sys
from datetime import UTC, datetime

import click

from gantrymq.base.clock import SystemClock
from gantrymq.base.errors import GantryError
from gantrymq.cli.common.output import fail, namesrv_option, output_option, print_line, print_table
from gantrymq.cli.common.times import TIME, shown
from gantrymq.client.produce.producer import Producer
from gantrymq.model import Message, NameRefused, SendResult

GROUP = "gantry-cli"


@click.command("send")
@click.argument("topic")
@click.argument("body")
@click.option("--tag", help="The tag.")
@click.option("--key", "keys", multiple=True, help="A key; repeatable.")
@click.option(
    "--property", "pairs", multiple=True, metavar="NAME=VALUE", help="A property; repeatable."
)
@click.option("--delay-level", type=click.IntRange(0, 18), default=0, help="Delay level, 1 to 18.")
@click.option(
    "--delay", type=click.FloatRange(0), help="Seconds until delivery; fractions are allowed."
)
@click.option("--deliver-at", type=TIME, help="Time of delivery: 'tomorrow 08:00', +90m.")
@namesrv_option
@output_option
def send(
    topic: str,
    body: str,
    tag: str | None,
    keys: tuple[str, ...],
    pairs: tuple[str, ...],
    delay_level: int,
    delay: float | None,
    deliver_at: int | None,
    namesrv: str | None,
    output: str,
) -> None:
    """Send BODY to TOPIC; `-` reads the body from standard input."""
    data = sys.stdin.buffer.read() if body == "-" else os.fsencode(body)
    properties = dict(_pair(item) for item in pairs)
    if deliver_at is not None and deliver_at < SystemClock().now_ms():
        raise click.UsageError(f"--deliver-at {shown(deliver_at)} is in the past")
    when = None if deliver_at is None else datetime.fromtimestamp(deliver_at / 1000, UTC)
    try:
        message = Message(
            topic,
            data,
            tags=tag,
            keys=keys,
            properties=properties,
            delay_level=delay_level,
            delay=delay,
            deliver_at=when,
        )
    except NameRefused as error:
        fail(error)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    try:
        result = asyncio.run(_send(message, namesrv))
    except GantryError as error:
        fail(error)
    row = {
        "status": result.status,
        "msgId": result.msg_id,
        "offsetMsgId": result.offset_msg_id,
        "queueId": result.queue.queue_id,
        "queueOffset": result.offset,
    }
    if result.recall_handle is not None:
        row["recallHandle"] = result.recall_handle
    if output == "table":
        print_table([row])
    else:
        print_line(row)


def _pair(text: str) -> tuple[str, str]:
    name, mark, value = text.partition("=")
    if not mark or not name:
        raise click.UsageError(f"--property {text}: write NAME=VALUE")
    return name, value


async def _send(message: Message, namesrv: str | None) -> SendResult:
    async with Producer(namesrv, group=GROUP) as producer:
        return await producer.send(message)
