"""What a query of `format("rocketmq")` reads and how, as one value in groups. Pure.

`parse_source_options` (`source_parser`) makes it of the options that users write.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from gantrymq.model import Queue
from gantrymq.model.offset_ranges import QueueOffsets
from gantrymq.protocol.subscription import ALL, parse_tags
from gantrymq.spark.options.client_security import UNSECURED, ClientSecurity
from gantrymq.spark.options.points import EARLIEST, LATEST, Point
from gantrymq.spark.options.row_shape import RowShape

PULL_BATCH_DEFAULT: Final = 4096
GROUP_DEFAULT: Final = "spark-reader"
"""Pulls name a group; nothing of it is stored, so that readers may share one."""
MIB: Final = 1 << 20

BROKER, STORE = "broker", "store"
AUTO, NEVER, REQUIRE = "auto", "never", "require"
FAIL, SKIP, REPORT = "true", "false", "report"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterAccess:
    """The cluster, and how long it may take."""

    namesrv: str = ""
    """Empty: only files are read."""
    group: str = GROUP_DEFAULT
    patience_ms: int = 120_000
    """How long brokers may be away."""
    metadata_ms: int = 1_000
    """How old what is known of topics and queues may be."""
    security: ClientSecurity = UNSECURED


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreAccess:
    """Whether messages are read from store files, and from which."""

    via: str = BROKER
    path: str | None = None
    access: str = AUTO
    """Whether the files of `path` are read where they cannot be seen, or must be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSelection:
    """Which queues are read."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    """Topics by regular expression, instead of `topics`."""
    assigned: tuple[Queue, ...] = ()
    """Queues one by one, instead of all queues of `topics`."""
    ids: frozenset[int] | None = None
    """Only queues with these numbers; None for all."""

    def reads(self, queue: Queue) -> bool:
        """Whether a queue is selected."""
        if self.assigned:
            return queue in self.assigned
        if self.ids is not None and queue.queue_id not in self.ids:
            return False
        if self.pattern is not None:
            return re.fullmatch(self.pattern, queue.topic) is not None
        return queue.topic in self.topics

    def select(self, offsets: Mapping[Queue, int]) -> QueueOffsets:
        """The offsets of the selected queues."""
        return {queue: offset for queue, offset in offsets.items() if self.reads(queue)}


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageConditions:
    """Which messages of the queues are read."""

    tags: str = ALL
    sql: str | None = None
    keys: frozenset[str] = frozenset()

    @property
    def tag_names(self) -> tuple[str, ...]:
        """The tags that are wanted; none means all."""
        return tuple(parse_tags(self.tags))

    @property
    def at_broker(self) -> bool:
        """Whether the broker leaves messages out, by tag or by SQL condition."""
        return self.sql is not None or bool(self.tag_names)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuerySpan:
    """Where a query begins and ends."""

    starting: Point = EARLIEST
    ending: Point = LATEST
    future_is_latest: bool = False
    """A starting time in the future means the end; else it is an error."""
    new_queue_start: str = EARLIEST


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerLimits:
    """How much a micro-batch takes."""

    rows_max: int | None = None
    rows_min: int | None = None
    delay_ms: int = 15 * 60_000
    """How long a micro-batch may be put off for want of `rows_min`."""
    bytes_max: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskLimits:
    """How ranges are split into tasks: how many, and how much one may have."""

    tasks_min: int | None = None
    tasks_max: int | None = None
    rows_max: int | None = None
    bytes_max: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressReports:
    """Whether a stream reports its progress to brokers, under the group."""

    commits: bool = False
    rewinds: bool = False
    """The progress may go back when the query does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PullLimits:
    """What one pull asks for."""

    count: int = PULL_BATCH_DEFAULT
    size: int = 4 * MIB
    timeout_ms: int = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """What to read and how."""

    cluster: ClusterAccess = field(default_factory=ClusterAccess)
    files: StoreAccess = field(default_factory=StoreAccess)
    queues: QueueSelection = field(default_factory=QueueSelection)
    messages: MessageConditions = field(default_factory=MessageConditions)
    span: QuerySpan = field(default_factory=QuerySpan)
    trigger: TriggerLimits = field(default_factory=TriggerLimits)
    tasks: TaskLimits = field(default_factory=TaskLimits)
    progress: ProgressReports = field(default_factory=ProgressReports)
    pull: PullLimits = field(default_factory=PullLimits)
    shape: RowShape = field(default_factory=RowShape)
    on_loss: str = FAIL
    """What is done about messages that are gone before they were read."""
    state_path: str | None = None
    """A folder of the query: its beginning and what was lost are kept there."""

    @property
    def fails_on_loss(self) -> bool:
        return self.on_loss == FAIL
