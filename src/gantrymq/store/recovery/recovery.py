"""Opening a store: find the end of the log, cut what is torn, bring queues and index in line.

The rule for our own stores has one case only. Everything below the checkpoint's offset is durable
and agrees; everything from there on is read from the log and derived again, by the same
dispatcher that runs live. After a clean stop that is nothing. A store that a Java broker wrote
last has no such offset; RocketMQ's rules by store time are used instead.

In which order, and why:

1. `plan_recovery` decides what to trust. It reads and changes nothing, so a store that is refused
   is left as it was.
2. A cut that an operator has ordered (`log_cut`) is done; the checkpoint is trusted up to there.
   The store is marked as open: from here on until a clean stop it counts as torn.
3. Queues and index are loaded and cut back to the checkpoint: what lies behind may be torn.
4. `scan` walks whole records from there and feeds them to the dispatcher. The first one that is
   not whole ends the log.
5. The log is cut there for good and synced, and the rest of the file reads as zeros, so that a
   later crash cannot find old bytes behind new ones.
6. A new checkpoint records what was found, and a fence that a failed flush had set is lifted.

In a raft group nothing is dispatched in step 4: which of these records are committed is known when
a leader says so. Everything below the checkpoint is. A record there that was damaged, not torn, is
marked before the cut (`damage`): what the cut takes away was acknowledged to the group.

Progress of groups, delay levels, timers and POP that points beyond the recovered end is pulled
back by whoever keeps it: a queue offset that was lost will be given to another message.
"""

import logging
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from gantrymq.base.disk import Disk, parent_of
from gantrymq.base.offload import Offload
from gantrymq.kernel import (
    STOP_BLANK,
    STOP_PARTIAL,
    Walked,
    store_ms_of,
    walk_records,
)
from gantrymq.protocol.record import AT_PHYSICAL_OFFSET
from gantrymq.store.config import StoreConfig
from gantrymq.store.errors import LayoutError, StoreError
from gantrymq.store.index.key_index import KeyIndex
from gantrymq.store.log.commitlog import CommitLog
from gantrymq.store.log.fence import Fence
from gantrymq.store.log.segment import OpenFiles
from gantrymq.store.queues.queue_table import QueueTable
from gantrymq.store.recovery import checkpoint
from gantrymq.store.recovery.checkpoint import Checkpoint
from gantrymq.store.recovery.checkpointer import Checkpointer
from gantrymq.store.recovery.damage import is_damaged
from gantrymq.store.recovery.offset_mark import CUT, DAMAGED, OffsetMark
from gantrymq.store.shared import StoreFiles, StorePorts
from gantrymq.store.version import check_version, record_version
from gantrymq.store.writing.dispatch import Dispatcher, Marker

log = logging.getLogger(__name__)

CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class RecoveredStore:
    """A recovered store, ready to serve."""

    open_files: OpenFiles
    files: StoreFiles
    dispatcher: Dispatcher
    checkpointer: Checkpointer
    damage: OffsetMark


class RecoveryPlan(NamedTuple):
    """Which parts to trust and where to begin, decided before anything is changed."""

    scan_from: int
    """The log is checked from here on."""
    derived_below: int | None
    """Queue and index entries of records below this stay; None: all that the log confirms."""
    index_position: tuple[str, int] | None
    clean: bool


def plan_recovery(
    log_: CommitLog, last: Checkpoint | None, *, clean: bool, derived_missing: bool
) -> RecoveryPlan:
    """Decide how to recover; reads the log, changes nothing."""
    rebuild = RecoveryPlan(log_.min, log_.min, ("", 0), clean=False)
    if not log_.bases or last is None or derived_missing:
        return rebuild
    if last.dispatched is not None:
        if last.dispatched > log_.limit:
            log.warning("the log ends before the checkpoint's offset %d", last.dispatched)
            return rebuild
        position = last.index_name, last.index_next_entry
        return RecoveryPlan(max(log_.min, last.dispatched), last.dispatched, position, clean)
    if clean:
        return RecoveryPlan(log_.bases[max(0, len(log_.bases) - 3)], None, None, clean=True)
    start = newest_file_before(log_, last.java_base_ms)
    return RecoveryPlan(start, start, None, clean=False)


