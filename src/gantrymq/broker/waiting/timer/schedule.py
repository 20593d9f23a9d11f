"""The due times of all waiting timer messages: sixteen bytes a message.

An entry is one number made of the due time, the offset in the timer topic and the number of the
real topic, in this order, so that the smallest is due first and ties keep their order of arrival.
New numbers go into a small heap; a full heap becomes a sorted run in plain arrays, because a heap
of a million Python integers takes much more memory. Messages themselves stay in the log.
"""

import heapq
from array import array
from collections.abc import Iterable, Iterator
from itertools import count
from typing import Final, NamedTuple

OFFSET_BITS: Final = 44
TOPIC_BITS: Final = 20
PLACE_BITS: Final = OFFSET_BITS + TOPIC_BITS
PLACE_MASK: Final = (1 << PLACE_BITS) - 1
TOPIC_MASK: Final = (1 << TOPIC_BITS) - 1
OFFSET_MASK: Final = (1 << OFFSET_BITS) - 1
RECALL: Final = 0
"""The number that stands for no topic: the entry is a recall."""
FRESH_MAX: Final = 4096
SPARSE: Final = 4
"""A run is given up when only one in so many of its entries is left."""


class Entry(NamedTuple):
    """One waiting message: its due time and its offset in the timer topic."""

    due_ms: int
    offset: int
    topic: int = RECALL

    @property
    def packed(self) -> int:
        return self.due_ms << PLACE_BITS | self.offset << TOPIC_BITS | self.topic

    @classmethod
    def unpack(cls, number: int) -> "Entry":
        return cls(number >> PLACE_BITS, number >> TOPIC_BITS & OFFSET_MASK, number & TOPIC_MASK)


class _Run:
    """Sorted entries; those before `at` are removed."""

    __slots__ = ("at", "dues", "places")

    def __init__(self, numbers: list[int]) -> None:
        self.dues = array("q", [number >> PLACE_BITS for number in numbers])
        self.places = array("Q", [number & PLACE_MASK for number in numbers])
        self.at = 0

    def number(self, at: int) -> int:
        return self.dues[at] << PLACE_BITS | self.places[at]

    def rest(self, start: int) -> list[int]:
        return [self.number(at) for at in range(start, len(self.dues))]


class Schedule:
    """All entries, the soonest first."""

    def __init__(self) -> None:
        self._fresh: list[int] = []
        self._runs: list[tuple[int, int, _Run]] = []
        """A heap by the head of each run; a serial number settles ties."""
        self._serial = count()
        self._size = 0
        self._names: list[str] = [""]
        self._numbers: dict[str, int] = {}
        self._dropped: set[int] = set()

    def __len__(self) -> int:
        return self._size - len(self._dropped)

    def number_of(self, topic: str) -> int:
        """The number of a topic, by which entries name it."""
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
        """Add an entry; True if it is due before all others."""
        number = entry.packed
        self._size += 1
        self._push(number)
        return self._head() == number

    def _push(self, number: int) -> None:
        heapq.heappush(self._fresh, number)
        if len(self._fresh) >= FRESH_MAX:
            numbers, self._fresh = sorted(self._fresh), []
            self._add_run(_Run(numbers))

    def _add_run(self, run: _Run) -> None:
        heapq.heappush(self._runs, (run.number(run.at), next(self._serial), run))

    def _head(self) -> int | None:
        fresh, runs = self._fresh, self._runs
        if not runs:
            return fresh[0] if fresh else None
        return min(fresh[0], runs[0][0]) if fresh else runs[0][0]

    def _pop(self) -> int:
        """Remove and return the smallest number; the schedule must not be empty."""
        fresh, runs = self._fresh, self._runs
        self._size -= 1
        if not runs or (fresh and fresh[0] < runs[0][0]):
            return heapq.heappop(fresh)
        number, serial, run = runs[0]
        run.at += 1
        left = len(run.dues) - run.at
        if not left:
            heapq.heappop(runs)
        elif left * SPARSE < len(run.dues):
            heapq.heappop(runs)
            for other in run.rest(run.at):
                self._push(other)
        else:
            heapq.heapreplace(runs, (run.number(run.at), serial, run))
        return number

    @property
    def head_ms(self) -> int | None:
        """When the next entry is due; None if there is none."""
        dropped = self._dropped
        while (number := self._head()) is not None:
            offset = number >> TOPIC_BITS & OFFSET_MASK
            if offset not in dropped:
                return number >> PLACE_BITS
            self._pop()
            dropped.discard(offset)
        return None

    def take(self, until_ms: int, count_max: int) -> list[Entry]:
        """Remove and return up to `count_max` entries due at `until_ms`, in order."""
        taken: list[Entry] = []
        while len(taken) < count_max:
            head_ms = self.head_ms
            if head_ms is None or head_ms > until_ms:
                break
            taken.append(Entry.unpack(self._pop()))
        return taken

    # replacing

    def drop(self, offsets: Iterable[int]) -> None:
        """Mark entries as removed, by offset; all of them must be in the schedule."""
        self._dropped.update(offsets)

    def compact(self) -> Iterator[None]:
        """Free the memory of dropped entries, one run a step; `add` may be called in between."""
        seen: set[int] = set()
        while True:
            at = next((at for at, row in enumerate(self._runs) if row[1] not in seen), None)
            if at is None:
                break
            _, serial, run = self._runs[at]
            seen.add(serial)
            if any((place >> TOPIC_BITS) in self._dropped for place in run.places[run.at :]):
                del self._runs[at]
                heapq.heapify(self._runs)
                for number in run.rest(run.at):
                    self._keep(number)
            yield
        fresh, self._fresh = self._fresh, []
        for number in fresh:
            self._keep(number)
        self._dropped = set()

    def _keep(self, number: int) -> None:
        if (number >> TOPIC_BITS & OFFSET_MASK) in self._dropped:
            self._size -= 1
            self._dropped.discard(number >> TOPIC_BITS & OFFSET_MASK)
        else:
            self._push(number)

    # reading

    def pieces(self) -> Iterator[list[int]]:
        """All numbers as they are now, in pieces and in no order."""
        runs = [(run, run.at) for _, _, run in self._runs]
        return self._pieces(self._fresh[:], runs, frozenset(self._dropped))

    def _pieces(
        self, fresh: list[int], runs: list[tuple[_Run, int]], dropped: frozenset[int]
    ) -> Iterator[list[int]]:
        def kept(numbers: list[int]) -> list[int]:
            if not dropped:
                return numbers
            return [n for n in numbers if (n >> TOPIC_BITS & OFFSET_MASK) not in dropped]

        yield kept(fresh)
        for run, start in runs:
            yield kept(run.rest(start))
