"""`gantry lag`: the lag of groups, by queue, with the member that holds each queue."""

import asyncio
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

import click

from gantrymq.base.errors import GantryError
from gantrymq.base.plurals import counted
from gantrymq.cli.common.known import check_topic
from gantrymq.cli.common.output import Row, fail, namesrv_option, output_option, print_rows
from gantrymq.client.admin.admin import Admin
from gantrymq.client.admin.groups.lag import Backlog, GroupLag, QueueLag
from gantrymq.client.admin.groups.lag_advice import advice
from gantrymq.model import Queue

CLEAR_SCREEN = "\x1b[H\x1b[2J"
_OLDEST = {True: "oldest", False: "oldestAgeMs"}
_DRAIN = {True: "drainedIn", False: "drainSeconds"}
"""These columns have text in tables and numbers in JSON, so they have two names."""

OffsetPairs = dict[tuple[str, Queue], tuple[int, int]]
"""The end of each queue and the progress in it, by group and queue."""


@click.command("lag")
@click.argument("group", required=False)
@click.option("--topic", help="Only this topic.")
@click.option("--watch", is_flag=True, help="Repeat, and show rates.")
@click.option(
    "--every",
    type=click.FloatRange(0.1),
    default=2.0,
    show_default=True,
    help="Seconds between repetitions.",
)
@namesrv_option
@output_option
def lag(
    group: str | None,
    topic: str | None,
    watch: bool,
    every: float,
    namesrv: str | None,
    output: str,
) -> None:
    """Show the lag of GROUP by queue; without GROUP, of every group that has unread messages.

    Sums and advice are printed to standard error.
    """

    async def run() -> None:
        async with Admin(namesrv) as admin:
            shown = _Screen(admin, group, output)
            await shown.show(await _look(admin, group, topic), None)
            while watch:
                await asyncio.sleep(every)
                await shown.show(await _look(admin, group, topic), every)

    try:
        with suppress(KeyboardInterrupt):
            asyncio.run(run())
    except GantryError as error:
        fail(error)


async def _look(admin: Admin, group: str | None, topic: str | None) -> list[GroupLag]:
    backlog = Backlog(admin)
    if topic is not None:
        await check_topic(admin, topic)
    return [await backlog.of(group, topic=topic)] if group else await backlog.all(topic=topic)


class _Screen:
    """Prints the lag again and again, with the rates since the last time."""

    def __init__(self, admin: Admin, group: str | None, output: str) -> None:
        self._admin, self._group, self._output = admin, group, output
        self._last: OffsetPairs = {}
        self._at = 0.0

    async def show(self, found: Sequence[GroupLag], every: float | None) -> None:
        people, now_ms = self._output == "table", self._admin.instance.clock.now_ms()
        offsets = _offsets(found)
        loop_at = asyncio.get_running_loop().time()
        seconds = loop_at - self._at if every else 0.0
        rows: list[Row] = []
        measured = [self._measured(one, offsets, seconds) for one in found]
        for one in measured:
            if self._group:
                rows += _queue_rows(one, now_ms, people, self._rates(offsets, seconds))
            else:
                rows.append(_group_row(one, now_ms, people))
        if every and people and sys.stdout.isatty():
            sys.stdout.write(CLEAR_SCREEN)
        print_rows(rows, self._output)
        sys.stdout.flush()
        for line in _summary(measured, now_ms):
            print(line, file=sys.stderr, flush=True)
        self._last, self._at = offsets, loop_at

    def _measured(self, one: GroupLag, offsets: OffsetPairs, seconds: float) -> GroupLag:
        """The group with the rates since the last time, which are newer than the brokers'."""
        if not seconds:
            return one
        queues = [row.queue for topic in one.topics for row in topic.queues]
        keys = [(one.group, queue) for queue in queues]
        mine = [key for key in keys if key in offsets and key in self._last]
        if not mine:
            return one
        came, went = (
            sum(offsets[key][side] - self._last[key][side] for key in mine) / seconds
            for side in (0, 1)
        )
        return replace(one, came_per_second=came, read_per_second=went)

    def _rates(self, offsets: OffsetPairs, seconds: float) -> dict[Queue, tuple[float, float]]:
        """Messages a second that came in and that were read, by queue."""
        if not seconds:
            return {}
        found = {}
        for key, (end, read) in offsets.items():
            if key in self._last:
                last_end, last_read = self._last[key]
                came, went = (end - last_end) / seconds, (read - last_read) / seconds
                found[key[1]] = round(came, 1), round(went, 1)
        return found


