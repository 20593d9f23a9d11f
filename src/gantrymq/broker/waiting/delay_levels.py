"""Delay levels: messages wait in SCHEDULE_TOPIC_XXXX, one queue a level, until they are due.

All messages of a level have the same delay, so its head is always due first and its progress is one
offset, in delayOffset.json. Progress is saved only when the delivered copies are durable: after a
power cut some messages may come twice, but none is lost.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from gantrymq.base.background import Background
from gantrymq.base.clock import WallClock
from gantrymq.base.plurals import counted
from gantrymq.broker.stats import BrokerStats
from gantrymq.broker.stored_copies import put_all
from gantrymq.broker.tables.registry import DelayOffsets
from gantrymq.broker.waiting.lateness import CLOCK_LOOK_SECONDS, Lateness
from gantrymq.broker.waiting.waiting_record import (
    WaitingRecord,
    destination,
    open_queue,
    waiting_records,
)
from gantrymq.model import HALF_TOPIC, SCHEDULE_TOPIC, TopicConfig
from gantrymq.store.append import Append, ReadResult, ReadStatus
from gantrymq.store.engine import Store

log = logging.getLogger(__name__)

BATCH_MAX: Final = 256
BATCH_BYTES_MAX: Final = 4 * 1024 * 1024
RETRY_SECONDS: Final = 1.0


class DelayService:
    """One task a level: sleeps until its head is due, delivers due messages, keeps progress."""

    def __init__(
        self,
        store: Store,
        progress: DelayOffsets,
        clock: WallClock,
        levels_ms: tuple[int, ...],
        topics: Mapping[str, TopicConfig],
        stats: BrokerStats,
    ) -> None:
        self._store, self._progress, self._clock = store, progress, clock
        self._cuts = store.cuts
        self._levels_ms, self._topics, self._stats = levels_ms, topics, stats
        self._seen: dict[int, tuple[int, float]] = {}
        """Where a level's queue ended at a moment of the loop's own time."""
        self._runs = Background("delay levels")
        self._tasks: dict[int, asyncio.Task[None]] = {}
        """The task of each level that is not paused."""
        self._deliveries: dict[int, Background] = {}
        """The batches under way, by level."""
        self._running = self._closing = False
        self._changed = asyncio.Event()
        """Set, and replaced, when there is another table."""
        self.lateness = {level: Lateness() for level in self.levels()}

    def set_levels(self, levels_ms: tuple[int, ...]) -> None:
        """Take new delays; waiting messages are due by the new ones, as after a restart."""
        if levels_ms == self._levels_ms:
            return
        before, self._levels_ms = self.levels(), levels_ms
        for level in self.levels()[len(before) :]:
            self.lateness[level] = Lateness()
            self.resume(level)
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def levels(self) -> range:
        """All levels of the settings, and higher ones that still have messages."""
        used = max(self._store.queues.ids(SCHEDULE_TOPIC), default=-1) + 1
        return range(1, max(len(self._levels_ms), used) + 1)

    def position(self, level: int) -> int:
        """The offset that a level delivers next."""
        return self._progress.table.get(level, 0)

    def due_ms(self, store_ms: int, level: int) -> int:
        """When a message is due, in ms of wall clock time."""
        return store_ms + self._delay_ms(level)

    def _delay_ms(self, level: int) -> int:
        return self._levels_ms[min(level, len(self._levels_ms)) - 1]

    # start and stop

    async def run(self) -> None:
        """Deliver until cancelled."""
        await self._wait_for_deliveries()  # of a run that failed
        for level in self.levels():
            self._clamp(level)
        self._running = True
        try:
            for level in self.levels():
                self.resume(level)
            await asyncio.Event().wait()  # levels may be paused, and none ends by itself
        finally:
            self._running = False
            await self._runs.close()

    async def pause(self, level: int) -> None:
        """Deliver nothing of a level until `resume`."""
        task = self._tasks.pop(level, None)
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        if level in self._deliveries:
            await self._deliveries[level].wait()

    def resume(self, level: int) -> None:
        """Deliver what is due of a level, from now on."""
        if self._running and not self._closing:
            self._tasks[level] = self._runs.spawn(self._run_level(level))

    async def _wait_for_deliveries(self) -> None:
        for deliveries in list(self._deliveries.values()):
            await deliveries.wait()

    def skip_to(self, level: int, offset: int) -> None:
        """Move the progress of a paused level over messages that went to the timer."""
        self._progress.table[level] = offset

    def _clamp(self, level: int) -> None:
        """Move progress into the queue: retention or a crash may have moved its ends."""
        at, queue = self.position(level), level - 1
        low = self._store.queues.min_offset(SCHEDULE_TOPIC, queue)
        start = min(max(at, low), self._store.queues.max_offset(SCHEDULE_TOPIC, queue))
        if start != at:
            log.warning("delay level %d stood at %d, goes on at %d", level, at, start)
            self._progress.table[level] = start

    async def save(self) -> None:
        """Save progress once the delivered copies are durable."""
        reached, end = dict(self._progress.table), self._store.log_max
        await self._store.kept.reach(end)
        if self._store.cuts == self._cuts:
            await self._progress.save(reached)

    async def close(self) -> None:
        """Finish the batches under way and save progress."""
        self._closing = True
        await self._wait_for_deliveries()
        try:
            await self._store.sync(self._cuts)
            await self._progress.save(dict(self._progress.table))
        except OSError as error:
            log.error("progress of the delay levels is not saved, some may come twice: %s", error)
            self._progress.withdraw()  # a raft member may lead again, and had no majority

    # one level

    async def _run_level(self, level: int) -> None:
        while True:
            try:
                arrivals = self._store.queues.arrivals(SCHEDULE_TOPIC, level - 1)
                await arrivals.reach(self.position(level) + 1)
                await self._deliver_some(level)
            except Exception:  # one bad message must not stop the other levels
                log.exception("delay level %d", level)
                await asyncio.sleep(RETRY_SECONDS)

    async def _deliver_some(self, level: int) -> None:
        at = self.position(level)
        outcome = self._store.reads.pull(SCHEDULE_TOPIC, level - 1, at, BATCH_MAX, BATCH_BYTES_MAX)
        pulled = outcome if isinstance(outcome, ReadResult) else await outcome
        if pulled.status is not ReadStatus.FOUND:
            if pulled.next_offset > at:
                log.error("delay level %d lost %d to %d", level, at, pulled.next_offset)
                self._progress.table[level] = pulled.next_offset
            else:
                await asyncio.sleep(RETRY_SECONDS)
            return
        records = waiting_records(pulled.body)
        self._look(level)
        while records:
            due = self._count_due(records, level)
            if due:
                await self._finish(level, records[:due])
                records = records[due:]
            else:
                await self._sleep(self._rest(records[0], level))
        self._progress.table[level] = max(self.position(level), pulled.next_offset)

    async def _sleep(self, seconds: float) -> None:
        """Sleep until a message may be due, or the levels change."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._changed.wait()

    def _look(self, level: int) -> None:
        """Note when messages were seen: from then on none waits longer than its delay.

        So a wall clock that is set back does not delay them.
        """
        if self.position(level) >= self._seen.get(level, (0, 0.0))[0]:
            end = self._store.queues.max_offset(SCHEDULE_TOPIC, level - 1)
            self._seen[level] = end, asyncio.get_running_loop().time()

    def _count_due(self, records: Sequence[WaitingRecord], level: int) -> int:
        for count, record in enumerate(records):
            if self._rest(record, level) > 0:
                return count
        return len(records)

    def _rest(self, record: WaitingRecord, level: int) -> float:
        """Seconds to sleep for a message, by wall clock or by loop time, at most 10 s."""
        head, (end, seen_at) = record.head, self._seen[level]
        rest = (self.due_ms(head.store_ms, level) - self._clock.now_ms()) / 1000
        if head.queue_offset < end:
            passed = asyncio.get_running_loop().time() - seen_at
            rest = min(rest, self._delay_ms(level) / 1000 - passed)
        return min(rest, CLOCK_LOOK_SECONDS)

    async def _finish(self, level: int, records: Sequence[WaitingRecord]) -> None:
        """Deliver in a task that a stop waits for: half a batch would come twice."""
        if level not in self._deliveries:
            self._deliveries[level] = Background(f"delay level {level}")
        await asyncio.shield(self._deliveries[level].spawn(self._deliver(level, records)))

    async def _deliver(self, level: int, records: Sequence[WaitingRecord]) -> None:
        """Store messages in their real topics, in order; retry until they are stored.

        They keep their delay properties, as in RocketMQ; outside the system topic these have no
        effect.
        """
        copies = [copy for copy in map(self._copy, records) if copy is not None]
        left = copies
        while left:
            left = await put_all(self._store, left)
            if left:
                said = counted(len(left), "delayed message")
                log.warning("waiting for the store: %s: %s", said, left[0].error)
                await asyncio.sleep(RETRY_SECONDS)
                if self._closing:
                    return
        self._stats.put_copies(copies, "delay")
        now_ms, lateness = self._clock.now_ms(), self.lateness[level]
        for record in records:
            lateness.note(now_ms, self.due_ms(record.head.store_ms, level))
        self._progress.table[level] = records[-1].head.queue_offset + 1

    def _copy(self, record: WaitingRecord) -> Append | None:
        found = record.properties
        topic, queue_id = destination(found)
        if not topic or topic == HALF_TOPIC:
            at = record.head.physical_offset
            log.error("the delayed message at %d has no topic to go to", at)
            return None
        return record.copy(topic, open_queue(self._topics, topic, queue_id), found)
