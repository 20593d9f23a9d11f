"""Rebuilds queues and index from the log, with the same dispatcher that runs live.

Everything is built beside the old files; then names are changed. The checkpoint is moved away first
and put in place last: a store without one is derived from its log at the next start, which repairs
whatever a crash leaves in between. The old files are kept as `*.before`. The log is only read.
"""

from typing import Final, NamedTuple

import msgspec
import numpy as np

from gantrymq.base.clock import WallClock
from gantrymq.base.disk import Disk, LockedError, copy_file, delete_tree
from gantrymq.base.offload import Offload
from gantrymq.kernel import FILLER_SIZE, walk_records
from gantrymq.store.config import StoreConfig
from gantrymq.store.errors import StoreError
from gantrymq.store.index.key_index import KeyIndex
from gantrymq.store.log.commitlog import CommitLog
from gantrymq.store.log.fence import Fence
from gantrymq.store.log.segment import OpenFiles, bases_in, file_name, last_run
from gantrymq.store.log.syncer import InlineSyncer
from gantrymq.store.queues.consumequeue import ENTRY_BYTES, ENTRY_TYPE, ConsumeQueue
from gantrymq.store.queues.queue_table import LEGAL_TOPIC, QueueTable
from gantrymq.store.recovery import checkpoint
from gantrymq.store.recovery.checkpoint import Checkpoint
from gantrymq.store.recovery.checkpointer import Checkpointer
from gantrymq.store.recovery.recovery import scan
from gantrymq.store.shared import StoreFiles, StorePorts
from gantrymq.store.writing.dispatch import Dispatcher

WORK: Final = "rebuilding"
BEFORE: Final = "before"
DERIVED: Final = ("consumequeue", "consumequeue_ext", "index")
ENTRIES_PER_READ: Final = 1 << 14
FOREVER: Final = 1 << 62


class Rebuilt(NamedTuple):
    """The result of a rebuild."""

    queues: int
    entries: int
    index_files: int
    kept: list[str]
    """The names under which the old files are kept."""


async def rebuild(
    config: StoreConfig, *, disk: Disk, clock: WallClock, offload: Offload
) -> Rebuilt:
    """Rebuild queues and index of a stopped store; `config` names it and its file sizes."""
    root = config.directory
    try:
        lock = disk.lock(f"{root}/lock")
    except LockedError as error:
        raise StoreError(f"a broker runs on {root}: stop it first ({error})") from error
    try:
        _check_stopped(disk, root)
        ports = StorePorts(disk, clock, offload, InlineSyncer())
        return await _run(_Rebuild(config, ports, settled=False))
    finally:
        lock.release()


async def rebuild_settled(
    config: StoreConfig, *, disk: Disk, clock: WallClock, offload: Offload
) -> Rebuilt:
    """The same for who holds the store's lock, and knows that the log ends where it ends.

    A store that was not stopped properly counts as such afterwards, too.
    """
    ports = StorePorts(disk, clock, offload, InlineSyncer())
    return await _run(_Rebuild(config, ports, settled=True))


async def _run(work: "_Rebuild") -> Rebuilt:
    try:
        return await work.run()
    except OSError as error:
        raise StoreError(
            f"the rebuild of {work.root} stopped: {error}. Nothing is lost: run it again, or start "
            "the broker, which repairs the store"
        ) from error


def _check_stopped(disk: Disk, root: str) -> None:
    if disk.exists(f"{root}/abort") or Fence(disk, root).flushed is not None:
        raise StoreError(
            f"{root} was not stopped properly: start its broker and stop it once, which repairs "
            "what a crash leaves, then rebuild"
        )


