"""`gantry send`: send one message, or one for each line of a file or pipe."""

import asyncio
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from gantrymq.base.clock import SystemClock
from gantrymq.base.errors import GantryError
from gantrymq.base.plurals import counted
from gantrymq.cli.common.message_lines import LineRefused, MessageDefaults, read_line
from gantrymq.cli.common.output import (
    INTERRUPTED,
    Row,
    fail,
    namesrv_option,
    output_option,
    print_line,
    print_table,
)
from gantrymq.cli.common.pipes import read_lines
from gantrymq.cli.common.times import TIME, shown
from gantrymq.client.core.errors import ClientError
from gantrymq.client.produce.producer import Producer
from gantrymq.model import Message, NameRefused, SendResult

GROUP = "gantry-cli"
PROGRESS_SECONDS: Final = 2.0


@click.command("send")
@click.argument("topic")
@click.argument("body", required=False)
@click.option(
    "--file",
    "path",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Send each line of this file; without BODY and --file, each line of standard input.",
)
@click.option(
    "--jsonl",
    "as_json",
    is_flag=True,
    help="Lines are JSON: body, tags, keys, properties, delay, delayLevel, deliverAt, shardingKey.",
)
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
    body: str | None,
    path: Path | None,
    as_json: bool,
    tag: str | None,
    keys: tuple[str, ...],
    pairs: tuple[str, ...],
    delay_level: int,
    delay: float | None,
    deliver_at: int | None,
    namesrv: str | None,
    output: str,
) -> None:
    """Send BODY to TOPIC; `-` reads the body from standard input.

    Without BODY each line of --file or of standard input is a message; empty lines are passed
    over. Sending stops at the first error and says how many were sent. A line of --jsonl is an
    object with `body` (or `bodyBase64`), and with fields that override the options.
    """
    if body is not None and (path is not None or as_json):
        raise click.UsageError("BODY is one message: leave it out with --file and --jsonl")
    if deliver_at is not None and deliver_at < SystemClock().now_ms():
        raise click.UsageError(f"--deliver-at {shown(deliver_at)} is in the past")
    defaults = MessageDefaults(
        topic, tag, keys, dict(_pair(item) for item in pairs), delay_level, delay, deliver_at
    )
    if body is None:
        _send_lines(defaults, path, as_json, namesrv, output)
        return
    data = sys.stdin.buffer.read() if body == "-" else os.fsencode(body)
    try:
        result = asyncio.run(_send(_made(defaults, data), namesrv))
    except GantryError as error:
        fail(error)
    if output == "table":
        print_table([_row(result)])
    else:
        print_line(_row(result))


def _made(defaults: MessageDefaults, data: bytes) -> Message:
    try:
        return defaults.message(data)
    except NameRefused as error:
        fail(error)
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def _row(result: SendResult) -> Row:
    row: Row = {
        "status": result.status,
        "msgId": result.msg_id,
        "offsetMsgId": result.offset_msg_id,
        "queueId": result.queue.queue_id,
        "queueOffset": result.offset,
    }
    if result.recall_handle is not None:
        row["recallHandle"] = result.recall_handle
    return row


def _pair(text: str) -> tuple[str, str]:
    name, mark, value = text.partition("=")
    if not mark or not name:
        raise click.UsageError(f"--property {text}: write NAME=VALUE")
    return name, value


async def _send(message: Message, namesrv: str | None) -> SendResult:
    async with Producer(namesrv, group=GROUP) as producer:
        return await producer.send(message)


# lines


class StoppedAtLine(ClientError):
    """A line could not be sent; those before it were."""


@dataclass
class _Sent:
    """How many messages were sent, and how many lines were read."""

    count: int = 0
    line: int = 0


def _send_lines(
    defaults: MessageDefaults, path: Path | None, as_json: bool, namesrv: str | None, output: str
) -> None:
    if path is None and sys.stdin.isatty():
        raise click.UsageError("Missing argument 'BODY': or give --file, or pipe lines in")
    sent = _Sent()
    try:
        asyncio.run(_send_all(defaults, path, as_json, sent, namesrv, output))
    except KeyboardInterrupt:
        print(f"interrupted: {counted(sent.count, 'message')} sent", file=sys.stderr)
        raise SystemExit(INTERRUPTED) from None
    except (GantryError, ValueError) as error:
        if not sent.line:
            fail(error)
        where = "" if isinstance(error, LineRefused) else f"line {sent.line}: "
        fail(StoppedAtLine(f"{where}{error}; {counted(sent.count, 'message')} sent before it"))
    if not sent.line and path is None:
        raise click.UsageError("Missing argument 'BODY', and standard input has no line")
    print(f"{counted(sent.count, 'message')} sent to {defaults.topic}", file=sys.stderr)


async def _send_all(
    defaults: MessageDefaults,
    path: Path | None,
    as_json: bool,
    sent: _Sent,
    namesrv: str | None,
    output: str,
) -> None:
    loop = asyncio.get_running_loop()
    async with Producer(namesrv, group=GROUP) as producer:
        told = loop.time()
        async for line in read_lines(path):
            sent.line += 1
            text = line.rstrip(b"\r\n")
            if not text.strip():
                continue
            message = read_line(text, sent.line, defaults) if as_json else defaults.message(text)
            result = await producer.send(message)
            sent.count += 1
            if output != "table":
                print_line(_row(result))
            if loop.time() - told >= PROGRESS_SECONDS:
                told = loop.time()
                print(f"{counted(sent.count, 'message')} sent ...", file=sys.stderr, flush=True)
