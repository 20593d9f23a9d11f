"""What the parts of one consumer share."""

from dataclasses import dataclass, field

from gantrymq.client.consume.flow_control import MIB, FlowLimits
from gantrymq.client.consume.membership.offset_store import LocalOffsets, OffsetStore, RemoteOffsets
from gantrymq.client.consume.membership.send_back import RETRIES_MAX_DEFAULT
from gantrymq.client.core.consumer_errors import ConsumerMisused
from gantrymq.client.core.instance import Instance
from gantrymq.client.core.options import AllocateStrategy, ConsumerOptions
from gantrymq.model import Subscription, check_group_name
from gantrymq.protocol.assignment import Strategy, averagely, by_circle, consistent_hash

__all__ = ["BROADCASTING", "RETRIES_MAX_DEFAULT", "Setup", "check_group", "strategy_named"]

BROADCASTING = "BROADCASTING"

_STRATEGIES: dict[AllocateStrategy, Strategy] = {
    "AVG": averagely,
    "AVG_BY_CIRCLE": by_circle,
    "CONSISTENT_HASH": consistent_hash(),
}
_RESERVED_GROUPS = ("DEFAULT_CONSUMER", "DEFAULT_PRODUCER")


@dataclass(frozen=True, slots=True)
class Setup:
    """One consumer's instance, group, subscriptions and settings."""

    instance: Instance
    group: str
    options: ConsumerOptions
    ordered: bool
    strategy: Strategy
    timestamp_ms: int
    """Where a new group begins when it begins at a time."""
    subscriptions: dict[str, Subscription] = field(default_factory=dict)

    @property
    def broadcast(self) -> bool:
        return self.options.message_model == BROADCASTING

    @property
    def flow_limits(self) -> FlowLimits:
        options = self.options
        return FlowLimits(
            options.pull_threshold_for_queue,
            options.pull_threshold_size_for_queue_mib * MIB,
            None if self.ordered else options.consume_max_span,
        )

    def offset_store(self) -> OffsetStore:
        """The store that fits the message model."""
        if self.broadcast:
            return LocalOffsets.of(self.instance, self.group, self.options.offset_dir)
        return RemoteOffsets(
            self.instance,
            self.group,
            skip_young_queues=self.options.from_last_skips_young_queues,
        )


def strategy_named(name: AllocateStrategy) -> Strategy:
    """A strategy that needs no further settings, by RocketMQ's name."""
    return _STRATEGIES[name]


def check_group(group: str) -> str:
    """Refuse a reserved group name, which unrelated programs would share, or a bad one."""
    if group in _RESERVED_GROUPS:
        raise ConsumerMisused(f"group {group!r} is reserved: choose a name of your own")
    return check_group_name(group)
