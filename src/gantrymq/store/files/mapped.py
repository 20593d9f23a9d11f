"""A store's files as arrays, for other programs that read many records at once.

Log files are mapped: their size never changes, and a deleted file stays readable while it is
mapped. Queue files are read instead, because a broker cuts them when it starts, and touching a
mapped page that was cut away ends the process. Nothing is locked and nothing is written.
"""

import contextlib
import mmap
import os
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gantrymq.base.disk import OsDisk
from gantrymq.kernel import FILLER_SIZE, store_ms_of
from gantrymq.protocol.record import MAGIC_V1, MAGIC_V2, RECORD_BYTES_MIN
from gantrymq.store.errors import StoreError
from gantrymq.store.log.segment import bases_in, file_name, last_run
from gantrymq.store.queues.consumequeue import ENTRY_BYTES, ENTRY_TYPE
from gantrymq.store.recovery import checkpoint

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Bools = npt.NDArray[np.bool_]
Entries = npt.NDArray[np.void]

FRONT_TYPE: Final = np.dtype(
    [
        ("total_size", ">i4"),
        ("magic", ">i4"),
        ("body_crc", ">i4"),
        ("queue_id", ">i4"),
        ("flag", ">i4"),
        ("queue_offset", ">i8"),
        ("physical_offset", ">i8"),
    ]
)
"""What stands in front of everything whose place varies."""

MAPS_MAX: Final = 64
"""Log files mapped at one time."""
CHUNK: Final = 1 << 20
JAVA_FILE_ENTRIES: Final = 300_000


def gather(view: Bytes, places: Ints, kind: Any) -> Any:
    """One item of this dtype from each place; whole items are copied, the fastest way in numpy."""
    kind = np.dtype(kind)
    shape = (max(0, view.size - kind.itemsize + 1),)
    everywhere: Any = np.ndarray(shape, f"V{kind.itemsize}", view, strides=(1,))
    return everywhere[places].view(kind)


class MappedLog:
    """The commit log's files."""

    def __init__(self, directory: str, segment_bytes: int) -> None:
        self.directory, self.segment_bytes = directory, segment_bytes
        self._maps: OrderedDict[int, Bytes] = OrderedDict()
        self.bases: list[int] = []
        self.refresh()

    def refresh(self) -> None:
        """Look for new and deleted files."""
        self.bases = last_run(bases_in(OsDisk(), self.directory), self.segment_bytes)
        for gone in self._maps.keys() - set(self.bases):
            del self._maps[gone]  # a mapped file would keep its blocks on disk

    @property
    def min(self) -> int:
        """The first log offset that has a file."""
        return self.bases[0] if self.bases else 0

    @property
    def limit(self) -> int:
        """Where the last file ends."""
        return self.bases[-1] + self.segment_bytes if self.bases else 0

    def path(self, base: int) -> str:
        return f"{self.directory}/{file_name(base)}"

    def base_of(self, position: int) -> int:
        """The first log offset of the file that holds a log offset."""
        return position - position % self.segment_bytes

    def file(self, base: int) -> Bytes:
        """The bytes of the file that begins at `base`; empty if it is deleted."""
        found = self._maps.get(base)
        if found is not None:
            self._maps.move_to_end(base)
            return found
        found = map_file(self.path(base))
        if found.size == self.segment_bytes:  # a shorter one is still being made
            self._maps[base] = found
            if len(self._maps) > MAPS_MAX:
                self._maps.popitem(last=False)
        return found

    def close(self) -> None:
        """Drop the maps; each ends with its last array."""
        self._maps.clear()

    def store_ms(self, position: int) -> int:
        """When the record at a log offset was stored; 0 if its file ends before."""
        base = self.base_of(position)
        head = self.file(base)[position - base : position - base + 76]
        return store_ms_of(head.tobytes()) if head.size == 76 else 0


def map_file(path: str) -> Bytes:
    """The mapped bytes of a file; empty if there is no such file or it is empty."""
    try:
        with Path(path).open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if not size:
                return np.empty(0, np.uint8)
            return np.frombuffer(mmap.mmap(file.fileno(), size, prot=mmap.PROT_READ), np.uint8)
    except FileNotFoundError:
        return np.empty(0, np.uint8)


def fitting(
    view: Bytes, starts: Ints, sizes: Ints, *, position: int, queue_id: int, first: Ints
) -> Bools:
    """Which entries match their record: position, size, queue and queue offset.

    `view` begins at log offset `position`; `first` are the expected queue offsets.
    """
    fits: Bools = (starts >= 0) & (sizes >= RECORD_BYTES_MIN) & (starts + sizes <= view.size)
    rows = np.flatnonzero(fits)
    front = gather(view, starts[rows], FRONT_TYPE)
    good = (front["magic"] == MAGIC_V1) | (front["magic"] == MAGIC_V2)
    good &= front["total_size"] == sizes[rows]
    good &= front["physical_offset"] == starts[rows] + position
    good &= (front["queue_offset"] == first[rows]) & (front["queue_id"] == queue_id)
    fits[rows] = good
    return fits