def is_derived_missing(config: StoreConfig, disk: Disk, last: Checkpoint | None) -> bool:
    """Whether an operator removed the queues or the index to have them rebuilt."""
    if last is None or last.dispatched is None or last.dispatched == 0:
        return False
    index = f"{config.directory}/index/{last.index_name}"
    no_index = config.index_enabled and last.index_name != "" and not disk.exists(index)
    return no_index or not disk.list(f"{config.directory}/consumequeue")


def newest_file_before(log_: CommitLog, base_ms: int) -> int:
    """The newest file whose first record was stored at `base_ms` or before; else the first."""
    for base in reversed(log_.bases):
        head = log_.read(100, base)
        if len(head) < 100:
            continue
        at = int.from_bytes(head[AT_PHYSICAL_OFFSET : AT_PHYSICAL_OFFSET + 8], "big")
        if at == base and 0 < store_ms_of(head) <= base_ms:
            return base
    return log_.min


async def scan(
    log_: CommitLog, start: int, dispatcher: Dispatcher | None, *, check: bool, offload: Offload
) -> int:
    """Feed whole records from `start` on to the dispatcher; returns the end of the last one."""
    at, want = start, CHUNK
    while at < log_.limit and log_.bases:
        room = log_.rest_of_file(at)
        data = await offload.run(log_.read, min(want, room), at)
        records, end, stop = walk_records(data, at, room, check)
        if dispatcher is not None:
            _feed(dispatcher, records, end)
        if stop == STOP_BLANK and end + log_.rest_of_file(end) < log_.limit:
            at = end + log_.rest_of_file(end)
        elif stop == STOP_PARTIAL and end > at:
            at = end
        elif stop == STOP_PARTIAL and len(data) == want < room:
            want *= 2  # the record is larger than what was read
        else:
            return end
    return at


def _feed(dispatcher: Dispatcher, records: list[Walked], end: int) -> None:
    if end > dispatcher.dispatched.value or records:
        dispatcher.feed(records, end)


async def recover(
    config: StoreConfig, ports: StorePorts, marker: Marker | None = None
) -> RecoveredStore:
    """Open and repair the store below `config.directory`; the caller holds its lock."""
    root, (disk, clock, offload, _) = config.directory, ports
    check_version(disk, root)
    last = checkpoint.load(disk, f"{root}/checkpoint")
    if last is not None and last.sizes is not None and last.sizes != config.sizes:
        raise LayoutError(
            "the store was made with segment_bytes, queue_file_entries, index_slots and "
            f"index_entries {last.sizes}, but is opened with {config.sizes}"
        )
    fence, ordered = Fence(disk, root), OffsetMark(disk, root, CUT)
    clean = not disk.exists(f"{root}/abort") and fence.flushed is None and ordered.at is None
    open_files = OpenFiles(disk, config.open_files_max)
    log_ = CommitLog(open_files, config.commit_log_directory, config.segment_bytes)
    ours = last is not None and last.sizes is not None
    await offload.run(lambda: log_.load(made_by_us=ours))
    if ordered.at is not None:
        await offload.run(_cut_as_ordered, log_, ordered.at)
        last = _not_behind(last, ordered.at)
    missing = is_derived_missing(config, disk, last)
    plan = plan_recovery(log_, last, clean=clean, derived_missing=missing)
    _mark_open(config, disk)
    record_version(disk, root)

    queues = QueueTable(open_files, root, config.queue_file_entries, config.ext_file_bytes)
    index = None
    if config.index_enabled:
        index = KeyIndex(disk, clock, f"{root}/index", config.index_slots, config.index_entries)
    start = plan.scan_from if plan.derived_below is not None else log_.min
    dispatcher = Dispatcher(queues, index, config.delay_levels_ms, start)
    dispatcher.marker = marker
    dispatcher.last_store_ms = last.last_store_ms if last is not None else 0
    files = StoreFiles(log_, queues, index)
    checkpointer = Checkpointer(config, ports, files, dispatcher, last or Checkpoint())
    damage = OffsetMark(disk, root, DAMAGED)
    recovered = RecoveredStore(open_files, files, dispatcher, checkpointer, damage)
    await _bring_in_line(recovered, plan, config, fence, offload)
    ordered.clear()
    return recovered


