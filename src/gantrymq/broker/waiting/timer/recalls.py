"""Timer messages that were recalled before they are due."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from gantrymq.kernel import find_property


def recall_key(stored: bytes, topic: str) -> str | None:
    """The key of a waiting message: topic and message id; None if it has no id."""
    unique = find_property(stored, b"UNIQ_KEY")
    return None if unique is None else f"{topic}+{unique.decode('utf-8', 'replace')}"


def recalled_key(stored: bytes, topic: str) -> str | None:
    """The key of the message that a recall names.

    None if this is not a recall, or names a message of another topic. RocketMQ before 5.2 wrote the
    id alone.
    """
    text = find_property(stored, b"TIMER_DEL_UNIQKEY")
    if text is None:
        return None
    key = text.decode("utf-8", "replace")
    if "+" not in key:
        return f"{topic}+{key}"
    return key if key.startswith(f"{topic}+") else None


class Recalls:
    """The recalled messages by key, and the recalls that are being stored."""

    def __init__(self) -> None:
        self._offsets: dict[str, int] = {}
        self._keys: dict[int, str] = {}
        self._in_doubt: dict[str, asyncio.Future[None]] = {}

    @property
    def any(self) -> bool:
        """Whether there is any recall."""
        return bool(self._offsets or self._in_doubt)

    def note(self, key: str, offset: int) -> None:
        """Add a recall that was stored at an offset of the timer topic."""
        self._offsets[key], self._keys[offset] = offset, key

    def forget(self, offset: int) -> None:
        """Remove a recall whose message would have been delivered by now."""
        key = self._keys.pop(offset, None)
        if key is not None and self._offsets.get(key) == offset:
            del self._offsets[key]

    def known(self, key: str) -> bool:
        return key in self._offsets

    def count(self, topic: str) -> int:
        """The number of recalls for messages of a topic."""
        return sum(key.startswith(f"{topic}+") for key in self._offsets)

    @contextmanager
    def storing(self, key: str) -> Iterator[None]:
        """While a recall is being stored, its message is not delivered."""
        future = self._in_doubt[key] = asyncio.get_running_loop().create_future()
        try:
            yield
        finally:
            del self._in_doubt[key]
            future.set_result(None)

    async def holds(self, key: str) -> bool:
        """Whether a message is recalled; waits for a recall that is being stored."""
        while key in self._in_doubt:
            await asyncio.shield(self._in_doubt[key])
        return key in self._offsets
