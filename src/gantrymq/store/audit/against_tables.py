"""Checks the small files of a store: tables, checkpoint, and what a raft group's member keeps."""

import struct
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from gantrymq.base.disk import OsDisk
from gantrymq.base.errors import ProtocolError
from gantrymq.base.files import read_file
from gantrymq.base.plurals import counted
from gantrymq.protocol import fastjson
from gantrymq.store.audit.findings import NOTE, WRONG, Finding
from gantrymq.store.audit.scope import Scope
from gantrymq.store.files.folder import StoreFolder
from gantrymq.store.recovery import checkpoint

TABLES: Final = "config"
RAFT: Final = "raft"
BACKUP: Final = ".bak"


def check_small_files(folder: StoreFolder, scope: Scope) -> list[Finding]:
    """What is wrong with tables, checkpoint and raft state."""
    root = Path(folder.directory)
    return [
        *check_tables(root),
        *_check_checkpoint(root / "checkpoint", folder, scope),
        *_check_raft(root / RAFT, folder),
    ]


def check_tables(root: Path) -> list[Finding]:
    """Tables that cannot be read."""
    return [finding for path in table_paths(root) for finding in _check_table(path)]


def table_paths(root: Path) -> list[Path]:
    """The tables of a store, also those of which only a backup is left."""
    names = {path.name.removesuffix(BACKUP) for path in (root / TABLES).glob("*.json*")}
    return [root / TABLES / name for name in sorted(names) if name.endswith(".json")]


def table_error(path: Path) -> str:
    """Why a table cannot be read; empty if it can."""
    try:
        text = path.read_bytes()
        if not text.strip():
            return "it is empty"
        found = fastjson.loads(text)
    except FileNotFoundError:
        return "it is missing"
    except (OSError, ValueError, ProtocolError) as error:
        return " ".join(str(error).split())
    return "" if isinstance(found, dict) else "it is no table"


def _check_table(path: Path) -> list[Finding]:
    error = table_error(path)
    if not error:
        return []
    backup = table_error(path.with_name(path.name + BACKUP))
    left = f"its backup neither: {backup}" if backup else "its backup can, and is used"
    return [Finding(WRONG, "table", str(path), text=f"the table cannot be read: {error}; {left}")]


def _check_checkpoint(path: Path, folder: StoreFolder, scope: Scope) -> list[Finding]:
    def wrong(kind: str, text: str, level: str = WRONG) -> list[Finding]:
        return [Finding(level, kind, str(path), 0, text=text)]

    if not path.exists():
        if not folder.log.bases or not folder.log.file(folder.log.bases[0])[:8].any():
            return []
        said = "there is no checkpoint: the next start reads the whole log and derives the rest"
        return wrong("checkpoint-none", said, NOTE)
    page = read_file(OsDisk(), str(path))
    if len(page) != checkpoint.PAGE:
        said = f"the checkpoint has {counted(len(page), 'byte')} instead of {checkpoint.PAGE}"
        return wrong("checkpoint-page", said)
    if checkpoint.is_torn(page):
        return wrong("checkpoint-page", "our part of the checkpoint does not fit its checksum")
    known = checkpoint.decode(page)
    if known.dispatched is not None and known.dispatched > folder.log.limit:
        said = f"it says {known.dispatched}, but the files of the log end at {folder.log.limit}"
        return wrong("checkpoint-ahead", said)
    if known.dispatched is not None and known.index_name:
        index = Path(folder.directory, "index", known.index_name)
        if not index.exists():
            return wrong("checkpoint-index", f"it names the index file {index}, which is missing")
    return []


def _check_raft(directory: Path, folder: StoreFolder) -> list[Finding]:
    if not directory.is_dir():
        return []
    findings = []
    for name in ("state.json", "epochs.json"):
        if error := table_error(directory / name):
            text = f"{error}: this member must not take part without it"
            findings.append(Finding(WRONG, "raft-table", str(directory / name), text=text))
    if not findings and (text := _epochs_error(_rows(directory / "epochs.json"), folder)):
        path = str(directory / "epochs.json")
        findings.append(Finding(WRONG, "raft-epochs", path, text=text))
    return findings


def _rows(path: Path) -> list[Any]:
    found = fastjson.loads(path.read_bytes()).get("epochs", [])
    return found if isinstance(found, list) else []


def _epochs_error(rows: list[Any], folder: StoreFolder) -> str:
    """Terms and offsets have to ascend, and to cover the log from its beginning."""
    try:
        pairs = [_pair(row) for row in rows]
    except (KeyError, TypeError, ValueError, struct.error):
        return "its rows are no terms and offsets"
    for before, after in pairwise(pairs):
        if not (before[0] < after[0] and before[1] < after[1]):
            return f"term {after[0]} begins at {after[1]}, term {before[0]} at {before[1]}"
    if pairs and folder.log.bases and pairs[0][1] > folder.log.min:
        return f"it begins at {pairs[0][1]}, the log at {folder.log.min}"
    return ""


def _pair(row: Any) -> tuple[int, int]:
    if isinstance(row, dict):
        return int(row["term"]), int(row["offset"])
    term, offset = row
    return int(term), int(offset)
