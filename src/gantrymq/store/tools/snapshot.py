"""A copy of a store that is in use, made from outside, and the way back.

A snapshot is what a power cut might leave at one moment, so that it opens as every store does after
one: recovery trusts the checkpoint and reads the log from there on. That decides the order:

1. The checkpoint. What it vouches for is on disk and stays there, but for what retention deletes.
2. Tables. Progress in them is not ahead of the log, as the log is copied later; at the next start
   it is pulled back to the end of its queue in any case.
3. Queues and index. They may have more than the checkpoint says; recovery cuts that off.
4. The log, its newest file first: retention deletes the oldest first, so no gap can come about.

Log files that lie wholly below the checkpoint get a second name (a hard link) in place of a copy:
nothing is written to them any more. Where a cut or a repair has to, it makes a copy of its own
first (`base/disk.own_file`). All other files are copied. A file with the figures is written last:
a folder without it is no snapshot.

Of a raft group's member the committed part is taken, and neither term nor vote: what opens is a
store of its own. A second member with the same name would vote twice.
"""

import contextlib
import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from gantrymq.base.clock import SystemClock, elapsed_seconds
from gantrymq.base.disk import OsDisk, delete_tree
from gantrymq.base.files import read_file, save_text
from gantrymq.store.audit.against_tables import BACKUP, RAFT, TABLES
from gantrymq.store.audit.scope import scope_of
from gantrymq.store.audit.survey import survey
from gantrymq.store.errors import StoreError
from gantrymq.store.files.folder import StoreFolder
from gantrymq.store.files.mapped import extents
from gantrymq.store.log.segment import bases_in, file_name
from gantrymq.store.recovery import checkpoint
from gantrymq.store.recovery.rebuild import DERIVED
from gantrymq.store.version import FILE as VERSION_FILE

MANIFEST: Final = "snapshot.json"
PARTIAL: Final = ".restoring"
CHUNK: Final = 1 << 20
COMMIT_SECONDS_MAX: Final = 30.0
LOOK_SECONDS: Final = 0.1
NO_LINKS: Final = (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP)

Sleep = Callable[[float], None]


class Snapshot(msgspec.Struct, kw_only=True, rename="camel"):
    """snapshot.json: what was taken."""

    source: str
    taken_ms: int
    checkpoint_at: int | None
    """Up to this log offset a start trusts the files; None for RocketMQ's."""
    log_first: int = 0
    log_end: int = 0
    """Behind the last whole record."""
    linked_files: int = 0
    copied_files: int = 0
    copied_bytes: int = 0
    """Without stretches of zeros."""
    seconds: float = 0.0


def take_snapshot(
    directory: str, target: str, *, log_directory: str = "", sleep: Sleep
) -> Snapshot:
    """Copy a store, which a broker may have open, into a folder that is new or empty."""
    check_empty(target)
    folder = StoreFolder(directory, log_directory)
    work = _Copying(folder, Path(target), sleep)
    try:
        return work.run()
    except OSError as error:
        raise StoreError(
            f"the snapshot {target} is not finished: {error}. Delete it and take another"
        ) from error


class _Copying:
    def __init__(self, folder: StoreFolder, target: Path, sleep: Sleep) -> None:
        self._folder, self._root, self._target = folder, Path(folder.directory), target
        self._disk, self._sleep = OsDisk(), sleep
        self._is_member = (self._root / RAFT).is_dir()
        self._began = elapsed_seconds()

    def run(self) -> Snapshot:
        page = self._committed_page() if self._is_member else self._page()
        known = checkpoint.decode(page) if page else None
        at = known.dispatched if known is not None else None
        self._result = Snapshot(
            source=str(self._root), taken_ms=SystemClock().now_ms(), checkpoint_at=at
        )
        self._target.mkdir(parents=True, exist_ok=True)
        if page:
            (self._target / "checkpoint").write_bytes(page)
        if self._folder.is_open:
            (self._target / "abort").touch()
        self._copy_tables()
        for name in DERIVED:
            self._copy_tree(self._root / name, self._target / name)
        self._copy_log(at)
        self._disk.sync_all(str(self._target))
        return self._finished()

    def _page(self) -> bytes:
        path = self._root / "checkpoint"
        return read_file(self._disk, str(path)) if path.exists() else b""

    def _committed_page(self) -> bytes:
        """The checkpoint, when it covers what the log has now: that much is committed."""
        end = self._log_end()
        until = elapsed_seconds() + COMMIT_SECONDS_MAX
        while True:
            page = self._page()
            known = checkpoint.decode(page) if page else None
            if known is not None and (known.dispatched or 0) >= end:
                return page
            if elapsed_seconds() > until:
                raise StoreError(
                    f"the raft group did not commit up to {end} within {COMMIT_SECONDS_MAX:g} s: "
                    "look at gantry raft status"
                )
            self._sleep(LOOK_SECONDS)

    def _log_end(self) -> int:
        log, scope = self._folder.log, scope_of(str(self._root), self._folder.log.directory)
        return survey(log, scope.end, log.limit).end

    def _copy_tables(self) -> None:
        (self._target / TABLES).mkdir(exist_ok=True)
        for path in sorted((self._root / TABLES).glob("*")):
            if path.is_file() and path.suffix not in (BACKUP, ".tmp"):
                self._copy(path, self._target / TABLES / path.name)
        if (self._root / VERSION_FILE).exists():
            self._copy(self._root / VERSION_FILE, self._target / VERSION_FILE)

    def _copy_tree(self, source: Path, target: Path) -> None:
        for path in _files_below(source):
            copied = target / path.relative_to(source)
            copied.parent.mkdir(parents=True, exist_ok=True)
            self._copy(path, copied)

    def _copy_log(self, at: int | None) -> None:
        target = self._target / "commitlog"
        target.mkdir(exist_ok=True)
        log, taken = self._folder.log, []
        for base in reversed(bases_in(self._disk, log.directory)):
            path, copied = Path(log.path(base)), target / file_name(base)
            limit = at - base if self._is_member and at is not None else log.segment_bytes
            if limit <= 0:
                continue
            is_settled = at is not None and base + log.segment_bytes <= at
            is_linked = is_settled and self._link(path, copied)
            if not is_linked and not self._copy(path, copied, min(limit, log.segment_bytes)):
                break  # retention has deleted it, and all before it
            taken.append(base)
        if not taken:
            raise StoreError(f"{log.directory} has no log that could be copied")

    def _link(self, path: Path, target: Path) -> bool:
        try:
            os.link(path, target)
        except OSError as error:
            if error.errno in NO_LINKS:
                return False
            if isinstance(error, FileNotFoundError):
                return False
            raise
        self._result.linked_files += 1
        return True

    def _copy(self, path: Path, target: Path, limit: int | None = None) -> bool:
        """Copy a file; False if it is gone."""
        try:
            copied = copy_data(path, target, limit)
        except FileNotFoundError:
            return False
        self._result.copied_files += 1
        self._result.copied_bytes += copied
        return True

    def _finished(self) -> Snapshot:
        log = StoreFolder(str(self._target)).log
        at = self._result.checkpoint_at
        start = max(log.min, at) if at is not None else log.min
        self._result.log_first, self._result.log_end = log.min, survey(log, start, log.limit).end
        self._result.seconds = round(elapsed_seconds() - self._began, 3)
        text = msgspec.json.format(msgspec.json.encode(self._result), indent=2).decode()
        save_text(self._disk, str(self._target / MANIFEST), text + "\n")
        return self._result


