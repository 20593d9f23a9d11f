"""Follows the timer topic: schedules what it holds at a start, then each message that arrives."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from gantrymq.base.plurals import counted
from gantrymq.base.watermark import Watermark
from gantrymq.broker.waiting.timer.checkpoint import TimerCheck
from gantrymq.broker.waiting.timer.delivered import is_rolled
from gantrymq.broker.waiting.timer.timer_queue import TimerQueue
from gantrymq.broker.waiting.timer.waiting_timers import WaitingTimers

log = logging.getLogger(__name__)

READ_MAX: Final = 512
READ_BYTES_MAX: Final = 1024 * 1024
RETRY_SECONDS: Final = 1.0
CLOSING_LOOK_SECONDS: Final = 0.1


class TimerFollower:
    """Reads the timer topic in order; `changed` is called after each read.

    It gets whether one of the new messages is due before all others.
    """

    def __init__(
        self, queue: TimerQueue, waiting: WaitingTimers, changed: Callable[[bool], None]
    ) -> None:
        self._queue, self._waiting, self._changed = queue, waiting, changed
        self.read = Watermark()
        """Up to where the timer topic has been read."""
        self.taken = 0
        """Messages that were read since the start."""
        self.is_closing = False

    async def rebuild(self, check: TimerCheck) -> None:
        """Schedule all messages that the checkpoint does not count as delivered."""
        waiting, end = self._waiting, self._queue.end
        waiting.clear()
        at, replaced = max(self._queue.first, check.low), set[int]()
        while at < end:
            records, after = await self._queue.follow(at, READ_MAX, READ_BYTES_MAX)
            if after == at:
                raise OSError(f"the timer topic cannot be read at {at}")
            for record in records:
                waiting.add(record, check)
                if record.head.prepared_offset > 0 and is_rolled(record.properties):
                    replaced.add(record.head.prepared_offset - 1)
            at = after
            await asyncio.sleep(0)
        waiting.schedule.drop(replaced)
        for _ in waiting.schedule.compact():
            await asyncio.sleep(0)
        self.read = Watermark(max(at, end))
        if len(waiting.schedule):
            log.info("waiting: %s", counted(len(waiting.schedule), "timer message"))

    async def run(self) -> None:
        """Schedule each message that arrives."""
        while True:
            try:
                await self._queue.arrived(self.read.value)
                at = max(self.read.value, self._queue.first)
                records, after = await self._queue.follow(at, READ_MAX, READ_BYTES_MAX)
                if after == at:
                    await asyncio.sleep(RETRY_SECONDS)
                    continue
            except OSError:
                log.exception("timer messages cannot be read, trying again")
                await asyncio.sleep(RETRY_SECONDS)
                continue
            earlier = [self._waiting.add(record) for record in records]
            self.taken += len(records)
            self._changed(any(earlier))
            self.read.advance(after)
            await asyncio.sleep(0)

    async def reach(self, end: int) -> bool:
        """Wait until the timer topic is read up to an offset; False if the broker stops first."""
        while self.read.value < end and not self.is_closing:
            with suppress(TimeoutError):
                async with asyncio.timeout(CLOSING_LOOK_SECONDS):
                    await self.read.reach(end)
        return self.read.value >= end
