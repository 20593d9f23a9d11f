"""How far groups are behind, by topic.

Offsets are in memory. Only the age of a message has to be read: of the oldest one in each queue
that a group is behind in. Such a read does not hold the event loop (`store.reads`), what was read
is kept until the next scrape, and after `READ_SECONDS_MAX` of reading the ages of the remaining
groups are left out; their messages are counted all the same.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Final

from gantrymq.base.clock import WallClock
from gantrymq.broker.metrics.names import is_system, lag_labels
from gantrymq.broker.pop.checkpoints import OpenCheckpoints
from gantrymq.broker.settings.config import BrokerConfig
from gantrymq.broker.stats import BrokerStats
from gantrymq.broker.tables.registry import Registry
from gantrymq.metrics import table
from gantrymq.metrics.metric import Row, Samples
from gantrymq.store.engine import Store

PAIRS_PER_PIECE: Final = 32
QUEUES_PER_PIECE: Final = 128
READS_PER_PIECE: Final = 16
CHECKPOINTS_PER_PIECE: Final = 512
LABELS_PER_PIECE: Final = 256
READ_SECONDS_MAX: Final = 2.0

Place = tuple[str, int, int]
"""A message: topic, queue and offset."""
Series = dict[tuple[str, str, str, str], list[str]]
"""The topics that count for the same labels."""


@dataclass(slots=True)
class Behind:
    """One group in one topic, all queues together."""

    group: str
    lag: int = 0
    inflight: int = 0
    ready: int = 0
    unfinished: list[Place] = field(default_factory=list)
    """The first message of each queue that the group has not finished."""
    unsent: list[Place] = field(default_factory=list)
    """The first of each queue that it was not sent."""
    of_queues: dict[int, int] = field(default_factory=dict)


class LagMetrics:
    """Asks offsets, queues and checkpoints of POP."""

    def __init__(
        self,
        config: BrokerConfig,
        store: Store,
        registry: Registry,
        lent: OpenCheckpoints,
        stats: BrokerStats,
        clock: WallClock,
    ) -> None:
        self._config, self._store, self._registry = config, store, registry
        self._lent, self._stats, self._clock = lent, stats, clock
        self._known_ms: dict[Place, int] = {}
        """Store times that the last scrape needed."""
        self._needed_ms: dict[Place, int] = {}

    async def collect(self) -> Samples:
        dead = list(self._stats.dead.items())
        yield (
            table.DEAD,
            [((group, topic, is_system(topic, group)), n) for (group, topic), n in dead],
        )
        if not self._config.enable_lag_and_dlq_metrics:
            return
        popped: dict[tuple[str, str, int], int] = {}
        async for _ in self._count_popped(popped):
            yield table.LAG_MESSAGES, []
        deadline = asyncio.get_running_loop().time() + READ_SECONDS_MAX
        self._needed_ms = {}
        series: Series = {}
        async for _ in self._group_by_labels(series):
            yield table.LAG_MESSAGES, []
        groups = list(series.items())
        for at in range(0, len(groups), PAIRS_PER_PIECE):
            rows: dict[str, list[Row]] = {name: [] for name in _LAG_METRICS}
            for labels, topics in groups[at : at + PAIRS_PER_PIECE]:
                async for _ in self._add_series(labels, topics, popped, rows, deadline):
                    yield table.LAG_MESSAGES, []
            for name, found in rows.items():
                yield _LAG_METRICS[name], found
        self._known_ms = self._needed_ms

    async def _count_popped(self, popped: dict[tuple[str, str, int], int]) -> AsyncIterator[None]:
        """Count messages that are lent to poppers, by topic, group and queue."""
        for number, each in enumerate(self._lent.all()):
            key = each.topic, each.group, each.queue_id
            popped[key] = popped.get(key, 0) + len(each.offsets) - each.acked.bit_count()
            if number % CHECKPOINTS_PER_PIECE == 0:
                yield

    async def _group_by_labels(self, series: Series) -> AsyncIterator[None]:
        """The topics of each series: both retry topics of POP count for one topic."""
        for number, pair in enumerate(list(self._registry.offsets.table)):
            topic, _, group = pair.rpartition("@")
            if self._registry.topics.get(topic) is not None:
                series.setdefault(lag_labels(group, topic), []).append(topic)
            if number % LABELS_PER_PIECE == 0:
                yield

    async def _add_series(
        self,
        labels: tuple[str, str, str, str],
        topics: list[str],
        popped: dict[tuple[str, str, int], int],
        rows: dict[str, list[Row]],
        deadline: float,
    ) -> AsyncIterator[None]:
        """Add the samples of one group and topic; yields where the event loop may have a turn."""
        behind = Behind(labels[0])
        for topic in topics:
            known = self._registry.topics.get(topic)
            for queue_id in range(0 if known is None else known.write_queue_nums):
                self._add_queue(
                    behind, topic, queue_id, popped.get((topic, labels[0], queue_id), 0)
                )
                if queue_id % QUEUES_PER_PIECE == 0:
                    yield
        rows["lag"].append((labels, behind.lag))
        rows["inflight"].append((labels, behind.inflight))
        rows["ready"].append((labels, behind.ready))
        for queue_id, lag in behind.of_queues.items():
            rows["queue"].append(((*labels, str(queue_id)), lag))
        for name, places in (("lag_ms", behind.unfinished), ("queueing_ms", behind.unsent)):
            oldest: int | None = None
            for number, place in enumerate(places, 1):
                oldest = await self._older(oldest, place, deadline)
                if number % READS_PER_PIECE == 0:
                    yield
            if oldest is not None:
                rows[name].append((labels, max(0, self._clock.now_ms() - oldest)))
            elif not places:
                rows[name].append((labels, 0))

    def _add_queue(self, behind: Behind, topic: str, queue_id: int, lent: int) -> None:
        """Add one queue; a group that never committed in it is not behind, as in RocketMQ."""
        group, offsets = behind.group, self._registry.offsets
        read = offsets.get(group, topic, queue_id)
        if read is None:
            return
        end = self._store.queues.max_offset(topic, queue_id)
        # What is popped counts as read; the group has not finished what is still lent.
        sent = read if lent else offsets.pulled_to(group, topic, queue_id)
        first, sent = max(0, read - lent), min(sent, end)
        lag = max(0, end - first)
        behind.lag += lag
        behind.inflight += max(0, sent - first)
        behind.ready += max(0, end - sent)
        if lag:
            behind.unfinished.append((topic, queue_id, first))
        if end > sent:
            behind.unsent.append((topic, queue_id, sent))
        if self._config.metrics_lag_per_queue:
            behind.of_queues[queue_id] = behind.of_queues.get(queue_id, 0) + lag

    async def _older(self, oldest: int | None, place: Place, deadline: float) -> int | None:
        """The smaller of a time and a message's store time; None if neither is known."""
        store_ms = self._needed_ms.get(place, self._known_ms.get(place, -1))
        if store_ms < 0 and asyncio.get_running_loop().time() < deadline:
            topic, queue_id, offset = place
            offset = max(offset, self._store.queues.min_offset(topic, queue_id))
            store_ms = await self._store.reads.store_ms_at(topic, queue_id, offset)
        if store_ms < 0:
            return oldest
        self._needed_ms[place] = store_ms
        return store_ms if oldest is None else min(oldest, store_ms)


_LAG_METRICS: Final = {
    "lag": table.LAG_MESSAGES,
    "inflight": table.INFLIGHT,
    "ready": table.READY,
    "lag_ms": table.LAG_LATENCY,
    "queueing_ms": table.QUEUEING_LATENCY,
    "queue": table.QUEUE_LAG,
}
