"""Lakehouse tables of messages: `open_table(path)`, whatever the format."""

from pathlib import Path
from typing import Final

from gantrymq.base.errors import ConfigError
from gantrymq.pipelines.lake.files import DataFile
from gantrymq.pipelines.lake.table import Change, CommitConflict, Table, TableError

__all__ = [
    "FORMATS",
    "Change",
    "CommitConflict",
    "DataFile",
    "Table",
    "TableError",
    "is_table",
    "open_table",
]

FORMATS: Final = ("delta", "iceberg", "parquet")
_MARKS: Final = {"delta": "_delta_log", "iceberg": "catalog.db", "parquet": "_gantrymq"}


def open_table(
    path: str | Path,
    format: str | None = None,  # noqa: A002 - what users call it
    *,
    create: bool = False,
) -> Table:
    """The archive in a folder. The format is detected; with `create` a missing table is made.

    Raises ConfigError if there is none, or another kind of table or of files; TableError if its log
    cannot be read.
    """
    if "://" in str(path):
        raise ConfigError(f"{path} is no folder: mount the storage, and give the mounted path")
    root = Path(path).expanduser().absolute()
    kind = _format_of(root)
    if format is not None and format not in FORMATS:
        raise ConfigError(f"a table is {', '.join(FORMATS)}, not {format!r}")
    if kind is not None and format not in (None, kind):
        raise ConfigError(f"the table {root} is {kind}, not {format}: leave --format out")
    if kind is None:
        _check_free(root, create=create)
        kind = format or "delta"
    return _open(root, kind, create=create)


def is_table(path: Path) -> bool:
    """Whether a folder holds an archive of any format."""
    return _format_of(path) is not None


def _format_of(root: Path) -> str | None:
    return next((kind for kind, mark in _MARKS.items() if (root / mark).exists()), None)


def _check_free(root: Path, *, create: bool) -> None:
    if not create:
        raise ConfigError(
            f"there is no archive in {root}: make one with gantry pipeline archive --into {root}"
        )
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise ConfigError(f"{root} holds something that is no archive: choose an empty folder")


def _open(root: Path, kind: str, *, create: bool) -> Table:
    if kind == "delta":
        from gantrymq.pipelines.lake.delta import Delta

        return Delta(root, create=create)
    if kind == "iceberg":
        from gantrymq.pipelines.lake.iceberg import Iceberg

        return Iceberg(root, create=create)
    from gantrymq.pipelines.lake.plain import Plain

    return Plain(root, create=create)