def _cut_as_ordered(log_: CommitLog, at: int) -> None:
    log.warning("the log is cut at %d, as ordered; see `cut` in the store's folder", at)
    log_.cut(at)


def _not_behind(last: Checkpoint | None, at: int) -> Checkpoint | None:
    """The checkpoint, without a claim on what was cut off at log offset `at`."""
    if last is None or last.dispatched is None:
        return last
    return msgspec.structs.replace(last, dispatched=min(last.dispatched, at))


async def _bring_in_line(
    recovered: RecoveredStore,
    plan: RecoveryPlan,
    config: StoreConfig,
    fence: Fence,
    offload: Offload,
) -> None:
    (log_, queues, index), dispatcher = recovered.files, recovered.dispatcher
    check = config.check_crc_on_recover
    if config.in_group:
        await offload.run(_load_derived, recovered, plan, plan.derived_below or log_.min)
        end = await scan(log_, plan.scan_from, None, check=True, offload=offload)
        await offload.run(_mark_damage, log_, end, recovered)
    elif plan.derived_below is not None:
        await offload.run(_load_derived, recovered, plan, plan.derived_below)
        end = await scan(log_, plan.scan_from, dispatcher, check=check, offload=offload)
    else:
        end = await scan(log_, plan.scan_from, None, check=check, offload=offload)
        await offload.run(_load_derived, recovered, plan, end)
        start = max([log_.min, *(queue.last_position() for queue in queues.known())])
        dispatcher.dispatched.advance(start)
        await scan(log_, start, dispatcher, check=False, offload=offload)
    found_more = end > plan.scan_from or not plan.clean
    await offload.run(_settle_log, log_, plan.scan_from, end, fence)
    if dispatcher.dispatched.value < end and not config.in_group:
        dispatcher.dispatched.advance(end)
    await queues.write_tails()
    await offload.run(queues.trim, log_.min)
    if index is not None:
        index.build()
        index.trim(log_.min)
    if found_more or recovered.checkpointer.last.sizes is None:
        await recovered.checkpointer.take(_already_flushed, final=False)
    fence.lift()


def _mark_damage(log_: CommitLog, end: int, recovered: RecoveredStore) -> None:
    checkpoint_end = recovered.checkpointer.last.dispatched or 0
    if end < checkpoint_end or is_damaged(log_, end):
        log.error("the log is damaged at %d: it ends there, and lacks what came behind", end)
        recovered.damage.set(end)


def _mark_open(config: StoreConfig, disk: Disk) -> None:
    """Create the `abort` file: until a clean stop the store counts as torn."""
    root, log_directory = config.directory, config.commit_log_directory
    if not disk.exists(f"{root}/abort"):
        disk.open(f"{root}/abort", create=True).close()
    for directory in (log_directory, f"{root}/consumequeue", f"{root}/index", f"{root}/config"):
        disk.make_dirs(directory)
    disk.sync_dir(parent_of(log_directory))
    disk.sync_dir(root)


def _load_derived(recovered: RecoveredStore, plan: RecoveryPlan, below: int) -> None:
    """Load queues and index, keeping the entries of records below `below`."""
    _, queues, index = recovered.files
    queues.load(below, clean=plan.clean)
    if index is not None:
        index.load(below, plan.index_position, clean=plan.clean)
        recovered.dispatcher.index_from = index.end_offset


def _settle_log(log_: CommitLog, start: int, end: int, fence: Fence) -> None:
    """Cut the log at its end and make everything before it durable."""
    if end < log_.end:
        log.info("the log ends at %d", end)
    try:
        log_.cut(end)
        if fence.flushed is not None:
            log_.rewrite(max(log_.min, min(fence.flushed, end)))
        log_.sync_from(start)
    except OSError as error:
        raise StoreError(f"the end of the log cannot be made durable: {error}") from error


async def _already_flushed(upto: int) -> None:
    """Nothing to flush: recovery has synced the log."""
