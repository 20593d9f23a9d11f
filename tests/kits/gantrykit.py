"""Commands of `gantry` with what they print, and a cluster at work for them to look at.

The table is `gantry_commands.txt`, in the form of `mqadmin_commands.txt`.
"""

import asyncio
import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
from click.testing import CliRunner
from mqadminkit import Case, Place, cases

from gantrymq import Consumer, Delivery, Message, Producer
from gantrymq.cli.main import main
from gantrymq.client.admin.admin import Admin
from gantrymq.client.admin.letters.dead_letters import DeadLetters
from gantrymq.model import GroupConfig

TABLE = Path(__file__).parent / "gantry_commands.txt"
TOPIC, FAILING = "parcels", "shipping"
HOUR_SECONDS = 3600.0
LINES = [
    {"body": {"order": 8}, "keys": ["order-8"], "tags": "paid", "properties": {"region": "north"}},
    {"body": "remind the customer", "keys": ["order-8"], "delay": HOUR_SECONDS},
]
ELSEWHERE = {
    "up": "../README.md",
    "namesrv": "operating.md",
    "broker": "operating.md",
    "console": "guides/console.md",
    "run": "guides/app.md",
    "admin": "mqadmin.md",
    "why": "#history",
    "topic shrink": "../README.md",
    "nsaddr": "../README.md",
    "raft": "guides/raft.md",
    "store": "guides/store.md",
    "store cut": "guides/slaves.md",
    "pipeline": "guides/spark-running.md",
    "pipeline audit": "guides/spark-audit.md",
    "pipeline compact": "guides/spark-archive.md",
    "pipeline replay": "guides/spark-replay.md",
    "pipeline report": "guides/spark-report.md",
    "pipeline run": "guides/spark-again.md",
    "pipeline again": "guides/spark-again.md",
    "completion": "guides/operators.md",
}
"""Servers, Spark's jobs and the like, by the page that shows them at work."""


@dataclass(frozen=True)
class GantryPlace(Place):
    """What words and lines of the table are filled with."""

    letter: str


def leaves() -> Iterator[tuple[str, click.Command]]:
    """Every command with its name, as it is typed; a command of a group has two words."""
    yield from _leaves(main, "")


def _leaves(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        yield name, command
        return
    if name and command.invoke_without_command:  # `gantry console` serves, and has commands below
        yield name, command
    context = click.Context(command)
    for word in command.list_commands(context):
        below = command.get_command(context, word)
        assert below is not None
        yield from _leaves(below, f"{name} {word}".strip())


def page_of(name: str) -> str | None:
    """The page of a command that is not in the table."""
    return ELSEWHERE.get(name) or ELSEWHERE.get(name.partition(" ")[0])


def gantry_cases() -> dict[str, list[Case]]:
    """The paragraphs of the table, by command."""
    names = [name for name, _ in leaves()]
    found: dict[str, list[Case]] = {}
    for case in cases(TABLE):
        words = case.words.split()
        name = " ".join(words[:2]) if " ".join(words[:2]) in names else words[0]
        assert name in names, f"gantry has no command {name}"
        found.setdefault(name, []).append(case)
    return found


def said(words: str, place: GantryPlace) -> tuple[int, str]:
    """The exit code and what a command prints, errors among it."""
    given = [place.fill(word) for word in shlex.split(words)]
    result = CliRunner().invoke(main, given, env={"NAMESRV_ADDR": place.namesrv})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


def furnish(place: Place) -> GantryPlace:
    """Add to a scene of mqadmin: files to send, a delayed message, a dead letter."""
    (place.files / "lines.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in LINES))
    return GantryPlace(**vars(place), letter=asyncio.run(_dead_letter(place.namesrv)))


async def _dead_letter(namesrv: str) -> str:
    async with Admin(namesrv) as admin, Producer(namesrv, group="depot") as producer:
        await admin.create_topic(TOPIC, queues=1)
        await admin.update_group(GroupConfig(group_name=FAILING, retry_max_times=0))
        await producer.send(Message(TOPIC, b'{"parcel": 12}', keys=["parcel-12"]))
        await producer.send(Message("orders", b"later", keys=["k9"], delay=HOUR_SECONDS))
    consumer = Consumer(namesrv, group=FAILING, start="first")
    consumer.subscribe(TOPIC)

    @consumer.handler
    async def handle(message: Delivery) -> None:
        raise ValueError("no address")

    async with consumer, DeadLetters(namesrv, group=FAILING) as letters:
        while not (found := (await letters.page()).letters):
            await asyncio.sleep(0.1)
        return found[0].dead_id
