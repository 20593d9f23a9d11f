"""Latency faults: brokers to avoid for a while, because their last answer was slow."""

from collections.abc import Callable
from typing import Final, NamedTuple


class LatencyTable(NamedTuple):
    """Maps latencies to how long a broker is avoided; both in milliseconds."""

    steps: tuple[tuple[int, int], ...]
    failure_ms: int
    """A failure counts as an answer that took this long."""

    def avoid_ms(self, latency_ms: float) -> int:
        return next((pause for limit, pause in reversed(self.steps) if latency_ms >= limit), 0)


TABLES: Final = {
    "4.9": LatencyTable(
        (
            (50, 0),
            (100, 0),
            (550, 30_000),
            (1_000, 60_000),
            (2_000, 120_000),
            (3_000, 180_000),
            (15_000, 600_000),
        ),
        30_000,
    ),
    "5.1.4": LatencyTable(
        (
            (50, 0),
            (100, 0),
            (550, 2_000),
            (1_800, 5_000),
            (3_000, 6_000),
            (5_000, 10_000),
            (15_000, 30_000),
        ),
        10_000,
    ),
}


class _Mark:
    __slots__ = ("latency_ms", "until")

    def __init__(self) -> None:
        self.latency_ms, self.until = 0.0, 0.0


class FaultTable:
    """The last latency of each broker and until when it is avoided."""

    def __init__(self, table: LatencyTable, time: Callable[[], float]) -> None:
        self._table, self._time = table, time
        self._marks: dict[str, _Mark] = {}
        self._turn = 0

    def record(self, broker: str, latency_ms: float, *, failed: bool = False) -> None:
        mark = self._marks.setdefault(broker, _Mark())
        mark.latency_ms = latency_ms
        judged = self._table.failure_ms if failed else latency_ms
        mark.until = self._time() + self._table.avoid_ms(judged) / 1000

    def available(self, broker: str) -> bool:
        mark = self._marks.get(broker)
        return mark is None or mark.until <= self._time()

    def least_bad(self) -> str | None:
        """When all are to be avoided: one of the faster half, in turn."""
        ranked = sorted(
            self._marks,
            key=lambda name: (
                not self.available(name),
                self._marks[name].latency_ms,
                self._marks[name].until,
            ),
        )
        if not ranked:
            return None
        self._turn += 1
        return ranked[self._turn % max(len(ranked) // 2, 1)]

    def forget(self, broker: str) -> None:
        self._marks.pop(broker, None)
