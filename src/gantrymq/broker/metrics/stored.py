"""Metrics of the store, of its copies, and of messages that wait for their time."""

import asyncio
from typing import Final

from gantrymq.base.clock import WallClock
from gantrymq.broker.waiting.timer.service import TimerService
from gantrymq.metrics import table
from gantrymq.metrics.metric import Row, Samples
from gantrymq.protocol.record import decode_record
from gantrymq.replication.group.node import RaftNode
from gantrymq.replication.ha.in_sync import InSyncSlaves
from gantrymq.store.engine import Store

LOCAL_DISK: Final = ("local", "disk")
"""RocketMQ's storage_type and storage_medium of a store that is not tiered."""


class StoreMetrics:
    """Sizes, and what is behind."""

    def __init__(self, store: Store, clock: WallClock) -> None:
        self._store, self._clock = store, clock

    async def collect(self) -> Samples:
        store, usage = self._store, self._store.usage
        free, ratio = usage["disk_free_bytes"], usage["disk_used_ratio"]
        used = free / (1 - ratio) - free if ratio < 1 else 0
        yield table.STORAGE_SIZE, [(LOCAL_DISK, int(used))]
        yield table.FLUSH_BEHIND, [(LOCAL_DISK, store.log_max - store.flushed.value)]
        yield table.DISPATCH_BEHIND, [(LOCAL_DISK, store.dispatch_behind_bytes)]
        first = await store.reads.message_at(store.log_min)
        if first is not None:
            age_ms = max(0, self._clock.now_ms() - decode_record(first).store_ms)
            yield table.RESERVE_TIME, [(LOCAL_DISK, age_ms)]
        yield table.FLUSH_SECONDS, [((), store.flush_seconds)]
        yield table.DISK_FREE, [((), int(free))]
        yield table.DISK_USED, [((), usage["log_disk_used_ratio"])]
        yield table.LOG_BYTES, [((), int(usage["log_bytes"]))]
        yield table.LOG_END, [((), store.log_max)]
        yield table.WRITABLE, [((), int(store.writable is None))]


class TimerMetrics:
    """Messages with a delivery time of their own."""

    def __init__(self, timers: TimerService, clock: WallClock) -> None:
        self._timers, self._clock = timers, clock

    async def collect(self) -> Samples:
        timers, due_ms = self._timers, self._timers.waiting.first_due_ms
        late_ms = 0 if due_ms is None else max(0, self._clock.now_ms() - due_ms)
        not_taken = max(0, timers.queue.end - timers.follower.read.value)
        yield table.TIMER_ENQUEUE_LAG, [(LOCAL_DISK, not_taken)]
        yield table.TIMER_DEQUEUE_LAG, [(LOCAL_DISK, int(late_ms > 0))]
        yield table.TIMER_DEQUEUE_LATENCY, [(LOCAL_DISK, late_ms)]
        yield table.TIMING, [(LOCAL_DISK, len(timers.waiting.schedule))]
        yield table.TIMER_ENQUEUED, [(LOCAL_DISK, timers.follower.taken)]
        yield table.TIMER_DEQUEUED, [(LOCAL_DISK, timers.delivery.delivered)]


class CopyMetrics:
    """How far slaves, or the followers of a raft group, are behind."""

    def __init__(self, store: Store, slaves: InSyncSlaves, node: RaftNode | None) -> None:
        self._store, self._slaves, self._node = store, slaves, node

    async def collect(self) -> Samples:
        end, now = self._store.log_max, asyncio.get_running_loop().time()
        if self._node is not None:
            async for piece in self._of_group(self._node, end):
                yield piece
            return
        slaves = self._slaves.all
        lags: list[Row] = [
            ((each.address, "slave"), max(0, end - each.acknowledged)) for each in slaves
        ]
        yield table.COPY_LAG, lags
        yield table.COPY_SILENCE, [((each.address,), now - each.heard_at) for each in slaves]
        yield table.IN_SYNC, [((), len(self._slaves.in_sync(end, now)))]

    async def _of_group(self, node: RaftNode, end: int) -> Samples:
        yield table.LEADS, [((), int(node.position.leads))]
        yield table.TERM, [((), node.core.term)]
        leadership = node.core.leadership
        if leadership is None:
            return
        followers = leadership.followers
        lags: list[Row] = [
            ((name, "follower"), max(0, end - each.match)) for name, each in followers.items()
        ]
        yield table.COPY_LAG, lags
        most = self._slaves.behind_bytes_max
        yield table.IN_SYNC, [((), sum(end - each.match <= most for each in followers.values()))]