def _offsets(found: Sequence[GroupLag]) -> OffsetPairs:
    """The offsets of groups that have one progress; members that broadcast have one each."""
    return {
        (one.group, row.queue): (row.end, row.read)
        for one in found
        if not one.members.broadcast
        for topic in one.topics
        for row in topic.queues
    }


def _age(ms: int | None, now_ms: int, people: bool) -> object:
    """An age as text for tables, in milliseconds for JSON."""
    if ms is None:
        return None
    age_ms = max(0, now_ms - ms)
    return str(timedelta(seconds=age_ms // 1000)) if people else age_ms


def _queue_rows(
    found: GroupLag, now_ms: int, people: bool, rates: dict[Queue, tuple[float, float]]
) -> list[Row]:
    rows = []
    for topic in found.topics:
        kind = "retry" if topic.is_retry else "topic"
        rows += [_queue_row(kind, row, now_ms, people, rates) for row in topic.queues]
    rows += [_queue_row("dead", row, now_ms, people, rates) for row in found.dead]
    return rows if people else [{"group": found.group, **row} for row in rows]


def _queue_row(
    kind: str, row: QueueLag, now_ms: int, people: bool, rates: dict[Queue, tuple[float, float]]
) -> Row:
    shown: Row = {
        "kind": kind,
        "topic": row.queue.topic,
        "broker": row.queue.broker_name,
        "queueId": row.queue.queue_id,
        "brokerOffset": row.end,
        "groupOffset": row.read,
        "lag": row.lag,
        _OLDEST[people]: _age(row.oldest_ms, now_ms, people),
        "inHand": row.in_hand,
        "holder": list(row.holders) or None,
        "trouble": row.trouble or None,
    }
    if row.deleted:
        shown["deletedUnread"] = row.deleted
    if rates:
        came, went = rates.get(row.queue, (None, None))
        shown |= {"inPerSecond": came, "outPerSecond": went}
    return shown


def _group_row(found: GroupLag, now_ms: int, people: bool) -> Row:
    slowest = found.slowest
    return {
        "group": found.group,
        "lag": found.lag,
        "retry": found.retry,
        "dead": found.dead_count,
        _OLDEST[people]: _age(found.oldest_ms, now_ms, people),
        _DRAIN[people]: _drain(found, people),
        "members": len(found.members.members),
        "slowest": str(slowest.queue) if slowest else None,
        "slowestLag": slowest.lag if slowest else None,
        "holder": (list(slowest.holders) or None) if slowest else None,
        "trouble": (slowest.trouble or None) if slowest else None,
    }


def _drain(found: GroupLag, people: bool) -> object:
    """When the backlog is gone, as text for tables, in seconds for JSON."""
    seconds = found.drain_seconds
    if not people:
        return None if seconds is None else round(seconds, 1)
    return "never" if seconds is None else str(timedelta(seconds=round(seconds)))


def _drained(found: GroupLag) -> str:
    rates = f"{found.came_per_second:.1f} in and {found.read_per_second:.1f} out a second"
    if found.drain_seconds is None:
        return f"does not shrink ({rates})"
    return f"drained in {_drain(found, True)} ({rates})"


def _summary(found: Sequence[GroupLag], now_ms: int) -> list[str]:
    if not found:
        return ["no group has a backlog"]
    lines = []
    for one in found:
        words = [f"{one.lag} unread"]
        if one.oldest_ms is not None:
            words.append(f"the oldest for {_age(one.oldest_ms, now_ms, True)}")
        words += [
            f"{counted(one.retry, 'retry', 'retries')} among them",
            counted(one.dead_count, "dead letter"),
        ]
        words.append(counted(len(one.members.members), "member"))
        if one.lag:
            words.append(_drained(one))
        lines.append(f"{one.group}: {', '.join(words)}")
        lines += [f"advice: {line}" for line in advice(one)]
    if len(found) > 1:
        lines.append(f"all groups: {sum(one.lag for one in found)} unread")
    return lines
