"""How far delivery has come, in RocketMQ's `config/timercheck`: what stands below is done.

Eight-byte numbers, big-endian: the time up to which everything that was read is delivered, a
position in RocketMQ's timer log, the offset up to which the intake queue was read, the same as
slaves see it, and a data version of three numbers. RocketMQ keeps what it read in files of its own,
which we do not write; so it is told to read again from the first message that waits, and loses
none. Behind its numbers stands what we go by: that offset, the one we have read up to, and a
checksum over RocketMQ's numbers, which tells whether it has had the store in between.
"""

import struct
import zlib
from typing import Final, NamedTuple

from gantrymq.base.disk import Disk, parent_of

_LAYOUT: Final = struct.Struct(">7q")
_OWN_AT: Final = 64
_OWN: Final = struct.Struct(">8sqqI")
_OWN_MARK: Final = b"gantrymq"
FILE_BYTES: Final = 4096
WRITE_BYTES: Final = 512
"""One sector, which a disk writes whole or not at all."""


class TimerCheck(NamedTuple):
    """A message read before `offset` is delivered if it was due at `read_ms` or before."""

    read_ms: int = 0
    offset: int = 0
    low: int = 0
    """No message before this offset waits."""
    counter: int = 0
    saved_ms: int = 0

    def encode(self) -> bytes:
        numbers = _LAYOUT.pack(self.read_ms, 0, self.low, self.low, 0, self.saved_ms, self.counter)
        own = _OWN.pack(_OWN_MARK, self.low, self.offset, zlib.crc32(numbers))
        return (numbers.ljust(_OWN_AT, b"\0") + own).ljust(WRITE_BYTES, b"\0")

    @classmethod
    def decode(cls, data: bytes) -> "TimerCheck":
        """Ours or RocketMQ's. What is too short was never written."""
        if len(data) < _LAYOUT.size:
            return cls()
        read_ms, _, offset, _, _, saved_ms, counter = _LAYOUT.unpack_from(data)
        low = 0
        if len(data) >= _OWN_AT + _OWN.size:
            mark, own_low, own_offset, crc = _OWN.unpack_from(data, _OWN_AT)
            if mark == _OWN_MARK and crc == zlib.crc32(data[: _LAYOUT.size]):
                low, offset = own_low, own_offset
        return cls(read_ms, offset, low, counter, saved_ms)


def load_check(disk: Disk, path: str) -> TimerCheck:
    """What the file says; nothing done if there is none."""
    if not disk.exists(path):
        return TimerCheck()
    file = disk.open_read(path)
    try:
        return TimerCheck.decode(file.pread(WRITE_BYTES, 0))
    finally:
        file.close()


def save_check(disk: Disk, path: str, check: TimerCheck) -> None:
    """Write it in place, durable when this returns."""
    directory, is_new = parent_of(path), not disk.exists(path)
    if is_new:
        disk.make_dirs(directory)
    file = disk.open(path, create=True)
    try:
        if file.size() != FILE_BYTES:
            file.truncate(FILE_BYTES)
        file.pwrite(check.encode(), 0)
        file.sync()
    finally:
        file.close()
    if is_new:
        disk.sync_dir(directory)
