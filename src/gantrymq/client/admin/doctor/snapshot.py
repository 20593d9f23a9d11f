"""A cluster at one time, as the checks see it. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from gantrymq.client.admin.groups.members import Members
from gantrymq.model import GroupConfig, Queue, TopicConfig
from gantrymq.protocol.bodies import (
    ClientConnection,
    HaStatus,
    OffsetWrapper,
    RaftStatus,
    SubscriptionConflict,
)

MASTER_ID = 0


@dataclass(frozen=True)
class NameServerView:
    """What one name server knows."""

    address: str
    trouble: str = ""
    """Why it does not answer."""
    brokers: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    topics: frozenset[str] = frozenset()


@dataclass(frozen=True)
class BrokerView:
    """One registered broker, and what it says."""

    name: str
    broker_id: int
    address: str
    trouble: str = ""
    """Why it does not answer, or what it answers with instead."""
    refuses: bool = False
    """Whether it answers with a refusal: it is there, and does not tell us."""
    figures: Mapping[str, str] = field(default_factory=dict)
    config: Mapping[str, str] = field(default_factory=dict)
    asked_ms: int = 0
    answered_ms: int = 0
    """When this machine asked for the figures, and when it had them."""
    copies: HaStatus | None = None
    raft: RaftStatus | None = None
    topics: Mapping[str, TopicConfig] = field(default_factory=dict)
    groups: Mapping[str, GroupConfig] = field(default_factory=dict)
    """Topics and groups only of masters."""
    producers: tuple[ClientConnection, ...] = ()

    @property
    def is_master(self) -> bool:
        return self.broker_id == MASTER_ID

    @property
    def answers(self) -> bool:
        return not self.trouble

    def number(self, key: str, default: float) -> float:
        """A figure or setting as a number; the default if it is missing or is none."""
        text = self.figures.get(key) or self.config.get(key) or ""
        try:
            return float(text)
        except ValueError:
            return default


@dataclass(frozen=True)
class GroupView:
    """One group: its progress, and who is connected."""

    name: str
    progress: Mapping[Queue, OffsetWrapper] = field(default_factory=dict)
    clients: tuple[ClientConnection, ...] = ()
    topics: tuple[str, ...] = ()
    """What the members are subscribed to."""
    conflicts: tuple[SubscriptionConflict, ...] = ()
    broadcast: bool = False
    pops: bool = False
    may_consume: bool = True
    members: Members | None = None
    """What they say of themselves; only of groups that were looked at closely."""

    @property
    def lag(self) -> int:
        return sum(behind(row) for row in self.progress.values())


def behind(row: OffsetWrapper) -> int:
    """Messages of a queue that a group has not finished."""
    return max(0, row.broker_offset - row.consumer_offset)


@dataclass(frozen=True)
class ClusterSnapshot:
    """Everything that the checks look at."""

    now_ms: int
    name_servers: tuple[NameServerView, ...] = ()
    brokers: tuple[BrokerView, ...] = ()
    groups: Mapping[str, GroupView] = field(default_factory=dict)
    first_offsets: Mapping[Queue, int] = field(default_factory=dict)
    """The first message that is still there, of queues with a backlog."""
    left_out: tuple[str, ...] = ()
    """What was not asked, and why."""

    @property
    def names(self) -> list[str]:
        """The names of all brokers."""
        return sorted({broker.name for broker in self.brokers})

    def members_of(self, name: str) -> list[BrokerView]:
        """All brokers of one name, the master first."""
        found = [broker for broker in self.brokers if broker.name == name]
        return sorted(found, key=lambda broker: broker.broker_id)

    def masters(self) -> Iterator[BrokerView]:
        """Those that answer."""
        return (broker for broker in self.brokers if broker.is_master and broker.answers)

    def queues_of(self, topic: str) -> int:
        """How many queues of a topic consumers may read."""
        return sum(
            broker.topics[topic].read_queue_nums
            for broker in self.masters()
            if topic in broker.topics
        )
