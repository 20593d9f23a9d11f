"""Messages that their senders want back before they are due."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from gantrymq.kernel import find_property


def recall_key(stored: bytes, topic: str) -> str | None:
    """Whom a waiting message is: its topic and its sender's id for it."""
    unique = find_property(stored, b"UNIQ_KEY")
    return None if unique is None else f"{topic}+{unique.decode('utf-8', 'replace')}"


def recalled_key(stored: bytes, topic: str) -> str | None:
    """Whom a recall means; None if it is none, or means a message of another topic.

    RocketMQ before 5.2 wrote the id alone.
    """
    text = find_property(stored, b"TIMER_DEL_UNIQKEY")
    if text is None:
        return None
    key = text.decode("utf-8", "replace")
    if "+" not in key:
        return f"{topic}+{key}"
    return key if key.startswith(f"{topic}+") else None


class Recalls:
    """Which waiting messages are recalled, by the offset of the recall, and which may be soon."""

    def __init__(self) -> None:
        self._offsets: dict[str, int] = {}
        self._keys: dict[int, str] = {}
        self._in_doubt: dict[str, asyncio.Future[None]] = {}

    @property
    def any(self) -> bool:
        """Whether there is anything to look up at all."""
        return bool(self._offsets or self._in_doubt)

    def note(self, key: str, offset: int) -> None:
        """A recall was stored."""
        self._offsets[key], self._keys[offset] = offset, key

    def forget(self, offset: int) -> None:
        """The time of a recall has passed."""
        key = self._keys.pop(offset, None)
        if key is not None and self._offsets.get(key) == offset:
            del self._offsets[key]

    def known(self, key: str) -> bool:
        return key in self._offsets

    def count(self, topic: str) -> int:
        """Recalls of one topic whose messages still lie there."""
        return sum(key.startswith(f"{topic}+") for key in self._offsets)

    @contextmanager
    def storing(self, key: str) -> Iterator[None]:
        """While a recall is being stored its message is not delivered."""
        future = self._in_doubt[key] = asyncio.get_running_loop().create_future()
        try:
            yield
        finally:
            del self._in_doubt[key]
            future.set_result(None)

    async def holds(self, key: str) -> bool:
        """Whether a message is recalled, once that is certain."""
        while key in self._in_doubt:
            await asyncio.shield(self._in_doubt[key])
        return key in self._offsets
