"""The log as bytes, for those who copy it."""

from collections.abc import Awaitable

from gantrymq.base.offload import Offload
from gantrymq.base.watermark import Watermark
from gantrymq.store.log.commitlog import CommitLog


class LogBytes:
    """Reads the log by log offset, without a look at its records."""

    def __init__(self, log: CommitLog, end: Watermark, offload: Offload) -> None:
        self._log, self._offload = log, offload
        self.end = end
        """Up to where bytes may be copied: written, and with SYNC_FLUSH flushed."""

    @property
    def min(self) -> int:
        """The first offset that can be read."""
        return self._log.min

    @property
    def file_bytes(self) -> int:
        """The size of a log file."""
        return self._log.segment_bytes

    @property
    def last_file(self) -> int:
        """Where the last file begins."""
        return self._log.bases[-1] if self._log.bases else self._log.end

    def read(self, at: int, size_max: int) -> bytes | Awaitable[bytes]:
        """Bytes from `at` on, within one file and below `end`; an awaitable if the disk is asked.

        Empty if the file of `at` is deleted.
        """
        size = min(size_max, self.end.value - at, self._log.rest_of_file(at))
        return self._log.read_or_fetch(size, at, self._offload)
