"""Rows of a table's files, without Spark."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as fs
import pyarrow.parquet as pq

from gantrymq.model import Queue
from gantrymq.pipelines.lake.files import DataFile
from gantrymq.pipelines.lake.schema import ARROW, DAY, MESSAGE
from gantrymq.pipelines.lake.table import TableError
from gantrymq.spark.records.decode import TIME_MS_MAX, TIME_MS_MIN

BATCH_ROWS: Final = 16_384


def batches(root: Path, file: DataFile) -> Iterator[Any]:
    """The rows of a file as batches with a message's columns; missing columns are null."""
    try:
        for batch in pq.ParquetFile(root / file.path).iter_batches(BATCH_ROWS):
            yield _whole(batch, file.topic)
    except (OSError, pa.ArrowException) as error:
        raise TableError(f"{root / file.path} cannot be read: {error}") from error


def _whole(batch: Any, topic: str) -> Any:
    """The batch with all columns; the topic is filled in where another writer left it out."""
    count = batch.num_rows
    lacking = {"topic": pa.repeat(pa.scalar(topic), count)}
    columns = [
        batch.column(field.name).cast(field.type)
        if batch.schema.get_field_index(field.name) >= 0
        else lacking.get(field.name, pa.nulls(count, field.type))
        for field in MESSAGE
    ]
    return pa.RecordBatch.from_arrays(columns, schema=MESSAGE)


def queues_in(root: Path, file: DataFile) -> set[Queue]:
    """The queues of a file's rows; a file of another writer must be read for it."""
    if file.queue is not None:
        return {file.queue}
    found = matching(root, [file], None, ("brokerName", "queueId"))
    pairs = found.group_by(["brokerName", "queueId"]).aggregate([]).to_pylist()
    return {Queue(file.topic, row["brokerName"], row["queueId"]) for row in pairs}


def by_queue(root: Path, file: DataFile) -> list[DataFile]:
    """A file as one entry a queue; a file of another writer must be read for it."""
    if file.queue is not None:
        return [file]
    rows = matching(root, [file], None, ("brokerName", "queueId", "queueOffset", "storeTimestamp"))
    facts = [(name, kind) for name in ("queueOffset", "storeTimestamp") for kind in ("min", "max")]
    groups = rows.group_by(["brokerName", "queueId"])
    return [
        replace(
            file,
            rows=row["queueOffset_count"],
            queue=Queue(file.topic, row["brokerName"], row["queueId"]),
            first=row["queueOffset_min"],
            last=row["queueOffset_max"],
            since_ms=round(row["storeTimestamp_min"].timestamp() * 1000),
            until_ms=round(row["storeTimestamp_max"].timestamp() * 1000),
        )
        for row in groups.aggregate([*facts, ("queueOffset", "count")]).to_pylist()
    ]


def matching(root: Path, files: Sequence[DataFile], where: Any, columns: Sequence[str]) -> Any:
    """The rows of some files that meet a condition; row groups that cannot are not read."""
    form, disk = ds.ParquetFileFormat(), fs.LocalFileSystem()
    parts = [form.make_fragment(str(root / each.path), disk, _known(each)) for each in files]
    try:
        whole = ds.FileSystemDataset(parts, schema=ARROW, format=form, filesystem=disk)
        return whole.to_table(columns=list(columns), filter=where)
    except (OSError, pa.ArrowException) as error:
        raise TableError(f"the files of {root} cannot be read: {error}") from error


def _known(each: DataFile) -> Any:
    """Topic and day of a file's rows, for files that lack these columns."""
    day = pa.scalar(each.day, pa.date32())
    return (ds.field("topic") == each.topic) & (ds.field(DAY) == day)


def in_time(since_ms: int | None, until_ms: int | None) -> Any:
    """The condition for rows stored in [since, until); None without limits."""
    column, condition = ds.field("storeTimestamp"), None
    if since_ms is not None:
        condition = column >= moment(since_ms)
    if until_ms is not None:
        before = column < moment(until_ms)
        condition = before if condition is None else condition & before
    return condition


def moment(at_ms: int) -> Any:
    """A time as the columns store it, clipped to the range that they can hold."""
    return pa.scalar(max(TIME_MS_MIN, min(at_ms, TIME_MS_MAX)) * 1000, pa.int64()).cast(
        pa.timestamp("us", "UTC")
    )


def within(batch: Any, since_ms: int | None, until_ms: int | None) -> Any:
    """For each row of a batch whether it was stored in [since, until)."""
    times = batch.column("storeTimestamp").cast(pa.int64())
    inside = pa.repeat(pa.scalar(True), batch.num_rows)
    if since_ms is not None:
        inside = pc.and_(inside, pc.greater_equal(times, since_ms * 1000))
    if until_ms is not None:
        inside = pc.and_(inside, pc.less(times, until_ms * 1000))
    return inside
