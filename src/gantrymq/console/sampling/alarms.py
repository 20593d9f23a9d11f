"""The alarms of one cluster: what `gantry monitor` would tell, kept for a page."""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gantrymq.base.errors import GantryError
from gantrymq.client.admin.monitoring.monitor import EVERY_SECONDS, Monitor
from gantrymq.client.admin.monitoring.monitor_round import (
    MonitorRound,
    OffsetMovedEvent,
    Problem,
    Thresholds,
)
from gantrymq.console.clusters import Clusters

log = logging.getLogger(__name__)

SHARE_MAX: Final = 0.05
"""The part of the time that rounds may take: very many groups are watched less often."""
EVENTS_MAX: Final = 200
ENDED_MAX: Final = 200
AGAIN_SECONDS: Final = 10.0


@dataclass(frozen=True)
class KeptAlarm:
    """A problem, since when it is there, and until when it was if it is over."""

    problem: Problem
    since_ms: int
    until_ms: int | None = None


class AlarmWatch:
    """Watches one cluster."""

    def __init__(self, cluster: str, clusters: Clusters) -> None:
        self._cluster, self._clusters = cluster, clusters
        self._now: dict[tuple[str, str, int], KeptAlarm] = {}
        self.ended: deque[KeptAlarm] = deque(maxlen=ENDED_MAX)
        self.events: deque[OffsetMovedEvent] = deque(maxlen=EVENTS_MAX)
        """Messages that were deleted before they were read, the newest last."""
        self.at_ms: int | None = None
        """When all groups were looked at last."""
        self.groups = 0
        self.limits = Thresholds()
        self.trouble = ""
        self._begun = 0.0

    @property
    def alarms(self) -> list[KeptAlarm]:
        """What is wrong now, the newest first."""
        return sorted(self._now.values(), key=lambda alarm: -alarm.since_ms)

    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            try:
                admin = await self._clusters.admin(self._cluster)
                watch = Monitor(
                    admin, on_round=self.note, on_moved=self._moved, thresholds=self.limits
                )
                self._begun = asyncio.get_running_loop().time()
                await watch.run(EVERY_SECONDS)
            except Exception as error:
                cause: BaseException = error
                while isinstance(cause, BaseExceptionGroup):
                    cause = cause.exceptions[0]
                self.trouble = str(cause)
                if not isinstance(cause, GantryError):
                    log.exception("the alarms of %s are begun again", self._cluster)
            await asyncio.sleep(AGAIN_SECONDS)

    async def note(self, found: MonitorRound, problems: Sequence[Problem]) -> None:
        """Take a round, and rest if it took long."""
        self.trouble, self.at_ms, self.groups = "", found.at_ms, len(found.groups)
        before, self._now = self._now, {}
        for problem in problems:
            # Texts have figures that change: the second problem of a kind is the second one again.
            number = 0
            while (key := (problem.kind, problem.group, number)) in self._now:
                number += 1
            since = before[key].since_ms if key in before else found.at_ms
            self._now[key] = KeptAlarm(problem, since)
        for key, alarm in before.items():
            if key not in self._now:
                self.ended.append(KeptAlarm(alarm.problem, alarm.since_ms, found.at_ms))
        loop = asyncio.get_running_loop()
        took = loop.time() - self._begun
        await asyncio.sleep(max(0.0, took / SHARE_MAX - EVERY_SECONDS))
        rest = max(0.0, self._begun + EVERY_SECONDS - loop.time())
        self._begun = loop.time() + rest

    async def _moved(self, event: OffsetMovedEvent) -> None:
        self.events.append(event)
