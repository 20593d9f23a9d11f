"""Timer messages: schedules them, delivers each when it is due, and keeps the progress.

Two loops. `follower` reads the timer topic and schedules its messages; at a start it first reads
the messages that the checkpoint does not count as delivered. `delivery` sleeps until the first is
due and delivers it. What waits in between is in `waiting_timers`; `progress` is the checkpoint.
"""

import asyncio
import logging
from collections import deque
from typing import Final

from gantrymq.base.clock import WallClock
from gantrymq.broker.waiting.timer.checkpoint import TimerCheckFile
from gantrymq.broker.waiting.timer.delivery import TimerDelivery, TimerTarget
from gantrymq.broker.waiting.timer.follower import RETRY_SECONDS, TimerFollower
from gantrymq.broker.waiting.timer.progress import TimerProgress
from gantrymq.broker.waiting.timer.timer_queue import TimerQueue
from gantrymq.broker.waiting.timer.waiting_timers import WaitingTimers
from gantrymq.store.engine import Store

log = logging.getLogger(__name__)

SAVE_SECONDS: Final = 1.0
SAMPLES: Final = 11
"""The rates are computed over so many samples: ten seconds."""


class TimerService:
    """The timer messages of a broker."""

    def __init__(
        self,
        store: Store,
        clock: WallClock,
        file: TimerCheckFile,
        target: TimerTarget,
        precision_ms: int,
    ) -> None:
        self._clock = clock
        self.queue, self.waiting = TimerQueue(store), WaitingTimers(precision_ms)
        self.follower = TimerFollower(self.queue, self.waiting, self._on_new)
        self.delivery = TimerDelivery(self.queue, self.waiting, target, clock, self._on_delivered)
        self._progress = TimerProgress(store, file, clock, self.waiting, self.follower)
        self._samples = deque([(asyncio.get_running_loop().time(), 0, 0)], maxlen=SAMPLES)
        """Times with the numbers of messages taken and delivered until then."""
        self.is_ready = False
        """Whether all waiting messages are in the schedule."""

    async def run(self) -> None:
        """Schedule and deliver until cancelled."""
        while not self.is_ready:
            try:
                await self.follower.rebuild(self._progress.load(self.queue.end))
                self.is_ready = True
            except OSError:
                log.exception("waiting timer messages cannot be read yet")
                await asyncio.sleep(RETRY_SECONDS)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.follower.run())
            tasks.create_task(self.delivery.run())

    async def close(self) -> None:
        """Finish the slice under way and save progress."""
        self.follower.is_closing = True
        await self.delivery.finish()
        if self.is_ready:
            await self._progress.close()

    async def save(self) -> None:
        """Save progress once the delivered copies are durable."""
        now = asyncio.get_running_loop().time()
        self._samples.append((now, self.follower.taken, self.delivery.delivered))
        if self.is_ready:
            await self._progress.save()

    def figures(self) -> dict[str, object]:
        """The timer's figures in `brokerStatus`, under RocketMQ's names."""
        head_ms, now_ms = self.waiting.schedule.head_ms, self._clock.now_ms()
        (began, taken, delivered), (last, *_) = self._samples[0], self._samples[-1]
        seconds = max(last - began, SAVE_SECONDS)
        return {
            "timerReadBehind": 0 if head_ms is None else max(0, now_ms - head_ms) // 1000,
            "timerOffsetBehind": max(0, self.queue.end - self.follower.read.value),
            "timerCongestNum": len(self.waiting.schedule),
            "timerEnqueueTps": round((self.follower.taken - taken) / seconds, 1),
            "timerDequeueTps": round((self.delivery.delivered - delivered) / seconds, 1),
        }

    def _on_new(self, is_first: bool) -> None:
        if is_first:
            self.delivery.wake()
        self._progress.has_changed = True

    def _on_delivered(self) -> None:
        self._progress.has_changed = True
