"""The records of the log by file, for those who compare it with another log."""

import zlib

from gantrymq.base.offload import Offload
from gantrymq.store.log.commitlog import CommitLog
from gantrymq.store.log.scan import scan

Stretch = tuple[int, int]
"""Where a record begins in the log, and its size."""


class LogRecords:
    """Finds records by position, without a look at their queues."""

    def __init__(self, log: CommitLog, offload: Offload) -> None:
        self._log, self._offload = log, offload

    @property
    def files(self) -> list[int]:
        """Where each file of the log begins."""
        return list(self._log.bases)

    @property
    def end(self) -> int:
        """Where the log ends; may lie inside a record."""
        return self._log.end

    async def first_of(self, base: int) -> Stretch | None:
        """The first record of a file; None if the file has no whole one."""
        async for _, _, records in scan(self._log, self._offload, base, self._end_of(base)):
            return base, records[0][4]
        return None

    async def of_file(self, base: int) -> list[Stretch]:
        """All whole records of a file."""
        found: list[Stretch] = []
        async for _, _, records in scan(self._log, self._offload, base, self._end_of(base)):
            found += [(position, size) for _, _, _, position, size, *_ in records]
        return found

    async def count_from(self, position: int) -> int:
        """How many whole records the log has from `position` on, where one begins."""
        count = 0
        async for _, _, records in scan(self._log, self._offload, position, self._log.end):
            count += len(records)
        return count

    async def checksum(self, position: int, size: int) -> int:
        """The CRC32 of bytes that lie in one file."""
        return zlib.crc32(await self._offload.run(self._log.read, size, position))

    def _end_of(self, base: int) -> int:
        return min(base + self._log.segment_bytes, self._log.end)
