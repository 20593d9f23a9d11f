"""The data source itself: what Spark calls, each call a few lines over the pure parts."""

# ruff: noqa: N802 - the names of the methods are Spark's

import os
from collections.abc import Iterator
from typing import Any

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

from gantrymq.spark import plan
from gantrymq.spark.columns import check_types, ddl
from gantrymq.spark.options import SourceOptions, columns_of, parse_options
from gantrymq.spark.rows import Rows, open_rows

TASKS_DEFAULT = os.cpu_count() or 2


class RocketMQDataSource(DataSource):  # type: ignore[misc, unused-ignore]
    """`format("rocketmq")`: the messages of topics, as a batch or as a stream."""

    @classmethod
    def name(cls) -> str:
        return "rocketmq"

    def schema(self) -> str:
        return ddl(columns_of(dict(self.options)))

    def reader(self, schema: StructType) -> "BatchReader":
        return BatchReader(self._parsed(streaming=False), _columns(schema))

    def streamReader(self, schema: StructType) -> "StreamReader":
        return StreamReader(self._parsed(streaming=True), _columns(schema))

    def _parsed(self, *, streaming: bool) -> SourceOptions:
        default = os.environ.get("NAMESRV_ADDR", "")
        return parse_options(dict(self.options), streaming=streaming, namesrv_default=default)


class Slice(InputPartition):  # type: ignore[misc, unused-ignore]
    """What one task reads."""

    def __init__(self, ranges: tuple[plan.Range, ...]) -> None:
        super().__init__(None)
        self.ranges = ranges


def _columns(schema: StructType) -> tuple[str, ...]:
    """The columns wanted: ours, or some of them by a schema of the user's."""
    return check_types({field.name: field.dataType.simpleString() for field in schema.fields})


def read_slice(
    options: SourceOptions, columns: tuple[str, ...], partition: InputPartition
) -> Iterator[Any]:
    """The rows of a task as Arrow batches. Spark makes a task of its own when there are none."""
    if not isinstance(partition, Slice):
        return
    with open_rows(options) as rows:
        for wanted in partition.ranges:
            yield from rows.batches(wanted, columns)


class BatchReader(DataSourceReader):  # type: ignore[misc, unused-ignore]
    """Reads what lies between two offsets; the end is fixed when the query is planned."""

    def __init__(self, options: SourceOptions, columns: tuple[str, ...]) -> None:
        self._options, self._columns = options, columns

    def partitions(self) -> list[Slice]:
        """One task a queue."""
        options = self._options
        with open_rows(options) as rows:
            lows, highs = rows.bounds()
        start = plan.resolve(options.starting, lows, highs, otherwise=plan.EARLIEST)
        end = plan.resolve(options.ending, lows, highs, otherwise=plan.LATEST)
        return [Slice((each,)) for each in plan.ranges(start, end)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return read_slice(self._options, self._columns, partition)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc, unused-ignore]
    """Reads on from where the checkpoint says.

    One object lives in a process of the driver and is asked for offsets; workers have copies of it
    which only read. What it remembers is lost with the process; nothing that matters depends on it.
    """

    def __init__(self, options: SourceOptions, columns: tuple[str, ...]) -> None:
        self._options, self._columns = options, columns
        self._rows: Rows | None = None
        self._initial: plan.Offsets | None = None
        self._pinned = not plan.moves(options.starting)
        self._target: plan.Offsets | None = None
        self._highs: plan.Offsets = {}

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_rows": None}  # a copy opens a connection of its own

    def _bounds(self) -> tuple[plan.Offsets, plan.Offsets]:
        if self._rows is None:
            self._rows = open_rows(self._options)
        return self._rows.bounds()

    def initialOffset(self) -> plan.JsonOffsets:
        """Where a new query begins. Spark asks twice, and must hear the same."""
        if self._initial is None:
            lows, highs = self._bounds()
            self._initial = plan.resolve(
                self._options.starting, lows, highs, otherwise=plan.EARLIEST
            )
        return plan.to_json(self._initial)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> plan.JsonOffsets:
        """Where the next batch ends.

        The first batch of a query that begins at `latest` is left empty on purpose: it writes its
        beginning into the checkpoint. Were it to have rows, a crash before it is committed would
        lose them, because the beginning is then resolved anew.
        """
        begin = plan.from_json(start)
        if not self._pinned and begin == self._initial:
            self._pinned = True
            return plan.to_json(begin)
        _, self._highs = self._bounds()
        rows_max = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        return plan.to_json(plan.advance(begin, plan.capped(self._highs, self._target), rows_max))

    def getDefaultReadLimit(self) -> ReadLimit:
        rows_max = self._options.rows_max
        return ReadAllAvailable() if rows_max is None else ReadMaxRows(rows_max)

    def prepareForTriggerAvailableNow(self) -> None:
        """From now on there is nothing but what is there now."""
        _, self._target = self._bounds()

    def reportLatestOffset(self) -> plan.JsonOffsets | None:
        """How far the queues reach, for the query's progress: the difference is the lag."""
        return plan.to_json(self._highs) if self._highs else None

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[Slice]:
        found = plan.ranges(plan.from_json(start), plan.from_json(end))
        return [Slice(task) for task in plan.pack(found, self._options.tasks_max or TASKS_DEFAULT)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return read_slice(self._options, self._columns, partition)

    def stop(self) -> None:
        if self._rows is not None:
            self._rows.close()
            self._rows = None
