"""Reads the timer topic, in order or by offset."""

from collections.abc import Sequence
from typing import Final

from gantrymq.broker.waiting.waiting_record import WaitingRecord, waiting_records
from gantrymq.model import TIMER_TOPIC
from gantrymq.store.append import ReadResult, ReadStatus
from gantrymq.store.engine import Store

QUEUE: Final = 0


class Intake:
    """The one queue of the timer topic."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @property
    def first(self) -> int:
        return self._store.queues.min_offset(TIMER_TOPIC, QUEUE)

    @property
    def end(self) -> int:
        return self._store.queues.max_offset(TIMER_TOPIC, QUEUE)

    async def arrived(self, offset: int) -> None:
        """Wait until there is a message at an offset."""
        await self._store.queues.arrivals(TIMER_TOPIC, QUEUE).reach(offset + 1)

    async def follow(
        self, offset: int, count_max: int, bytes_max: int
    ) -> tuple[list[WaitingRecord], int]:
        """Records from an offset on, and the next offset; the same offset if none can be read."""
        outcome = self._store.reads.pull(TIMER_TOPIC, QUEUE, offset, count_max, bytes_max)
        pulled = outcome if isinstance(outcome, ReadResult) else await outcome
        if pulled.status is ReadStatus.FOUND:
            return waiting_records(pulled.body), pulled.next_offset
        return [], max(offset, pulled.next_offset)

    async def pick(
        self, offsets: Sequence[int], bytes_max: int
    ) -> tuple[dict[int, WaitingRecord], int]:
        """The records at these offsets, and how many of the offsets were read within the limit.

        Consecutive offsets are read together. An offset that was read and has no record is gone.
        """
        found: dict[int, WaitingRecord] = {}
        at = room = 0
        room = bytes_max
        while at < len(offsets) and (room > 0 or not at):
            stop = at + 1
            while stop < len(offsets) and offsets[stop] == offsets[stop - 1] + 1:
                stop += 1
            records, _ = await self.follow(offsets[at], stop - at, max(1, room))
            wanted = set(offsets[at:stop])
            for record in records:
                if record.head.queue_offset in wanted:
                    found[record.head.queue_offset] = record
                room -= record.head.total_size
            # If nothing was found at the first offset it is gone; the others are read again.
            at += max(1, sum(offset in found for offset in offsets[at:stop]))
        return found, at
