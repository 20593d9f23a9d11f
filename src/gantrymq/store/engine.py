"""The store's interface: open, put, read, clean, close.

One event loop owns it; all its methods are called there. Three background loops wake by elapsed
time: flushing, checkpoints, retention.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Self

from gantrymq.base import upkeep
from gantrymq.base.clock import WallClock
from gantrymq.base.disk import Disk, Lock, delete_tree
from gantrymq.base.offload import Offload
from gantrymq.base.watermark import Watermark
from gantrymq.store.append import Append, PutStatus, QueryResult, ReadResult
from gantrymq.store.config import CHANGEABLE, StoreConfig
from gantrymq.store.log.fence import Fence
from gantrymq.store.log.flush import Flusher
from gantrymq.store.log.scan import Chunk, scan
from gantrymq.store.log.syncer import Syncer
from gantrymq.store.queues.consumequeue import ConsumeQueue
from gantrymq.store.reading.entry_filter import EntryFilter
from gantrymq.store.reading.log_bytes import LogBytes
from gantrymq.store.reading.reads import Reads
from gantrymq.store.recovery.recovery import RecoveredStore, recover
from gantrymq.store.retention import Cleaner, MayDelete
from gantrymq.store.writing.copies import Copies
from gantrymq.store.writing.dispatch import Marker
from gantrymq.store.writing.log_copy import LogCopy
from gantrymq.store.writing.writer import Writer

log = logging.getLogger(__name__)


COPY = "this broker is a slave: it takes messages from its master only, send to the master"


class Store:
    """A message store on one disk."""

    def __init__(
        self,
        config: StoreConfig,
        parts: RecoveredStore,
        lock: Lock,
        *,
        disk: Disk,
        clock: WallClock,
        offload: Offload,
        syncer: Syncer,
        store_host: bytes,
    ) -> None:
        self.config = config
        self._disk, self._offload, self._lock = disk, offload, lock
        self._log, self._queues, self._index = parts.log, parts.queues, parts.index
        self._dispatcher, self._checkpointer = parts.dispatcher, parts.checkpointer
        self._files = parts.files
        self._flusher = Flusher(parts.log, syncer, self._fence)
        self._writer = Writer(
            config,
            parts.log,
            parts.queues,
            parts.dispatcher,
            self._flusher,
            clock=clock,
            offload=offload,
            store_host=store_host,
            refusal=self._refusal,
        )
        self.written = self._writer.written
        self.log_bytes = LogBytes(parts.log, self._writer.copyable, offload)
        """What slaves are sent."""
        self.log_copy = LogCopy(parts.log, parts.dispatcher, self._flusher, offload)
        """What a slave writes to."""
        self.log_copy.sync_flush = config.flush == "SYNC_FLUSH"
        self._reads = Reads(
            parts.log, parts.queues, parts.index, parts.dispatcher.dispatched, offload
        )
        self._cleaner = Cleaner(
            config,
            disk,
            clock,
            parts.log,
            parts.queues,
            parts.index,
            offload,
            self._checkpointed,
        )
        self._fenced = self._derived_error = ""
        self._closing = False
        self._stop = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._wakes: list[asyncio.Event] = []
        """Ends the pause of each of them, to look at its interval again or to stop."""
        self._graves: list[str] = []

    @classmethod
    async def open(
        cls,
        config: StoreConfig,
        *,
        disk: Disk,
        clock: WallClock,
        offload: Offload,
        syncer: Syncer,
        store_host: bytes,
        marker: Marker | None = None,
    ) -> Self:
        """Lock, recover and start; LockedError names the process that has the store open.

        The marker gets every stored message; the bitmap that it returns is kept beside the queue.
        """
        disk.make_dirs(config.directory)
        lock = disk.lock(f"{config.directory}/lock")
        try:
            parts = await recover(config, disk=disk, clock=clock, offload=offload, marker=marker)
        except BaseException:
            lock.release()
            raise
        store = cls(
            config,
            parts,
            lock,
            disk=disk,
            clock=clock,
            offload=offload,
            syncer=syncer,
            store_host=store_host,
        )
        store._start()
        return store

    def _start(self) -> None:
        config = self.config
        if not config.is_copy:
            self._writer.make_spare()
        work: list[tuple[Callable[[], Awaitable[None]], Callable[[], int]]] = [
            (self._keep_derived, lambda: config.queue_write_interval_ms),
            (self._clean, lambda: config.clean_interval_ms),
            (self._flush_some, lambda: config.flush_interval_ms),
        ]
        loop = asyncio.get_running_loop()
        self._flushed_at = self._checkpoint_at = loop.time()
        for what, interval_ms in work:
            self._tasks.append(loop.create_task(self._every(interval_ms, what)))

    def reconfigure(self, wanted: StoreConfig) -> None:
        """Take over the settings that can change while the store is open."""
        for name in CHANGEABLE:
            setattr(self.config, name, getattr(wanted, name))
        self._writer.take_settings()
        self.log_copy.sync_flush = self.config.flush == "SYNC_FLUSH"
        self._dispatcher.levels_ms = self.config.delay_levels_ms
        self._cleaner.judge()
        for wake in self._wakes:
            wake.set()
        if self.config.flush == "SYNC_FLUSH":
            self.request_flush()  # make earlier messages durable soon, too

    async def _every(
        self, interval_ms: Callable[[], int], what: Callable[[], Awaitable[None]]
    ) -> None:
        """Repeat until the store closes; a failure is logged and the next round goes on."""
        wake = asyncio.Event()
        self._wakes.append(wake)
        while await self._pause(interval_ms, wake):
            try:
                await what()
            except Exception:
                log.exception("background work of the store failed")

    async def _pause(self, interval_ms: Callable[[], int], wake: asyncio.Event) -> bool:
        """Sleep for the interval; False when the store closes.

        Setting `wake` makes it read the interval again, which may have changed.
        """
        loop = asyncio.get_running_loop()
        began = loop.time()
        while not self._stop.is_set() and (due := began + interval_ms() / 1000) > loop.time():
            wake.clear()
            timer = upkeep.call_at(due, wake.set)
            try:
                await wake.wait()
            finally:
                timer.cancel()
        return not self._stop.is_set()

    async def close(self) -> None:
        """Answer accepted appends, make everything durable and remove the `abort` file.

        If something could not be made durable, `abort` stays and the next start repairs the store.
        """
        if self._closing:
            return
        self._closing = True
        self._stop.set()
        for wake in self._wakes:
            wake.set()
        await asyncio.gather(*self._tasks)
        try:
            await self._writer.drain()
            if not self._fenced:
                await self._close_cleanly()
        except OSError as error:
            log.error("the store could not be closed cleanly: %s", error)
        finally:
            self._writer.refuse_waiting("the store is closed")
            self._files.clear()
            self._lock.release()

    async def _close_cleanly(self) -> None:
        await self._flush(self._log.end)
        await self._checkpointer.take(self._flush, final=True)
        await self._offload.run(self._remove_abort)

    def _remove_abort(self) -> None:
        self._disk.delete(f"{self.config.directory}/abort")
        self._disk.sync_dir(self.config.directory)

    # In

    def put(self, append: Append) -> None:
        """Take a message; `append.reply` is called later, when its status is final."""
        if self._closing:
            append.status, append.error = PutStatus.SERVICE_NOT_AVAILABLE, "the store is closed"
            asyncio.get_running_loop().call_soon(append.reply, append)
        else:
            self._writer.put(append)

    @property
    def writable(self) -> str | None:
        """Why nothing can be stored; None if the store is writable."""
        return "the store is closed" if self._closing else self._refusal()

    def _refusal(self) -> str | None:
        if self.config.is_copy:
            return COPY
        return self._fenced or self._derived_error or self._cleaner.refusal or None

    def _fence(self, error: OSError) -> None:
        """A sync of the log failed: refuse all writes, because unflushed messages may be lost.

        See Flusher for why the sync is not tried again.
        """
        flushed = self._flusher.flushed.value
        self._fenced = f"the log could not be synced behind offset {flushed}: {error}"
        log.critical("%s; the store is read-only now", self._fenced)
        self._writer.refuse_waiting(self._fenced)
        try:
            Fence(self._disk, self.config.directory).raise_at(flushed)
        except OSError as second:
            log.critical("the marker of that cannot be written either: %s", second)

    def wait_for(self, copies: Copies) -> None:
        """Answer sends and show records only when `copies` lets them through."""
        self._writer.wait_for(copies)

    def request_flush(self) -> None:
        """Request a flush of everything put so far; the mark `flushed` says when it is durable."""
        self._flusher.request(self._log.end)

    # Out

    def pull(
        self,
        topic: str,
        queue_id: int,
        offset: int,
        max_count: int,
        max_bytes: int,
        tag_codes: frozenset[int] | None = None,
        sieve: EntryFilter | None = None,
    ) -> ReadResult | Awaitable[ReadResult]:
        """Read raw records from a queue offset on; the sieve filters them by their properties.

        Returns the result at once if the data is in memory; otherwise an awaitable, while a worker
        reads.
        """
        return self._reads.pull(topic, queue_id, offset, max_count, max_bytes, tag_codes, sieve)

    def queue(self, topic: str, queue_id: int) -> ConsumeQueue | None:
        """The queue, if it ever held a message."""
        return self._queues.get(topic, queue_id)

    def arrivals(self, topic: str, queue_id: int) -> Watermark:
        """The watermark of a queue's visible end; also before its first message."""
        return self._queues.at(topic, queue_id).end

    def min_offset(self, topic: str, queue_id: int) -> int:
        """The first offset of a queue that can be read; 0 for an unknown queue."""
        queue = self._queues.get(topic, queue_id)
        return queue.min_offset if queue is not None else 0

    def max_offset(self, topic: str, queue_id: int) -> int:
        """Behind the last visible offset of a queue; 0 for an unknown queue."""
        queue = self._queues.get(topic, queue_id)
        return queue.max_offset if queue is not None else 0

    async def offset_by_time(
        self, topic: str, queue_id: int, ms: int, boundary: str = "LOWER"
    ) -> int:
        """The first offset stored at `ms` or later; UPPER: the last at `ms` or earlier."""
        return await self._reads.offset_by_time(topic, queue_id, ms, boundary)

    async def earliest_store_ms(self, topic: str, queue_id: int) -> int:
        """When the first readable message of a queue was stored; -1 if there is none."""
        return await self._reads.store_ms_at(topic, queue_id, self.min_offset(topic, queue_id))

    async def store_ms_at(self, topic: str, queue_id: int, offset: int) -> int:
        """When the message at an offset was stored; -1 if it cannot be read."""
        return await self._reads.store_ms_at(topic, queue_id, offset)

    async def message_at(self, physical_offset: int) -> bytes | None:
        """The record that begins at a log offset; None if there is none."""
        return await self._reads.message_at(physical_offset)

    def scan(self, position: int) -> AsyncIterator[Chunk]:
        """Every record from a log offset on, up to the current end; see `store.scan`."""
        return scan(self._log, self._offload, position, self._log.end)

    async def query(
        self, topic: str, key: str, max_count: int, begin_ms: int, end_ms: int
    ) -> QueryResult:
        """Records with a key or unique id, stored within a time window."""
        return await self._reads.query(topic, key, max_count, begin_ms, end_ms)

    # Topics

    def topics(self) -> list[str]:
        """Every topic that holds messages, sorted."""
        return sorted({queue.topic for queue in self._queues.known()})

    def queues(self, topic: str) -> list[int]:
        """The queue ids of a topic that hold messages, sorted."""
        return sorted(queue.queue_id for queue in self._queues.known() if queue.topic == topic)

    def delete_topic(self, topic: str) -> None:
        """Delete a topic's queues.

        Its records stay in the log until retention deletes their file.
        """
        self._graves += self._queues.delete_topic(topic)
        self._checkpoint_at = float("-inf")  # take a checkpoint at the next tick

    # Figures

    @property
    def log_min(self) -> int:
        """The first log offset that can be read."""
        return self._log.min

    @property
    def log_max(self) -> int:
        """Where the next record goes."""
        return self._log.end

    @property
    def flushed(self) -> Watermark:
        """Up to where the log is durable."""
        return self._flusher.flushed

    @property
    def dispatched(self) -> Watermark:
        """Up to where queues and index have followed the log, and readers may see it."""
        return self._dispatcher.dispatched

    @property
    def dispatch_behind_bytes(self) -> int:
        """How far queues and index are behind the log."""
        return self._log.end - self._dispatcher.dispatched.value

    @property
    def usage(self) -> dict[str, float]:
        """Figures for operators: sizes, ratios and numbers of files."""
        root = self.config.directory
        return {
            "disk_used_ratio": self._disk.used_ratio(root),
            "disk_free_bytes": self._disk.free_bytes(root),
            "log_bytes": self._log.end - self._log.min,
            "log_files": len(self._log.bases),
            "queues": len(self._queues.by_name),
            "open_files": len(self._files),
            "dispatch_behind_bytes": self.dispatch_behind_bytes,
            "flush_behind_bytes": self._log.end - self.flushed.value,
        }

    # Background

    async def _flush_some(self) -> None:
        if self.config.flush == "SYNC_FLUSH":
            return  # every write requests its own flush
        now = asyncio.get_running_loop().time()
        thorough = now - self._flushed_at >= self.config.flush_thorough_ms / 1000
        if thorough or self._flusher.is_worth_it(self.config.flush_least_pages):
            self._flushed_at = now
            self._flusher.request(self._log.end)

    async def _flush(self, upto: int) -> None:
        """Wait until the log is durable up to an offset; OSError if the store is fenced."""
        self._flusher.request(upto)
        while self.flushed.value < upto:
            if self._fenced:
                raise OSError(self._fenced)
            await self._flusher.settled()

    async def sync(self) -> None:
        """Make everything durable that was stored before; OSError if the store is fenced."""
        await self._flush(self._log.end)

    async def _keep_derived(self) -> None:
        """Write queue and index entries, and take a checkpoint when it is due."""
        loop = asyncio.get_running_loop()
        try:
            if self._index is not None:
                self._index.build()
            await self._queues.write_tails()
            due = self._checkpoint_at + self.config.checkpoint_interval_ms / 1000
            if not self._fenced and loop.time() >= due:
                self._checkpoint_at = loop.time()
                await self.checkpoint()
        except OSError as error:
            self._derived_error = f"queues and index cannot be written: {error}"
            log.error("%s", self._derived_error)
        else:
            self._derived_error = ""
        graves, self._graves = self._graves, []
        for grave in graves:
            await self._offload.run(delete_tree, self._disk, grave)

    async def checkpoint(self) -> None:
        """Take a checkpoint, unless nothing was dispatched since the last one."""
        if self._checkpointer.last.dispatched != self.dispatched.value:
            await self._checkpointer.take(self._flush, final=False)

    def _checkpointed(self) -> int:
        return self._checkpointer.last.dispatched or 0

    def ask_before_delete(self, ask: MayDelete) -> None:
        """Add a callback that saves what it needs before log files are deleted; see Cleaner."""
        self._cleaner.askers.append(ask)

    async def first_offset_at(self, topic: str, queue_id: int, position: int) -> int:
        """The first offset of a queue whose record is not below a log offset."""
        queue = self._queues.get(topic, queue_id)
        if queue is None:
            return 0
        first = await self._offload.run(queue.on_disk().first_at_or_above, position)
        return queue.first_at_or_above(position, first)

    async def _clean(self) -> None:
        await self._cleaner.run()

    async def delete_expired(self) -> int:
        """Delete expired files now, at any hour; returns how many."""
        return await self._cleaner.run(now=True)