class QueueFiles:
    """The entries of one queue."""

    def __init__(self, directory: str, file_entries: int) -> None:
        self.directory, self.file_bytes = directory, file_entries * ENTRY_BYTES
        self.bases = last_run(bases_in(OsDisk(), directory), self.file_bytes)

    @property
    def begin(self) -> int:
        """The offset of the first entry that has a file."""
        return self.bases[0] // ENTRY_BYTES if self.bases else 0

    def file_begin(self, offset: int) -> int:
        """The first offset of the file that holds `offset`."""
        return offset - offset % (self.file_bytes // ENTRY_BYTES)

    def next_file(self, offset: int) -> int | None:
        """The first offset of the next file behind `offset`; None if there is none."""
        behind = [base for base in self.bases if base > offset * ENTRY_BYTES]
        return behind[0] // ENTRY_BYTES if behind else None

    def place(self, offset: int) -> tuple[str, int]:
        """The file that holds an entry, and the byte in it."""
        at = offset * ENTRY_BYTES % self.file_bytes
        return self._path(offset * ENTRY_BYTES - at), at

    def sizes(self) -> list[tuple[str, int]]:
        """The files and their sizes."""
        return [(self._path(base), _size(Path(self._path(base)))) for base in self.bases]

    def _path(self, base: int) -> str:
        return f"{self.directory}/{file_name(base)}"

    def read(self, start: int, stop: int) -> Entries:
        """Entries from `start` up to `stop`, or up to the end of the files."""
        parts = list(self._parts(start * ENTRY_BYTES, stop * ENTRY_BYTES))
        data = b"".join(parts)
        return np.frombuffer(data, ENTRY_TYPE, len(data) // ENTRY_BYTES)

    def whole(self, start: int, stop: int) -> Entries:
        """Entries from `start` up to `stop`; zeros where files have none."""
        found = np.zeros(max(0, stop - start), ENTRY_TYPE)
        at = start
        while at < stop:
            upto = min(stop, self.file_begin(at) + self.file_bytes // ENTRY_BYTES)
            read = self.read(at, upto)
            found[at - start : at - start + read.size] = read
            at = upto
        return found

    def _parts(self, at: int, end: int) -> Iterator[bytes]:
        while at < end:
            base = at - at % self.file_bytes
            want = min(end, base + self.file_bytes) - at
            with contextlib.suppress(FileNotFoundError), Path(self._path(base)).open("rb") as file:
                data = os.pread(file.fileno(), want, at - base)
                yield data
                at += len(data)
                if len(data) == want:
                    continue
            return

    def written(self) -> int:
        """The offset behind the last entry that is not zero, searched from the end."""
        for base in reversed(self.bases):
            with contextlib.suppress(FileNotFoundError), Path(self._path(base)).open("rb") as file:
                count = _filled(file.fileno(), self.file_bytes)
                if count:
                    return base // ENTRY_BYTES + count
        return self.begin

    def first_at(self, log_min: int, stop: int) -> int:
        """The first offset whose record is not below `log_min`, by bisection."""
        low, high = self.begin, stop
        while low < high:
            middle = (low + high) // 2
            entry = self.read(middle, middle + 1)
            gone = entry.size and (
                entry["position"][0] < log_min
                or (entry["position"][0] == 0 and entry["size"][0] == FILLER_SIZE)
            )
            low, high = (middle + 1, high) if gone else (low, middle)
        return low


def _filled(fd: int, size: int) -> int:
    """The number of entries up to the last one that is not zero."""
    for start, end in reversed(extents(fd, size)):
        for begin in reversed(range(start, end, CHUNK)):
            data = os.pread(fd, min(CHUNK, end - begin), begin)
            used = np.flatnonzero(np.frombuffer(data, np.uint8))
            if used.size:
                return (begin + int(used[-1])) // ENTRY_BYTES + 1
    return 0


def extents(fd: int, size: int) -> list[tuple[int, int]]:
    """The parts of a sparse file that have data; holes are skipped."""
    found: list[tuple[int, int]] = []
    at = 0
    while at < size:
        try:
            start = os.lseek(fd, at, os.SEEK_DATA)
            at = os.lseek(fd, start, os.SEEK_HOLE)
        except OSError:  # only holes follow
            break
        found.append((start, min(at, size)))
    return found


def layout_of(directory: str, log_directory: str) -> tuple[int, int]:
    """Bytes of a log file and entries of a queue file, from the checkpoint or the files' sizes."""
    known = checkpoint.load(OsDisk(), f"{directory}/checkpoint")
    if known is not None and known.sizes is not None:
        return known.sizes[0], known.sizes[1]
    sizes = [_size(path) for path in Path(log_directory).glob("[0-9]" * 20)]
    if not sizes:
        raise StoreError(f"{log_directory} holds no commit log")
    queues = Path(directory, "consumequeue").glob(f"*/*/{'[0-9]' * 20}")
    entries = [_size(path) // ENTRY_BYTES for path, _ in zip(queues, range(100), strict=False)]
    return max(sizes), max(entries, default=0) or JAVA_FILE_ENTRIES


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
