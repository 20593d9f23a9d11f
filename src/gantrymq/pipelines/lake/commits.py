"""Commit a change to a table that other runs change, too; keep or delete its files."""

from collections.abc import Callable
from typing import Final

from gantrymq.pipelines.lake.file_writer import remove
from gantrymq.pipelines.lake.table import Change, CommitConflict, Table, TableError

COMMITS_MAX: Final = 10
"""How often a commit is tried that others keep getting in front of."""


def commit(table: Table, change: Change, still: Callable[[], bool]) -> bool:
    """Commit a change; False, with its files deleted, if `still` says that it is obsolete.

    `still` is called after a conflict, with the table as it is then. Files are deleted only after
    the table was read and does not contain them: a commit may succeed and still report an error.
    """
    for _ in range(COMMITS_MAX):
        try:
            _check_there(table, change)
            table.commit(change)
        except CommitConflict:
            table.refresh()
            if table.has(change):
                return True
            if not still():
                remove(table.root, change.added)
                return False
        except TableError:
            table.refresh()
            if table.has(change):
                return True
            remove(table.root, change.added)
            raise
        else:
            return True
    remove(table.root, change.added)
    raise TableError(f"the table {table.root} changes all the time: {COMMITS_MAX} tries")


def _check_there(table: Table, change: Change) -> None:
    """Raise TableError if a sweep has deleted a file before its commit."""
    for each in change.added:
        if not (table.root / each.path).exists():
            raise TableError(f"{each.path} was deleted before it was committed: run it again")
