"""An archive as plain Parquet files, with a small log of our own that says which of them count.

The log is a folder of numbered JSON files. A commit is a link from a finished file to the next
number, which only one of several writers gets. Every so often an entry carries the whole state, so
that a reader needs only a few of them.
"""

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, Final

from gantrymq.model import Queue
from gantrymq.model.offset_ranges import QueueOffsets, from_json, to_json
from gantrymq.pipelines.lake.files import DataFile, facts_of
from gantrymq.pipelines.lake.schema import ARROW
from gantrymq.pipelines.lake.table import Change, CommitConflict, Table, TableError

LOG: Final = "_gantrymq"
VERSION: Final = 1
WHOLE_EVERY: Final = 50
"""Every so many entries one has all files and positions."""


@dataclass
class _State:
    number: int = -1
    files: dict[str, DataFile] = field(default_factory=dict)
    positions: QueueOffsets = field(default_factory=dict)


class Plain(Table):
    """Parquet files in a folder, and the log beside them."""

    format = "parquet"

    def __init__(self, root: Path, *, create: bool = False) -> None:
        super().__init__(root)
        self._log = root / LOG
        if create:
            try:
                self._log.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise TableError(f"no table can be made in {root}: {error}") from error
        self._state = _State()
        self.refresh()

    def refresh(self) -> None:
        try:
            numbers = sorted(int(each.stem) for each in self._log.glob("[0-9]*.json"))
            state, entries = _State(), []
            for number in reversed(numbers):
                entries.append((number, self._entry(number)))
                if entries[-1][1]["whole"]:
                    break
            for number, entry in reversed(entries):
                state = _applied(state, number, entry)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise TableError(
                f"the log of the table {self.root} cannot be read: {error}. Restore {self._log} "
                "from a copy, or archive into another folder"
            ) from error
        self._state = state

    def _entry(self, number: int) -> dict[str, Any]:
        entry: dict[str, Any] = json.loads((self._log / _name(number)).read_bytes())
        if entry["version"] != VERSION:
            raise ValueError(f"{_name(number)} has version {entry['version']}, not {VERSION}")
        return entry

    def positions(self, queues: Iterable[Queue] | None = None) -> QueueOffsets:
        known = self._state.positions
        return dict(known) if queues is None else {q: known[q] for q in queues if q in known}

    def files(self) -> list[DataFile]:
        return list(self._state.files.values())

    def commit(self, change: Change) -> None:
        state, number = self._state, self._state.number + 1
        entry: dict[str, Any] = {
            "version": VERSION,
            "reason": change.reason,
            "whole": False,
            "columns": ARROW.names,
            "added": [_row(each) for each in change.added],
            "removed": [each.path for each in change.removed],
            "positions": to_json(change.ends),
        }
        after = _applied(state, number, entry)
        if number % WHOLE_EVERY == 0:
            entry |= {
                "whole": True,
                "added": [_row(each) for each in after.files.values()],
                "removed": [],
                "positions": to_json(after.positions),
            }
        self._publish(number, json.dumps(entry).encode())
        self._state = after

    def forget(self, before_ms: int) -> None:
        """Delete old entries before the last one with the whole state: they are only history."""
        whole = self._state.number // WHOLE_EVERY * WHOLE_EVERY
        for each in self._log.glob("[0-9]*.json"):
            if int(each.stem) < whole and each.stat().st_mtime * 1000 < before_ms:
                each.unlink(missing_ok=True)

    def _publish(self, number: int, data: bytes) -> None:
        """Write the entry in full, then link it to its number; a conflict if that is taken."""
        draft = self._log / f".{_name(number)}.{os.getpid()}"
        try:
            with draft.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.link(draft, self._log / _name(number))
            _sync_folder(self._log)
        except FileExistsError as error:
            raise CommitConflict(f"the table {self.root} was changed by somebody else") from error
        except OSError as error:
            raise TableError(f"the table {self.root} takes no commit: {error}") from error
        finally:
            draft.unlink(missing_ok=True)


def _applied(state: _State, number: int, entry: dict[str, Any]) -> _State:
    if state.number >= 0 and number != state.number + 1:
        raise ValueError(f"{_name(state.number + 1)} is missing")
    if state.number < 0 and not entry["whole"] and number > 0:
        raise ValueError(f"{_name(number - 1)} is missing")
    files = {} if entry["whole"] else dict(state.files)
    for path in entry["removed"]:
        del files[path]
    files |= {row["path"]: _file(row) for row in entry["added"]}
    return _State(number, files, state.positions | from_json(entry["positions"]))


def _name(number: int) -> str:
    return f"{number:020d}.json"


def _row(each: DataFile) -> dict[str, Any]:
    return {
        "path": each.path,
        "topic": each.topic,
        "dt": each.day.isoformat(),
        "rows": each.rows,
        "size": each.size,
        "since": each.since_ms,
        "until": each.until_ms,
    }


def _file(row: dict[str, Any]) -> DataFile:
    queue, first, last = facts_of(row["path"], row["topic"])
    return DataFile(
        path=row["path"],
        topic=row["topic"],
        day=date.fromisoformat(row["dt"]),
        rows=row["rows"],
        size=row["size"],
        queue=queue,
        first=first,
        last=last,
        since_ms=row["since"],
        until_ms=row["until"],
    )


def _sync_folder(folder: Path) -> None:
    """Make a new file name durable: the file's own sync does not."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
