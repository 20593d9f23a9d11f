"""Metrics of the broker itself and of the clients that are connected to it."""

from collections import Counter
from collections.abc import Callable, Mapping

from gantrymq.broker.metrics.names import is_system
from gantrymq.broker.settings.config import BrokerConfig
from gantrymq.broker.stats import BrokerStats
from gantrymq.broker.subscriptions.sessions import ConsumerGroup, Sessions
from gantrymq.broker.tables.registry import Registry
from gantrymq.metrics import table
from gantrymq.metrics.metric import Samples
from gantrymq.metrics.scrape import in_pieces
from gantrymq.protocol.versions import version_name

PROTOCOL = "remoting"
_MODES = {"CONSUME_ACTIVELY": "pull", "CONSUME_PASSIVELY": "push", "CONSUME_POP": "pop"}
"""RocketMQ's words for the ways to consume, as its metrics write them."""


class StateMetrics:
    """Permission, numbers of things, and requests that wait."""

    def __init__(
        self,
        config: BrokerConfig,
        registry: Registry,
        stats: BrokerStats,
        waiting_sends: Callable[[], int],
        held: Mapping[str, Callable[[], int]],
    ) -> None:
        """`held` counts the long polls of each kind."""
        self._config, self._registry, self._stats = config, registry, stats
        self._waiting_sends, self._held = waiting_sends, held

    async def collect(self) -> Samples:
        yield table.PROCESSOR_WATERMARK, [(("send",), self._waiting_sends())]
        yield table.BROKER_PERMISSION, [((), self._config.broker_permission)]
        yield table.TOPIC_NUMBER, [((), len(self._registry.topics.table))]
        yield table.GROUP_NUMBER, [((), len(self._registry.groups.table))]
        yield table.HELD_PULLS, [((kind,), count()) for kind, count in self._held.items()]
        yield table.EVENTS, [((name,), n) for name, n in self._stats.counters.items()]


class ClientMetrics:
    """Connected producers and consumers, by language and version."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    async def collect(self) -> Samples:
        producers: Counter[tuple[str, ...]] = Counter()
        for members in list(self._sessions.producers.values()):
            for client in members.values():
                producers[client.language.lower(), _version(client.version), PROTOCOL] += 1
            yield table.PRODUCER_CONNECTIONS, []
        yield table.PRODUCER_CONNECTIONS, list(producers.items())
        consumers: Counter[tuple[str, ...]] = Counter()
        for name, group in list(self._sessions.consumers.items()):
            consumers.update(_consumers(name, group))
            yield table.CONSUMER_CONNECTIONS, []
        async for piece in in_pieces(table.CONSUMER_CONNECTIONS, list(consumers.items())):
            yield piece


def _consumers(name: str, group: ConsumerGroup) -> list[tuple[str, ...]]:
    mode = _MODES.get(group.consume_type or "", "unknown")
    return [
        (name, each.language.lower(), _version(each.version), mode, PROTOCOL, is_system("", name))
        for each in group.members.values()
    ]


def _version(number: int) -> str:
    return version_name(number).lower()
