"""How far the archive is behind, and how long until retention deletes messages unread."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from gantrymq.base.clock import WallClock
from gantrymq.client.admin.admin import Admin
from gantrymq.model import Queue
from gantrymq.model.offset_ranges import QueueOffsets
from gantrymq.spark.records.rows import Rows
from gantrymq.spark.records.survey import Sample

HOUR_MS: Final = 3_600_000
LOOK_MS: Final = 60_000
QUEUES_MAX: Final = 256
"""So many queues are asked for the age of their next message."""
RETENTION_KEY: Final = "fileReservedTime"


@dataclass(frozen=True, slots=True)
class Watch:
    """The lag of the archive against retention, of the queue that is worst."""

    rows: int = 0
    """Messages that are not archived yet."""
    behind_hours: float = 0.0
    """The age of the oldest of them."""
    left_hours: float | None = None
    """How long brokers keep it; None if nothing is behind or nobody knows the retention."""
    queue: Queue | None = None

    @property
    def text(self) -> str:
        if not self.rows or self.queue is None:
            return "archive is up to date"
        if self.left_hours is None:
            return f"archive is {_hours(self.behind_hours)} hours behind, retention is not known"
        return (
            f"archive is {_hours(self.behind_hours)} hours behind, "
            f"{_hours(self.left_hours)} hours before retention deletes ({self.queue.text})"
        )

    def alarms(self, below_hours: float) -> bool:
        """Whether to alarm: less time is left than `below_hours`."""
        return self.left_hours is not None and self.left_hours < below_hours


def watch(
    behind: Mapping[Queue, int],
    samples: Mapping[Queue, Sample],
    retention: Mapping[str, float],
    now_ms: int,
) -> Watch:
    """The worst queue, judged by its next message; `behind` counts each queue's messages."""
    worst = Watch(rows=sum(behind.values()))
    for queue, sample in sorted(samples.items()):
        age = max(0, now_ms - sample.store_ms) / HOUR_MS
        kept = retention.get(queue.broker_name)
        left = None if kept is None else kept - age
        found = Watch(worst.rows, age, left, queue)
        if worst.queue is None or _rank(found) < _rank(worst):
            worst = found
    return worst


def _rank(each: Watch) -> tuple[float, float]:
    """Less time left is worse; where that is not known, more time behind."""
    left = float("inf") if each.left_hours is None else each.left_hours
    return left, -each.behind_hours


def _hours(number: float) -> str:
    return f"{number:.0f}" if abs(number) >= 10 else f"{number:.1f}"


def left_of(start: QueueOffsets, highs: QueueOffsets) -> dict[Queue, int]:
    """How many messages each queue has behind its position."""
    return {queue: highs[queue] - at for queue, at in start.items() if highs.get(queue, 0) > at}


class Watcher:
    """Checks the lag from time to time, and says so when too little time is left."""

    def __init__(
        self,
        retention: Mapping[str, float],
        below_hours: float,
        clock: WallClock,
        say: Callable[[str], None],
    ) -> None:
        self._retention, self._below, self._clock, self._say = retention, below_hours, clock, say
        self._next_ms = 0
        self.last = Watch()

    def look(self, rows: Rows, start: QueueOffsets, highs: QueueOffsets) -> None:
        """Check the lag of a run, unless the last check was a short while ago."""
        now_ms = self._clock.now_ms()
        if now_ms < self._next_ms:
            return
        self._next_ms = now_ms + LOOK_MS
        behind = left_of(start, highs)
        asked = sorted(behind, key=lambda queue: -behind[queue])[:QUEUES_MAX]
        samples = rows.samples({queue: start[queue] for queue in asked}) if asked else {}
        self.last = watch(behind, samples, self._retention, now_ms)
        if self.last.alarms(self._below):
            self._say(f"alarm: {self.last.text}")


def retention_hours(namesrv: str) -> dict[str, float]:
    """The retention of each broker in hours, from its own settings."""

    async def ask() -> dict[str, float]:
        found: dict[str, float] = {}
        async with Admin(namesrv) as admin:
            for name, address in (await admin.masters()).items():
                text = (await admin.broker_config(address)).get(RETENTION_KEY, "")
                if text.strip().isdecimal():
                    found[name] = float(text)
        return found

    return asyncio.run(ask())
