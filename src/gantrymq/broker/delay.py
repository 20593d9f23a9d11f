"""Delay levels: messages wait in SCHEDULE_TOPIC_XXXX, one queue a level, until they are due.

A queue entry of that topic carries its due time where others carry the tag hash, so the head of a
level says when to look again. Progress is one offset a level, in delayOffset.json.
"""

import asyncio
import logging

from gantrymq.base.clock import WallClock
from gantrymq.broker.copies import copy_of, real_place, stored
from gantrymq.broker.registry import DelayOffsets
from gantrymq.model import HALF_TOPIC, SCHEDULE_TOPIC
from gantrymq.protocol.record import StoredMessage, decode_records
from gantrymq.store.append import Pulled, PullStatus
from gantrymq.store.engine import Store

log = logging.getLogger(__name__)

BATCH_MAX = 256
BATCH_BYTES_MAX = 4 * 1024 * 1024
RETRY_SECONDS = 1.0


class DelayService:
    """One task a level: sleep until its head is due, deliver, remember how far."""

    def __init__(
        self, store: Store, progress: DelayOffsets, clock: WallClock, levels_ms: tuple[int, ...]
    ) -> None:
        self._store, self._progress, self._clock = store, progress, clock
        self._levels_ms = levels_ms

    async def run(self) -> None:
        """Deliver for ever."""
        async with asyncio.TaskGroup() as tasks:
            for level in range(1, len(self._levels_ms) + 1):
                tasks.create_task(self._run_level(level))

    async def _run_level(self, level: int) -> None:
        while True:
            try:
                await self._store.arrivals(SCHEDULE_TOPIC, level - 1).reach(self._start(level) + 1)
                await self._deliver_due(level)
            except OSError:
                log.exception("delay level %d", level)
                await asyncio.sleep(RETRY_SECONDS)

    def _start(self, level: int) -> int:
        """Where the level goes on: never before what is still there, never beyond the end."""
        at = self._progress.table.get(level, 0)
        queue = level - 1
        at = max(at, self._store.min_offset(SCHEDULE_TOPIC, queue))
        return min(at, self._store.max_offset(SCHEDULE_TOPIC, queue))

    async def _deliver_due(self, level: int) -> None:
        at = self._start(level)
        outcome = self._store.pull(SCHEDULE_TOPIC, level - 1, at, BATCH_MAX, BATCH_BYTES_MAX, None)
        pulled = outcome if isinstance(outcome, Pulled) else await outcome
        if pulled.status is not PullStatus.FOUND:
            if pulled.next_offset > at:
                self._progress.table[level] = pulled.next_offset
            else:
                await asyncio.sleep(RETRY_SECONDS)
            return
        for message in decode_records(pulled.body):
            wait_ms = self._due_ms(message, level) - self._clock.now_ms()
            if wait_ms > 0:
                await asyncio.sleep(wait_ms / 1000)
            await self._deliver(message)
            self._progress.table[level] = message.queue_offset + 1

    def _due_ms(self, message: StoredMessage, level: int) -> int:
        """A clock that went back must not hold a message longer than its delay."""
        delay = self._levels_ms[level - 1]
        return min(message.store_ms + delay, self._clock.now_ms() + delay)

    async def _deliver(self, message: StoredMessage) -> None:
        """Put the message where it was meant to go; try until it is stored.

        It keeps the properties that sent it here, as RocketMQ's does: outside the waiting room
        they have no effect.
        """
        topic, queue_id = real_place(message.properties)
        if not topic or topic == HALF_TOPIC:
            log.error("delayed message at %d has no topic to go to", message.physical_offset)
            return
        while True:
            copy = await stored(self._store, copy_of(message, topic, queue_id))
            if copy.status.is_stored:
                return
            log.warning("delayed message for %s not stored: %s", topic, copy.error)
            await asyncio.sleep(RETRY_SECONDS)
