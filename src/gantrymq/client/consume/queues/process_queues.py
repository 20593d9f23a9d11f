"""All process queues of a consumer: taking, keeping and giving up queues."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, Final

from gantrymq.base.errors import GantryError
from gantrymq.client.consume.membership.consume_stats import ConsumeStats
from gantrymq.client.consume.membership.offset_store import OffsetStore
from gantrymq.client.consume.membership.queue_offsets import start_offset
from gantrymq.client.consume.membership.rebalance import my_queues
from gantrymq.client.consume.membership.setup import Setup
from gantrymq.client.consume.queues.ordered_queue import LOCK_SECONDS_MAX, OrderedProcessQueue
from gantrymq.client.consume.queues.process_queue import ProcessQueue, SendBack
from gantrymq.client.consume.queues.pull_loop import PullLoop
from gantrymq.client.consume.queues.queue_locks import QueueLocks
from gantrymq.client.consume.queues.ready_queues import ReadyQueues
from gantrymq.client.core.consumer_errors import QueueNotAssigned
from gantrymq.client.messages.failures import because
from gantrymq.model import Queue

log = logging.getLogger(__name__)

Shares = Callable[[str], Awaitable[list[Queue] | None]]
"""Which queues of a topic are ours; None: that is not known now."""

PULL_SILENCE_SECONDS_MAX: Final = 120.0
"""A queue that was not pulled for this long is taken afresh."""
DRAIN_SECONDS: Final = 1.0
"""How long an ordered queue that is given away waits for its running batch."""
MOVED_AGAIN_SECONDS: Final = 10.0
"""Pause before a queue whose offset was corrected just now is taken once more."""
UNLOCKED_RETRY_SECONDS: Final = 1.0
"""How soon a queue is tried again whose lock another member still has."""
UNKNOWN_RETRY_SECONDS: Final = 5.0
"""How soon a topic is asked for again that has no route, or a group that nobody knows."""


class ProcessQueues:
    """The process queues of one consumer, by queue."""

    def __init__(
        self,
        setup: Setup,
        ready: ReadyQueues,
        offsets: OffsetStore,
        send_back: SendBack | None,
        *,
        retries_max: int | None,
        spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
        wake: Callable[[], None],
        shares: Shares | None = None,
        total_max: int | None = None,
        commits: bool = True,
    ) -> None:
        self._setup, self._ready, self._offsets = setup, ready, offsets
        self._send_back, self._retries_max = send_back, retries_max
        self._spawn, self._wake = spawn, wake
        self._locks = QueueLocks(setup.instance, setup.group)
        self._shares, self._total_max = shares or self._shared, total_max
        self._commits = commits
        """Whether progress is stored without being asked for."""
        self._stopping = False
        self._pull_loop = PullLoop(
            setup, ready, self._on_moved, self._on_unlocked, self._is_crowded
        )
        self._loop = asyncio.get_running_loop()
        self._leaving: dict[Queue, None] = {}
        self._moved_at: dict[Queue, float] = {}
        self._finished: dict[Queue, int] = {}
        self.held: dict[Queue, ProcessQueue] = {}
        self._paused: dict[Queue, None] = {}
        self.unknown: dict[str, None] = {}
        """Topics whose queues could not be found out at the last look."""
        self.stats = ConsumeStats()
        self.on_change: list[Callable[[list[Queue]], None]] = []

    # rebalance

    async def rebalance(self) -> float | None:
        """Hold exactly the assigned queues. Returns None if settled, else seconds to a retry."""
        if self._stopping:
            return None
        bearable: list[float] = []
        for topic in list(self._setup.subscriptions):
            mine = await self._shares(topic)
            if mine is None:
                self.unknown[topic] = None
                bearable.append(UNKNOWN_RETRY_SECONDS)
            else:
                self.unknown.pop(topic, None)
                bearable += await self._settle(topic, mine)
        strays = [
            process_queue for queue, process_queue in self.held.items() if self._unwanted(queue)
        ]
        await asyncio.gather(*(self.give_up(process_queue) for process_queue in strays))
        return min(bearable) if bearable else None

    async def _shared(self, topic: str) -> list[Queue] | None:
        setup = self._setup
        return await my_queues(
            setup.instance, setup.group, topic, setup.strategy, broadcast=setup.broadcast
        )

    def _is_crowded(self) -> bool:
        """Whether all queues together hold more messages than `total_max`."""
        if self._total_max is None:
            return False
        return (
            sum(process_queue.progress.count for process_queue in self.held.values())
            > self._total_max
        )

    def _unwanted(self, queue: Queue) -> bool:
        return queue.topic not in self._setup.subscriptions

    async def _settle(self, topic: str, mine: list[Queue]) -> list[float]:
        before = list(self.held)
        lost = [
            process_queue
            for queue, process_queue in self.held.items()
            if queue.topic == topic and (queue not in mine or self._is_stuck(process_queue))
        ]
        await asyncio.gather(*(self.give_up(process_queue) for process_queue in lost))
        wanted = [q for q in mine if q not in self.held and q not in self._leaving]
        missing = len(wanted)
        if self._setup.ordered and not self._setup.broadcast and wanted:
            verdicts = await self._locks.lock(wanted)
            wanted = [queue for queue in wanted if verdicts.get(queue)]
        taken = await asyncio.gather(*(self._take(queue) for queue in wanted))
        if before != list(self.held):
            for listener in list(self.on_change):
                listener(sorted(self.held))
        settled = taken.count(True) == missing and not any(q in self._leaving for q in mine)
        return [] if settled else [UNLOCKED_RETRY_SECONDS]

    def _is_stuck(self, process_queue: ProcessQueue) -> bool:
        if process_queue.dropped or self._stopping:
            return False  # is given up already
        silent = self._loop.time() - process_queue.last_pull > PULL_SILENCE_SECONDS_MAX
        ended = process_queue.pulls is not None and process_queue.pulls.done()
        if silent or ended:
            log.error("%s was not pulled any more, taken afresh", process_queue.queue)
        return silent or ended

    async def _take(self, queue: Queue) -> bool:
        setup = self._setup
        try:
            start = await start_offset(
                setup.instance,
                self._offsets,
                queue,
                setup.options.consume_from_where,
                setup.timestamp_ms,
            )
        except GantryError as error:
            log.warning("%s not taken: %s", queue, error)
            return False
        if queue in self.held or self._unwanted(queue) or self._ready.closed:
            return True
        self._hold(queue, max(start, self._finished.pop(queue, start)))
        return True

    def _hold(self, queue: Queue, start: int) -> None:
        process_queue = self._make(queue, start)
        process_queue.paused = queue in self._paused
        process_queue.stats = self.stats.of(queue.topic)
        self.held[queue] = process_queue
        process_queue.pulls = self._spawn(self._pull_loop.run(process_queue))
        log.info("%s takes %s from offset %d", self._setup.group, queue, start)

    def restart(self, queue: Queue, start: int) -> None:
        """Read a held queue from another offset; results of messages that are out are ignored."""
        process_queue = self.held.get(queue)
        if process_queue is None:
            raise QueueNotAssigned(f"{queue} is not held by this consumer")
        process_queue.drop()
        self._hold(queue, start)

    def _make(self, queue: Queue, start: int) -> ProcessQueue:
        if not self._setup.ordered:
            return ProcessQueue(queue, start, self._ready, self._send_back)
        return OrderedProcessQueue(
            queue,
            start,
            self._ready,
            self._send_back,
            retries_max=self._retries_max,
            pause_seconds=self._setup.options.suspend_queue_ms / 1000,
            connected=None if self._setup.broadcast else lambda: self._locks.has_connection(queue),
        )

    # giving up

    async def give_up(
        self, process_queue: ProcessQueue, *, stored_offset: int | None = None
    ) -> None:
        """Stop a queue, wait for its running batch if ordered, store the progress, unlock."""
        queue = process_queue.queue
        if self.held.get(queue) is not process_queue:
            return
        del self.held[queue]
        self._leaving[queue] = None
        process_queue.drop()
        if await process_queue.drain(DRAIN_SECONDS) or self._stopping:
            # At close open messages are redelivered; the progress before them is stored.
            await self._leave(process_queue, stored_offset)
        else:
            log.warning("%s is given up once its running message ends", queue)
            self._spawn(self._leave_late(process_queue, stored_offset))

    async def _leave_late(self, process_queue: ProcessQueue, stored_offset: int | None) -> None:
        """Give up a queue when its running batch ends, at the latest when its lock has expired."""
        try:
            await process_queue.drain(LOCK_SECONDS_MAX)
        finally:
            await self._leave(process_queue, stored_offset)

    async def _leave(self, process_queue: ProcessQueue, stored_offset: int | None) -> None:
        queue = process_queue.queue
        offset = process_queue.progress.done if stored_offset is None else stored_offset
        try:
            if self._commits or stored_offset is not None:
                await self._store_last(queue, offset)
            self._offsets.forget(queue)
            if self._setup.ordered and not self._setup.broadcast:
                await self._locks.unlock([queue])
        finally:
            self._leaving.pop(queue, None)
        log.info("%s gives up %s at offset %d", self._setup.group, queue, offset)

    async def _store_last(self, queue: Queue, offset: int) -> None:
        try:
            await self._offsets.store({queue: offset}, wait=True)
        except GantryError as error:
            log.warning("progress of %s (%d) not stored: %s", queue, offset, error)
            self._finished[queue] = offset

    def _on_moved(self, process_queue: ProcessQueue, offset: int) -> None:
        """The broker answered with another offset, because ours is outside or was reset: use it."""
        log.warning(
            "%s: the broker moves us from offset %d to %d",
            process_queue.queue,
            process_queue.progress.next_offset,
            offset,
        )
        process_queue.dropped = True  # ends the pull loop that called this, without cancelling it
        self._spawn(self._correct(process_queue, offset))

    async def _correct(self, process_queue: ProcessQueue, offset: int) -> None:
        now = self._loop.time()
        last = self._moved_at.get(process_queue.queue)
        self._moved_at[process_queue.queue] = now
        if last is not None and now - last < MOVED_AGAIN_SECONDS:
            await asyncio.sleep(MOVED_AGAIN_SECONDS)
        await self.give_up(process_queue, stored_offset=offset)
        self._wake()

    async def reset(self, offsets: dict[Queue, int]) -> None:
        """Take queues again at offsets that an operator has set."""
        await asyncio.gather(
            *(
                self.give_up(process_queue, stored_offset=offsets[queue])
                for queue, process_queue in list(self.held.items())
                if queue in offsets
            )
        )
        self._wake()

    # keeping

    async def persist(self, *, wait: bool = False) -> None:
        """Store the progress of each queue, except of ordered ones whose lock is not valid."""
        now = self._loop.time()
        done = {
            queue: process_queue.progress.done
            for queue, process_queue in self.held.items()
            if not isinstance(process_queue, OrderedProcessQueue) or process_queue.is_locked(now)
        }
        if done:
            await self._offsets.store(done, wait=wait)

    async def renew_locks(self) -> None:
        """Renew the locks of ordered queues; a queue that lost its lock is given up without storing
        its progress, because that of the new owner counts."""
        if self._setup.broadcast:
            return
        ordered = {q: c for q, c in self.held.items() if isinstance(c, OrderedProcessQueue)}
        fresh = {q: c for q, c in ordered.items() if c.is_locked(self._loop.time())}
        verdicts = await self._locks.lock(fresh)
        for queue, process_queue in ordered.items():
            if verdicts.get(queue):
                process_queue.relocked()
            elif queue not in fresh or queue in verdicts:
                log.warning("the lock of %s is lost", queue)
                self._forfeit(process_queue)

    def _on_unlocked(self, process_queue: ProcessQueue) -> None:
        """The lock was not renewed in time, or the connection is lost: drop the queue."""
        log.warning("the lock of %s is in doubt", process_queue.queue)
        self._forfeit(process_queue)

    def _forfeit(self, process_queue: ProcessQueue) -> None:
        if self.held.get(process_queue.queue) is process_queue:
            process_queue.drop()
            del self.held[process_queue.queue]
            self._leaving[process_queue.queue] = None
            self._spawn(self._forget(process_queue))

    async def _forget(self, process_queue: ProcessQueue) -> None:
        """Wait for the running batch; keep the progress in case the queue is taken again."""
        await process_queue.drain(LOCK_SECONDS_MAX)
        self._offsets.forget(process_queue.queue)
        self._finished[process_queue.queue] = process_queue.progress.done
        self._leaving.pop(process_queue.queue, None)
        self._wake()

    async def expire(self, seconds: float, *, ordered_too: bool) -> None:
        """Send back or redeliver messages handed out over `seconds` ago and not finished."""
        oldest = self._loop.time() - seconds
        for process_queue in list(self.held.values()):
            if self._setup.ordered and not ordered_too:
                continue
            for message in process_queue.progress.open_items:
                started = message.started
                if started is not None and started < oldest and message.finished is None:
                    log.warning("%r was not finished in %g s, delivered again", message, seconds)
                    message.failure = because(f"not finished within {seconds:g} s")
                    await process_queue.expired(message)

    async def close(self) -> None:
        """Give up all queues; a later ack, retry or dead raises Closed."""
        process_queues = list(self.held.values())
        await asyncio.gather(*(self.give_up(process_queue) for process_queue in process_queues))
        close_all(process_queues)

    def pause(self, queues: Iterable[Queue]) -> None:
        """Neither pull nor hand out messages of these queues, also when they are taken later."""
        for queue in queues:
            self._paused[queue] = None
            if queue in self.held:
                self.held[queue].paused = True

    def resume(self, queues: Iterable[Queue]) -> None:
        """End the pause of these queues."""
        for queue in queues:
            self._paused.pop(queue, None)
            if queue in self.held:
                self.held[queue].resume()

    def stop_pulls(self) -> None:
        """Stop pulling; messages that are out can still finish: queues are held until `close`."""
        self._stopping = True
        for process_queue in self.held.values():
            if process_queue.pulls is not None:
                process_queue.pulls.cancel()


def close_all(process_queues: Iterable[ProcessQueue]) -> None:
    for process_queue in process_queues:
        process_queue.closed = True
