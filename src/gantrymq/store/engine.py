"""The store's interface: open, put, read, close.

One event loop owns it; all its methods are called there. What is read is reached by parts of it:
`queues` for offsets of queues, `reads` for records, `upkeep` for checkpoints and deletion.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Self

from gantrymq.base.disk import Lock
from gantrymq.base.histogram import Distribution
from gantrymq.base.watermark import Watermark
from gantrymq.store.append import PutStatus, Staged
from gantrymq.store.config import CHANGEABLE, StoreConfig
from gantrymq.store.log.fence import Fence
from gantrymq.store.log.flush import Flusher
from gantrymq.store.reading.log_bytes import LogBytes
from gantrymq.store.reading.log_records import LogRecords
from gantrymq.store.reading.reads import Reads
from gantrymq.store.recovery.recovery import RecoveredStore, recover
from gantrymq.store.shared import StorePorts
from gantrymq.store.upkeep import StoreUpkeep
from gantrymq.store.writing.copies import Copies
from gantrymq.store.writing.dispatch import Marker
from gantrymq.store.writing.group_log import GroupLog
from gantrymq.store.writing.kept_mark import KeptMark
from gantrymq.store.writing.log_copy import LogCopy
from gantrymq.store.writing.writer import Writer

log = logging.getLogger(__name__)

CLOSED = "the store is closed"
COMMIT_LOOK_SECONDS = 0.005
"""How often `sync` looks whether a raft group has committed."""
JOINING = "[NOT_LEADER]this member of a raft group knows no leader yet, try again"
COPY = "this broker is a slave: it takes messages from its master only, send to the master"


class Store:
    """A message store on one disk."""

    def __init__(
        self,
        config: StoreConfig,
        ports: StorePorts,
        recovered: RecoveredStore,
        lock: Lock,
        store_host: bytes,
    ) -> None:
        self.config = config
        self._disk, self._offload, self._lock = ports.disk, ports.offload, lock
        files, self._open_files = recovered.files, recovered.open_files
        self._log, self.queues, self._dispatcher = files.log, files.queues, recovered.dispatcher
        self._flusher = Flusher(files.log, ports.syncer, self._fence)
        self._writer = Writer(
            config,
            ports,
            files,
            recovered.dispatcher,
            self._flusher,
            store_host=store_host,
            refusal=self._refusal,
        )
        self.written = self._writer.written
        """Counts of written messages, for operators."""
        self.log_bytes = LogBytes(files.log, self._writer.pending.copyable, ports.offload)
        """What slaves are sent."""
        self.log_records = LogRecords(files.log, ports.offload)
        """By which a slave finds where its log and its master's part."""
        self.log_copy = LogCopy(files.log, recovered.dispatcher, self._flusher, ports.offload)
        """What a slave writes to."""
        self.log_copy.sync_flush = config.flush == "SYNC_FLUSH"
        self.group_log = GroupLog(
            files,
            self.log_copy,
            recovered.dispatcher,
            self._flusher,
            ports.clock,
            ports.offload,
            store_host,
        )
        """What a member of a raft group does with the log."""
        self.damage = recovered.damage
        """Whether recovery had to cut off what a member of a raft group had acknowledged."""
        self.kept = KeptMark(
            self._flusher.flushed, recovered.dispatcher.dispatched, in_group=config.in_group
        )
        """Up to where the log will not be taken back."""
        self.reads = Reads(files, recovered.dispatcher.dispatched, ports.offload)
        self.upkeep = StoreUpkeep(config, ports, recovered, self._flusher)
        self._closing = False
        self.leading: Callable[[], str | None] | None = None
        """Of a member of a raft group: why it takes no messages now; None if it does."""
        if config.in_group:
            self.leading = lambda: JOINING

    @classmethod
    async def open(
        cls,
        config: StoreConfig,
        ports: StorePorts,
        *,
        store_host: bytes,
        marker: Marker | None = None,
    ) -> Self:
        """Lock, recover and start; LockedError names the process that has the store open.

        The marker gets every stored message; the bitmap that it returns is kept beside the queue.
        """
        ports.disk.make_dirs(config.directory)
        lock = ports.disk.lock(f"{config.directory}/lock")
        try:
            recovered = await recover(config, ports, marker)
        except BaseException:
            lock.release()
            raise
        store = cls(config, ports, recovered, lock, store_host)
        if not (config.is_copy or config.in_group):
            store._writer.make_spare()
        store.upkeep.start()
        return store

    def reconfigure(self, wanted: StoreConfig) -> None:
        """Take over the settings that can change while the store is open."""
        for name in CHANGEABLE:
            setattr(self.config, name, getattr(wanted, name))
        self._writer.take_settings()
        self.log_copy.sync_flush = self.config.flush == "SYNC_FLUSH"
        self._dispatcher.levels_ms = self.config.delay_levels_ms
        self.upkeep.take_settings()
        if self.config.flush == "SYNC_FLUSH":
            self.request_flush()  # make earlier messages durable soon, too

    async def close(self) -> None:
        """Answer accepted appends, make everything durable and remove the `abort` file.

        If something could not be made durable, `abort` stays and the next start repairs the store.
        """
        if self._closing:
            return
        self._closing = True
        await self.upkeep.finish()
        try:
            await self._writer.drain()
            if not self._flusher.failure:
                await self._close_cleanly()
        except OSError as error:
            log.error("the store could not be closed cleanly: %s", error)
        finally:
            self._writer.pending.refuse(CLOSED)
            self._open_files.clear()
            self._lock.release()

    async def _close_cleanly(self) -> None:
        await self.flush()
        await self.upkeep.checkpointer.take(self._flusher.reach, final=True)
        await self._offload.run(self._remove_abort)

    def _remove_abort(self) -> None:
        self._disk.delete(f"{self.config.directory}/abort")
        self._disk.sync_dir(self.config.directory)

    # Writing

    def put(self, append: Staged) -> None:
        """Take a message; `append.reply` is called later, when its status is final."""
        if self._closing:
            append.status, append.error = PutStatus.SERVICE_NOT_AVAILABLE, CLOSED
            asyncio.get_running_loop().call_soon(append.reply, append)  # type: ignore[arg-type]
        else:
            self._writer.put(append)

    @property
    def writable(self) -> str | None:
        """Why nothing can be stored; None if the store is writable."""
        return CLOSED if self._closing else self._refusal()

    def _refusal(self) -> str | None:
        if self.config.is_copy:
            return COPY
        if self.leading is not None and (reason := self.leading()) is not None:
            return reason
        upkeep = self.upkeep
        return self._flusher.failure or upkeep.failure or upkeep.cleaner.refusal or None

    def _fence(self) -> None:
        """A sync of the log failed: refuse all writes, because unflushed messages may be lost.

        See Flusher for why the sync is not tried again.
        """
        failure = self._flusher.failure
        log.critical("%s; the store is read-only now", failure)
        self._writer.pending.refuse(failure)
        self._writer.on_failure(failure)
        try:
            Fence(self._disk, self.config.directory).raise_at(self.flushed.value)
        except OSError as error:
            log.critical("the marker of that cannot be written either: %s", error)

    def wait_for(self, copies: Copies) -> None:
        """Answer sends and show records only when `copies` lets them through."""
        self._writer.pending.wait_for(copies)

    def begin_to_lead(self, copies: Copies) -> None:
        """Take messages as the leader of a raft group: all that is in the log is dispatched."""
        self.wait_for(copies)
        self._writer.resume()

    async def end_to_lead(self, reason: str) -> None:
        """Refuse the messages that wait; the next leader writes this log."""
        await self._writer.suspend(reason)

    def apply_changes(self, apply: Callable[[bytes], None]) -> None:
        """Call `apply` with each record of a change of the tables, where it stands in the log."""
        self._dispatcher.apply_change = lambda at, size: apply(self._log.read(size, at))

    def tell_of_failures(self, tell: Callable[[str], None]) -> None:
        """Call back with the reason when the disk refuses a write, a file or a sync."""
        self._writer.on_failure = tell

    def has_room_for_a_file(self) -> bool:
        """Whether the disk could take the next log file, and no sync has failed."""
        free = self._disk.free_bytes(self.config.directory)
        return not self._flusher.failure and free > 2 * self.config.segment_bytes

    def request_flush(self) -> None:
        """Request a flush of everything put so far; the mark `flushed` says when it is durable."""
        self._flusher.request(self._log.end)

    async def flush(self) -> None:
        """Make the log durable on this disk; OSError if the store is fenced."""
        await self._flusher.reach(self._log.end)

    @property
    def cuts(self) -> int:
        """How often the end of the log was cut off, as of a leader that is deposed.

        Who keeps progress of what he wrote without waiting for the group compares it.
        """
        return self.group_log.cuts

    async def sync(self, cuts: int | None = None) -> None:
        """Make everything kept that was stored before: durable, and in a raft group committed.

        OSError if the store is fenced, if the group does not commit it, or if the log was cut since
        it had so many `cuts`.
        """
        end = self._log.end
        await self._flusher.reach(end)
        if cuts not in (None, self.cuts):
            raise OSError("what was stored is cut off: this member of a raft group was deposed")
        while self.leading is not None and self.dispatched.value < end:
            if (reason := self.leading()) is not None:
                raise OSError(f"what was stored last is not committed: {reason}")
            await asyncio.sleep(COMMIT_LOOK_SECONDS)

    def delete_topic(self, topic: str) -> None:
        """Delete a topic's queues.

        Its records stay in the log until retention deletes their file.
        """
        self.upkeep.delete_folders(self.queues.delete_topic(topic))

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
    def flush_seconds(self) -> Distribution:
        """How long flushes of the log took."""
        return self._flusher.seconds.shown

    @property
    def dispatch_behind_bytes(self) -> int:
        """How far queues and index are behind the log."""
        return self._log.end - self.dispatched.value

    @property
    def usage(self) -> dict[str, float]:
        """Figures for operators: sizes, ratios and numbers of files."""
        root = self.config.directory
        return {
            "disk_used_ratio": self._disk.used_ratio(root),
            "log_disk_used_ratio": self._disk.used_ratio(self.config.commit_log_directory),
            "disk_free_bytes": self._disk.free_bytes(root),
            "log_bytes": self._log.end - self._log.min,
            "log_files": len(self._log.bases),
            "queues": len(self.queues.by_name),
            "open_files": len(self._open_files),
            "dispatch_behind_bytes": self.dispatch_behind_bytes,
            "flush_behind_bytes": self._log.end - self.flushed.value,
        }
