"""How far timer messages are delivered, and when that is saved.

The checkpoint is saved only when the delivered copies are durable. After a crash, messages that
were delivered since the last checkpoint may come again; none is lost.
"""

import asyncio
import logging
from typing import Final

from gantrymq.base.clock import WallClock
from gantrymq.broker.waiting.timer.checkpoint import TimerCheck, TimerCheckFile
from gantrymq.broker.waiting.timer.follower import TimerFollower
from gantrymq.broker.waiting.timer.waiting_timers import WaitingTimers
from gantrymq.store.engine import Store

log = logging.getLogger(__name__)

AHEAD_MS_MAX = 3_600_000
"""A clock that goes back by more than this, or damage, makes a time of the future."""
LOWEST_SECONDS: Final = 60.0
"""How often the first waiting message is looked for, which takes a walk over all of them."""


class TimerProgress:
    """Computes the checkpoint and saves it."""

    def __init__(
        self,
        store: Store,
        file: TimerCheckFile,
        clock: WallClock,
        waiting: WaitingTimers,
        follower: TimerFollower,
    ) -> None:
        self._store, self._file, self._clock = store, file, clock
        self._waiting, self._follower = waiting, follower
        self._cuts = store.cuts
        self._check = TimerCheck()
        """The checkpoint in the file."""
        self._low, self._low_at = 0, float("-inf")
        self.has_changed = False

    def load(self, end: int) -> TimerCheck:
        """Read the checkpoint; one beyond the recovered end of the timer topic is pulled back."""
        check = self._file.load()
        if check.offset > end:
            log.warning(
                "timer messages were read up to %d, the queue ends at %d: pulled back",
                check.offset,
                end,
            )
            check = check._replace(offset=end)
        if check.low > check.offset:
            check = check._replace(low=check.offset)
        now_ms = self._clock.now_ms()
        if check.read_ms > now_ms + AHEAD_MS_MAX:
            # What waits until then would count as delivered, and be lost.
            log.error(
                "timercheck says that all is delivered up to a time %d s ahead: it is damaged, or "
                "the clock went back. Timer messages of that time are delivered, perhaps again",
                (check.read_ms - now_ms) // 1000,
            )
            check = check._replace(read_ms=now_ms)
        self._check, self._low = check, check.low
        return check

    async def save(self) -> None:
        """Save the progress, if there is any, once the delivered copies are durable."""
        if not self.has_changed:
            return
        now = asyncio.get_running_loop().time()
        if now - self._low_at >= LOWEST_SECONDS:
            self._low, self._low_at = await self._lowest(), now
        reached, end = self._reached(), self._store.log_max
        self.has_changed = False
        try:
            await self._store.kept.reach(end)
            if self._store.cuts == self._cuts:
                await self._write(reached)
        except BaseException:
            self.has_changed = True
            raise

    async def close(self) -> None:
        """Make the delivered copies durable and save the progress."""
        try:
            await self._store.sync(self._cuts)
            self._low = await self._lowest()
            await self._write(self._reached())
        except OSError as error:
            log.error("progress of timer messages is not saved, some may come twice: %s", error)

    async def _lowest(self) -> int:
        return await self._waiting.lowest_offset(self._follower.read.value)

    def _reached(self) -> TimerCheck:
        """The progress: every message read so far and due until then is delivered."""
        until = max(self._check.read_ms, self._clock.now_ms())
        low = read = self._follower.read.value
        first_due_ms = self._waiting.first_due_ms
        if first_due_ms is not None:
            until, low = min(until, first_due_ms - 1), self._low
        return TimerCheck(until, read, max(low, self._check.low))

    async def _write(self, reached: TimerCheck) -> None:
        counter = self._check.counter + 1
        check = reached._replace(counter=counter, saved_ms=self._clock.now_ms())
        await self._file.save(check)
        self._check = check
