"""An archive as an Iceberg table, with a catalog of its own in the table's folder.

Positions are table properties, one a topic, set in the same transaction that adds the files.
"""

import json
import warnings
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from gantrymq.base.errors import ConfigError
from gantrymq.model import Queue
from gantrymq.model.offset_ranges import QueueOffsets, from_json, to_json
from gantrymq.pipelines.lake.file_writer import STATISTICS
from gantrymq.pipelines.lake.files import DataFile, day_start_ms, facts_of
from gantrymq.pipelines.lake.schema import ARROW, PARTITIONS, check_schema
from gantrymq.pipelines.lake.table import Change, CommitConflict, Table, TableError

CATALOG: Final = "catalog.db"
NAME: Final = ("gantrymq", "messages")
POSITIONS: Final = "gantrymq.positions."
PROPERTIES: Final = {
    "commit.retry.num-retries": "0",  # the run that lost must read the positions again
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
    "write.metadata.metrics.default": "none",
    **{f"write.metadata.metrics.column.{name}": "full" for name in STATISTICS},
}


class Iceberg(Table):
    """An Iceberg table in a folder."""

    format = "iceberg"

    def __init__(self, root: Path, *, create: bool = False) -> None:
        super().__init__(root)
        try:
            from pyiceberg.catalog.sql import SqlCatalog
        except ImportError as error:
            raise ConfigError("iceberg tables need an extra: pip install gantrymq[iceberg]") from (
                error
            )
        self._uri = f"file://{root}"
        try:
            if create:
                root.mkdir(parents=True, exist_ok=True)
            self._catalog = SqlCatalog(
                "gantrymq", uri=f"sqlite:///{root / CATALOG}", warehouse=self._uri
            )
        except Exception as error:  # a catalog lets through whatever its database raises
            what = "no table can be made in" if create else "no catalog can be read in"
            raise TableError(f"{what} {root}: {str(error).partition(chr(10))[0]}") from error
        if create:
            self._create()
        self.refresh()
        parts = [each.name for each in self._table.spec().fields]
        missing = check_schema(self._table.schema().as_arrow(), str(root), parts)
        if missing and create:
            with self._table.update_schema() as update:
                update.union_by_name(ARROW)
            self.refresh()

    def _create(self) -> None:
        try:
            self._catalog.create_namespace_if_not_exists(NAME[0])
            if not self._catalog.table_exists(NAME):
                self._create_table()
        except Exception as error:  # pyiceberg lets through whatever its parts raise
            if not self._catalog.table_exists(NAME):  # else another process made it just now
                raise TableError(f"no table can be made in {self.root}: {error}") from error

    def _create_table(self) -> None:
        with self._catalog.create_table_transaction(
            NAME, schema=ARROW, location=self._uri, properties=PROPERTIES
        ) as made:
            with made.update_spec() as update:
                for name in PARTITIONS:
                    update.add_field(name, "identity", name)
            names = made.table_metadata.schema().name_mapping.model_dump_json()
            made.set_properties({"schema.name-mapping.default": names})

    def refresh(self) -> None:
        try:
            self._table = self._catalog.load_table(NAME)
        except Exception as error:
            raise TableError(
                f"the log of the table {self.root} cannot be read: {error}. Restore "
                f"{self.root / CATALOG} and {self.root / 'metadata'} from a copy, or archive into "
                "another folder"
            ) from error

    def positions(self, queues: Iterable[Queue] | None = None) -> QueueOffsets:
        found: QueueOffsets = {}
        for name, text in self._table.properties.items():
            if name.startswith(POSITIONS):
                found |= from_json({name.removeprefix(POSITIONS): json.loads(text)})
        return found if queues is None else {q: found[q] for q in queues if q in found}

    def _entries(self) -> list[Any]:
        try:
            return [task.file for task in self._table.scan().plan_files()]
        except Exception as error:
            raise TableError(f"the manifests of {self.root} cannot be read: {error}") from error

    def files(self) -> list[DataFile]:
        schema = self._table.schema()
        time_id = schema.find_field("storeTimestamp").field_id
        return [self._data_file(each, time_id) for each in self._entries()]

    def _data_file(self, each: Any, time_id: int) -> DataFile:
        topic, day = each.partition[0], each.partition[1]
        day = day if isinstance(day, date) else date(1970, 1, 1) + timedelta(days=day)
        path = each.file_path.removeprefix(self._uri + "/")
        queue, first, last = facts_of(path, topic)
        low, high = (bounds.get(time_id) for bounds in (each.lower_bounds, each.upper_bounds))
        return DataFile(
            path=path,
            topic=topic,
            day=day,
            rows=each.record_count,
            size=each.file_size_in_bytes,
            queue=queue,
            first=first,
            last=last,
            since_ms=_ms(low) if low else day_start_ms(day),
            until_ms=_ms(high) if high else day_start_ms(day) + 86_400_000 - 1,
        )

    def commit(self, change: Change) -> None:
        from pyiceberg.exceptions import CommitFailedException, ValidationException
        from pyiceberg.io.pyarrow import parquet_file_to_data_file

        table, gone = self._table, {each.path for each in change.removed}
        old = [e for e in self._entries() if e.file_path.removeprefix(self._uri + "/") in gone]
        before = table.metadata_location
        try:
            with warnings.catch_warnings(), table.transaction() as work:
                warnings.simplefilter("ignore")
                work.set_properties(self._moved(change.ends))
                with work.update_snapshot({"gantrymq": change.reason}).overwrite() as files:
                    for each in change.added:
                        files.append_data_file(
                            parquet_file_to_data_file(
                                table.io, work.table_metadata, f"{self._uri}/{each.path}"
                            )
                        )
                    for entry in old:
                        files.delete_data_file(entry)
        except (CommitFailedException, ValidationException) as error:
            self.refresh()
            raise CommitConflict(f"the table {self.root} was changed by somebody else") from error
        except Exception as error:
            self.refresh()
            if self.has(change):
                return
            if self._table.metadata_location != before:
                raise CommitConflict(
                    f"the table {self.root} was changed by somebody else"
                ) from error
            raise TableError(f"the table {self.root} takes no commit: {error}") from error

    def _moved(self, ends: QueueOffsets) -> dict[str, str]:
        topics = {queue.topic for queue in ends}
        known = {q: at for q, at in self.positions().items() if q.topic in topics}
        shape = to_json(known | ends)
        return {POSITIONS + topic: json.dumps(brokers) for topic, brokers in shape.items()}

    def forget(self, before_ms: int) -> None:
        moment = datetime.fromtimestamp(before_ms / 1000, UTC)
        self._table.maintenance.expire_snapshots().older_than(moment).commit()
        self.refresh()


def _ms(bound: bytes) -> int:
    """Iceberg keeps bounds of times as microseconds, little-endian."""
    return int.from_bytes(bound, "little", signed=True) // 1000
