"""Delivers timer messages when they are due.

Messages are delivered in slices, so that a hundred thousand at once leave room for live traffic.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from gantrymq.base.background import Background
from gantrymq.base.clock import WallClock
from gantrymq.base.plurals import counted
from gantrymq.broker.stats import BrokerStats
from gantrymq.broker.stored_copies import put_all
from gantrymq.broker.waiting.lateness import CLOCK_LOOK_SECONDS, Lateness
from gantrymq.broker.waiting.timer.delivered import delivered_properties
from gantrymq.broker.waiting.timer.schedule import RECALL, Entry
from gantrymq.broker.waiting.timer.timer_queue import TimerQueue
from gantrymq.broker.waiting.timer.waiting_timers import WaitingTimers
from gantrymq.broker.waiting.waiting_record import WaitingRecord, destination, open_queue
from gantrymq.model import TopicConfig
from gantrymq.store.append import Append
from gantrymq.store.engine import Store

log = logging.getLogger(__name__)

SLICE_MAX: Final = 128
SLICE_BYTES_MAX: Final = 2 * 1024 * 1024
RETRY_SECONDS: Final = 1.0


class TimerTarget:
    """The topics that timer messages are delivered to: copies are stored there and counted."""

    def __init__(self, store: Store, topics: Mapping[str, TopicConfig], stats: BrokerStats) -> None:
        self._store, self._topics, self._stats = store, topics, stats

    def copy(self, record: WaitingRecord, now_ms: int) -> Append:
        """The append of a waiting message to its real topic."""
        topic, queue_id = destination(record.properties)
        stored = delivered_properties(record.properties, record.head.store_ms, now_ms)
        return record.copy(topic, open_queue(self._topics, topic, queue_id), stored)

    async def put(self, copies: Sequence[Append]) -> list[Append]:
        """Store copies; returns those that the store refused."""
        refused = await put_all(self._store, copies)
        self._stats.put_copies(copies, "delay")
        return refused


class TimerDelivery:
    """Sleeps until the first message is due, then stores due messages in their topics.

    `changed` is called after each slice.
    """

    def __init__(
        self,
        queue: TimerQueue,
        waiting: WaitingTimers,
        target: TimerTarget,
        clock: WallClock,
        changed: Callable[[], None],
    ) -> None:
        self._queue, self._waiting, self._target = queue, waiting, target
        self._clock, self._changed = clock, changed
        self.lateness = Lateness()
        self.delivered = 0
        """Messages that were delivered since the start."""
        self._wake = asyncio.Event()
        self._refused = False
        """Whether the store refused a message of the last slice."""
        self._background = Background("timer messages")

    def wake(self) -> None:
        """Look again which message is due first."""
        self._wake.set()

    async def run(self) -> None:
        """Deliver until cancelled; the slice under way goes on then, see `finish`."""
        while True:
            await self._until_due()
            await asyncio.shield(self._background.spawn(self._deliver_slice()))
            if self._refused:
                await asyncio.sleep(RETRY_SECONDS)

    async def finish(self) -> None:
        """Wait for the slice under way."""
        await self._background.finish()

    async def _until_due(self) -> None:
        while True:
            self._wake.clear()
            head_ms, seconds = self._waiting.schedule.head_ms, None
            if head_ms is not None:
                seconds = (head_ms - self._clock.now_ms()) / 1000
                if seconds <= 0:
                    return
                seconds = min(seconds, CLOCK_LOOK_SECONDS)
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._wake.wait()

    async def _deliver_slice(self) -> None:
        """Deliver some of the due messages."""
        waiting = self._waiting
        async with waiting.lock:
            entries = back = waiting.schedule.take(self._clock.now_ms(), SLICE_MAX)
            self._refused = False
            if not entries:
                return
            waiting.in_delivery_ms = entries[0].due_ms
            try:
                back = await self._send(entries)
            except OSError:
                log.exception("due timer messages cannot be read, trying again")
                self._refused = True
            finally:
                for entry in back:
                    waiting.schedule.add(entry)
                waiting.in_delivery_ms = None
                self._changed()

    async def _send(self, entries: Sequence[Entry]) -> list[Entry]:
        """Store messages in their real topics; returns those that still wait."""
        wanted = [entry.offset for entry in entries if entry.topic != RECALL]
        records, looked_at = await self._queue.pick(wanted, SLICE_BYTES_MAX)
        later = set(wanted[looked_at:])
        pairs: list[tuple[Entry, Append]] = []
        for entry in entries:
            if entry.offset not in later:
                copy = await self._copy(entry, records.get(entry.offset))
                if copy is not None:
                    pairs.append((entry, copy))
        refused = {id(copy) for copy in await self._target.put([copy for _, copy in pairs])}
        now_ms = self._clock.now_ms()
        back = [entry for entry in entries if entry.offset in later]
        for entry, copy in pairs:
            if id(copy) in refused:
                back.append(entry)
            else:
                self.lateness.note(now_ms, entry.due_ms)
        self.delivered += len(pairs) - len(refused)
        if self._waiting.delivered is not None:
            gone = {entry.offset for entry in entries} - {entry.offset for entry in back}
            self._waiting.delivered.update(gone)
        if refused:
            log.warning("waiting for the store: %s", counted(len(refused), "timer message"))
        self._refused = bool(refused)
        return back

    async def _copy(self, entry: Entry, record: WaitingRecord | None) -> Append | None:
        """The append to the real topic; None if there is nothing to deliver.

        So it is with a recall, a recalled message, and one that has a later copy.
        """
        waiting = self._waiting
        if entry.topic == RECALL:
            waiting.recalls.forget(entry.offset)
            return None
        if record is None:
            log.error(
                "timer message %d for %s was deleted before it was due",
                entry.offset,
                waiting.schedule.name_of(entry.topic),
            )
            return None
        topic, _ = destination(record.properties)
        if await waiting.is_void(entry.offset, record.properties, topic):
            return None
        waiting.forget_copies(record.properties, topic)
        return self._target.copy(record, self._clock.now_ms())
