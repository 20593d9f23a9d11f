"""What an audit covers, decided once before it begins; and its split into tasks."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from gantrymq.base.disk import OsDisk
from gantrymq.store.files.folder import StoreFolder
from gantrymq.store.log.segment import bases_in
from gantrymq.store.recovery import checkpoint

SLICE_BYTES: Final = 64 << 20
TASKS_MAX: Final = 2000
"""Of large stores slices are larger: Spark spends some milliseconds on every task."""
QUEUES_A_TASK: Final = 64


@dataclass(frozen=True, slots=True)
class Scope:
    """A store as it was when the audit began."""

    directory: str
    log_directory: str
    end: int
    """Records from this log offset on are left out: their entries may not be in files yet. After a
    proper stop it is the end of the log."""
    is_clean: bool
    """Its broker was stopped properly: then everything has to fit, to the last byte."""
    dispatched: int | None
    """Up to where the checkpoint vouches for everything, if it is one of ours."""
    log_min: int


@dataclass(frozen=True, slots=True)
class LogSlice:
    """A part of one log file: the records that begin in it."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class QueueSet:
    """Some queues."""

    queues: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class IndexPart:
    """One index file."""

    number: int


Task = LogSlice | QueueSet | IndexPart


def scope_of(directory: str, log_directory: str = "") -> Scope:
    """The scope of an audit: whether the store is open, and how far its files are complete."""
    folder = StoreFolder(directory, log_directory)
    known = checkpoint.load(OsDisk(), f"{folder.directory}/checkpoint")
    dispatched = known.dispatched if known is not None else None
    is_clean = not folder.is_open
    end = _built_end(folder, is_clean=is_clean) if dispatched is None else dispatched
    return Scope(folder.directory, folder.log.directory, end, is_clean, dispatched, folder.log.min)


def _built_end(folder: StoreFolder, *, is_clean: bool) -> int:
    """The log offset after the last record that has a queue entry.

    RocketMQ builds entries in log order. Bytes after it may be left over from before a crash:
    RocketMQ truncates the log by moving its end and does not write zeros.
    """
    end = folder.log.min
    for topic in folder.topics():
        for queue_id in folder.queue_ids(topic):
            files = folder.queue(topic, queue_id)
            stop = files.written()
            last = files.read(max(files.begin, stop - 2), stop)
            # The last entry of a running broker may be half written.
            for position, size, _ in (last if is_clean else last[:-1]).tolist():
                if position < folder.log.limit:
                    end = max(end, position + size)
    return end


def tasks_of(scope: Scope, index_files: int) -> list[Task]:
    """The log in slices, queues in sets, index files one by one."""
    folder = StoreFolder(scope.directory, scope.log_directory)
    limit = min(scope.end, folder.log.limit)
    size = max(SLICE_BYTES, -(-max(0, limit - folder.log.min) // TASKS_MAX))
    slices = [each for base in folder.log.bases for each in _slices(folder, base, limit, size)]
    queues = [(t, q) for t in folder.topics() for q in folder.queue_ids(t)]
    share = max(QUEUES_A_TASK, -(-len(queues) // TASKS_MAX))
    sets = [QueueSet(tuple(queues[at : at + share])) for at in range(0, len(queues), share)]
    return [*slices, *sets, *map(IndexPart, range(index_files))]


def _slices(folder: StoreFolder, base: int, limit: int, size: int) -> Iterator[LogSlice]:
    end = min(base + folder.segment_bytes, limit)
    for start in range(base, end, size):
        yield LogSlice(start, min(start + size, end))


def stray_files(folder: StoreFolder) -> list[int]:
    """Log files before a gap: files between them and the newest ones are missing."""
    return [
        base for base in bases_in(OsDisk(), folder.log.directory) if base not in folder.log.bases
    ]
