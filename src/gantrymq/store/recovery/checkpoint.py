"""The checkpoint file: up to where queues and index are known to agree with the log on disk.

RocketMQ's checkpoint is a page of 4096 bytes that begins with three store times. Ours begins the
same way, so that a Java broker can take over the store. Behind them, within the first sector, which
a disk writes whole, are our own fields with a checksum and a copy of the three times: if the copy
equals the original, no other program wrote the file since.
"""

import struct
from typing import NamedTuple
from zlib import crc32

import msgspec

from gantrymq.base.disk import Disk, parent_of
from gantrymq.base.layout import I32, I64, Bytes8, Bytes17, byte_layout
from gantrymq.kernel import SECTOR

PAGE = 4096


class CheckpointTimes(NamedTuple):
    """RocketMQ's part of the page."""

    log_ms: I64
    """Store time of the newest message up to which the commit log is flushed."""
    queue_ms: I64
    """The same for the consume queues."""
    index_ms: I64
    """The same for the index."""


class CheckpointOwn(NamedTuple):
    """Our part of the page, which RocketMQ ignores."""

    magic: Bytes8
    """`GANTRY01`."""
    dispatched: I64
    """Log, queues and index are durable for every record below this log offset."""
    log_ms: I64
    """A copy of the first time."""
    queue_ms: I64
    """A copy of the second time."""
    index_ms: I64
    """A copy of the third time."""
    last_store_ms: I64
    """The store time of the newest record; a clock that went back does not go below it."""
    index_name: Bytes17
    """The index file that was being filled; zeros for none."""
    index_next_entry: I32
    """The number of its next entry."""
    segment_bytes: I64
    """Size of a file of the commit log."""
    queue_file_entries: I64
    """Entries of a file of a consume queue."""
    index_slots: I64
    """Slots of an index file."""
    index_entries: I64
    """Entries of an index file."""


_TIMES = byte_layout(CheckpointTimes)
_OURS = byte_layout(CheckpointOwn)
_CRC = struct.Struct(">I")
_MAGIC = b"GANTRY01"

assert _TIMES.size + _OURS.size + _CRC.size <= SECTOR


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """How far log, queues and index are durable and agree."""

    log_ms: int = 0
    queue_ms: int = 0
    index_ms: int = 0
    dispatched: int | None = None
    """Queues and index are durable for every record below this offset, and so is the log; None
    when a Java broker wrote last and only the three times can be used."""
    index_name: str = ""
    index_next_entry: int = 0
    last_store_ms: int = 0
    sizes: tuple[int, int, int, int] | None = None
    """The file sizes that the store was made with, once we have recorded them."""

    @property
    def java_base_ms(self) -> int:
        """RocketMQ's rule: all records stored before this time (ms) are in the queues."""
        return max(0, min(self.log_ms, self.queue_ms) - 3000)

    def encode(self) -> bytes:
        """The page as it goes to disk."""
        assert self.dispatched is not None
        assert self.sizes is not None
        times = CheckpointTimes(self.log_ms, self.queue_ms, self.index_ms)
        name, dispatched = self.index_name.encode(), self.dispatched
        own = CheckpointOwn(
            _MAGIC, dispatched, *times, self.last_store_ms, name, self.index_next_entry, *self.sizes
        )
        ours = _OURS.pack(*own)
        return (_TIMES.pack(*times) + ours + _CRC.pack(crc32(ours))).ljust(PAGE, b"\0")


def decode(page: bytes) -> Checkpoint:
    """Read a checkpoint, ours or a Java broker's; an empty page counts as no checkpoint."""
    if len(page) < _TIMES.size:
        return Checkpoint()
    times = CheckpointTimes._make(_TIMES.unpack_from(page))
    java = Checkpoint(**times._asdict())
    ours_end = _TIMES.size + _OURS.size
    ours = page[_TIMES.size : ours_end]
    if len(page) < ours_end + _CRC.size or ours[:8] != _MAGIC:
        return java
    if _CRC.unpack_from(page, ours_end)[0] != crc32(ours):
        return java
    own = CheckpointOwn._make(_OURS.unpack(ours))
    return Checkpoint(
        **times._asdict(),
        dispatched=own.dispatched if times == (own.log_ms, own.queue_ms, own.index_ms) else None,
        index_name=own.index_name.rstrip(b"\0").decode(),
        index_next_entry=own.index_next_entry,
        last_store_ms=own.last_store_ms,
        sizes=(own.segment_bytes, own.queue_file_entries, own.index_slots, own.index_entries),
    )


def is_torn(page: bytes) -> bool:
    """Whether our part of a page is there, was written last, and does not fit its checksum.

    RocketMQ 5 keeps two more offsets where our part begins, and changes the second of them, so
    that our part never fits after it. Then the times are others than those that we copied, in more
    than the one bit that damage may have turned over.
    """
    end = _TIMES.size + _OURS.size
    ours = page[_TIMES.size : end]
    if ours[:8] != _MAGIC or page[end : end + _CRC.size] == _CRC.pack(crc32(ours)):
        return False
    own = CheckpointOwn._make(_OURS.unpack(ours))
    copied = _TIMES.pack(own.log_ms, own.queue_ms, own.index_ms)
    differing = int.from_bytes(page[: _TIMES.size], "big") ^ int.from_bytes(copied, "big")
    return differing.bit_count() <= 1


def load(disk: Disk, path: str) -> Checkpoint | None:
    """The checkpoint on disk; None when there is none."""
    if not disk.exists(path):
        return None
    file = disk.open_read(path)
    try:
        page = file.pread(PAGE, 0)
    finally:
        file.close()
    return decode(page) if page else None


def save(disk: Disk, path: str, checkpoint: Checkpoint) -> None:
    """Write and sync; the old and the new version of the sector are both valid after a crash."""
    existed = disk.exists(path)
    file = disk.open(path, create=True)
    try:
        file.pwrite(checkpoint.encode(), 0)
        file.sync()
    finally:
        file.close()
    if not existed:
        disk.sync_dir(parent_of(path))
