"""Metrics of what waits for a word of its clients: half messages, and messages of POP."""

from collections import Counter
from typing import Final

from gantrymq.base.clock import WallClock
from gantrymq.broker.pop.revive_log import ReviveLog
from gantrymq.broker.stats import BrokerStats
from gantrymq.broker.tables.registry import Registry
from gantrymq.broker.transactions.half_messages import HalfMessageTable
from gantrymq.metrics import table
from gantrymq.metrics.metric import Samples
from gantrymq.protocol.pop import REVIVE_GROUP
from gantrymq.store.engine import Store

HALF_PER_PIECE: Final = 1_000


class TransactionMetrics:
    """Half messages and decisions, by topic."""

    def __init__(self, half_messages: HalfMessageTable, stats: BrokerStats) -> None:
        self._half_messages, self._stats = half_messages, stats

    async def collect(self) -> Samples:
        waiting: Counter[str] = Counter()
        for some in self._half_messages.in_slices(HALF_PER_PIECE):
            waiting.update(each.topic for each in some)
            yield table.HALF, []
        yield table.HALF, [((topic,), count) for topic, count in waiting.items()]
        committed = [(topic, times.shown) for topic, times in self._stats.committed.items()]
        yield table.COMMITTED, [((topic,), sum(shown.counts)) for topic, shown in committed]
        yield table.FINISH_LATENCY, [((topic,), shown) for topic, shown in committed]
        yield table.ROLLED_BACK, [((t,), n) for t, n in self._stats.rolled_back.items()]


class PopMetrics:
    """Checkpoints, and the revive topic that keeps them."""

    def __init__(
        self, log: ReviveLog, store: Store, registry: Registry, stats: BrokerStats, clock: WallClock
    ) -> None:
        self._log, self._store, self._registry = log, store, registry
        self._stats, self._clock = stats, clock

    async def collect(self) -> Samples:
        log = self._log
        yield table.POP_CHECKPOINTS, [((), len(log.open))]
        queues = range(log.open.queues)
        yield table.REVIVE_LAG, [((str(queue),), self._behind(queue)) for queue in queues]
        yield table.REVIVE_LATENCY, [((str(queue),), self._late_ms(queue)) for queue in queues]
        for key in [key for key in log.written if key[1] not in self._registry.topics.table]:
            del log.written[key]  # of a deleted topic
        yield table.REVIVE_IN, list(log.written.items())
        yield table.REVIVE_RETRIES, list(self._stats.revived.items())

    def _behind(self, queue: int) -> int:
        topic = self._log.topic
        end = self._store.queues.max_offset(topic, queue)
        return max(0, end - (self._registry.offsets.get(REVIVE_GROUP, topic, queue) or 0))

    def _late_ms(self, queue: int) -> int:
        first = self._log.open.first(queue)
        return 0 if first is None else max(0, self._clock.now_ms() - first.due_ms)