def copy_data(path: Path, target: Path, limit: int | None = None) -> int:
    """Copy and sync a file up to `limit`, without its holes; returns the bytes that were written.

    It keeps its size and its time, by which log files expire.
    """
    with path.open("rb") as old, target.open("wb") as new:
        stat, written = os.fstat(old.fileno()), 0
        for start, end in extents(old.fileno(), stat.st_size):
            stop = end if limit is None else min(end, limit)
            for at in range(start, stop, CHUNK):
                data = os.pread(old.fileno(), min(CHUNK, stop - at), at)
                if data.count(0) != len(data):
                    written += os.pwrite(new.fileno(), data, at)
        os.truncate(new.fileno(), stat.st_size)
        os.fsync(new.fileno())
    os.utime(target, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    target.chmod(stat.st_mode & 0o777)
    return written


def _files_below(directory: Path) -> Iterator[Path]:
    """The files below a directory; what is deleted meanwhile is left out."""
    with contextlib.suppress(FileNotFoundError):
        for path in sorted(directory.iterdir()):
            if path.is_dir():
                yield from _files_below(path)
            else:
                yield path


def check_empty(directory: str) -> None:
    """Raise unless a folder is new or empty."""
    path = Path(directory)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise StoreError(f"{directory} is not empty: name a folder that is new or empty")


def load_manifest(directory: str) -> Snapshot:
    """The figures of a finished snapshot."""
    path = Path(directory, MANIFEST)
    if not path.exists():
        raise StoreError(f"{directory} is no finished snapshot: it has no {MANIFEST}")
    return msgspec.json.decode(path.read_bytes(), type=Snapshot)


def restore_snapshot(snapshot: str, directory: str, *, log_directory: str = "") -> Snapshot:
    """Make a store from a snapshot; its folders must be new or empty. The snapshot stays.

    Folders get their names when they are whole, the log first: one that was killed is run again.
    """
    made, disk = load_manifest(snapshot), OsDisk()
    for place in (directory, log_directory):
        if place:
            check_empty(place)
    log_place = log_directory or f"{directory}{PARTIAL}/commitlog"
    for place in (f"{directory}{PARTIAL}", f"{log_directory}{PARTIAL}" if log_directory else ""):
        if place and disk.exists(place):
            delete_tree(disk, place)
    source = Path(snapshot)
    for path in _files_below(source):
        inner = path.relative_to(source)
        if inner.parts[0] == MANIFEST or inner.parts[0] == f"{MANIFEST}{BACKUP}":
            continue
        target = Path(f"{directory}{PARTIAL}") / inner
        if log_directory and inner.parts[0] == "commitlog":
            target = Path(f"{log_place}{PARTIAL}", *inner.parts[1:])
        target.parent.mkdir(parents=True, exist_ok=True)
        copy_data(path, target)
    if log_directory:
        _put_in_place(disk, log_directory)
    _put_in_place(disk, directory)
    return made


def _put_in_place(disk: OsDisk, directory: str) -> None:
    disk.sync_all(f"{directory}{PARTIAL}")
    if Path(directory).exists():
        Path(directory).rmdir()
    os.rename(f"{directory}{PARTIAL}", directory)
    disk.sync_dir(str(Path(directory).resolve().parent))
