"""The timer messages that wait: when each is due, and which of them are void."""

import asyncio
import logging

from gantrymq.broker.waiting.timer.checkpoint import TimerCheck
from gantrymq.broker.waiting.timer.delivered import is_rolled
from gantrymq.broker.waiting.timer.recalls import Recalls, recall_key, recalled_key
from gantrymq.broker.waiting.timer.schedule import RECALL, Entry, Schedule
from gantrymq.broker.waiting.timer.times import SLACK_MS, TICK_MS_MAX, due_ms
from gantrymq.broker.waiting.waiting_record import WaitingRecord, destination
from gantrymq.kernel import find_property
from gantrymq.model import HALF_TOPIC

log = logging.getLogger(__name__)

NOTHING_DELIVERED = TimerCheck()


class WaitingTimers:
    """The schedule of all timer messages, the recalls, and what is being delivered."""

    def __init__(self, precision_ms: int) -> None:
        self._precision_ms = precision_ms
        self.schedule, self.recalls = Schedule(), Recalls()
        self._newest: dict[str, int] = {}
        """Messages that RocketMQ copied forward, and the last copy of each."""
        self.lock = asyncio.Lock()
        """Held while entries are out of the schedule or being replaced."""
        self.in_delivery_ms: int | None = None
        """When the first of the messages that are being delivered was due."""
        self.delivered: set[int] | None = None
        """Offsets delivered since somebody began to copy waiting messages; else None."""

    def clear(self) -> None:
        """Forget everything, to read the timer topic again."""
        self.schedule, self.recalls, self._newest = Schedule(), Recalls(), {}

    @property
    def first_due_ms(self) -> int | None:
        """When the first message that is not delivered is or was due; None if none waits."""
        found = [due for due in (self.schedule.head_ms, self.in_delivery_ms) if due is not None]
        return min(found, default=None)

    def add(self, record: WaitingRecord, check: TimerCheck = NOTHING_DELIVERED) -> bool:
        """Schedule one message of the timer topic; True if it is due before all others.

        A message that the checkpoint counts as delivered is left out.
        """
        head, found = record.head, record.properties
        due = due_ms(found, head.store_ms, self._precision_ms)
        topic = destination(found)[0]
        if due is None or not topic or topic == HALF_TOPIC:
            log.error("the timer message at %d says no time or no topic", head.physical_offset)
            return False
        if find_property(found, b"TIMER_DEL_UNIQKEY") is not None:
            return self._add_recall(head.queue_offset, due, recalled_key(found, topic), check)
        if check.covers(head.queue_offset, due):
            return False
        if head.prepared_offset <= 0 and is_rolled(found):
            key = recall_key(found, topic)
            if key is not None:
                self._newest[key] = head.queue_offset
        return self.schedule.add(Entry(due, head.queue_offset, self.schedule.number_of(topic)))

    def _add_recall(self, offset: int, due: int, key: str | None, check: TimerCheck) -> bool:
        """Keep a recall until its message would certainly have been due."""
        until = due + max(TICK_MS_MAX, self._precision_ms) + SLACK_MS
        if key is None or check.covers(offset, until):
            return False
        self.recalls.note(key, offset)
        return self.schedule.add(Entry(until, offset, RECALL))

    async def is_void(self, offset: int, found: bytes, topic: str) -> bool:
        """Whether a message is recalled, or RocketMQ stored a later copy of it."""
        if not self._newest and not self.recalls.any:
            return False
        key = recall_key(found, topic)
        if key is None:
            return False
        return self._newest.get(key, offset) > offset or await self.recalls.holds(key)

    def forget_copies(self, found: bytes, topic: str) -> None:
        """Forget that RocketMQ copied a message forward: it is delivered now."""
        if self._newest:
            self._newest.pop(recall_key(found, topic) or "", None)

    async def lowest_offset(self, end: int) -> int:
        """The offset of the first waiting message; `end` if none waits."""
        async with self.lock:
            pieces = self.schedule.pieces()
        for piece in pieces:
            offsets = (Entry.unpack(number).offset for number in piece)
            end = min(end, min(offsets, default=end))
            await asyncio.sleep(0)
        return end
