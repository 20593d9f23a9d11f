"""Batches of rows to Parquet files of a table, in the worker that has them.

A file is written under a hidden name, forced to the disk and then given its own name: a visible
file is complete. It belongs to the table only after a commit.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gantrymq.model import Queue
from gantrymq.pipelines.lake.files import DataFile, day_of, folder_of, name_of
from gantrymq.pipelines.lake.schema import ARROW, DAY

GROUP_BYTES: Final = 32 * 1024 * 1024
"""Rows are gathered up to this size: a row group is what a search reads or leaves out."""
FILE_BYTES: Final = 512 * 1024 * 1024
"""Bytes before packing at which the next file is begun."""

DAY_US: Final = 86_400_000_000

DICTIONARY: Final = [
    "topic",
    "brokerName",
    "tags",
    "bornHost",
    "storeHost",
    "properties.key_value.key",
    DAY,
]
"""Columns with few values. For the others a dictionary only costs time."""
STATISTICS: Final = [
    "topic",
    "brokerName",
    "queueId",
    "queueOffset",
    "msgId",
    "keys",
    "storeTimestamp",
    "bornTimestamp",
    DAY,
]


class FileWriter:
    """Writes rows of one queue, which come in order of offset.

    A new file is begun for every day and after every gap, so a file has all offsets from its first
    to its last. If the `with` block fails, its files are deleted.
    """

    def __init__(self, root: Path, queue: Queue, token: str) -> None:
        self._root, self._queue, self._token = root, queue, token
        self.done: list[DataFile] = []
        self._open: _OpenFile | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            self.drop()

    def add(self, batch: Any) -> None:
        """Write a batch with the columns of a message."""
        for run in _runs(batch):
            for day, part in _by_day(run):
                self._add(day, part)

    def _add(self, day: date, part: Any) -> None:
        open_, first = self._open, part.column("queueOffset")[0].as_py()
        if open_ is None or open_.day != day or open_.next != first or open_.size >= FILE_BYTES:
            self._finish()
            token = f"{self._token}x{len(self.done)}"
            open_ = self._open = _OpenFile(self._root, self._queue, day, token)
        open_.add(part)

    def _finish(self) -> None:
        if self._open is not None:
            self.done.append(self._open.close())
            self._open = None

    def close(self) -> list[DataFile]:
        """Finish the last file; returns all files."""
        self._finish()
        return self.done

    def drop(self) -> None:
        """Delete everything that was written."""
        if self._open is not None:
            self._open.drop()
            self._open = None
        remove(self._root, self.done)


class _OpenFile:
    def __init__(self, root: Path, queue: Queue, day: date, token: str) -> None:
        self.day, self.size = day, 0
        self.next = -1
        """The offset that goes on from what is in it."""
        self._queue, self._token = queue, token
        self._root, self._folder = root, folder_of(queue.topic, day)
        (root / self._folder).mkdir(parents=True, exist_ok=True)
        self._draft = root / self._folder / f".{queue.queue_id}-{token}.part"
        try:
            self._writer = pq.ParquetWriter(
                self._draft,
                ARROW,
                compression="zstd",
                use_dictionary=DICTIONARY,
                write_statistics=STATISTICS,
                store_schema=False,
            )
        except OSError:
            self._draft.unlink(missing_ok=True)
            raise
        self._waiting: list[Any] = []
        self._waiting_size = self._rows = 0
        self._ends: list[tuple[Any, Any]] = []

    def add(self, batch: Any) -> None:
        self._waiting.append(batch)
        self.next = batch.column("queueOffset")[-1].as_py() + 1
        self._waiting_size += batch.nbytes
        if self._waiting_size >= GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        if not self._waiting:
            return
        table = pa.Table.from_batches(self._waiting)
        self._ends.append((_ends(table, "queueOffset"), _ends(table, "storeTimestamp")))
        self._writer.write_table(table, row_group_size=table.num_rows)
        self._rows += table.num_rows
        self.size += self._waiting_size
        self._waiting, self._waiting_size = [], 0

    def close(self) -> DataFile:
        self._flush()
        self._writer.close()
        offsets, times = zip(*self._ends, strict=True)
        first, last = min(low for low, _ in offsets), max(high for _, high in offsets)
        name = name_of(self._queue, first, last, self._token)
        with self._draft.open("rb") as file:
            os.fsync(file.fileno())
        path = f"{self._folder}/{name}"
        self._draft.rename(self._root / path)
        return DataFile(
            path=path,
            topic=self._queue.topic,
            day=self.day,
            rows=self._rows,
            size=(self._root / path).stat().st_size,
            queue=self._queue,
            first=first,
            last=last,
            since_ms=min(low for low, _ in times) // 1000,
            until_ms=max(high for _, high in times) // 1000,
        )

    def drop(self) -> None:
        self._waiting = []
        with suppress(OSError):  # the disk may be full; the file is deleted anyway
            self._writer.close()
        self._draft.unlink(missing_ok=True)


def _ends(table: Any, column: str) -> tuple[int, int]:
    values = table[column]
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.int64())
    found = pc.min_max(values)
    return found["min"].as_py(), found["max"].as_py()


def _runs(batch: Any) -> Iterator[Any]:
    """The batch, cut where offsets are missing."""
    for first, last in runs(batch.column("queueOffset").to_numpy()):
        yield batch.slice(first, last - first)


def runs(offsets: npt.NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Runs of consecutive offsets, as pairs of index and end index."""
    edges = np.flatnonzero(np.diff(offsets) != 1) + 1
    return pairwise([0, *edges.tolist(), offsets.size])


def _by_day(batch: Any) -> Iterator[tuple[date, Any]]:
    """The batch cut by the day of storing, with the day as a column. Mostly there is one."""
    if not batch.num_rows:
        return
    times = batch.column("storeTimestamp").cast(pa.int64())
    ends = pc.min_max(times)
    first, last = (day_of(ends[end].as_py() // 1000) for end in ("min", "max"))
    if first == last:
        yield first, _dated(batch, first)
        return
    days = np.floor_divide(times.to_numpy(), DAY_US)
    for number in np.unique(days).tolist():
        day = day_of(number * 86_400_000)
        yield day, _dated(batch.filter(pa.array(days == number)), day)


def _dated(batch: Any, day: date) -> Any:
    columns = [*batch.columns, pa.repeat(pa.scalar(day, pa.date32()), batch.num_rows)]
    return pa.RecordBatch.from_arrays(columns, schema=ARROW)


def remove(root: Path, files: Iterable[DataFile]) -> None:
    """Delete files that are in no table."""
    for each in files:
        (root / each.path).unlink(missing_ok=True)
