"""A monitor's problems as a stream of alarms: each is told when it begins and when it is over."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final

from gantrymq.client.admin.admin import Admin
from gantrymq.client.admin.monitoring.monitor import EVERY_SECONDS, Monitor
from gantrymq.client.admin.monitoring.monitor_round import (
    MonitorRound,
    OffsetMovedEvent,
    Problem,
    Thresholds,
)

WAITING_MAX: Final = 1_000
"""Alarms that nobody has taken yet; then the monitor waits."""
NAMED_BY_TEXT: Final = frozenset({"stuck", "deleted", "unknown"})
"""Kinds of which a group may have several at once."""


@dataclass(frozen=True, kw_only=True)
class Alarm:
    """Something went over its threshold, or is over."""

    problem: Problem
    at_ms: int
    """When the monitor saw it."""
    since_ms: int
    """When it began, as far as the monitor saw."""
    is_over: bool = False


async def watch_alarms(
    admin: Admin, *, every: float = EVERY_SECONDS, thresholds: Thresholds | None = None
) -> AsyncIterator[Alarm]:
    """Watch all groups until the iterator is closed.

    What was deleted before a group read it is told at once and is never over; all else is told by
    the round that sees it, `every` seconds apart.
    """
    found: asyncio.Queue[Alarm] = asyncio.Queue(WAITING_MAX)
    book = _AlarmBook(found, admin)
    monitor = Monitor(admin, on_round=book.round, on_moved=book.moved, thresholds=thresholds)
    watching = asyncio.create_task(monitor.run(every))
    try:
        while True:
            taking = asyncio.ensure_future(found.get())
            done, _ = await asyncio.wait({taking, watching}, return_when=asyncio.FIRST_COMPLETED)
            if taking not in done:
                taking.cancel()
                watching.result()  # it has no end of its own: raises why it ended
                return
            yield taking.result()
    finally:
        watching.cancel()
        await asyncio.wait({watching})


class _AlarmBook:
    """What is wrong now."""

    def __init__(self, found: asyncio.Queue[Alarm], admin: Admin) -> None:
        self._found, self._clock = found, admin.instance.clock
        self._standing: dict[tuple[str, str, str], tuple[Problem, int]] = {}

    async def round(self, found: MonitorRound, problems: Sequence[Problem]) -> None:
        now = {_key(problem): problem for problem in problems}
        for key, problem in now.items():
            if key not in self._standing:
                self._standing[key] = problem, found.at_ms
                await self._found.put(
                    Alarm(problem=problem, at_ms=found.at_ms, since_ms=found.at_ms)
                )
        for key in [key for key in self._standing if key not in now]:
            problem, since_ms = self._standing.pop(key)
            await self._found.put(
                Alarm(problem=problem, at_ms=found.at_ms, since_ms=since_ms, is_over=True)
            )

    async def moved(self, event: OffsetMovedEvent) -> None:
        now_ms = self._clock.now_ms()
        await self._found.put(Alarm(problem=event.problem, at_ms=now_ms, since_ms=event.at_ms))


def _key(problem: Problem) -> tuple[str, str, str]:
    text = problem.text if problem.kind in NAMED_BY_TEXT else ""
    return problem.kind, problem.group, text
