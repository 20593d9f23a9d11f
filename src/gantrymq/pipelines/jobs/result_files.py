"""A result, written to files beside its table and checked before it is committed.

Workers write Parquet themselves and report what they wrote. A repeated task writes other files;
only the files that Spark's successful tasks reported are used.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gantrymq.base.errors import ConfigError
from gantrymq.base.tokens import unique_name
from gantrymq.pipelines.common.arrow import arrow_schema

REPORT: Final = "path string, rows bigint, blank bigint, first bigint, last bigint"


@dataclass(frozen=True, slots=True)
class Staged:
    """Files that hold a result, and the times in it."""

    schema: pa.Schema
    paths: tuple[str, ...]
    rows: int
    blank: int
    """Rows without a time."""
    first_us: int | None
    last_us: int | None
    """The earliest and the latest time, in microseconds since 1970."""


def stage(frame: Any, folder: str, time: str) -> Staged:
    """Compute a frame and write it to files."""
    from pyspark.sql.pandas.types import to_arrow_schema

    _check_time(frame, time)
    schema = _plain(to_arrow_schema(frame.schema, timezone="UTC"))

    def work(batches: Iterator[Any]) -> Iterator[Any]:
        return write_part(batches, schema, folder, time)

    found = frame.mapInArrow(work, REPORT).collect()
    firsts = [row.first for row in found if row.first is not None]
    lasts = [row.last for row in found if row.last is not None]
    return Staged(
        schema=schema,
        paths=tuple(row.path for row in found),
        rows=sum(row.rows for row in found),
        blank=sum(row.blank for row in found),
        first_us=min(firsts, default=None),
        last_us=max(lasts, default=None),
    )


def write_part(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, folder: str, time: str
) -> Iterator[pa.RecordBatch]:
    """Write the rows of a task to a file and yield a row about it; nothing without rows."""
    path, writer = f"{folder}/{unique_name()}.parquet", None
    rows = blank = 0
    bounds: list[int] = []
    for batch in batches:
        if not batch.num_rows:
            continue
        if writer is None:
            writer = pq.ParquetWriter(path, schema, compression="zstd")
        cast = batch.cast(schema)
        writer.write_batch(cast)
        column = cast.column(time)
        rows, blank = rows + cast.num_rows, blank + column.null_count
        ends = pc.min_max(column.cast(pa.int64())).as_py()
        bounds += [end for end in ends.values() if end is not None]
    if writer is not None:
        writer.close()
        report = {
            "path": path,
            "rows": rows,
            "blank": blank,
            "first": min(bounds, default=None),
            "last": max(bounds, default=None),
        }
        yield pa.RecordBatch.from_pylist([report], arrow_schema(REPORT))


def _check_time(frame: Any, time: str) -> None:
    kinds = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
    if time not in kinds:
        raise ConfigError(f"the job's result has no column {time}, its time: {', '.join(kinds)}")
    if kinds[time] != "timestamp":
        raise ConfigError(f"the time {time} of the job's result is {kinds[time]}, not timestamp")


def _plain(schema: pa.Schema) -> pa.Schema:
    """The schema with every column nullable: what Spark infers changes between queries."""
    return pa.schema([pa.field(each.name, each.type) for each in schema])
