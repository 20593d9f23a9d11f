"""The classes that Spark calls to read and write; the work is done by other modules."""

# ruff: noqa: N802 - the names of the methods are Spark's

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from gantrymq.base.clock import SystemClock, elapsed_seconds
from gantrymq.base.errors import ConfigError, GantryError
from gantrymq.client.core.errors import NoRoute
from gantrymq.model.offset_ranges import (
    JsonOffsets,
    OffsetRange,
    QueueOffsets,
    count_behind,
    from_json,
    to_json,
)
from gantrymq.spark import plan
from gantrymq.spark.explain import explain_errors, unread_quietly
from gantrymq.spark.options.columns import ddl
from gantrymq.spark.options.points import EARLIEST, LATEST
from gantrymq.spark.options.row_shape import parse_row_shape
from gantrymq.spark.options.sink_options import SinkOptions, parse_sink_options
from gantrymq.spark.options.source_options import SourceOptions, TaskLimits
from gantrymq.spark.options.source_parser import parse_source_options
from gantrymq.spark.records.fetch import BROKER_AWAY, QueueCut, retry_patiently
from gantrymq.spark.records.losses import on_loss
from gantrymq.spark.records.rows import Rows
from gantrymq.spark.source.admission import Admission, row_limits, rows_limit
from gantrymq.spark.source.begin import Beginning, check_own, locate, starting_point
from gantrymq.spark.source.progress import StreamProgress, describe_progress
from gantrymq.spark.source.rows import open_rows

if TYPE_CHECKING:
    from gantrymq.spark.sink.sink import BatchSink, StreamSink

TASKS_DEFAULT = os.cpu_count() or 2


@explain_errors
class RocketMQDataSource(DataSource):  # type: ignore[misc, unused-ignore]
    """`format("rocketmq")`: the messages of topics, as a batch or as a stream."""

    @classmethod
    def name(cls) -> str:
        return "rocketmq"

    def schema(self) -> str:
        return ddl(parse_row_shape(dict(self.options)).types)

    def reader(self, schema: StructType) -> "BatchReader":
        return BatchReader(self._source(schema, streaming=False))

    def streamReader(self, schema: StructType) -> "StreamReader | RefusedReader":
        try:
            return StreamReader(self._source(schema, streaming=True))
        except GantryError as error:
            return RefusedReader(str(error))

    def writer(self, schema: StructType, overwrite: bool) -> "BatchSink":
        from gantrymq.spark.sink.sink import BatchSink  # readers need none of it

        return BatchSink(*self._sink(schema, overwrite, streaming=False))

    def streamWriter(self, schema: StructType, overwrite: bool) -> "StreamSink":
        from gantrymq.spark.sink.sink import StreamSink

        return StreamSink(*self._sink(schema, overwrite, streaming=True))

    def _sink(
        self, schema: StructType, overwrite: bool, *, streaming: bool
    ) -> tuple[SinkOptions, bool]:
        """The options of a write, and whether it will be exactly once."""
        from gantrymq.spark.sink.sink import is_exact

        if overwrite and not streaming:
            raise ConfigError("a topic is not overwritten: write with mode append")
        options = parse_sink_options(
            dict(self.options), streaming=streaming, namesrv_default=namesrv_default()
        )
        return options, is_exact(options, types_of(schema))

    def _source(self, schema: StructType, *, streaming: bool) -> SourceOptions:
        """The options of a read; its columns are those of a schema that the user gave."""
        options = parse_source_options(
            dict(self.options), streaming=streaming, namesrv_default=namesrv_default()
        )
        return replace(options, shape=options.shape.narrow(types_of(schema)))


def namesrv_default() -> str:
    return os.environ.get("NAMESRV_ADDR", "")


def types_of(schema: StructType) -> dict[str, str]:
    """The columns of a frame and the type of each, as Spark names it."""
    return {field.name: field.dataType.simpleString() for field in schema.fields}


