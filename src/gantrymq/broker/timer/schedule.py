"""Who is due when: one number a waiting message, in a heap.

The number is made of the due time, the offset in the intake queue and the number of the topic, in
this order, so that the smallest is due first and ties keep the order in which they came. Messages
themselves stay in the log.
"""

import heapq
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

OFFSET_BITS: Final = 56
TOPIC_BITS: Final = 24
TOPIC_MASK: Final = (1 << TOPIC_BITS) - 1
OFFSET_MASK: Final = (1 << OFFSET_BITS) - 1
RECALL: Final = 0
"""The number that stands for no topic: the entry is a recall."""


class Entry(NamedTuple):
    """One waiting message: when it is due and where it lies."""

    due_ms: int
    offset: int
    topic: int = RECALL

    @property
    def packed(self) -> int:
        return (self.due_ms << OFFSET_BITS | self.offset) << TOPIC_BITS | self.topic

    @classmethod
    def unpack(cls, number: int) -> "Entry":
        rest = number >> TOPIC_BITS
        return cls(rest >> OFFSET_BITS, rest & OFFSET_MASK, number & TOPIC_MASK)


class Schedule:
    """All that wait, soonest first."""

    def __init__(self) -> None:
        self._heap: list[int] = []
        self._names: list[str] = [""]
        self._numbers: dict[str, int] = {}
        self._dropped: set[int] = set()

    def __len__(self) -> int:
        return len(self._heap) - len(self._dropped)

    def number_of(self, topic: str) -> int:
        """The number of a topic; a name is kept once, however many wait for it."""
        number = self._numbers.get(topic)
        if number is None:
            number = min(len(self._names), TOPIC_MASK)
            if number == len(self._names):
                self._names.append(topic)
            self._numbers[topic] = number
        return number

    def name_of(self, number: int) -> str:
        return self._names[number]

    def add(self, entry: Entry) -> bool:
        """Take an entry; whether it is due before all others."""
        number = entry.packed
        heapq.heappush(self._heap, number)
        return self._heap[0] == number

    @property
    def head_ms(self) -> int | None:
        """When the next one is due."""
        heap, dropped = self._heap, self._dropped
        while dropped and heap and (heap[0] >> TOPIC_BITS & OFFSET_MASK) in dropped:
            dropped.discard(heapq.heappop(heap) >> TOPIC_BITS & OFFSET_MASK)
        return heap[0] >> TOPIC_BITS + OFFSET_BITS if heap else None

    def take(self, until_ms: int, count_max: int) -> list[Entry]:
        """Remove and return what is due at a time, in order."""
        taken: list[Entry] = []
        while len(taken) < count_max:
            head_ms = self.head_ms
            if head_ms is None or head_ms > until_ms:
                break
            taken.append(Entry.unpack(heapq.heappop(self._heap)))
        return taken

    # replacing

    def drop(self, offsets: Iterable[int]) -> None:
        """Forget entries by where they lie; only for such as are in here."""
        self._dropped.update(offsets)

    def compact(self) -> None:
        """Give the room of dropped entries back."""
        if self._dropped:
            dropped = self._dropped
            self._heap = [n for n in self._heap if (n >> TOPIC_BITS & OFFSET_MASK) not in dropped]
            heapq.heapify(self._heap)
            self._dropped = set()

    # looking

    def pieces(self, size: int) -> Iterator[list[int]]:
        """All numbers as they were at the first call, a piece at a time and in no order."""
        everything, dropped = self._heap[:], set(self._dropped)
        for start in range(0, len(everything), size):
            piece = everything[start : start + size]
            if dropped:
                piece = [n for n in piece if (n >> TOPIC_BITS & OFFSET_MASK) not in dropped]
            yield piece
