"""What a task of the sink does: rows in, sends out, all of them awaited."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from zlib import crc32

import numpy as np
import pyarrow as pa

from gantrymq.base.errors import GantryError
from gantrymq.client.admin.admin import Admin
from gantrymq.client.core.errors import NoRoute
from gantrymq.client.core.instance import Instance
from gantrymq.client.core.routes import publish_queues
from gantrymq.client.produce.epochs import NUMBER_MAX, id_prefix
from gantrymq.client.produce.publishing import Publisher
from gantrymq.model import NameRefused, Queue, check_topic_name, is_system_topic
from gantrymq.protocol import properties
from gantrymq.protocol.publishing import Share
from gantrymq.spark.client import client_options
from gantrymq.spark.options.sink_options import FAIL, SKIP, SinkOptions
from gantrymq.spark.sink.encode import (
    GOOD,
    MESSAGE_BYTES_MAX,
    NO_TOPIC,
    REASONS,
    encode,
    split_sends,
)
from gantrymq.spark.sink.queue_choice import Queues, Targets, topics_of
from gantrymq.spark.sink.task_sends import DirectSends, EpochStage, SendSlots

log = logging.getLogger(__name__)

DEAD_BODY_BYTES_MAX: Final = MESSAGE_BYTES_MAX - 64 * 1024
"""What is kept of the body of a dead letter."""
NO_SUCH_TOPIC: Final = "topic {topic} does not exist: create it, or write with createTopic=true"
TOPIC_QUEUES_NONE: Final[Sequence[Queue]] = ()


class RowRefused(GantryError):
    """A row that brokers would refuse."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """Which part of which epoch a task writes."""

    writer: str
    epoch: int
    part: int
    exact: bool
    """Staged for the driver's commit, or sent straight away."""


@dataclass(slots=True)
class TaskCommit:
    """What a task reports to the driver."""

    task: Assignment
    rows: int = 0
    refused: int = 0
    shares: dict[str, Share] = field(default_factory=dict)
    """What was staged."""
    is_repeat: bool = False
    """The epoch was decided before, so nothing was staged."""


def open_publisher(options: SinkOptions, writer: str) -> Publisher:
    """A publisher of the cluster that the options name; to be used in an `async with` block."""
    return Publisher(None, writer, client=client_options(options.namesrv, options.security))


async def write_rows(task: Assignment, options: SinkOptions, batches: Iterator[Any]) -> TaskCommit:
    """Write all rows of a task; when this returns, every one of them is stored."""
    async with open_publisher(options, task.writer) as publisher:
        written = TaskCommit(task)
        if task.exact and await publisher.last_epoch() >= task.epoch:
            for _ in batches:  # Spark requires that all rows are read
                pass
            written.is_repeat = True
            return written
        sink = _Task(task, options, publisher, written)
        for batch in batches:
            await sink.write(batch)
        written.shares = sink.shares
        return written


