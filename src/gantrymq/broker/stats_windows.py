"""Statistics of the last minute, hour and day, as VIEW_BROKER_STATS_DATA answers them.

This module counts nothing: it copies the totals of `BrokerStats` every 10 s, every 10 min and every
hour, and a window is the difference between its newest and its oldest copy. RocketMQ's `StatsItem`
does the same, so the hour of a topic is empty until its first 10 minutes end.

Copies lie in arrays of a fixed size. A row of totals costs about 1.2 kB, so a hundred thousand
pairs of topic and group take 120 MB, and 25 ms every 10 s in slices of about 1 ms.
"""

import asyncio
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from gantrymq.broker.stats import SAMPLE_SECONDS, BrokerStats
from gantrymq.protocol.bodies import BrokerStatsData, BrokerStatsItem

COUNT, SIZE, TIMES = range(3)
"""Columns of a row of totals: messages, bytes, and requests that brought them."""

LATENCY: Final = "GROUP_GET_LATENCY"
ROWS_OF: Final = {
    "TOPIC_PUT_NUMS": ("topic", COUNT),
    "TOPIC_PUT_SIZE": ("topic", SIZE),
    "GROUP_GET_NUMS": ("group", COUNT),
    "GROUP_GET_SIZE": ("group", SIZE),
    LATENCY: ("disk", COUNT),
    "SNDBCK_PUT_NUMS": ("back", COUNT),
    "BROKER_PUT_NUMS": ("put", COUNT),
    "BROKER_GET_NUMS": ("get", COUNT),
}
"""RocketMQ's names of statistics: which totals each reads, and which column of them."""


class Span(NamedTuple):
    """One window: how often it is sampled, and how many samples it keeps."""

    step_seconds: float
    samples_max: int


SPANS: Final = (Span(SAMPLE_SECONDS, 7), Span(600.0, 7), Span(3600.0, 25))
"""The minute, the hour and the day."""
BLOCK_ROWS: Final = 256
BLOCKS_PER_TURN: Final = 8
"""How many blocks are sampled before the loop gets its turn: about 1 ms of work."""
UNUSED: Final = [0, 0, 0]


class SampleBlock:
    """Copies of up to `BLOCK_ROWS` rows of totals, for each of the three windows."""

    __slots__ = ("_ages", "_at", "_copies", "_times", "rows")

    def __init__(self) -> None:
        self.rows: list[Sequence[int]] = [UNUSED] * BLOCK_ROWS
        """The rows themselves: who counts changes them, here they are only read."""
        self._copies = [
            np.zeros((span.samples_max, BLOCK_ROWS, len(UNUSED)), dtype=np.int64) for span in SPANS
        ]
        self._times = [np.zeros(span.samples_max) for span in SPANS]
        self._ages = np.zeros((len(SPANS), BLOCK_ROWS), dtype=np.int64)
        """How many copies of a row were taken, up to as many as are kept."""
        self._at = [0] * len(SPANS)
        """Where the newest copies lie."""

    def put(self, at: int, row: Sequence[int]) -> None:
        """Begin with a row; there is no copy of it yet."""
        self.rows[at] = row
        self._ages[:, at] = 0

    def take(self, windows: Sequence[int], now: float) -> None:
        """Copy all rows into these windows."""
        totals = np.array(self.rows, dtype=np.int64)
        for window in windows:
            kept = SPANS[window].samples_max
            self._at[window] = at = (self._at[window] + 1) % kept
            self._copies[window][at] = totals
            self._times[window][at] = now
            np.minimum(self._ages[window] + 1, kept, out=self._ages[window])

    def shown(self, window: int, at: int, column: int) -> BrokerStatsItem:
        """One window of a row. Before its first copy there is one of zeros, a step older."""
        step, kept = SPANS[window]
        age, newest = int(self._ages[window, at]), self._at[window]
        if not age:
            return BrokerStatsItem()
        copies, times = self._copies[window][:, at], self._times[window]
        first, begin = (
            np.zeros(len(UNUSED), dtype=np.int64),
            times[(newest - age + 1) % kept] - step,
        )
        if age == kept:
            oldest = (newest + 1) % kept
            first, begin = copies[oldest], times[oldest]
        total, counted = (int(copies[newest][c] - first[c]) for c in (column, TIMES))
        return BrokerStatsItem(
            sum=total,
            tps=total / float(times[newest] - begin),
            avgpt=total / counted if counted > 0 else 0.0,
        )


