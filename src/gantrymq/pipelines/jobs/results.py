"""The table that a job fills: a Delta table in a folder, which is the job's checkpoint as well.

One commit replaces the rows of a period and moves the positions (the next offset of each queue to
read). A run that dies leaves either the old rows or the new ones, and the next one knows from the
table where to go on. Every commit also increments a number of the job, so that of two
concurrent runs one is refused.
"""

import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError

from gantrymq.base.disk import OsDisk
from gantrymq.base.errors import ConfigError
from gantrymq.base.time_text import describe
from gantrymq.base.tokens import unique_name
from gantrymq.model import Queue
from gantrymq.model.offset_ranges import QueueOffsets
from gantrymq.pipelines.jobs.result_files import Staged
from gantrymq.pipelines.lake import CommitConflict, TableError
from gantrymq.pipelines.lake.delta import is_made

STAGING: Final = "_staging"
LOCK: Final = "_lock"
APP: Final = "gantrymq-job"
TROUBLE: Final = (DeltaError, OSError, ValueError, pa.ArrowException)
MAINTAIN_EVERY: Final = 50
"""Commits after which small files are joined and files nobody needs are deleted."""
KEPT_HOURS: Final = 7 * 24
"""How long replaced rows can still be looked at, by the table's version."""
BATCH_ROWS: Final = 16_384


class ResultPeriod(NamedTuple):
    """A period of a result; without `until_ms` it has no end."""

    since_ms: int
    until_ms: int | None


