"""What a leader reads of its log for its followers, without waiting for the disk.

Followers that keep up are sent what was just written, which is in memory. One that was away is sent
old files. Reading them takes the disk's time, so a worker does it, some pieces ahead of what is
asked for. Until they are there the core is told that the place is not known yet, sends that
follower nothing, and goes on with everything else.
"""

from collections.abc import Awaitable, Callable
from typing import Final

from gantrymq.base.background import Background
from gantrymq.store.errors import StoreError
from gantrymq.store.writing.group_log import GroupLog

FETCH_BYTES: Final = 4 << 20
"""What a worker reads at once."""
STRETCHES_MAX: Final = 4
"""How many fetched stretches are kept: that many followers may be behind at different places."""


class LogReads:
    """Reads from memory, or lets a worker fetch it."""

    def __init__(self, log: GroupLog) -> None:
        self._log = log
        self._background = Background("reads of old log files")
        self._last: tuple[int, int, bytes] = (0, 0, b"")
        self._stretches: dict[int, bytes] = {}
        """What workers fetched, by its log offset; the oldest first."""
        self._under_way: dict[int, None] = {}
        self.on_fetched: Callable[[], None] = lambda: None
        """Called when a place is known that was not before."""

    async def close(self) -> None:
        """End the workers."""
        await self._background.close()

    def forget(self) -> None:
        """Forget everything: the log is about to be written to by another leader's order."""
        self._last = (0, 0, b"")
        self._stretches.clear()

    def boundary(self, start: int, limit: int) -> int | None:
        """The last record boundary up to `limit`; None if a worker has to fetch the bytes first."""
        size = self._log.boundary_bytes(start, limit)
        data = self._in_memory(start, size)
        if data is not None:
            return self._log.boundary_in(start, data)
        if start not in self._under_way:
            self._under_way[start] = None
            self._background.spawn(self._fetch_ahead(start))
        return None

    def read(self, start: int, size: int) -> bytes | Awaitable[bytes]:
        """Bytes of the log; an awaitable if the disk is asked.

        The last ones are kept, as all followers are sent the same.
        """
        if self._last[:2] != (start, size):
            data = self._in_memory(start, size)
            if data is None:
                return self._fetch(start, size)
            self._last = (start, size, data)
        return self._last[2]

    def _in_memory(self, start: int, size: int) -> bytes | None:
        for at, data in self._stretches.items():
            if at <= start and start + size <= at + len(data):
                return data[start - at : start - at + size]
        return self._log.read_warm(start, size)

    async def _fetch_ahead(self, start: int) -> None:
        try:
            self._keep(start, await self._fetch(start, FETCH_BYTES))
        except StoreError:
            pass  # retention was quicker; the core learns of it in the next turn
        finally:
            del self._under_way[start]
        self.on_fetched()

    async def _fetch(self, start: int, size: int) -> bytes:
        end, parts = min(start + size, self._log.end), []
        while start < end:
            read = self._log.read_or_fetch(start, end - start)
            part = await read if isinstance(read, Awaitable) else read
            if not part:
                raise StoreError(f"log offset {start} cannot be read")
            parts.append(part)
            start += len(part)
        return b"".join(parts)

    def _keep(self, start: int, data: bytes) -> None:
        while len(self._stretches) >= STRETCHES_MAX:
            del self._stretches[next(iter(self._stretches))]
        self._stretches[start] = data