class _Task:
    """Encodes and sends the rows of one task."""

    def __init__(
        self, task: Assignment, options: SinkOptions, publisher: Publisher, written: TaskCommit
    ) -> None:
        self._task, self._options, self._written = task, options, written
        self._instance: Instance = publisher.instance
        self._stage = EpochStage(publisher, options) if task.exact else None
        self._sends = self._stage or DirectSends(publisher.instance, options)
        self._slots = SendSlots(options.in_flight_max)
        self._prefix = id_prefix(task.writer, task.epoch, task.part)
        self._targets = Targets(crc32(self._prefix.encode()))
        self._known: dict[str, Sequence[Queue]] = {}
        self._numbered = 0

    @property
    def shares(self) -> dict[str, Share]:
        return self._stage.shares if self._stage is not None else {}

    async def write(self, batch: Any) -> None:
        """Send one Arrow batch and wait for it: Spark may take long until the next."""
        dead = await self._send(batch, self._options.topic)
        if dead is not None:
            await self._send(dead, self._options.dead_topic)
        await self._slots.drain()

    async def _send(self, batch: Any, topic: str | None) -> Any:
        """Start the sends of a batch; returns the rows that cannot be sent, as dead letters."""
        if not batch.num_rows:
            return None
        if self._numbered + batch.num_rows > NUMBER_MAX:
            raise RowRefused(f"more than {NUMBER_MAX} rows in one task: use more partitions")
        encoded = encode(batch, self._prefix, self._numbered)
        self._numbered += batch.num_rows
        faults = encoded.faults
        chosen, free = self._targets.choose(batch, topic, await self._queues(batch, topic), faults)
        chosen[faults != GOOD] = -1
        dead = self._refused(batch, faults, topic) if (faults != GOOD).any() else None
        # Rows for any queue, and rows with a delay, go in sends of their own.
        marks = free * 2 + (encoded.timed if self._stage is None else 0)
        keys = np.where(chosen < 0, -1, chosen * 4 + marks)
        for each in split_sends(encoded, keys, self._options.batch_bytes):
            queue = self._targets.queue(each.target // 4)
            timed, is_free = bool(each.target & 1), bool(each.target & 2)
            await self._slots.start(self._sends.take(queue, each, timed=timed, free=is_free))
            self._written.rows += each.count
        return dead

    async def _queues(self, batch: Any, topic: str | None) -> Queues:
        for name in topics_of(batch, topic):
            if name is not None and name not in self._known:
                self._known[name] = await topic_queues(self._instance, name, self._options)
        return self._known

    def _refused(self, batch: Any, faults: Any, topic: str | None) -> Any:
        """Raise RowRefused for rows that cannot be sent, skip them, or return dead letters."""
        bad = np.flatnonzero(faults != GOOD)
        options = self._options
        is_dead = topic is not None and topic == options.dead_topic
        if options.on_error == FAIL or is_dead:
            raise RowRefused(self._complaint(batch, faults, int(bad[0]), topic))
        self._written.refused += len(bad)
        if options.on_error == SKIP:
            log.warning("%d rows left out: %s", len(bad), REASONS[faults[bad[0]]])
            return None
        return _dead_letters(batch, bad, faults, topic)

    def _complaint(self, batch: Any, faults: Any, row: int, topic: str | None) -> str:
        reason = REASONS[faults[row]]
        name = topic
        if "topic" in batch.schema.names:
            name = batch.column("topic")[row].as_py() or topic
        if faults[row] == NO_TOPIC:
            return NO_SUCH_TOPIC.format(topic=name)
        return (
            f"a row for topic {name} cannot be written: {reason}. Mend it, or set onError to skip "
            "or dlq to go on without such rows"
        )


async def topic_queues(instance: Instance, topic: str, options: SinkOptions) -> Sequence[Queue]:
    """The queues of a topic that may be written to; none if there is no such topic.

    Several tasks may create a topic at once, with the same settings: the second changes nothing.
    """
    try:
        return publish_queues(await instance.routes.get(topic), topic)
    except NoRoute:
        if options.new_topic_queues is None or not _may_be_made(topic):
            return TOPIC_QUEUES_NONE
    async with Admin(client=instance.options) as admin:
        await admin.create_topic(topic, queues=options.new_topic_queues)
    log.warning("topic %s did not exist: created with %d queues", topic, options.new_topic_queues)
    return publish_queues(await instance.routes.refresh(topic), topic)


def _may_be_made(topic: str) -> bool:
    """Whether the sink may create the topic: the name is valid and not a system topic's."""
    try:
        check_topic_name(topic)
    except NameRefused:
        return False
    return not is_system_topic(topic)


def _dead_letters(batch: Any, bad: Any, faults: Any, topic: str | None) -> Any:
    """Rows that cannot be sent, as rows for the dead topic: body, reason and first topic."""
    rows = batch.take(pa.array(bad))
    bodies, entries = [], []
    names = rows.column("topic").to_pylist() if "topic" in rows.schema.names else [None] * len(bad)
    for body, name, fault in zip(rows.column("body"), names, faults[bad], strict=True):
        value = body.as_py() or b"(empty)"
        data = value.encode() if isinstance(value, str) else value
        bodies.append(data[:DEAD_BODY_BYTES_MAX])
        reason = {"GANTRY_REASON": REASONS[fault]}
        origin = {properties.DEAD_ORIGIN_TOPIC: name or topic} if name or topic else {}
        entries.append([*reason.items(), *origin.items()])
    return pa.RecordBatch.from_pydict(
        {
            "body": pa.array(bodies, pa.binary()),
            "properties": pa.array(entries, pa.map_(pa.string(), pa.string())),
        }
    )
