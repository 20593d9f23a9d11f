"""Moves delayed messages to the timer when retention deletes their log file before they are due.

A level's delay counts from the store time, so a copy in the level would wait again; in the timer it
keeps its time.
"""

import logging
from typing import Final

from gantrymq.base.plurals import counted
from gantrymq.broker.stored_copies import put_all
from gantrymq.broker.waiting.delay_levels import DelayService
from gantrymq.broker.waiting.timer.delivered import with_out_ms
from gantrymq.broker.waiting.timer.intake import QUEUE
from gantrymq.broker.waiting.waiting_record import waiting_records
from gantrymq.model import SCHEDULE_TOPIC, TIMER_TOPIC
from gantrymq.store.append import Append, ReadResult, ReadStatus
from gantrymq.store.engine import Store

log = logging.getLogger(__name__)

MOVE_MAX: Final = 128
MOVE_BYTES_MAX: Final = 2 * 1024 * 1024


class LevelMover:
    """Called by the store before it deletes log files."""

    def __init__(self, delays: DelayService, store: Store, precision_ms: int) -> None:
        self._delays, self._store, self._precision_ms = delays, store, precision_ms

    async def may_delete(self, upto: int) -> bool:
        """Move the waiting messages below a log offset; False if that is not possible now."""
        moved = 0
        for level in self._delays.levels():
            stop = await self._store.reads.first_offset_at(SCHEDULE_TOPIC, level - 1, upto)
            if self._delays.position(level) >= stop:
                continue
            await self._delays.pause(level)
            try:
                while (at := self._delays.position(level)) < stop:
                    after = await self._move(level, at, stop)
                    if after == at:
                        return False
                    self._delays.skip_to(level, after)
                    moved += after - at
            except OSError as error:
                log.error("delayed messages cannot be moved out of old log files: %s", error)
                return False
            finally:
                self._delays.resume(level)
        if moved:
            await self._store.sync()
            said = counted(moved, "delayed message")
            log.info("%s moved to the timer, log files that held them go", said)
        return True

    async def _move(self, level: int, at: int, stop: int) -> int:
        """Move a few messages from an offset on; returns the next offset."""
        count = min(MOVE_MAX, stop - at)
        outcome = self._store.reads.pull(SCHEDULE_TOPIC, level - 1, at, count, MOVE_BYTES_MAX)
        pulled = outcome if isinstance(outcome, ReadResult) else await outcome
        if pulled.status is not ReadStatus.FOUND:
            return max(at, pulled.next_offset)
        copies, after = list[Append](), pulled.next_offset
        for record in waiting_records(pulled.body):
            due_ms = self._delays.due_ms(record.head.store_ms, level)
            stored = with_out_ms(record.properties, due_ms - self._precision_ms)
            if stored is None:  # no room: its file must stay until it is due
                after = record.head.queue_offset
                break
            copies.append(record.copy(TIMER_TOPIC, QUEUE, stored))
        return at if await put_all(self._store, copies) else after
