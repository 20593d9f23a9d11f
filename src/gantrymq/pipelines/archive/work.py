"""What a task of the archive does: read, write files, and report what was written.

Rows become Parquet where they are decoded. Only the names and statistics of files go back, so
neither the JVM nor the driver sees a row. An error goes back as text, not as a failed task: a retry
by Spark would not mend it.
"""

import errno
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow as pa

from gantrymq.base.errors import GantryError
from gantrymq.model.offset_ranges import OffsetRange
from gantrymq.pipelines.lake.file_writer import FileWriter, remove
from gantrymq.pipelines.lake.files import DataFile, OffsetSpan
from gantrymq.spark.options.columns import COLUMNS
from gantrymq.spark.options.source_options import SourceOptions
from gantrymq.spark.records.fetch import DataLost
from gantrymq.spark.records.rows import Rows
from gantrymq.spark.runtime.tasks import run_tasks
from gantrymq.spark.source.rows import open_rows

SCHEMA: Final = "report string"
NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class WorkFailed(GantryError):
    """A task failed; its files are deleted."""


class TaskReport(msgspec.Struct):
    """What a task reports."""

    files: list[DataFile] = []
    """New rows."""
    kept: list[DataFile] = []
    """Rows of older files, written again."""
    dropped: list[OffsetSpan] = []
    """Rows of older files that it left out."""
    trouble: str = ""


Work = Callable[[Any, str], TaskReport]
"""Does a task; the text is a token for names that nobody else has."""


def reporting(work: Work, run: str) -> Callable[[Any], Iterator[Any]]:
    """The work as a Spark task: it yields one row, with the result or the error."""

    def report(task: Any) -> Iterator[Any]:
        try:
            said = work(task, _token(run))
        except (GantryError, OSError, pa.ArrowException) as error:
            said = TaskReport(trouble=_told(error))
        yield pa.RecordBatch.from_pydict({"report": [msgspec.json.encode(said).decode()]})

    return report


def _told(error: Exception) -> str:
    """The text of an error; for a full disk, with what to do."""
    if isinstance(error, OSError) and error.errno in NO_ROOM:
        why = os.strerror(error.errno or 0)
        return f"the disk of the table is full ({why}): make room, and the same command goes on"
    return str(error)


def _token(run: str) -> str:
    """A name for this attempt at this task: attempts may run at the same time."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return f"{run}t{context.taskAttemptId() if context else 0}"


def run_work(spark: Any, root: Path, tasks: Sequence[Any], work: Work, run: str) -> TaskReport:
    """Run tasks on Spark and sum up their reports; on trouble delete all files and raise."""
    found = run_tasks(spark, tasks, reporting(work, run), SCHEMA).collect()
    reports = [msgspec.json.decode(row.report, type=TaskReport) for row in found]
    files = [each for report in reports for each in report.files]
    kept = [each for report in reports for each in report.kept]
    trouble = next((report.trouble for report in reports if report.trouble), "")
    if trouble:
        remove(root, [*files, *kept])
        raise WorkFailed(trouble)
    return TaskReport(files, kept, [each for report in reports for each in report.dropped])


def build_copy_work(root: Path, options: SourceOptions) -> Work:
    """The function that a task runs: it copies ranges of queues into files."""

    def copy(ranges: tuple[OffsetRange, ...], token: str) -> TaskReport:
        files: list[DataFile] = []
        with ExitStack() as opened, open_rows(options) as rows:
            for number, wanted in enumerate(ranges):
                writer = opened.enter_context(FileWriter(root, wanted.queue, f"{token}r{number}"))
                copy_range(rows, wanted, writer, strict=options.fails_on_loss)
                files += writer.done
        return TaskReport(files=files)

    return copy


def copy_range(rows: Rows, wanted: OffsetRange, writer: FileWriter, *, strict: bool) -> None:
    """Copy one range, every offset once; DataLost names the first that is missing."""
    at = wanted.start
    for batch in rows.batches(wanted, tuple(COLUMNS)):
        offsets = batch.column("queueOffset")
        first, last = offsets[0].as_py(), offsets[-1].as_py()
        may_skip = not strict or (wanted.is_new and at == wanted.start)
        whole = last - first + 1 == batch.num_rows
        if first < at or (strict and not whole) or (first > at and not may_skip):
            raise DataLost(wanted.queue, at, max(first, at + 1))
        writer.add(batch)
        at = last + 1
    if at != wanted.end and strict and not (wanted.is_new and at == wanted.start):
        raise DataLost(wanted.queue, at, wanted.end)
    writer.close()
