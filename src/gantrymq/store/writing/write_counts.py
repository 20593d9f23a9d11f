"""Counts what was written to the log since the start: messages, bytes and durations."""

from bisect import bisect_left
from typing import Final

from gantrymq.base.histogram import Histogram

_BOUNDS_MS: Final = (
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20, 30, 40, 50, 75, 100, 200, 500, 1000, 2000, 3000, 4000,
    5000, 10_000,
)  # fmt: skip
"""Upper ends of the classes of durations; the last class has none."""
CLASSES: Final = (
    ("[<=0ms]", 0), ("[0~10ms]", 10), ("[10~50ms]", 50), ("[50~100ms]", 100),
    ("[100~200ms]", 200), ("[200~500ms]", 500), ("[500ms~1s]", 1000), ("[1~2s]", 2000),
    ("[2~3s]", 3000), ("[3~4s]", 4000), ("[4~5s]", 5000), ("[5~10s]", 10_000), ("[10s~]", None),
)  # fmt: skip
"""RocketMQ's names for classes of durations, each with its upper end in milliseconds."""

SECONDS_BOUNDS: Final = (
    0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
)  # fmt: skip
"""Classes of durations since the start, for metrics."""


class WriteCounts:
    """Counts every write once, with the broker's own copies and system topics."""

    def __init__(self) -> None:
        self.count = self.bytes = self.failed = self.longest_ms = 0
        self._durations = [0] * (len(_BOUNDS_MS) + 1)
        self._last_durations = list(self._durations)
        self.seconds = Histogram(SECONDS_BOUNDS)
        """How long messages took, since the start."""

    def took(self, count: int, seconds: float) -> None:
        """Count messages that were written (or flushed, with SYNC_FLUSH) after so many seconds."""
        milliseconds = int(seconds * 1000)
        self.longest_ms = max(self.longest_ms, milliseconds)
        self._durations[bisect_left(_BOUNDS_MS, milliseconds)] += count
        self.seconds.observe(seconds, count)

    def turn(self) -> None:
        """Begin a new period; the figures show the one that ended."""
        self._last_durations, self._durations = self._durations, [0] * len(self._durations)

    def classes(self) -> str:
        """How many messages of the last period took how long, in RocketMQ's format."""
        parts, begin = [], 0
        for name, bound in CLASSES:
            end = len(self._last_durations) if bound is None else _BOUNDS_MS.index(bound) + 1
            parts.append(f"{name}:{sum(self._last_durations[begin:end])}")
            begin = end
        return " ".join(parts)

    def percentile_ms(self, share: float) -> float:
        """The time within which this share (0 to 1) of the last period's messages was written."""
        wanted, seen = share * sum(self._last_durations), 0
        for bound, count in zip((*_BOUNDS_MS, self.longest_ms), self._last_durations, strict=True):
            seen += count
            if seen >= wanted:
                return float(bound)
        return float(self.longest_ms)
