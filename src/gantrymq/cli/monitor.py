"""`gantry monitor`: watch all groups, and tell what goes wrong."""

import asyncio
import sys
from collections.abc import Sequence
from contextlib import suppress

import click

from gantrymq.base.plurals import counted
from gantrymq.cli.common.guard import describe
from gantrymq.cli.common.output import ABOVE_0, namesrv_option, print_line
from gantrymq.cli.common.pipes import while_read
from gantrymq.cli.common.times import shown
from gantrymq.client.admin.admin import Admin
from gantrymq.client.admin.monitoring.monitor import EVERY_SECONDS, Monitor
from gantrymq.client.admin.monitoring.monitor_round import (
    MonitorRound,
    OffsetMovedEvent,
    Problem,
    Thresholds,
)
from gantrymq.client.admin.monitoring.webhook import Webhook, WebhookFailed

DEFAULTS = Thresholds()


@click.command("monitor")
@click.option(
    "--every",
    type=ABOVE_0,
    default=EVERY_SECONDS,
    show_default=True,
    help="Seconds between two rounds.",
)
@click.option("--rounds", type=click.IntRange(1), help="End after so many rounds.")
@click.option(
    "--waiting",
    type=click.IntRange(0),
    default=DEFAULTS.waiting,
    show_default=True,
    help="A group may have so many waiting messages.",
)
@click.option(
    "--oldest",
    type=ABOVE_0,
    default=DEFAULTS.oldest_seconds,
    show_default=True,
    help="Seconds that a message may wait.",
)
@click.option(
    "--retries",
    type=click.IntRange(0),
    default=DEFAULTS.retries,
    show_default=True,
    help="A group may have so many retries waiting.",
)
@click.option(
    "--dead",
    type=click.IntRange(0),
    default=DEFAULTS.dead,
    show_default=True,
    help="A group may get so many dead letters in a round.",
)
@click.option(
    "--webhook", metavar="URL", help="Post what is over a threshold, as JSON, each round."
)
@namesrv_option
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "jsonl"]),
    default="text",
    show_default=True,
    help="Format of the data.",
)
def monitor(
    every: float,
    rounds: int | None,
    waiting: int,
    oldest: float,
    retries: int,
    dead: int,
    webhook: str | None,
    namesrv: str | None,
    output: str,
) -> None:
    """Watch all groups: what waits, retries, dead letters, stuck and differing members.

    A message that was deleted before a group read it is told at once. Lines that begin with
    PROBLEM are over a threshold; the same goes to --webhook. Ends with Ctrl-C.
    """
    hook = Webhook(webhook) if webhook is not None else None
    teller = MonitorTeller(hook, as_json=output == "jsonl")

    async def run() -> None:
        async with while_read(), Admin(namesrv) as admin:
            await admin.cluster()  # a wrong address is an error, not a line a minute
            watch = Monitor(
                admin,
                on_round=teller.round,
                on_moved=teller.moved,
                thresholds=Thresholds(waiting, oldest, retries, dead),
            )
            await watch.run(every, rounds=rounds)

    with suppress(KeyboardInterrupt):
        asyncio.run(run())


class MonitorTeller:
    """Prints what a monitor saw, and posts problems to a webhook."""

    def __init__(self, hook: Webhook | None, *, as_json: bool) -> None:
        self._hook, self._as_json = hook, as_json
        self._unsent: list[Problem] = []
        """Problems between two rounds: they go with the next post."""

    async def round(self, found: MonitorRound, problems: Sequence[Problem]) -> None:
        if self._as_json:
            for row in found.rows():
                print_line({"event": "group", "time": found.at_ms, "round": found.number, **row})
            for problem in problems:
                print_line({"event": "problem", "time": found.at_ms, **problem.row()})
        else:
            self._print(found, problems)
        await self._post(found, [*self._unsent, *problems])

    def _print(self, found: MonitorRound, problems: Sequence[Problem]) -> None:
        at = shown(found.at_ms)
        for line in found.lines():
            print(at, line, flush=True)
        for problem in problems:
            print(at, f"PROBLEM {problem.kind}: {problem.text}", flush=True)
        print(
            at,
            f"round {found.number}: {counted(len(found.groups), 'group')}, "
            f"{sum(group.lag for group in found.groups)} waiting, "
            f"{counted(len(problems), 'problem')}",
            flush=True,
        )

    async def moved(self, event: OffsetMovedEvent) -> None:
        self._unsent.append(event.problem)
        if self._as_json:
            print_line({"event": "problem", "time": event.at_ms, **event.problem.row()})
        else:
            print(shown(event.at_ms), f"PROBLEM deleted: {event.text}", flush=True)

    async def _post(self, found: MonitorRound, problems: Sequence[Problem]) -> None:
        if self._hook is None or not problems:
            self._unsent.clear()
            return
        rows = [problem.row() for problem in problems]
        try:
            await self._hook.post({"time": found.at_ms, "round": found.number, "problems": rows})
        except WebhookFailed as error:
            print(f"webhook: {describe(error)}; tried again next round", file=sys.stderr)
        else:
            self._unsent.clear()
