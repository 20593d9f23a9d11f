"""What a store's folder holds, at a glance: read from its files, while a broker may run on it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from gantrymq.base.disk import LockedError, OsDisk, check_unlocked
from gantrymq.protocol import fastjson
from gantrymq.store.audit.against_tables import BACKUP, RAFT, table_error, table_paths
from gantrymq.store.audit.scope import scope_of
from gantrymq.store.audit.survey import Tell, good_records, survey
from gantrymq.store.files.folder import StoreFolder
from gantrymq.store.files.index_files import index_files
from gantrymq.store.log.segment import bases_in
from gantrymq.store.recovery import checkpoint
from gantrymq.store.recovery.offset_mark import CUT, DAMAGED
from gantrymq.store.version import load_version

Row = dict[str, Any]
MARKS: Final = ("abort", "fenced", CUT, DAMAGED)
"""Files that say something by being there."""


class StoreStat:
    """The figures of one store, a part a property; each is a list of rows for output."""

    def __init__(self, directory: str, log_directory: str = "") -> None:
        self.folder = StoreFolder(directory, log_directory)
        self._root = Path(self.folder.directory)
        self._checkpoint = checkpoint.load(OsDisk(), str(self._root / "checkpoint"))

    def parts(self) -> dict[str, list[Row]]:
        """All parts by name, in the order of interest."""
        return {
            "store": [self.summary()],
            "queues": list(self.queues()),
            "index": list(self.index()),
            "tables": list(self.tables()),
            "checkpoint": self.checkpoint(),
            "raft": self.raft(),
        }

    def summary(self) -> Row:
        """The store in one row: its state, and the log."""
        folder, version = self.folder, load_version(OsDisk(), self.folder.directory)
        log, scope = folder.log, scope_of(folder.directory, folder.log.directory)
        end = survey(log, scope.end, log.limit) if scope.dispatched is not None else None
        last_ms = (end.last_ms if end is not None else 0) or self._last_ms()
        return {
            "store": folder.directory,
            "writtenBy": "GantryMQ" if self._is_ours else "RocketMQ",
            "release": version.written_by if version is not None else None,
            "format": version.format if version is not None else None,
            "broker": folder.broker_name(),
            "state": self.state(),
            "marks": [name for name in MARKS if (self._root / name).exists()],
            "logFiles": len(bases_in(OsDisk(), log.directory)),
            "logFileBytes": folder.segment_bytes,
            "logFirst": log.min,
            "logEnd": end.end if end is not None else scope.end,
            "firstStored": self._first_ms(),
            "lastStored": last_ms,
            "checkpointAt": scope.dispatched,
            "diskBytes": _used(self._root) + _used_outside(self._root, Path(log.directory)),
        }

    @property
    def _is_ours(self) -> bool:
        return self._checkpoint is not None and self._checkpoint.sizes is not None

    def state(self) -> str:
        """Whether a broker has it open, or how the last one stopped."""
        try:
            check_unlocked(str(self._root / "lock"))
        except LockedError as error:
            return f"open ({str(error).rpartition(' is ')[2]})"
        except OSError:
            return "not known: its lock cannot be asked"
        return "not stopped properly" if self.folder.is_open else "stopped"

    def _first_ms(self) -> int:
        """The store time of the first record that can be read; 0 if there is none."""
        log = self.folder.log
        for _, _, records in good_records(log, log.min, log.limit):
            if records:
                return records[0][7]
        return 0

    def _last_ms(self) -> int:
        """The store time of the newest message that has a queue entry."""
        newest = -1
        for topic, queue_id in self._names():
            files = self.folder.queue(topic, queue_id)
            stop = files.written()
            entries = files.read(max(files.begin, stop - 1), stop)
            newest = max(newest, *entries["position"].tolist(), -1)
        return self.folder.log.store_ms(newest) if newest >= 0 else 0

    def count(self, tell: Tell | None = None) -> Row:
        """Records and bytes of the log, by reading all of it; damage is passed over."""
        log = self.folder.log
        found = survey(log, log.min, scope_of(self.folder.directory, log.directory).end, tell)
        return {"records": found.records, "recordBytes": found.bytes}

    def _names(self) -> Iterator[tuple[str, int]]:
        for topic in self.folder.topics():
            for queue_id in self.folder.queue_ids(topic):
                yield topic, queue_id

    def queues(self) -> Iterator[Row]:
        """The queues that have entries in files."""
        for topic, queue_id in self._names():
            files = self.folder.queue(topic, queue_id)
            if not files.bases:
                continue
            stop = files.written()
            first = files.first_at(self.folder.log.min, stop)
            yield {
                "topic": topic,
                "queueId": queue_id,
                "minOffset": first,
                "maxOffset": stop,
                "messages": stop - first,
                "files": len(files.bases),
            }

    def index(self) -> Iterator[Row]:
        """The index files."""
        for view in index_files(self.folder.directory):
            yield {
                "file": Path(view.path).name,
                "entries": int(view.rows.size),
                "slots": view.slots,
                "firstOffset": view.header.begin_offset,
                "lastOffset": view.header.end_offset,
                "firstStored": view.header.begin_ms,
                "lastStored": view.header.end_ms,
            }

    def tables(self) -> Iterator[Row]:
        """The tables below `config`."""
        for path in table_paths(self._root):
            error = table_error(path)
            yield {
                "table": path.name,
                "bytes": path.stat().st_size if path.exists() else None,
                "changed": path.stat().st_mtime_ns // 1_000_000 if path.exists() else None,
                "readable": not error,
                "backup": not table_error(path.with_name(path.name + BACKUP)),
            }

    def checkpoint(self) -> list[Row]:
        """The checkpoint, if there is one."""
        known = self._checkpoint
        if known is None:
            return []
        sizes = known.sizes or (None, None, None, None)
        return [
            {
                "dispatched": known.dispatched,
                "logTime": known.log_ms,
                "queueTime": known.queue_ms,
                "indexTime": known.index_ms,
                "indexFile": known.index_name or None,
                "segmentBytes": sizes[0],
                "queueFileEntries": sizes[1],
                "indexSlots": sizes[2],
                "indexEntries": sizes[3],
            }
        ]

    def raft(self) -> list[Row]:
        """What a member of a raft group keeps: term, vote, and the table of epochs."""
        folder = self._root / RAFT
        if not folder.is_dir() or table_error(folder / "state.json"):
            return []
        state = fastjson.loads((folder / "state.json").read_bytes())
        epochs: list[Any] = []
        if not table_error(folder / "epochs.json"):
            epochs = fastjson.loads((folder / "epochs.json").read_bytes()).get("epochs", [])
        return [{**state, "epochs": epochs}]


def _used(directory: Path) -> int:
    """Bytes of disk space below a directory; sparse files count what they use."""
    total = 0
    for path in directory.rglob("*"):
        try:
            total += path.lstat().st_blocks * 512
        except FileNotFoundError:
            continue
    return total


def _used_outside(root: Path, log_directory: Path) -> int:
    return 0 if log_directory.is_relative_to(root) else _used(log_directory)
