"""A lakehouse table of messages: the interface that archive, replay, reports and searches use.

The table is its own checkpoint. A commit adds files, removes files and moves the positions (the
next offset of each queue to archive), all or nothing; so a killed run is simply started again from
the table.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date
from functools import reduce
from pathlib import Path
from typing import Any, ClassVar

from gantrymq.base.errors import GantryError
from gantrymq.model import Queue
from gantrymq.model.offset_ranges import QueueOffsets
from gantrymq.pipelines.common.selection import stored_in
from gantrymq.pipelines.lake.files import DATA, DataFile, pruned
from gantrymq.pipelines.lake.schema import DAY, DDL


class TableError(GantryError):
    """A table cannot be read or written."""


class CommitConflict(TableError):
    """Another process changed the table since it was read; this commit had no effect."""


@dataclass(frozen=True, slots=True)
class Change:
    """What one commit does."""

    at_ms: int
    """The time it is made."""
    added: tuple[DataFile, ...] = ()
    removed: tuple[DataFile, ...] = ()
    ends: QueueOffsets = field(default_factory=dict)
    """Positions that move."""
    reason: str = "archive"
    """For the table's own history."""
    same_rows: bool = False
    """The rows stay what they are, only in other files."""


class Table(ABC):
    """A table in the state of its last `refresh`."""

    format: ClassVar[str]

    def __init__(self, root: Path) -> None:
        self.root = root

    @abstractmethod
    def refresh(self) -> None:
        """Read the present state of the table."""

    @abstractmethod
    def positions(self, queues: Iterable[Queue] | None = None) -> QueueOffsets:
        """The next offset to archive, of all queues that the table knows or of some."""

    @abstractmethod
    def files(self) -> list[DataFile]:
        """All files that belong to the table."""

    @abstractmethod
    def commit(self, change: Change) -> None:
        """Commit a change; `CommitConflict` if the table has changed since `refresh`."""

    @abstractmethod
    def forget(self, before_ms: int) -> None:
        """Drop older states of the table; `before_ms` in milliseconds since 1970."""

    def has(self, change: Change) -> bool:
        """Whether a change is in the table: a commit may succeed and still report an error."""
        paths = {each.path for each in self.files()}
        return bool(change.added) and all(each.path in paths for each in change.added)

    def paths(
        self,
        *,
        topics: Collection[str] | None = None,
        since_ms: int | None = None,
        until_ms: int | None = None,
    ) -> list[str]:
        """The Parquet files of the table, whole paths, for readers that know no table format.

        Only these count: the folder may also hold files that were joined into others, or that a
        failed run wrote. With a time, only the files that may hold rows stored then.
        """
        wanted = pruned(self.files(), topics=topics, since_ms=since_ms, until_ms=until_ms)
        return [str(self.root / each.path) for each in wanted]

    def _read(self, spark: Any, files: list[DataFile]) -> Any:
        """Files as a frame; topic and day are filled in for files of another writer."""
        from pyspark.sql import functions as f

        groups: dict[tuple[str, date] | None, list[str]] = {}
        for each in files:
            key = None if each.queue is not None else (each.topic, each.day)
            groups.setdefault(key, []).append(f"file://{self.root / each.path}")
        frames = []
        for key, paths in groups.items():
            found = spark.read.schema(DDL).parquet(*paths)
            if key is not None:
                known = {"topic": f.lit(key[0]), DAY: f.lit(key[1])}
                found = found.withColumns(known)
            frames.append(found)
        return reduce(lambda one, other: one.unionByName(other), frames)

    def frame(
        self,
        spark: Any,
        *,
        topics: Collection[str] | None = None,
        since_ms: int | None = None,
        until_ms: int | None = None,
    ) -> Any:
        """The rows as a Spark frame: every column of a message, and the day `dt`.

        Rows stored from `since_ms` up to but not including `until_ms`; only files that may hold
        some are opened.
        """
        wanted = pruned(self.files(), topics=topics, since_ms=since_ms, until_ms=until_ms)
        if not wanted:
            return spark.createDataFrame([], DDL)
        return stored_in(self._read(spark, wanted), since_ms, until_ms)


def found_in(root: Path) -> Iterator[Path]:
    """All paths in the folders of data files, whether the table has them or not.

    In tables of earlier versions the folders of topics lie beside the log.
    """
    yield from root.glob(f"{DATA}/*/*/*")
    yield from root.glob("topic=*/*/*")