class _Rebuild:
    def __init__(self, config: StoreConfig, ports: StorePorts, *, settled: bool) -> None:
        self._settled = settled
        self.root, self._work = config.directory, f"{config.directory}/{WORK}"
        self._ports, (disk, clock, self._offload, _) = ports, ports
        self._disk = disk
        self._last = checkpoint.load(disk, f"{self.root}/checkpoint")
        self._config = _beside(config, self._work)
        self._files = OpenFiles(disk, config.open_files_max)
        self._log = CommitLog(self._files, config.commit_log_directory, config.segment_bytes)
        self._queues = QueueTable(
            self._files, self._work, config.queue_file_entries, config.ext_file_bytes
        )
        self._index = KeyIndex(
            disk, clock, f"{self._work}/index", config.index_slots, config.index_entries
        )

    async def run(self) -> Rebuilt:
        disk = self._disk
        ours = self._last is not None and self._last.sizes is not None
        await self._offload.run(lambda: self._log.load(made_by_us=ours))
        if disk.exists(self._work):
            await self._offload.run(delete_tree, disk, self._work)
        for name in ("consumequeue", "index"):
            disk.make_dirs(f"{self._work}/{name}")
        ends: dict[ConsumeQueue, int] = {}
        if self._log.min > 0:
            ends = await self._offload.run(self._take_over)
        taken = {queue: queue.stop for queue in ends}
        dispatcher = Dispatcher(
            self._queues, self._index, self._config.delay_levels_ms, self._log.min
        )
        end = await scan(self._log, self._log.min, dispatcher, check=True, offload=self._offload)
        if not self._settled:
            await self._offload.run(self._check_end, end)
        self._fill_up({queue: ends[queue] for queue, stop in taken.items() if queue.stop == stop})
        if dispatcher.dispatched.value < end:
            dispatcher.dispatched.advance(end)
        await self._queues.write_tails()
        await self._offload.run(self._queues.trim, self._log.min)
        self._index.build()
        checkpointer = Checkpointer(
            self._config,
            self._ports,
            StoreFiles(self._log, self._queues, self._index),
            dispatcher,
            self._last or Checkpoint(),
        )
        await checkpointer.take(_already_flushed, final=True)
        kept = await self._offload.run(self._swap)
        known = self._queues.known()
        entries = sum(queue.stop - queue.min_offset for queue in known)
        return Rebuilt(len(known), entries, len(self._index.sealed) + 1, kept)

    def _take_over(self) -> dict[ConsumeQueue, int]:
        """Copy the entries of deleted records, so that queue offsets continue.

        Returns, for each queue, the end of such entries in the old files, which may be damaged.
        """
        for topic, queue_id in self._old_queues():
            source = f"{self.root}/consumequeue/{topic}/{queue_id}"
            target = f"{self._work}/consumequeue/{topic}/{queue_id}"
            self._disk.make_dirs(target)
            for name in self._disk.list(source):
                copy_file(self._disk, f"{source}/{name}", f"{target}/{name}")
        self._queues.load(self._log.min, clean=False)
        for queue in self._queues.known():
            if not _ascends(queue):
                queue.restart()
        return {self._queues.at(*each): self._old_end(*each) for each in self._old_queues()}

    def _old_end(self, topic: str, queue_id: int) -> int:
        """The offset behind the last old entry of a deleted record, even behind damaged entries."""
        source = f"{self.root}/consumequeue/{topic}/{queue_id}"
        file_bytes = self._config.queue_file_entries * ENTRY_BYTES
        for base in reversed(last_run(bases_in(self._disk, source), file_bytes)):
            file = self._disk.open_read(f"{source}/{file_name(base)}")
            data = file.pread(file_bytes, 0)
            file.close()
            entries = np.frombuffer(data, ENTRY_TYPE, len(data) // ENTRY_BYTES)
            places = entries["position"]
            there = (entries["size"] > 0) & (places >= 0) & (places < self._log.min)
            if there.any():
                return base // ENTRY_BYTES + int(np.flatnonzero(there)[-1]) + 1
        return 0

    def _fill_up(self, ends: dict[ConsumeQueue, int]) -> None:
        """Continue queues without a record in the log at the end that the old files say."""
        for queue, end in ends.items():
            if queue.stop < end:
                queue.fill_up(end)
                queue.publish()
                self._queues.unwritten[queue] = None

    def _old_queues(self) -> list[tuple[str, int]]:
        root = f"{self.root}/consumequeue"
        return [
            (topic, int(name))
            for topic in self._disk.list(root)
            if LEGAL_TOPIC.match(topic)
            for name in self._disk.list(f"{root}/{topic}")
            if name.isdigit()
        ]

    def _check_end(self, end: int) -> None:
        """Raise if the log is damaged before its end: a broker that starts would cut it there.

        It is if the checkpoint or an old queue knows a record behind `end`.
        """
        known = self._last.dispatched if self._last is not None else None
        if (known is not None and end < known) or self._has_record_behind(end):
            path = self._log.path(end - end % self._config.segment_bytes)
            raise StoreError(
                f"the log is damaged at byte {end % self._config.segment_bytes} of {path} and goes "
                "on behind: nothing was changed. Take that file from a replica or a copy; a "
                "broker that starts on it would cut the log there"
            )

    def _has_record_behind(self, end: int) -> bool:
        for topic, queue_id in self._old_queues():
            queue = ConsumeQueue(
                self._files,
                f"{self.root}/consumequeue/{topic}/{queue_id}",
                topic,
                queue_id,
                self._config.queue_file_entries,
            )
            queue.attach(FOREVER)
            entry = queue.entry(queue.stop - 1) if queue.stop else None
            if entry is not None and entry[0] >= end and self._is_record(entry[0], entry[1]):
                return True
        return False

    def _is_record(self, position: int, size: int) -> bool:
        data = self._log.read(size, position)
        return bool(data) and bool(walk_records(data, position, size + 8, False).records)

    def _swap(self) -> list[str]:
        """Put the new files in place.

        Until the last step is done, a start derives everything from the log.
        """
        disk, root = self._disk, self.root
        number = self._free_number()
        kept = [self._put_aside("checkpoint", number)]
        disk.sync_dir(root)
        for name in DERIVED:
            kept.append(self._put_aside(name, number))
            if disk.exists(f"{self._work}/{name}"):
                disk.rename(f"{self._work}/{name}", f"{root}/{name}")
        disk.sync_dir(root)
        disk.rename(f"{self._work}/checkpoint", f"{root}/checkpoint")
        disk.sync_dir(root)
        delete_tree(disk, self._work)
        return [name for name in kept if name]

    def _free_number(self) -> str:
        names = set(self._disk.list(self.root))
        suffix, count = BEFORE, 1
        while any(f"{name}.{suffix}" in names for name in ("checkpoint", *DERIVED)):
            count += 1
            suffix = f"{BEFORE}.{count}"
        return suffix

    def _put_aside(self, name: str, suffix: str) -> str:
        if not self._disk.exists(f"{self.root}/{name}"):
            return ""
        self._disk.rename(f"{self.root}/{name}", f"{self.root}/{name}.{suffix}")
        return f"{name}.{suffix}"


def _beside(config: StoreConfig, work: str) -> StoreConfig:
    """The same store, with queues and index in another directory."""
    return msgspec.structs.replace(
        config, directory=work, log_directory=config.commit_log_directory, index_enabled=True
    )


def _ascends(queue: ConsumeQueue) -> bool:
    """Whether the copied entries are in log order."""
    last, at = -1, queue.min_offset
    while at < queue.stop:
        entries = np.frombuffer(queue.read(at, ENTRIES_PER_READ), ENTRY_TYPE)
        real = entries["position"][entries["size"] != FILLER_SIZE].astype(np.int64)
        places = np.concatenate([[last], real])
        if not entries.size or (np.diff(places) < 0).any():
            return False
        last, at = int(places[-1]), at + entries.size
    return True


async def _already_flushed(upto: int) -> None:
    """Nothing to flush: the log is only read."""
