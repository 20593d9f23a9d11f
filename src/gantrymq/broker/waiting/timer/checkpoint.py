"""The progress of timer delivery, in RocketMQ's file `config/timercheck`.

Eight-byte numbers, big-endian: the time up to which everything that was read is delivered, a
position in RocketMQ's timer log, the offset up to which the timer topic was read, the same for
slaves, and a data version of three numbers. RocketMQ keeps what it read in its own files, which we
do not write; so its offset here is that of the first waiting message, and it reads again from
there. Behind RocketMQ's numbers stand ours: that offset, the offset up to which we have read, and a
checksum over all of them, which shows whether RocketMQ used the store since.
"""

import logging
import zlib
from typing import Final, NamedTuple

from gantrymq.base.disk import Disk, parent_of
from gantrymq.base.layout import I64, U32, Bytes8, byte_layout
from gantrymq.base.offload import Offload


class TimerNumbers(NamedTuple):
    """RocketMQ's part of the file."""

    read_ms: I64
    """What was read and was due at this time or before is delivered."""
    flushed: I64
    """A position in RocketMQ's timer log; 0, as we write none."""
    queue_offset: I64
    """From where RocketMQ reads the timer topic: no message before it waits."""
    slave_queue_offset: I64
    """The same for slaves."""
    state_version: I64
    """Data version: 0."""
    saved_ms: I64
    """Data version: when this was written."""
    counter: I64
    """Data version: how often this was written."""


class TimerOwn(NamedTuple):
    """Our part of the file, which RocketMQ ignores."""

    mark: Bytes8
    """`gantrymq`."""
    low: I64
    """No message of the timer topic before this offset waits."""
    offset: I64
    """The timer topic was read up to here."""
    crc: U32
    """CRC-32 of RocketMQ's part and of the three before: else RocketMQ wrote the file last."""


log = logging.getLogger(__name__)

_LAYOUT: Final = byte_layout(TimerNumbers)
OWN_AT: Final = 64
_OWN: Final = byte_layout(TimerOwn)
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

    def covers(self, offset: int, due_ms: int) -> bool:
        """Whether a message of the timer topic is counted as delivered."""
        return offset < self.offset and due_ms <= self.read_ms

    def encode(self) -> bytes:
        numbers = _LAYOUT.pack(self.read_ms, 0, self.low, self.low, 0, self.saved_ms, self.counter)
        own = _OWN.pack(_OWN_MARK, self.low, self.offset, _crc(numbers, self.low, self.offset))
        return (numbers.ljust(OWN_AT, b"\0") + own).ljust(WRITE_BYTES, b"\0")

    @classmethod
    def decode(cls, data: bytes) -> "TimerCheck":
        """Read a file of ours or RocketMQ's; one that is too short counts as empty."""
        if len(data) < _LAYOUT.size:
            return cls()
        numbers = TimerNumbers._make(_LAYOUT.unpack_from(data))
        low, offset = 0, numbers.queue_offset
        if len(data) >= OWN_AT + _OWN.size:
            own = TimerOwn._make(_OWN.unpack_from(data, OWN_AT))
            if own.mark == _OWN_MARK and own.crc == _crc(data[: _LAYOUT.size], own.low, own.offset):
                low, offset = own.low, own.offset
            elif any(data[OWN_AT : OWN_AT + _OWN.size]):
                log.warning(
                    "timercheck was written by RocketMQ, or is damaged: timer messages are read "
                    "again from its offset %d",
                    offset,
                )
        return cls(numbers.read_ms, offset, low, numbers.counter, numbers.saved_ms)


def _crc(numbers: bytes, low: int, offset: int) -> int:
    return zlib.crc32(numbers + _OWN.pack(_OWN_MARK, low, offset, 0))


class TimerCheckFile:
    """The file in the folder of a store; it is written off the event loop."""

    def __init__(self, disk: Disk, offload: Offload, path: str) -> None:
        self._disk, self._offload, self._path = disk, offload, path

    def load(self) -> TimerCheck:
        """The progress in the file; none if there is no file."""
        return load_check(self._disk, self._path)

    async def save(self, check: TimerCheck) -> None:
        """Write the file; durable when this returns."""
        await self._offload.run(save_check, self._disk, self._path, check)


def load_check(disk: Disk, path: str) -> TimerCheck:
    """The progress in the file; none if there is no file."""
    if not disk.exists(path):
        return TimerCheck()
    file = disk.open_read(path)
    try:
        return TimerCheck.decode(file.pread(WRITE_BYTES, 0))
    finally:
        file.close()


def save_check(disk: Disk, path: str, check: TimerCheck) -> None:
    """Write the file in place; durable when this returns."""
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
