"""An archive as a Delta table, written by delta-rs without a JVM.

A queue's position is an application transaction of the Delta protocol, so it is part of the commit
that adds the files, and outlives checkpoints and log clean-up.
"""

import json
import re
from collections.abc import Iterable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from deltalake import DeltaTable, Field, Schema
from deltalake.exceptions import DeltaError
from deltalake.transaction import AddAction, CommitProperties, RemoveAction, Transaction

from gantrymq.model import Queue
from gantrymq.model.offset_ranges import QueueOffsets
from gantrymq.pipelines.lake.file_rows import queues_in
from gantrymq.pipelines.lake.files import DataFile, day_start_ms, facts_of
from gantrymq.pipelines.lake.schema import ARROW, PARTITIONS, check_schema
from gantrymq.pipelines.lake.table import Change, CommitConflict, Table, TableError, found_in

LOG: Final = "_delta_log"
APP: Final = "gantrymq"
_PAINT: Final = re.compile(r"\x1b\[\d+m|↳")
TROUBLE: Final = (DeltaError, OSError, ValueError)
"""What delta-rs raises when the log cannot be read or written."""


class Delta(Table):
    """A Delta table in a folder."""

    format = "delta"

    def __init__(self, root: Path, *, create: bool = False) -> None:
        super().__init__(root)
        lost = any(found_in(root))  # rows without a log: do not make a new table
        if create and not lost and not is_made(root):
            self._create()
        self._known: dict[Queue, int | None] = {}
        """Positions of this version: delta-rs looks each up in the whole log."""
        self._table = self._open()
        missing = check_schema(
            pa.schema(self._table.schema().to_arrow()),
            str(root),
            self._table.metadata().partition_columns,
        )
        if missing and create:
            self._add_columns(missing)

    def _create(self) -> None:
        try:
            DeltaTable.create(self.root, schema=ARROW, mode="ignore", partition_by=[*PARTITIONS])
        except TROUBLE as error:
            if not is_made(self.root):  # else another process made it just now
                raise TableError(f"no table can be made in {self.root}: {_line(error)}") from error

    def _open(self) -> DeltaTable:
        try:
            return DeltaTable(self.root)
        except TROUBLE as error:
            raise TableError(
                f"the log of the table {self.root} cannot be read: {_line(error)}. Restore "
                f"{self.root / LOG} from a copy, or archive into another folder"
            ) from error

    def _add_columns(self, names: list[str]) -> None:
        whole = Schema.from_arrow(ARROW)
        fields = [
            Field(f.name, f.type, nullable=f.nullable) for f in whole.fields if f.name in names
        ]
        try:
            self._table.alter.add_columns(fields)
        except TROUBLE as error:
            raise TableError(f"{self.root} takes no new columns: {_line(error)}") from error
        self.refresh()

    def refresh(self) -> None:
        before = self._table.version()
        self._table = self._open()
        if self._table.version() != before:
            self._known = {}

    def positions(self, queues: Iterable[Queue] | None = None) -> QueueOffsets:
        if queues is None:
            queues = {queue for each in self.files() for queue in queues_in(self.root, each)}
        found: QueueOffsets = {}
        for queue in queues:
            if queue not in self._known:
                self._known[queue] = self._table.transaction_version(_app(queue))
            at = self._known[queue]
            if at is not None:
                found[queue] = at
        return found

    def files(self) -> list[DataFile]:
        actions = pa.table(self._table.get_add_actions(flatten=True))
        return [_data_file(row) for row in actions.to_pylist()]

    def commit(self, change: Change) -> None:
        actions: list[AddAction | RemoveAction] = [
            _add(each, change.at_ms, same_rows=change.same_rows) for each in change.added
        ]
        actions += [
            RemoveAction(each.path, not change.same_rows, change.at_ms, each.size, _values(each))
            for each in change.removed
        ]
        marks = CommitProperties(
            custom_metadata={"userMetadata": change.reason},
            max_commit_retries=0,  # the run that lost must read the positions again
            app_transactions=[Transaction(_app(queue), at) for queue, at in change.ends.items()],
        )
        before = self._table.version()
        try:
            self._table.create_write_transaction(
                actions, "append", self._table.schema(), [*PARTITIONS], commit_properties=marks
            )
        except TROUBLE as error:
            self.refresh()
            if self.has(change):
                return
            if self._table.version() != before:
                raise CommitConflict(
                    f"the table {self.root} was changed by somebody else"
                ) from error
            raise TableError(f"the table {self.root} takes no commit: {_line(error)}") from error
        known = self._known | change.ends
        self.refresh()
        if self._table.version() == before + 1:  # only this change was committed
            self._known = known

    def forget(self, before_ms: int) -> None:
        """Shorten the log; delta-rs does it, by the table's own settings."""
        try:
            self._table.create_checkpoint()
            self._table.cleanup_metadata()
        except TROUBLE as error:
            raise TableError(f"the log of {self.root} was not shortened: {_line(error)}") from error


def is_made(root: Path) -> bool:
    """Whether a folder has a Delta table: one whose making failed leaves an empty log."""
    log = root / LOG
    return (log / "_last_checkpoint").exists() or any(log.glob("*.json"))


def _line(error: BaseException) -> str:
    """The first and the last line of an error of delta-rs, which writes many."""
    lines = [_PAINT.sub("", line).strip() for line in str(error).strip().splitlines()]
    return ": ".join(dict.fromkeys([lines[0], lines[-1]])) if lines else type(error).__name__


def _app(queue: Queue) -> str:
    return f"{APP}/{queue.topic}/{queue.broker_name}/{queue.queue_id}"


def _values(each: DataFile) -> dict[str, str | None]:
    return {"topic": each.topic, "dt": each.day.isoformat()}


def _add(each: DataFile, now_ms: int, *, same_rows: bool) -> AddAction:
    low: dict[str, Any] = {"queueOffset": each.first, "storeTimestamp": _iso(each.since_ms)}
    high: dict[str, Any] = {"queueOffset": each.last, "storeTimestamp": _iso(each.until_ms)}
    if each.queue is not None:
        low["queueId"] = high["queueId"] = each.queue.queue_id
        low["brokerName"] = high["brokerName"] = each.queue.broker_name
    stats = {"numRecords": each.rows, "minValues": low, "maxValues": high, "nullCount": {}}
    return AddAction(each.path, each.size, _values(each), now_ms, not same_rows, json.dumps(stats))


def _iso(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.") + (
        f"{at_ms % 1000:03d}Z"
    )


def _data_file(row: dict[str, Any]) -> DataFile:
    """A file as the log describes it; another writer may have left out statistics."""
    topic, path = row["partition.topic"], row["path"]
    day: date = row["partition.dt"]
    queue, first, last = facts_of(path, topic)
    since, until = row.get("min.storeTimestamp"), row.get("max.storeTimestamp")
    return DataFile(
        path=path,
        topic=topic,
        day=day,
        rows=row["num_records"] or 0,
        size=row["size_bytes"],
        queue=queue,
        first=first,
        last=last,
        since_ms=day_start_ms(day) if since is None else _ms(since),
        until_ms=day_start_ms(day) + 86_400_000 - 1 if until is None else _ms(until),
    )


def _ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)
