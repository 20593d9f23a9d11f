"""The progress of a queue: the smallest offset that is not finished.

Messages are pulled in rising order and finished in any order. Everything below the progress is
finished, so no unfinished message is skipped after a crash.
"""

from collections import deque
from collections.abc import ValuesView
from typing import Generic, TypeVar

T = TypeVar("T")


class QueueProgress(Generic[T]):
    """The pulled and unfinished messages of one queue, and the offset of the next pull."""

    __slots__ = ("_open", "_order", "_taken", "bytes_open", "next_offset")

    def __init__(self, start: int) -> None:
        self.next_offset = start
        """Where the next pull begins; all below was pulled, or filtered out by the broker."""
        self.bytes_open = 0
        self._taken = start - 1
        self._order: deque[int] = deque()
        self._open: dict[int, tuple[T, int]] = {}

    def take(self, offset: int, item: T, size: int) -> bool:
        """Add a pulled message; False when its offset was added before."""
        if offset <= self._taken:
            return False
        self._taken = offset
        self._order.append(offset)
        self._open[offset] = (item, size)
        self.bytes_open += size
        if offset >= self.next_offset:
            self.next_offset = offset + 1
        return True

    def finish(self, offset: int) -> bool:
        """Mark a message as finished; False when it was not open."""
        entry = self._open.pop(offset, None)
        if entry is None:
            return False
        self.bytes_open -= entry[1]
        order = self._order
        if order[0] == offset:
            order.popleft()
            while order and order[0] not in self._open:
                order.popleft()
        return True

    def replace(self, offset: int, item: T) -> None:
        """Replace an open message by its next delivery."""
        _, size = self._open[offset]
        self._open[offset] = (item, size)

    def skip_to(self, offset: int) -> None:
        """Continue at `offset`: below it the broker has no message that fits the subscription."""
        self.next_offset = max(self.next_offset, offset)

    @property
    def done(self) -> int:
        """The offset to store: the smallest unfinished one, or where the next pull begins."""
        return self._order[0] if self._order else self.next_offset

    @property
    def count(self) -> int:
        """How many messages are open."""
        return len(self._open)

    @property
    def span(self) -> int:
        """The distance in offsets from the first unfinished to the last pulled message."""
        return self._order[-1] - self._order[0] if self._order else 0

    @property
    def open_items(self) -> list[T]:
        """The open messages, oldest first."""
        entries: ValuesView[tuple[T, int]] = self._open.values()
        return [item for item, _ in entries]
