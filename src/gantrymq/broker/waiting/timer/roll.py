"""Rolling: copies waiting messages forward before retention deletes their log files.

A copy names the entry that it replaces in its prepared offset (plus one), a field that else only
transactions use, so that a start after a crash counts the message once. Recalls are not copied: a
recall always lies behind its message, and rolling drops a recalled message.
"""

import asyncio
import logging
from typing import Final

from gantrymq.base.plurals import counted
from gantrymq.broker.stored_copies import put_all
from gantrymq.broker.waiting.timer.delivered import rolled_properties
from gantrymq.broker.waiting.timer.intake import QUEUE
from gantrymq.broker.waiting.timer.schedule import RECALL, Entry
from gantrymq.broker.waiting.timer.service import TimerService
from gantrymq.broker.waiting.waiting_record import WaitingRecord, destination
from gantrymq.model import TIMER_TOPIC
from gantrymq.store.append import Append
from gantrymq.store.engine import Store

log = logging.getLogger(__name__)

ROLL_MAX: Final = 128
ROLL_BYTES_MAX: Final = 2 * 1024 * 1024


class Roller:
    """Called by the store before it deletes log files."""

    def __init__(self, timers: TimerService, store: Store, precision_ms: int) -> None:
        self._timers, self._store, self._precision_ms = timers, store, precision_ms
        self.rolled = 0

    async def may_delete(self, upto: int) -> bool:
        """Copy the waiting messages below a log offset; False if that is not possible now."""
        timers = self._timers
        if not timers.is_ready:
            return False
        stop = await self._store.reads.first_offset_at(TIMER_TOPIC, QUEUE, upto)
        if stop > timers.read.value:
            return False  # not all of them are in the schedule yet
        timers.done = set()
        try:
            before, waiting = self.rolled, await self._waiting_below(stop)
            at = 0
            while at < len(waiting):
                moved = await self._roll(waiting[at : at + ROLL_MAX])
                if not moved:
                    return False
                at += moved
            for _ in timers.schedule.compact():
                await asyncio.sleep(0)
            await self._store.sync()
        except OSError as error:
            log.error("waiting messages cannot be copied out of old log files: %s", error)
            return False
        finally:
            timers.done = None
        if self.rolled > before:
            said = counted(self.rolled - before, "waiting message")
            log.info("%s copied out of old log files", said)
        return True

    async def _waiting_below(self, stop: int) -> list[Entry]:
        """The waiting messages before an offset of the timer topic, in log order."""
        async with self._timers.slices:
            pieces = self._timers.schedule.pieces()
        found: list[Entry] = []
        for piece in pieces:
            entries = (Entry.unpack(number) for number in piece)
            found += [entry for entry in entries if entry.offset < stop and entry.topic != RECALL]
            await asyncio.sleep(0)
        return sorted(found, key=lambda entry: entry.offset)

    async def _roll(self, entries: list[Entry]) -> int:
        """Copy a few and drop the originals; returns how many are done, 0 if it failed.

        Delivery is locked out meanwhile, so each message is delivered once: before, or as its copy.
        """
        timers = self._timers
        async with timers.slices:
            assert timers.done is not None
            offsets = [entry.offset for entry in entries]
            records, looked_at = await timers.intake.pick(offsets, ROLL_BYTES_MAX)
            gone, copies = list[int](), list[Append]()
            for entry in entries[:looked_at]:
                if entry.offset in timers.done or entry.offset not in records:
                    continue
                copy = await self._copy(entry, records[entry.offset])
                if copy is None:
                    gone.append(entry.offset)
                else:
                    copies.append(copy)
            refused = await put_all(self._store, copies)
            stored = [copy for copy in copies if copy.status.is_stored]
            end = max((copy.queue_offset + 1 for copy in stored), default=0)
            if not await timers.taken_in(end):
                return 0
            timers.schedule.drop(gone + [copy.prepared_offset - 1 for copy in stored])
            self.rolled += len(stored)
            return 0 if refused else looked_at

    async def _copy(self, entry: Entry, record: WaitingRecord) -> Append | None:
        found = record.properties
        topic, _ = destination(found)
        if await self._timers.is_void(entry.offset, found, topic):
            return None
        stored = rolled_properties(found, entry.due_ms - self._precision_ms)
        copy = record.copy(TIMER_TOPIC, QUEUE, stored)
        copy.prepared_offset = entry.offset + 1
        return copy
