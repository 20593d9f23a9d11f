"""Timer messages: schedules them, delivers each when it is due, and keeps the progress.

Two loops. One follows the timer topic and schedules its messages; at a start it first reads the
messages that the checkpoint does not count as delivered. The other sleeps until the first is due
and delivers in slices, so that a hundred thousand at once leave room for live traffic.

The checkpoint is saved only when the delivered copies are durable. After a crash, messages that
were delivered since the last checkpoint may come again; none is lost.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from gantrymq.base.clock import WallClock
from gantrymq.base.disk import Disk
from gantrymq.base.offload import Offload
from gantrymq.base.plurals import counted
from gantrymq.base.watermark import Watermark
from gantrymq.broker.stats import BrokerStats
from gantrymq.broker.stored_copies import put_all
from gantrymq.broker.waiting.lateness import CLOCK_LOOK_SECONDS, Lateness
from gantrymq.broker.waiting.timer.checkpoint import TimerCheck, load_check, save_check
from gantrymq.broker.waiting.timer.delivered import delivered_properties, is_rolled
from gantrymq.broker.waiting.timer.intake import Intake
from gantrymq.broker.waiting.timer.recalls import Recalls, recall_key, recalled_key
from gantrymq.broker.waiting.timer.schedule import RECALL, Entry, Schedule
from gantrymq.broker.waiting.timer.times import SLACK_MS, TICK_MS_MAX, due_ms
from gantrymq.broker.waiting.waiting_record import WaitingRecord, destination, open_queue
from gantrymq.kernel import find_property
from gantrymq.model import HALF_TOPIC, TopicConfig
from gantrymq.store.append import Append
from gantrymq.store.engine import Store

log = logging.getLogger(__name__)

READ_MAX: Final = 512
READ_BYTES_MAX: Final = 1024 * 1024
SLICE_MAX: Final = 128
SLICE_BYTES_MAX: Final = 2 * 1024 * 1024
RETRY_SECONDS: Final = 1.0
SAVE_SECONDS: Final = 1.0
SAMPLES: Final = 11
"""Behind the rates: ten seconds."""
LOWEST_SECONDS: Final = 60.0
CLOSING_LOOK_SECONDS: Final = 0.1


class TimerService:
    """The schedule of all timer messages, and their delivery."""

    def __init__(
        self,
        store: Store,
        disk: Disk,
        offload: Offload,
        clock: WallClock,
        *,
        path: str,
        precision_ms: int,
        topics: Mapping[str, TopicConfig],
        stats: BrokerStats,
    ) -> None:
        self._store, self._disk, self._offload, self._clock = store, disk, offload, clock
        self._path, self._precision_ms, self._topics = path, precision_ms, topics
        self._stats = stats
        self.intake = Intake(store)
        self.schedule, self.recalls, self.lateness = Schedule(), Recalls(), Lateness()
        self.read = Watermark()
        """Up to where the intake queue has been read."""
        self.taken = self.delivered = 0
        self._samples = deque([(asyncio.get_running_loop().time(), 0, 0)], maxlen=SAMPLES)
        self.slices = asyncio.Lock()
        """Held while entries are out of the schedule or being replaced."""
        self.done: set[int] | None = None
        """What was delivered since somebody began to copy waiting messages."""
        self._newest: dict[str, int] = {}
        """Messages that RocketMQ copied forward, and the last copy of each."""
        self._check = TimerCheck()
        self._flying_ms: int | None = None
        self._low, self._low_at = 0, float("-inf")
        self._changed = self._closing = False
        self._wake, self._ready = asyncio.Event(), asyncio.Event()
        self._slice: asyncio.Task[bool] | None = None

    # start and stop

    async def run(self) -> None:
        """Schedule and deliver until cancelled."""
        while not self._ready.is_set():
            try:
                await self._rebuild()
                self._ready.set()
            except OSError:
                log.exception("waiting timer messages cannot be read yet")
                await asyncio.sleep(RETRY_SECONDS)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow())
            tasks.create_task(self._deliver())

    @property
    def is_ready(self) -> bool:
        """Whether all waiting messages are in the schedule."""
        return self._ready.is_set()

    async def taken_in(self, end: int) -> bool:
        """Wait until the timer topic is read up to an offset; False if the broker stops first."""
        while self.read.value < end and not self._closing:
            with suppress(TimeoutError):
                async with asyncio.timeout(CLOSING_LOOK_SECONDS):
                    await self.read.reach(end)
        return self.read.value >= end

    async def close(self) -> None:
        """Finish the slice under way and save progress."""
        self._closing = True
        if self._slice is not None:
            await asyncio.wait([self._slice])
        if not self.is_ready:
            return
        try:
            await self._store.sync()
            self._low = await self._lowest()
            await self._write(self._reached())
        except OSError as error:
            log.error("progress of timer messages is not saved, some may come twice: %s", error)

    async def save(self) -> None:
        """Save progress once the delivered copies are durable."""
        self._samples.append((asyncio.get_running_loop().time(), self.taken, self.delivered))
        if not self._changed or not self.is_ready:
            return
        now = asyncio.get_running_loop().time()
        if now - self._low_at >= LOWEST_SECONDS:
            self._low, self._low_at = await self._lowest(), now
        reached, end = self._reached(), self._store.log_max
        self._changed = False
        try:
            await self._store.flushed.reach(end)
            await self._write(reached)
        except BaseException:
            self._changed = True
            raise

    def figures(self) -> dict[str, object]:
        """The timer's figures in `brokerStatus`, under RocketMQ's names."""
        head_ms, now_ms = self.schedule.head_ms, self._clock.now_ms()
        (began, taken, delivered), (last, *_) = self._samples[0], self._samples[-1]
        seconds = max(last - began, SAVE_SECONDS)
        return {
            "timerReadBehind": 0 if head_ms is None else max(0, now_ms - head_ms) // 1000,
            "timerOffsetBehind": max(0, self.intake.end - self.read.value),
            "timerCongestNum": len(self.schedule),
            "timerEnqueueTps": round((self.taken - taken) / seconds, 1),
            "timerDequeueTps": round((self.delivered - delivered) / seconds, 1),
        }

    async def _write(self, reached: TimerCheck) -> None:
        counter = self._check.counter + 1
        check = reached._replace(counter=counter, saved_ms=self._clock.now_ms())
        await self._offload.run(save_check, self._disk, self._path, check)
        self._check = check

    def _reached(self) -> TimerCheck:
        """The progress: every message read so far and due until then is delivered."""
        until = max(self._check.read_ms, self._clock.now_ms())
        for waiting in (self.schedule.head_ms, self._flying_ms):
            if waiting is not None:
                until = min(until, waiting - 1)
        low = self._low if len(self.schedule) or self._flying_ms is not None else self.read.value
        return TimerCheck(until, self.read.value, max(low, self._check.low))

    async def _lowest(self) -> int:
        """The offset of the first waiting message; the end of what was read if none waits."""
        async with self.slices:
            lowest, pieces = self.read.value, self.schedule.pieces()
        for piece in pieces:
            offsets = (Entry.unpack(number).offset for number in piece)
            lowest = min(lowest, min(offsets, default=lowest))
            await asyncio.sleep(0)
        return lowest

    # taking in

    async def _rebuild(self) -> None:
        """Schedule all waiting messages. Progress beyond the recovered queue end is pulled back."""
        check = load_check(self._disk, self._path)
        first, end = self.intake.first, self.intake.end
        if check.offset > end:
            log.warning(
                "timer messages were read up to %d, the queue ends at %d: pulled back",
                check.offset,
                end,
            )
            check = check._replace(offset=end)
        if check.low > check.offset:
            check = check._replace(low=check.offset)
        self._check, self._low = check, check.low
        self.schedule, self.recalls, self._newest = Schedule(), Recalls(), {}
        at, replaced = max(first, check.low), set[int]()
        while at < end:
            records, after = await self.intake.follow(at, READ_MAX, READ_BYTES_MAX)
            if after == at:
                raise OSError(f"the timer topic cannot be read at {at}")
            for record in records:
                self._take(record)
                if record.head.prepared_offset > 0 and is_rolled(record.properties):
                    replaced.add(record.head.prepared_offset - 1)
            at = after
            await asyncio.sleep(0)
        self.schedule.drop(replaced)
        for _ in self.schedule.compact():
            await asyncio.sleep(0)
        self.read = Watermark(max(at, end))
        if len(self.schedule):
            log.info("waiting: %s", counted(len(self.schedule), "timer message"))

    async def _follow(self) -> None:
        while True:
            try:
                await self.intake.arrived(self.read.value)
                at = max(self.read.value, self.intake.first)
                records, after = await self.intake.follow(at, READ_MAX, READ_BYTES_MAX)
                if after == at:
                    await asyncio.sleep(RETRY_SECONDS)
                    continue
            except OSError:
                log.exception("timer messages cannot be read, trying again")
                await asyncio.sleep(RETRY_SECONDS)
                continue
            earlier = [self._take(record) for record in records]
            if any(earlier):
                self._wake.set()
            self.taken += len(records)
            self._changed = True
            self.read.advance(after)
            await asyncio.sleep(0)

    def _take(self, record: WaitingRecord) -> bool:
        """Schedule one message of the timer topic; True if it is due before all others."""
        head, found = record.head, record.properties
        due = due_ms(found, head.store_ms, self._precision_ms)
        topic = destination(found)[0]
        if due is None or not topic or topic == HALF_TOPIC:
            log.error("the timer message at %d says no time or no topic", head.physical_offset)
            return False
        if find_property(found, b"TIMER_DEL_UNIQKEY") is not None:
            return self._take_recall(head.queue_offset, due, recalled_key(found, topic))
        if self._is_done(head.queue_offset, due):
            return False
        if head.prepared_offset <= 0 and is_rolled(found):
            key = recall_key(found, topic)
            if key is not None:
                self._newest[key] = head.queue_offset
        return self.schedule.add(Entry(due, head.queue_offset, self.schedule.number_of(topic)))

    def _take_recall(self, offset: int, due: int, key: str | None) -> bool:
        """Keep a recall until its message would certainly have been due."""
        until = due + max(TICK_MS_MAX, self._precision_ms) + SLACK_MS
        if key is None or self._is_done(offset, until):
            return False
        self.recalls.note(key, offset)
        return self.schedule.add(Entry(until, offset, RECALL))

    def _is_done(self, offset: int, due: int) -> bool:
        return offset < self._check.offset and due <= self._check.read_ms and not self.is_ready

    # delivering

    async def _deliver(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._until_due()
            self._slice = loop.create_task(self._deliver_slice())
            if not await asyncio.shield(self._slice):
                await asyncio.sleep(RETRY_SECONDS)

    async def _until_due(self) -> None:
        while True:
            self._wake.clear()
            head_ms, seconds = self.schedule.head_ms, None
            if head_ms is not None:
                seconds = (head_ms - self._clock.now_ms()) / 1000
                if seconds <= 0:
                    return
                seconds = min(seconds, CLOCK_LOOK_SECONDS)
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._wake.wait()

    async def _deliver_slice(self) -> bool:
        """Deliver some of the due messages; False if the store refused any."""
        async with self.slices:
            entries = self.schedule.take(self._clock.now_ms(), SLICE_MAX)
            if not entries:
                return True
            self._flying_ms, back = entries[0].due_ms, entries
            try:
                back, refused = await self._send(entries)
            except OSError:
                log.exception("due timer messages cannot be read, trying again")
                refused = True
            finally:
                for entry in back:
                    self.schedule.add(entry)
                self._flying_ms, self._changed = None, True
            return not refused

    async def _send(self, entries: Sequence[Entry]) -> tuple[list[Entry], bool]:
        """Store messages in their real topics; returns those left, and True if any was refused."""
        wanted = [entry.offset for entry in entries if entry.topic != RECALL]
        records, looked_at = await self.intake.pick(wanted, SLICE_BYTES_MAX)
        later = set(wanted[looked_at:])
        chosen = [entry for entry in entries if entry.offset not in later]
        pairs: list[tuple[Entry, Append]] = []
        for entry in chosen:
            if entry.topic == RECALL:
                self.recalls.forget(entry.offset)
            elif entry.offset not in records:
                log.error(
                    "timer message %d for %s was deleted before it was due",
                    entry.offset,
                    self.schedule.name_of(entry.topic),
                )
            elif (copy := await self._copy(entry, records[entry.offset])) is not None:
                pairs.append((entry, copy))
        refused = {id(copy) for copy in await put_all(self._store, [copy for _, copy in pairs])}
        now_ms = self._clock.now_ms()
        back = [entry for entry in entries if entry.offset in later]
        for entry, copy in pairs:
            if id(copy) in refused:
                back.append(entry)
            else:
                self.lateness.note(now_ms, entry.due_ms)
        self.delivered += len(pairs) - len(refused)
        self._stats.put_copies(copy for _, copy in pairs)
        if self.done is not None:
            self.done.update({entry.offset for entry in entries} - {e.offset for e in back})
        if refused:
            log.warning("waiting for the store: %s", counted(len(refused), "timer message"))
        return back, bool(refused)

    async def _copy(self, entry: Entry, record: WaitingRecord) -> Append | None:
        """The append to the real topic; None if the message was recalled or has a later copy."""
        found = record.properties
        topic, queue_id = destination(found)
        if await self.is_void(entry.offset, found, topic):
            return None
        if self._newest:
            self._newest.pop(recall_key(found, topic) or "", None)
        stored = delivered_properties(found, record.head.store_ms, self._clock.now_ms())
        return record.copy(topic, open_queue(self._topics, topic, queue_id), stored)

    async def is_void(self, offset: int, found: bytes, topic: str) -> bool:
        """Whether a message is recalled, or RocketMQ stored a later copy of it."""
        if not self._newest and not self.recalls.any:
            return False
        key = recall_key(found, topic)
        if key is None:
            return False
        return self._newest.get(key, offset) > offset or await self.recalls.holds(key)
