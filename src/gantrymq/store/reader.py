"""Reading a store's files from outside: no broker, no lock, nothing is changed.

It reads stores of ours and of RocketMQ, running or stopped. Of a running one it sees what the
broker has written to its queue files, which is at most a second old.
"""

from collections.abc import Iterator
from typing import NamedTuple

from gantrymq.base.disk import Disk, OsDisk
from gantrymq.kernel import ENTRY, FILLER_SIZE, walk_records
from gantrymq.protocol.record import BLANK_BYTES, StoredMessage, decode_record
from gantrymq.store import checkpoint
from gantrymq.store.commitlog import CommitLog
from gantrymq.store.consumequeue import ENTRY_BYTES, ConsumeQueue
from gantrymq.store.errors import StoreError
from gantrymq.store.segment import OpenFiles, bases_in, file_name, last_run

ANY_OFFSET = 1 << 62
ENTRIES_PER_READ = 4096
RUN_BYTES_MAX = 4 << 20


class QueueRange(NamedTuple):
    """What a queue holds: offsets from `first` up to, but not including, `end`."""

    topic: str
    queue_id: int
    first: int
    end: int


class RawRecord(NamedTuple):
    """A record and its place in its queue."""

    queue_offset: int
    data: bytes


class StoreReader:
    """A store directory, read from outside."""

    def __init__(
        self, directory: str, *, disk: Disk | None = None, log_directory: str = ""
    ) -> None:
        self.directory = directory
        self._disk = disk or OsDisk()
        self._files = OpenFiles(self._disk, 256, read_only=True)
        log_directory = log_directory or f"{directory}/commitlog"
        segment_bytes, self._file_entries = self._find_sizes(log_directory)
        self._log = CommitLog(self._files, log_directory, segment_bytes)
        self.refresh()

    def _find_sizes(self, log_directory: str) -> tuple[int, int]:
        """File sizes as the store recorded them, or as its files show them."""
        known = checkpoint.load(self._disk, f"{self.directory}/checkpoint")
        if known is not None and known.sizes is not None:
            return known.sizes[0], known.sizes[1]
        bases = bases_in(self._disk, log_directory)
        if not bases:
            raise StoreError(f"{log_directory} holds no commit log")
        return self._size_of(f"{log_directory}/{file_name(bases[0])}"), self._entries_per_file()

    def _entries_per_file(self) -> int:
        queues = f"{self.directory}/consumequeue"
        for topic in self._disk.list(queues):
            for queue_id in self._disk.list(f"{queues}/{topic}"):
                directory = f"{queues}/{topic}/{queue_id}"
                for base in bases_in(self._disk, directory):
                    return self._size_of(f"{directory}/{file_name(base)}") // ENTRY_BYTES
        return 300_000

    def _size_of(self, path: str) -> int:
        return self._files.get(path).size()

    def refresh(self) -> None:
        """Look for files that have come or gone."""
        bases = bases_in(self._disk, self._log.directory)
        self._log.bases = last_run(bases, self._log.segment_bytes)
        self._log.end = self._log.limit

    def topics(self) -> list[str]:
        """Every topic that has queues."""
        return list(self._disk.list(f"{self.directory}/consumequeue"))

    def queues(self, topic: str) -> list[int]:
        """The queue ids of a topic."""
        names = self._disk.list(f"{self.directory}/consumequeue/{topic}")
        return sorted(int(name) for name in names if name.isdigit())

    def range(self, topic: str, queue_id: int) -> QueueRange:
        """Which offsets of a queue can be read now."""
        queue = self._queue(topic, queue_id)
        return QueueRange(topic, queue_id, queue.first_at_or_above(self._log.min), queue.stop)

    def _queue(self, topic: str, queue_id: int) -> ConsumeQueue:
        directory = f"{self.directory}/consumequeue/{topic}/{queue_id}"
        queue = ConsumeQueue(self._files, directory, topic, queue_id, self._file_entries)
        queue.attach(ANY_OFFSET)
        return queue

    def records(
        self, topic: str, queue_id: int, start: int = 0, stop: int | None = None
    ) -> Iterator[RawRecord]:
        """Raw records of a queue from offset `start` up to `stop`, those still in the log.

        It ends early at an entry whose record is not there, as an unclean stop may leave it.
        """
        queue = self._queue(topic, queue_id)
        stop = queue.stop if stop is None else min(stop, queue.stop)
        offset = max(start, queue.first_at_or_above(self._log.min))
        while offset < stop:
            entries = queue.read(offset, min(ENTRIES_PER_READ, stop - offset))
            if not entries:
                return
            for position, size in _runs(entries):
                for data in self._run(position, size, offset):
                    if data is None:
                        return
                    yield RawRecord(offset, data)
                    offset += 1
                    # An empty stretch stands for entries without a record.
                if size < 0:
                    offset -= size

    def _run(self, position: int, size: int, offset: int) -> Iterator[bytes | None]:
        """The records of one stretch of the log; None where there should be one and is none."""
        if size <= 0:
            return
        data = self._log.read(size, position)
        walk = walk_records(data, position, size + BLANK_BYTES, False)
        for _, _, queue_offset, at, length, *_ in walk.records:
            if queue_offset != offset:
                yield None
            yield data[at - position : at - position + length]
            offset += 1
        if walk.end != position + size:
            yield None

    def messages(
        self, topic: str, queue_id: int, start: int = 0, stop: int | None = None
    ) -> Iterator[StoredMessage]:
        """The same, decoded."""
        for record in self.records(topic, queue_id, start, stop):
            yield decode_record(record.data)


def _runs(entries: bytes) -> Iterator[tuple[int, int]]:
    """Stretches of adjacent records, each read at once; a negative size counts fillers."""
    run_at = run_end = -1
    for position, size, _ in ENTRY.iter_unpack(entries):
        if size == FILLER_SIZE:
            if run_end > run_at:
                yield run_at, run_end - run_at
            yield 0, -1
            run_at = run_end = -1
        elif position == run_end and run_end - run_at < RUN_BYTES_MAX:
            run_end += size
        else:
            if run_end > run_at:
                yield run_at, run_end - run_at
            run_at, run_end = position, position + size
    if run_end > run_at:
        yield run_at, run_end - run_at
