"""Statistics of the last minute, hour and day, as VIEW_BROKER_STATS_DATA answers them.

This module counts nothing: it copies the totals of `BrokerStats` every 10 s, every 10 min and every
hour, and a window is the difference between its newest and its oldest copy. RocketMQ's `StatsItem`
does the same, so the hour of a topic is empty until its first 10 minutes end.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from gantrymq.broker.stats import SAMPLE_SECONDS, BrokerStats
from gantrymq.protocol.bodies import BrokerStatsData, BrokerStatsItem

COUNT, SIZE, TIMES = range(3)
"""Columns of a row of totals: messages, bytes, and requests that brought them."""

ROWS_OF: Final = {
    "TOPIC_PUT_NUMS": ("topic", COUNT),
    "TOPIC_PUT_SIZE": ("topic", SIZE),
    "GROUP_GET_NUMS": ("group", COUNT),
    "GROUP_GET_SIZE": ("group", SIZE),
    "SNDBCK_PUT_NUMS": ("back", COUNT),
    "BROKER_PUT_NUMS": ("put", COUNT),
    "BROKER_GET_NUMS": ("get", COUNT),
}
"""RocketMQ's names of statistics: which totals each reads, and which column of them."""

Totals = tuple[int, int, int]


class Span(NamedTuple):
    """One window: how often it is sampled, and how many samples it keeps."""

    step_seconds: float
    samples_max: int


SPANS: Final = (Span(SAMPLE_SECONDS, 7), Span(600.0, 7), Span(3600.0, 25))
"""The minute, the hour and the day."""


class Samples:
    """Copies of one row of totals, for each of the three windows."""

    __slots__ = ("taken",)

    def __init__(self) -> None:
        self.taken = [deque[tuple[float, Totals]](maxlen=span.samples_max) for span in SPANS]

    def take(self, window: int, now: float, totals: Totals) -> None:
        """Add a copy. Before the first one goes a copy of zeros, one step older, as in RocketMQ."""
        samples = self.taken[window]
        if not samples:
            samples.append((now - SPANS[window].step_seconds, (0, 0, 0)))
        samples.append((now, totals))

    def shown(self, window: int, column: int) -> BrokerStatsItem:
        samples = self.taken[window]
        if not samples:
            return BrokerStatsItem()
        (begin, first), (end, last) = samples[0], samples[-1]
        total, times = last[column] - first[column], last[TIMES] - first[TIMES]
        return BrokerStatsItem(
            sum=total, tps=total / (end - begin), avgpt=total / times if times > 0 else 0.0
        )


class StatsWindows:
    """The windows of every topic, of every group and of the broker."""

    def __init__(self, stats: BrokerStats, cluster: str) -> None:
        self._stats, self._cluster = stats, cluster
        self._samples: dict[str, dict[str, Samples]] = {kind: {} for kind, _ in ROWS_OF.values()}
        self._sampled_at = [float("-inf")] * len(SPANS)

    def sample(self, now: float) -> None:
        """Copy the totals into the windows whose step is over; called every 10 s."""
        half = SAMPLE_SECONDS / 2
        due = [
            window
            for window, span in enumerate(SPANS)
            if now - self._sampled_at[window] >= span.step_seconds - half
        ]
        for window in due:
            self._sampled_at[window] = now
        for kind, table in self._tables().items():
            known = self._samples[kind]
            for key, row in table.items():
                samples = known.get(key)
                if samples is None:
                    if not row[COUNT]:  # nothing was counted yet
                        continue
                    samples = known[key] = Samples()
                totals = row[COUNT], row[SIZE], row[TIMES]
                for window in due:
                    samples.take(window, now, totals)

    def view(self, name: str, key: str) -> BrokerStatsData | None:
        """The three windows of one statistic; None if nothing was counted for it yet."""
        kind, column = ROWS_OF.get(name, ("", COUNT))
        if key not in self._tables().get(kind, ()):
            return None
        samples = self._samples[kind].get(key) or Samples()
        minute, hour, day = (samples.shown(window, column) for window in range(len(SPANS)))
        return BrokerStatsData(stats_minute=minute, stats_hour=hour, stats_day=day)

    def consume_tps(self, topic: str, group: str) -> float:
        """Messages a second that a group got from a topic in the last minute."""
        samples = self._samples["group"].get(f"{topic}@{group}")
        return samples.shown(0, COUNT).tps if samples is not None else 0.0

    def forget_topic(self, topic: str) -> None:
        """Drop the statistics of a deleted topic, also those with its groups."""
        self._forget("topic", [topic])
        for kind in ("group", "back"):
            self._forget(kind, [k for k in self._tables()[kind] if k.startswith(f"{topic}@")])

    def forget_group(self, group: str) -> None:
        for kind in ("group", "back"):
            self._forget(kind, [k for k in self._tables()[kind] if k.endswith(f"@{group}")])

    def _forget(self, kind: str, keys: Sequence[str]) -> None:
        rows = {
            "topic": self._stats.topic_put,
            "group": self._stats.group_get,
            "back": self._stats.sent_back,
        }[kind]
        for key in keys:
            rows.pop(key, None)
            self._samples[kind].pop(key, None)

    def _tables(self) -> dict[str, Mapping[str, Sequence[int]]]:
        """All totals. RocketMQ keeps those of a broker under the name of its cluster."""
        stats = self._stats
        return {
            "topic": stats.topic_put,
            "group": stats.group_get,
            "back": stats.sent_back,
            # Without times: RocketMQ's averages of a broker are 0.
            "put": {self._cluster: (stats.put_count, 0, 0)},
            "get": {self._cluster: (stats.get_count, 0, 0)},
        }