class ReadTask(InputPartition):  # type: ignore[misc, unused-ignore]
    """The ranges that one task reads."""

    def __init__(self, ranges: tuple[OffsetRange, ...]) -> None:
        super().__init__(None)
        self.ranges = ranges


def read_slice(options: SourceOptions, partition: InputPartition) -> Iterator[Any]:
    """The rows of a task as Arrow batches; none for the empty task that Spark adds itself."""
    unread_quietly()
    if not isinstance(partition, ReadTask):
        return
    columns = options.shape.columns
    with open_rows(options) as rows:
        for wanted in partition.ranges:
            yield from rows.batches(wanted, columns)


def slices(
    limits: TaskLimits, found: Sequence[OffsetRange], rows: Rows, tasks_default: int | None
) -> list[ReadTask]:
    """Ranges as tasks: large ones cut, small ones together."""
    starts = {each.queue: each.start for each in found}
    sizes = {}
    if limits.bytes_max is not None:
        sizes = {queue: sample.size for queue, sample in rows.samples(starts).items()}
    rows_max = row_limits(limits, sizes, starts)
    pieces = plan.split(found, rows_max, limits.tasks_min)
    tasks_max = limits.tasks_max
    if tasks_max is None and not rows_max and limits.tasks_min is None:
        tasks_max = tasks_default
    if tasks_max is None:
        return [ReadTask((each,)) for each in pieces]
    return [ReadTask(task) for task in plan.pack(pieces, tasks_max)]


