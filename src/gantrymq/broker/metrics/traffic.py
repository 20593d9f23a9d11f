"""Metrics of messages that come and go."""

from collections.abc import Mapping
from typing import Final

from gantrymq.base.histogram import Distribution
from gantrymq.broker.metrics.names import is_retry, is_system, message_type
from gantrymq.broker.stats import SIZE_BOUNDS, BrokerStats
from gantrymq.metrics import table
from gantrymq.metrics.metric import Row, Samples
from gantrymq.model import TopicConfig
from gantrymq.store.engine import Store

TOPICS_PER_PIECE: Final = 32
"""Each has up to thirteen lines."""
PAIRS_PER_PIECE: Final = 128
UNKNOWN: Final = [0, 0, 0]
"""The row of a topic that was deleted a moment ago."""
NO_LARGER: Final = [0] * len(SIZE_BOUNDS)

Counted = tuple[tuple[str, ...], int, int]
"""Labels, messages, bytes."""


class TrafficMetrics:
    """What `BrokerStats` and the store have counted."""

    def __init__(self, stats: BrokerStats, topics: Mapping[str, TopicConfig], store: Store) -> None:
        self._stats, self._topics, self._store = stats, topics, store

    async def collect(self) -> Samples:
        names = list(self._stats.topic_put)
        for at in range(0, len(names), TOPICS_PER_PIECE):
            piece = names[at : at + TOPICS_PER_PIECE]
            found = [each for topic in piece for each in self._in(topic)]
            yield table.MESSAGES_IN, [(labels, count) for labels, count, _ in found]
            yield table.THROUGHPUT_IN, [(labels, size) for labels, _, size in found]
            yield table.MESSAGE_SIZE, [self._sizes(topic) for topic in piece]
        pairs = list(self._stats.group_get)
        for at in range(0, len(pairs), PAIRS_PER_PIECE):
            found = [self._out(pair) for pair in pairs[at : at + PAIRS_PER_PIECE]]
            yield table.MESSAGES_OUT, [(labels, count) for labels, count, _ in found]
            yield table.THROUGHPUT_OUT, [(labels, size) for labels, _, size in found]
        yield table.SEND_LATENCY, [((), self._store.written.seconds.shown)]
        yield table.SEND_FAILED, [((), self._store.written.failed)]

    def _in(self, topic: str) -> list[Counted]:
        """Messages and bytes of a topic, by their type."""
        count, size, _ = self._stats.topic_put.get(topic, UNKNOWN)
        own, system = message_type(topic, self._topics), is_system(topic)
        found: list[Counted] = []
        for kind, (kind_count, kind_size) in self._stats.typed.get(topic, {}).items():
            if kind != own:
                found.append(((topic, kind, system), kind_count, kind_size))
                count, size = count - kind_count, size - kind_size
        if count or not found:
            found.append(((topic, own, system), count, size))
        return found

    def _sizes(self, topic: str) -> Row:
        """Larger ones are counted by class; the others are the rest of all messages."""
        count, size, _ = self._stats.topic_put.get(topic, UNKNOWN)
        larger = self._stats.larger.get(topic, NO_LARGER)
        shown = Distribution(SIZE_BOUNDS, (count - sum(larger), *larger), size)
        return (topic, message_type(topic, self._topics), is_system(topic)), shown

    def _out(self, pair: str) -> Counted:
        topic, _, group = pair.rpartition("@")
        count, size, _ = self._stats.group_get.get(pair, UNKNOWN)
        return (topic, group, is_system(topic, group), is_retry(topic)), count, size
