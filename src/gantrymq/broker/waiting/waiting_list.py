"""Lists the waiting messages (GET_WAITING_MESSAGES), which RocketMQ cannot.

It reads many messages, in small steps between which the loop serves other requests.
"""

import asyncio
import heapq
from typing import Final

from gantrymq.base.clock import WallClock
from gantrymq.broker.waiting.delay_levels import DelayService
from gantrymq.broker.waiting.lateness import Lateness
from gantrymq.broker.waiting.timer.schedule import RECALL, Entry
from gantrymq.broker.waiting.timer.service import TimerService
from gantrymq.broker.waiting.waiting_record import WaitingRecord, destination, waiting_records
from gantrymq.kernel import find_property
from gantrymq.model import SCHEDULE_TOPIC
from gantrymq.protocol.ids import offset_msg_id
from gantrymq.protocol.waiting import WaitingMessage, WaitingRoom, WaitingTable, WaitingTopic
from gantrymq.store.append import ReadResult, ReadStatus
from gantrymq.store.engine import Store

SCAN_MAX: Final = 20_000
"""How many messages of a level are looked at; the rest is only counted."""
SCAN_STEP: Final = 256
SCAN_BYTES: Final = 1024 * 1024
NAMED_MAX: Final = 1_000
TIMER: Final = "timer"


class _Look:
    """What one listing has found so far."""

    def __init__(self, topic: str | None, count: int, from_ms: int) -> None:
        self.topic, self.count, self.from_ms = topic, min(max(0, count), NAMED_MAX), from_ms
        self.topics: dict[tuple[str, str], WaitingTopic] = {}
        self.messages: list[WaitingMessage] = []

    def wants(self, topic: str) -> bool:
        return self.topic is None or self.topic == topic

    def add(self, topic: str, room: str, due_ms: int, count: int = 1) -> None:
        row = self.topics.get((topic, room))
        if row is None:
            row = WaitingTopic(topic=topic, room=room, next_due_ms=due_ms)
            self.topics[topic, room] = row
        row.count += count
        row.next_due_ms = min(row.next_due_ms, due_ms)


class WaitingView:
    """Reads the delay levels and the timer."""

    def __init__(
        self,
        store: Store,
        delays: DelayService,
        timers: TimerService,
        clock: WallClock,
        host: bytes,
    ) -> None:
        self._store, self._delays, self._timers = store, delays, timers
        self._clock, self._host = clock, host

    async def look(self, topic: str | None, count: int, from_ms: int) -> WaitingTable:
        """Figures of the levels and the timer; topics and the soonest messages, of one or all."""
        look = _Look(topic, count, from_ms)
        rooms = [await self._level(level, look) for level in self._delays.levels()]
        rooms.append(await self._timer(look))
        messages = sorted(look.messages, key=lambda message: message.due_ms)
        return WaitingTable(
            rooms=[room for room in rooms if room.count or room.delivered],
            topics=sorted(look.topics.values(), key=lambda row: (row.topic, row.room)),
            messages=messages[: look.count],
        )

    async def timers_by_topic(self) -> dict[str, int]:
        """How many timer messages wait in each topic."""
        look = _Look(None, 0, 0)
        await self._timer(look)
        return {topic: row.count for (topic, _), row in sorted(look.topics.items())}

    def _room(self, name: str, count: int, next_ms: int, lateness: Lateness) -> WaitingRoom:
        overdue = max(0, self._clock.now_ms() - next_ms) if count else 0
        return WaitingRoom(
            room=name,
            count=count,
            next_due_ms=next_ms if count else 0,
            overdue_ms=overdue,
            delivered=lateness.count,
            last_late_ms=lateness.last_ms,
            max_late_ms=lateness.max_ms,
        )

    def _message(self, record: WaitingRecord, room: str, due_ms: int) -> WaitingMessage:
        found = record.properties
        unique, keys, tags = (
            (find_property(found, name) or b"").decode("utf-8", "replace")
            for name in (b"UNIQ_KEY", b"KEYS", b"TAGS")
        )
        own_id = offset_msg_id(self._host, record.head.physical_offset)
        return WaitingMessage(
            msg_id=unique or own_id,
            topic=destination(found)[0],
            keys=keys.split(),
            tags=tags or None,
            due_ms=due_ms,
            room=room,
        )

    # levels

    async def _level(self, level: int, look: _Look) -> WaitingRoom:
        at = self._delays.position(level)
        end = self._store.queues.max_offset(SCHEDULE_TOPIC, level - 1)
        count, scanned, name, next_ms = max(0, end - at), 0, f"level {level}", 0
        named: list[WaitingMessage] = []
        while at < end and scanned < SCAN_MAX:
            outcome = self._store.reads.pull(SCHEDULE_TOPIC, level - 1, at, SCAN_STEP, SCAN_BYTES)
            pulled = outcome if isinstance(outcome, ReadResult) else await outcome
            if pulled.status is not ReadStatus.FOUND:
                break
            for record in waiting_records(pulled.body):
                due_ms = self._delays.due_ms(record.head.store_ms, level)
                next_ms = next_ms or due_ms
                topic = destination(record.properties)[0]
                if look.wants(topic):
                    look.add(topic, name, due_ms)
                    if len(named) < look.count and due_ms >= look.from_ms:
                        named.append(self._message(record, name, due_ms))
            scanned += pulled.next_offset - at
            at = pulled.next_offset
            await asyncio.sleep(0)
        look.messages += named
        room = self._room(name, count, next_ms, self._delays.lateness[level])
        room.uncounted = max(0, end - at)
        return room

    # timer

    async def _timer(self, look: _Look) -> WaitingRoom:
        schedule, recalls = self._timers.waiting.schedule, self._timers.waiting.recalls
        next_ms, soonest, count = schedule.head_ms or 0, list[int](), 0
        for piece in schedule.pieces():
            wanted: list[int] = []
            for number in piece:
                entry = Entry.unpack(number)
                if entry.topic == RECALL:
                    continue
                count += 1
                topic = schedule.name_of(entry.topic)
                if look.wants(topic):
                    look.add(topic, TIMER, entry.due_ms)
                    if entry.due_ms >= look.from_ms:
                        wanted.append(number)
            soonest = heapq.nsmallest(look.count, soonest + wanted)
            await asyncio.sleep(0)
        await self._name(look, [Entry.unpack(number) for number in soonest])
        for (topic, room), row in list(look.topics.items()):
            if room == TIMER:
                recalled = recalls.count(topic)
                row.count, count = row.count - recalled, count - recalled
                if row.count <= 0:
                    del look.topics[topic, room]
                await asyncio.sleep(0)
        return self._room(TIMER, max(0, count), next_ms, self._timers.delivery.lateness)

    async def _name(self, look: _Look, entries: list[Entry]) -> None:
        while entries:
            records, looked_at = await self._timers.queue.pick(
                [entry.offset for entry in entries], SCAN_BYTES
            )
            for entry in entries[:looked_at]:
                record = records.get(entry.offset)
                if record is None:
                    continue
                topic = destination(record.properties)[0]
                if not await self._timers.waiting.is_void(entry.offset, record.properties, topic):
                    look.messages.append(self._message(record, TIMER, entry.due_ms))
            entries = entries[looked_at:]