@explain_errors
class BatchReader(DataSourceReader):  # type: ignore[misc, unused-ignore]
    """Reads the messages between two offsets; the end is fixed when the query is planned."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    def partitions(self) -> list[ReadTask]:
        """One task a queue, unless the options say otherwise."""
        options = self._options
        point = starting_point(options.span, SystemClock().now_ms())
        with open_rows(options) as rows:
            start = locate(options.queues, point, rows, otherwise=EARLIEST)
            end = locate(options.queues, options.span.ending, rows, otherwise=LATEST)
            known = {queue: offset for queue, offset in end.items() if queue in start}
            return slices(options.tasks, plan.ranges(start, known), rows, None)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return read_slice(self._options, partition)


@explain_errors
class RefusedReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc, unused-ignore]
    """Stands in for a reader that could not be made: its first call raises the reason.

    An exception raised while Spark makes a reader leads to another error, which hides the reason.
    """

    def __init__(self, why: str) -> None:
        self._why = why

    def initialOffset(self) -> dict[str, Any]:
        raise ConfigError(self._why)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        raise ConfigError(self._why)

    def getDefaultReadLimit(self) -> ReadLimit:
        raise ConfigError(self._why)

    def prepareForTriggerAvailableNow(self) -> None:
        raise ConfigError(self._why)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[ReadTask]:
        raise ConfigError(self._why)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        raise ConfigError(self._why)


@explain_errors
class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc, unused-ignore]
    """Reads a stream, from the offsets of the checkpoint on.

    Spark asks one object, in a process of the driver, for offsets; workers have copies, which only
    read. The object's memory is lost with the process, and no guarantee depends on it.
    """

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._rows: Rows | None = None
        self._beginning = Beginning(options, SystemClock().now_ms())
        self._is_safe = self._beginning.is_kept
        self._admission = Admission(options.trigger)
        self._progress = StreamProgress(options.cluster, options.progress)
        self._is_last_run = False
        self._target: QueueOffsets | None = None
        self._highs: QueueOffsets = {}
        self._end: QueueOffsets = {}

    def __getstate__(self) -> dict[str, Any]:
        # a copy opens connections of its own
        progress = StreamProgress(self._options.cluster, self._options.progress)
        return self.__dict__ | {"_rows": None, "_progress": progress}

    def _open(self) -> Rows:
        if self._rows is None:
            self._rows = open_rows(self._options)
        return self._rows

    def initialOffset(self) -> JsonOffsets:
        """Where a new query begins. Spark asks twice and needs the same answer."""
        return to_json(self._beginning.find(self._open()))

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> JsonOffsets:
        """Where the next batch ends.

        The first batch of a query whose beginning may move is empty: it writes the beginning into
        the checkpoint. If it had rows, a crash before its commit would lose them, because the
        beginning would then be looked up again.
        """
        begin = self._checked(start)
        if begin != self._beginning.found:
            self._progress.report(begin)
        if not self._is_safe and begin == self._beginning.found:
            self._is_safe = True
            self._end = begin
            return to_json(begin)
        lows, self._highs = self._bounds(begin)
        cut = self._cut(begin, lows)
        if self._is_last_run and self._target is None:
            self._target = self._highs
        highs = plan.capped(self._highs, self._target)
        if not self._is_last_run and self._admission.waits(begin, highs, elapsed_seconds()):
            return to_json(begin)
        new = lows if self._options.span.new_queue_start == EARLIEST else self._highs
        rows_max = self._rows_max(begin, highs, limit)
        self._end = plan.advance(begin, highs, rows_max, new=new) | cut
        return to_json(self._end)

    def _bounds(self, begin: QueueOffsets) -> tuple[QueueOffsets, QueueOffsets]:
        """The first and next offset of each queue; waits for the brokers of topics read before."""
        mendable = BROKER_AWAY if begin else ()
        return retry_patiently(
            self._open().bounds, mendable, self._options.cluster.patience_ms / 1000
        )

    def _checked(self, offsets: dict[str, Any]) -> QueueOffsets:
        found = from_json(offsets)
        check_own(self._options.queues, found)
        return found

    def _cut(self, begin: QueueOffsets, lows: QueueOffsets) -> QueueOffsets:
        """The new start of each queue that ends before what was read of it; see failOnDataLoss.

        Only a master proves such an end. Without one the queue counts as ending where it was read
        up to.
        """
        short = {queue for queue in lows if self._highs[queue] < begin.get(queue, 0)}
        if not short:
            return {}
        proven = self._open().proven(short)
        self._highs |= {queue: begin[queue] for queue in short - proven}
        for queue in sorted(proven):
            if self._options.fails_on_loss:
                raise QueueCut(queue, begin[queue], self._highs[queue])
            on_loss(self._options)(queue, self._highs[queue], begin[queue])
        return {queue: lows[queue] for queue in proven}

    def _rows_max(self, begin: QueueOffsets, highs: QueueOffsets, limit: ReadLimit) -> int | None:
        bytes_max = self._options.trigger.bytes_max
        rows_max = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        if bytes_max is None:
            return rows_max
        lagging = {queue: begin.get(queue, 0) for queue in count_behind(begin, highs)}
        samples = self._open().samples(lagging)
        sizes = {queue: sample.size for queue, sample in samples.items()}
        return rows_limit(rows_max, bytes_max, begin, highs, sizes)

    def getDefaultReadLimit(self) -> ReadLimit:
        rows_max = self._options.trigger.rows_max
        return ReadAllAvailable() if rows_max is None else ReadMaxRows(rows_max)

    def prepareForTriggerAvailableNow(self) -> None:
        """End this run where the queues end now; without a route, where they end later."""
        self._is_last_run = True
        with suppress(NoRoute):
            _, self._target = self._open().bounds()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """The end of each queue and the lag, for the query's progress; None before a batch."""
        if not self._highs:
            return None
        return to_json(self._highs) | describe_progress(
            self._options, self._end, self._highs, self._open()
        )

    def commit(self, end: dict[str, Any]) -> None:
        """Report the progress: Spark has finished everything before these offsets."""
        self._progress.report(from_json(end))

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[ReadTask]:
        skips_new = self._options.span.new_queue_start == LATEST
        found = plan.ranges(self._checked(start), self._checked(end), skips_new=skips_new)
        return slices(self._options.tasks, found, self._open(), TASKS_DEFAULT)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return read_slice(self._options, partition)

    def stop(self) -> None:
        self._progress.close()
        if self._rows is not None:
            self._rows.close()
            self._rows = None
