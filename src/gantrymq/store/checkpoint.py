"""The checkpoint file: up to where everything derived from the log is known to be durable.

RocketMQ's checkpoint is a page of 4096 bytes that begins with three store times. Ours begins the
same way, so that a Java broker can take over the store. Behind them, within the first sector,
which a disk writes whole, stand our own fields with a checksum and a copy of the three times: as
long as the copy equals the original, nobody else wrote the file since.
"""

import struct
from zlib import crc32

import msgspec

from gantrymq.base.disk import Disk, parent_of
from gantrymq.kernel import SECTOR

PAGE = 4096
_TIMES = struct.Struct(">qqq")
_OURS = struct.Struct(">8sqqqqq17siqqqq")
_CRC = struct.Struct(">I")
_MAGIC = b"GANTRY01"

assert _TIMES.size + _OURS.size + _CRC.size <= SECTOR


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """What a checkpoint vouches for."""

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
        """RocketMQ's rule: records stored before this are in the queues for sure."""
        return max(0, min(self.log_ms, self.queue_ms) - 3000)

    def encode(self) -> bytes:
        """The page as it goes to disk."""
        assert self.dispatched is not None
        assert self.sizes is not None
        times = _TIMES.pack(self.log_ms, self.queue_ms, self.index_ms)
        ours = _OURS.pack(
            _MAGIC,
            self.dispatched,
            self.log_ms,
            self.queue_ms,
            self.index_ms,
            self.last_store_ms,
            self.index_name.encode(),
            self.index_next_entry,
            *self.sizes,
        )
        checked = times + ours
        return (checked + _CRC.pack(crc32(ours))).ljust(PAGE, b"\0")


def decode(page: bytes) -> Checkpoint:
    """Read a checkpoint, ours or a Java broker's; an empty one is no promise at all."""
    if len(page) < _TIMES.size:
        return Checkpoint()
    log_ms, queue_ms, index_ms = _TIMES.unpack_from(page)
    java = Checkpoint(log_ms=log_ms, queue_ms=queue_ms, index_ms=index_ms)
    ours_end = _TIMES.size + _OURS.size
    ours = page[_TIMES.size : ours_end]
    if len(page) < ours_end + _CRC.size or ours[:8] != _MAGIC:
        return java
    if _CRC.unpack_from(page, ours_end)[0] != crc32(ours):
        return java
    fields = _OURS.unpack(ours)
    dispatched, *copy, last_store_ms, name, next_entry = fields[1:8]
    return Checkpoint(
        log_ms=log_ms,
        queue_ms=queue_ms,
        index_ms=index_ms,
        dispatched=dispatched if copy == [log_ms, queue_ms, index_ms] else None,
        index_name=name.rstrip(b"\0").decode(),
        index_next_entry=next_entry,
        last_store_ms=last_store_ms,
        sizes=fields[8:12],
    )


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
    """Write and sync; whatever version of the sector survives a crash is truthful."""
    existed = disk.exists(path)
    file = disk.open(path, create=True)
    try:
        file.pwrite(checkpoint.encode(), 0)
        file.sync()
    finally:
        file.close()
    if not existed:
        disk.sync_dir(parent_of(path))