class StatsWindows:
    """The windows of every topic, of every group and of the broker."""

    def __init__(self, stats: BrokerStats, cluster: str) -> None:
        self._stats, self._cluster = stats, cluster
        self._blocks: list[SampleBlock] = []
        self._slots: dict[tuple[str, str], int] = {}
        self._free: list[int] = []
        self._sampled_at = [float("-inf")] * len(SPANS)
        # Without times: RocketMQ's averages of a broker are 0.
        self._broker = {"put": [0, 0, 0], "get": [0, 0, 0]}

    async def sample(self, now: float) -> None:
        """Copy the totals into the windows whose step is over; called every 10 s."""
        half = SAMPLE_SECONDS / 2
        due = [
            window
            for window, span in enumerate(SPANS)
            if now - self._sampled_at[window] >= span.step_seconds - half
        ]
        for window in due:
            self._sampled_at[window] = now
        stats = self._stats
        new, stats.new_rows = stats.new_rows, []
        for kind, total in (("put", stats.put_count), ("get", stats.get_count)):
            self._broker[kind][COUNT] = total
            if total and (kind, self._cluster) not in self._slots:
                new.append((kind, self._cluster, self._broker[kind]))
        for count, (kind, key, row) in enumerate(new, 1):
            self._add(kind, key, row)
            if count % BLOCK_ROWS == 0:
                await asyncio.sleep(0)
        for count, block in enumerate(self._blocks, 1):
            block.take(due, now)
            if count % BLOCKS_PER_TURN == 0:
                await asyncio.sleep(0)

    def _add(self, kind: str, key: str, row: Sequence[int]) -> None:
        if kind not in self._broker and self._rows(kind).get(key) is not row:
            return  # its topic or group is deleted already
        if not self._free:
            first = len(self._blocks) * BLOCK_ROWS
            self._blocks.append(SampleBlock())
            self._free = list(range(first + BLOCK_ROWS - 1, first - 1, -1))
        slot = self._slots[kind, key] = self._free.pop()
        self._blocks[slot // BLOCK_ROWS].put(slot % BLOCK_ROWS, row)

    def view(self, name: str, key: str) -> BrokerStatsData | None:
        """The three windows of one statistic; None if nothing was counted for it yet."""
        kind, column = ROWS_OF.get(name, ("", COUNT))
        if not self._is_known(kind, key):
            return None
        minute, hour, day = self._windows(kind, key, column)
        return BrokerStatsData(stats_minute=minute, stats_hour=hour, stats_day=day)

    def _is_known(self, kind: str, key: str) -> bool:
        if kind in self._broker:
            return key == self._cluster
        if kind == "disk":  # a group that read from memory only has waited for nothing
            queue_id, _, pair = key.partition("@")
            return queue_id.isdigit() and pair in self._stats.group_get
        return key in self._rows(kind)

    def _windows(self, kind: str, key: str, column: int) -> list[BrokerStatsItem]:
        slot = self._slots.get((kind, key))
        if slot is None:
            return [BrokerStatsItem() for _ in SPANS]
        block, at = self._blocks[slot // BLOCK_ROWS], slot % BLOCK_ROWS
        return [block.shown(window, at, column) for window in range(len(SPANS))]

    def consume_tps(self, topic: str, group: str) -> float:
        """Messages a second that a group got from a topic in the last minute."""
        return self._tps("group", f"{topic}@{group}")

    def put_tps(self, topic: str) -> float:
        """Messages a second that were sent to a topic in the last minute."""
        return self._tps("topic", topic)

    def _tps(self, kind: str, key: str) -> float:
        slot = self._slots.get((kind, key))
        if slot is None:
            return 0.0
        return self._blocks[slot // BLOCK_ROWS].shown(0, slot % BLOCK_ROWS, COUNT).tps

    def forget_topic(self, topic: str) -> None:
        """Drop the statistics of a deleted topic, also those with its groups."""
        self._stats.forget_topic(topic)
        self._forget("topic", [topic])
        for kind in ("group", "back"):
            self._forget(kind, [k for k in self._rows(kind) if k.startswith(f"{topic}@")])
        self._forget("disk", [k for k in self._rows("disk") if f"@{topic}@" in k])

    def forget_group(self, group: str) -> None:
        self._stats.forget_group(group)
        for kind in ("group", "back", "disk"):
            self._forget(kind, [k for k in self._rows(kind) if k.endswith(f"@{group}")])

    def _forget(self, kind: str, keys: Sequence[str]) -> None:
        rows = self._rows(kind)
        for key in keys:
            rows.pop(key, None)
            slot = self._slots.pop((kind, key), None)
            if slot is not None:
                self._blocks[slot // BLOCK_ROWS].put(slot % BLOCK_ROWS, UNUSED)
                self._free.append(slot)

    def _rows(self, kind: str) -> dict[str, list[int]]:
        return self._stats.rows.get(kind, {})