class Results:
    """The table of one job."""

    def __init__(self, root: Path, job: str, time: str) -> None:
        self.root, self._job, self._time = root, job, time
        self._table = self._opened()

    def _opened(self) -> DeltaTable | None:
        if not is_made(self.root):
            if self.root.is_dir() and any(
                not each.name.startswith("_") for each in self.root.iterdir()
            ):
                raise ConfigError(f"{self.root} holds something else: choose an empty folder")
            return None
        try:
            return DeltaTable(self.root)
        except TROUBLE as error:
            raise TableError(f"the table {self.root} cannot be read: {_line(error)}") from error

    @property
    def exists(self) -> bool:
        return self._table is not None

    def positions(self, queues: Iterable[Queue]) -> QueueOffsets:
        """The next offset of each queue that was read before."""
        if self._table is None:
            return {}
        found = {queue: self._table.transaction_version(self._app(queue)) for queue in queues}
        return {queue: at for queue, at in found.items() if at is not None}

    def check_own(self) -> None:
        """Raise ConfigError if the table has rows of others, which this job would replace."""
        if self._table is None or self._table.transaction_version(f"{APP}/{self._job}") is not None:
            return
        if self._table.to_pyarrow_dataset().count_rows():
            raise ConfigError(
                f"the table {self.root} has rows that the job {self._job} did not make, and would "
                "replace: choose another table, or give the job the name it had"
            )

    def _app(self, queue: Queue) -> str:
        return f"{APP}/{self._job}/{queue.topic}/{queue.broker_name}/{queue.queue_id}"

    def rows_in(self, span: ResultPeriod) -> int:
        """How many rows of the period the table has."""
        if self._table is None:
            return 0
        field = ds.field(self._time)
        inside = field >= _scalar(span.since_ms)
        if span.until_ms is not None:
            inside &= field < _scalar(span.until_ms)
        return int(self._table.to_pyarrow_dataset().count_rows(filter=inside))

    @contextmanager
    def staging(self) -> Iterator[str]:
        """A folder for files that are not in the table yet; a lock admits one run at a time."""
        self.root.mkdir(parents=True, exist_ok=True)
        lock = OsDisk().lock(str(self.root / LOCK))
        try:
            shutil.rmtree(self.root / STAGING, ignore_errors=True)  # left by a killed run
            folder = self.root / STAGING / unique_name()
            folder.mkdir(parents=True)
            yield str(folder)
        finally:
            shutil.rmtree(self.root / STAGING, ignore_errors=True)
            lock.release()

    def replace(self, span: ResultPeriod, staged: Staged, ends: QueueOffsets, reason: str) -> int:
        """Replace the rows of the period by the staged ones; returns the table's new version."""
        table = self._table or self._created(staged.schema)
        self._check_columns(table, staged.schema)
        with self._committing(table, ends, reason) as properties:
            write_deltalake(
                table,
                pa.RecordBatchReader.from_batches(staged.schema, _batches(staged)),
                mode="overwrite",
                predicate=self._predicate(span),
                schema_mode="merge",
                commit_properties=properties,
            )
        return self._settled()

    def advance(self, ends: QueueOffsets, reason: str) -> int | None:
        """Move the positions only; returns the new version, None if there is no table yet."""
        table = self._table
        if table is None:
            return None
        with self._committing(table, ends, reason) as properties:
            table.create_write_transaction(
                [], "append", table.schema(), [], commit_properties=properties
            )
        return self._settled()

    @contextmanager
    def _committing(
        self, table: DeltaTable, ends: QueueOffsets, reason: str
    ) -> Iterator[CommitProperties]:
        count = (table.transaction_version(f"{APP}/{self._job}") or 0) + 1
        marks = [Transaction(self._app(queue), at) for queue, at in ends.items()]
        try:
            yield CommitProperties(
                custom_metadata={"userMetadata": reason},
                max_commit_retries=0,  # the run that lost must read the table again
                app_transactions=[Transaction(f"{APP}/{self._job}", count), *marks],
            )
        except CommitFailedError as error:
            raise CommitConflict(
                f"the table {self.root} was changed by somebody else meanwhile: run it again"
            ) from error
        except TROUBLE as error:
            raise TableError(f"the table {self.root} takes no rows: {_line(error)}") from error

    def _settled(self) -> int:
        """Reload the table after a commit, and maintain it now and then; returns its version."""
        self._table = DeltaTable(self.root)
        if (self._table.transaction_version(f"{APP}/{self._job}") or 0) % MAINTAIN_EVERY == 0:
            self.maintain()
        return int(self._table.version())

    def _created(self, schema: pa.Schema) -> DeltaTable:
        try:
            return DeltaTable.create(self.root, schema=schema, mode="ignore")
        except TROUBLE as error:
            raise TableError(f"no table can be made in {self.root}: {_line(error)}") from error

    def _check_columns(self, table: DeltaTable, schema: pa.Schema) -> None:
        """Raise if a column changes its type; new columns are allowed."""
        known = pa.schema(table.schema().to_arrow())
        for field in schema:
            at = known.get_field_index(field.name)
            if at >= 0 and not _alike(known.field(at).type, field.type):
                raise ConfigError(
                    f"the column {field.name} of {self.root} is {known.field(at).type}, and the "
                    f"job's is {field.type}: cast it in the job, or choose another table"
                )
        missing = [name for name in known.names if name not in schema.names]
        if missing:
            raise ConfigError(
                f"the job's result has no column {missing[0]}, which {self.root} has: add it, or "
                "choose another table"
            )

    def _predicate(self, span: ResultPeriod) -> str:
        name = '"' + self._time.replace('"', '""') + '"'
        found = f"{name} >= {_literal(span.since_ms)}"
        if span.until_ms is not None:
            found += f" AND {name} < {_literal(span.until_ms)}"
        return found

    def maintain(self) -> None:
        """Join small files, delete files that were replaced long ago, shorten the log.

        The rows do not change, so a failure here does no harm.
        """
        table = DeltaTable(self.root)
        with suppress(*TROUBLE):
            table.optimize.compact()
            table.vacuum(retention_hours=KEPT_HOURS, dry_run=False)
            table.create_checkpoint()
            table.cleanup_metadata()
        self._table = DeltaTable(self.root)

    def frame(self, spark: Any) -> Any:
        """The rows as a Spark frame, as they are now."""
        if self._table is None:
            raise ConfigError(f"there is no table in {self.root}: run the job first")
        uris = self._table.file_uris()
        schema = _spark_schema(self._table)
        if not uris:
            return spark.createDataFrame([], schema)
        return spark.read.schema(schema).parquet(*uris)


def _spark_schema(table: DeltaTable) -> Any:
    """The table's schema as Spark's: Delta stores it in the same form."""
    import json

    from pyspark.sql.types import StructType

    return StructType.fromJson(json.loads(table.schema().to_json()))


def _batches(staged: Staged) -> Iterator[pa.RecordBatch]:
    for path in staged.paths:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(BATCH_ROWS):
                yield batch.cast(staged.schema)


def _alike(one: pa.DataType, two: pa.DataType) -> bool:
    return bool(one == two) or str(one).replace("large_", "").replace("_view", "") == str(two)


def _literal(ms: int) -> str:
    text = describe(ms, "UTC").replace(" ", "T").replace("+00:00", "Z")
    return f"arrow_cast('{text}', 'Timestamp(Microsecond, Some(\"UTC\"))')"


def _scalar(ms: int) -> pa.Scalar:
    return pa.scalar(ms * 1000, pa.timestamp("us", "UTC"))


def _line(error: BaseException) -> str:
    """The first line of an error; delta-rs adds many more."""
    return str(error).strip().partition("\n")[0]
