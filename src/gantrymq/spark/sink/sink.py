"""The classes that Spark calls to write.

Exactly once: tasks stage their rows, and the driver's commit publishes the epoch; a repeated commit
does not publish it again. At least once: tasks send, and a task or epoch that is repeated sends the
same ids.
"""

# ruff: noqa: N803 - the names of the parameters are Spark's

import asyncio
import logging
from collections.abc import Coroutine, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from gantrymq.base.errors import ConfigError
from gantrymq.base.tokens import unique_id
from gantrymq.client.core.errors import BrokerUnknown
from gantrymq.client.produce.publishing import EpochResult
from gantrymq.protocol.publishing import ONCE_PREFIX, Share, WriterState
from gantrymq.spark.explain import explain_errors
from gantrymq.spark.options.sink_options import (
    AT_LEAST_ONCE,
    EXACTLY_ONCE,
    SinkOptions,
    check_sink_columns,
)
from gantrymq.spark.sink.task import (
    NO_SUCH_TOPIC,
    Assignment,
    TaskCommit,
    open_publisher,
    topic_queues,
    write_rows,
)

log = logging.getLogger(__name__)

QUERY_ID: Final = "sql.streaming.queryId"
BATCH_ID: Final = "streaming.sql.batchId"
PROBE: Final = "gantry-probe"

T = TypeVar("T")


def blocking(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in a process of Spark, which has no event loop."""
    with asyncio.Runner() as runner:
        return runner.get_loop().run_until_complete(work)


@dataclass
class TaskWritten(WriterCommitMessage):  # type: ignore[misc, unused-ignore]
    """What a task reports to the driver's commit."""

    written: TaskCommit


# planning


def is_exact(options: SinkOptions, types: Mapping[str, str]) -> bool:
    """Whether the write will be exactly once; raises before anything is sent if it cannot be."""
    check_sink_columns(types, options.topic)
    return blocking(_probe(options))


async def _probe(options: SinkOptions) -> bool:
    async with open_publisher(options, PROBE) as publisher:
        brokers: set[str] = set()
        for topic in filter(None, (options.topic, options.dead_topic)):
            queues = await topic_queues(publisher.instance, topic, options)
            if not queues:
                raise ConfigError(NO_SUCH_TOPIC.format(topic=topic))
            brokers |= {queue.broker_name for queue in queues}
        if options.delivery == AT_LEAST_ONCE:
            return False
        states = await publisher.states()
        return able(options.delivery, brokers or states.keys(), states)


def able(delivery: str, brokers: Set[str], states: Mapping[str, WriterState | None]) -> bool:
    """Whether all these brokers publish epochs; raises BrokerUnknown while one is away."""
    away = sorted(brokers - states.keys())
    if away:
        raise BrokerUnknown(
            f"broker {', '.join(away)} is not in the cluster now, so that nobody knows whether it "
            "can write exactly once: try again when it is back, or write with "
            "delivery=at-least-once"
        )
    unable = sorted(name for name in brokers if states[name] is None)
    if unable and delivery == EXACTLY_ONCE:
        raise ConfigError(
            f"delivery=exactly-once needs GantryMQ brokers, and {', '.join(unable)} is none: "
            "write with delivery=at-least-once"
        )
    return not unable


# committing


def commit(options: SinkOptions, messages: Sequence[Any], epoch: int) -> EpochResult | None:
    """Publish what the tasks of an epoch have staged; None when there is nothing to publish."""
    parts = [message.written for message in messages if message is not None]
    parts.sort(key=lambda written: written.task.part)
    refused = sum(written.refused for written in parts)
    if refused:
        log.warning("epoch %d: %d rows could not be written", epoch, refused)
    if not any(written.shares or written.is_repeat for written in parts):
        return None
    shares: dict[str, Share] = {}
    for written in parts:
        for broker, share in written.shares.items():
            shares.setdefault(broker, []).extend(share)
    return blocking(_publish(options, parts[0].task.writer, epoch, shares))


async def _publish(
    options: SinkOptions, writer: str, epoch: int, shares: Mapping[str, Share]
) -> EpochResult:
    async with open_publisher(options, writer) as publisher:
        return await publisher.publish(epoch, shares)


# what Spark calls


@explain_errors
class BatchSink(DataSourceArrowWriter):  # type: ignore[misc, unused-ignore]
    """`df.write`: one epoch, of a writer that the options name or of a new one."""

    def __init__(self, options: SinkOptions, exact: bool) -> None:
        self._options, self._exact = options, exact
        self._writer = options.writer_id or f"{ONCE_PREFIX}{unique_id()}"
        self._epoch = options.epoch or 0

    def write(self, iterator: Iterator[Any]) -> TaskWritten:
        context = TaskContext.get()
        part = context.partitionId() if context is not None else 0
        task = Assignment(self._writer, self._epoch, part, self._exact)
        return TaskWritten(blocking(write_rows(task, self._options, iterator)))

    def commit(self, messages: list[Any]) -> None:
        commit(self._options, messages, self._epoch)

    def abort(self, messages: list[Any]) -> None:
        """Nothing to undo: what is staged and never published is left to retention."""


@explain_errors
class StreamSink(DataSourceStreamArrowWriter):  # type: ignore[misc, unused-ignore]
    """`df.writeStream`: every micro-batch an epoch, of a writer named after the query."""

    def __init__(self, options: SinkOptions, exact: bool) -> None:
        self._options, self._exact = options, exact

    def write(self, iterator: Iterator[Any]) -> TaskWritten:
        context = TaskContext.get()
        assert context is not None, "Spark runs this in a task"
        query, batch = context.getLocalProperty(QUERY_ID), context.getLocalProperty(BATCH_ID)
        assert query is not None, "a streaming query has an id"
        assert batch is not None, "a micro-batch has a number"
        writer = self._options.writer_id or f"spark-{query}"
        task = Assignment(writer, int(batch), context.partitionId(), self._exact)
        return TaskWritten(blocking(write_rows(task, self._options, iterator)))

    def commit(self, messages: list[Any], batchId: int) -> None:
        commit(self._options, messages, batchId)

    def abort(self, messages: list[Any], batchId: int) -> None:
        """Nothing to undo: what is staged and never published is left to retention."""
