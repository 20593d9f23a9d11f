"""Cuts the end off the log of a stopped store, as an operator orders it.

A slave whose master lost messages cannot follow it before it has dropped them, too. That is an
operator's decision, because these may be the last copies. So the order saves them first: the log
files from the cut on are copied to a folder of their own, which is a store in itself. Then a mark
is written, and the next start cuts log, queues and index by the rules of recovery; the mark goes
when that is durable. A crash at any point leaves the store whole, or the mark in force.
"""

from typing import Final, NamedTuple

from gantrymq.base.disk import Disk, LockedError, copy_file, delete_tree, parent_of
from gantrymq.base.offload import Offload
from gantrymq.store.errors import StoreError
from gantrymq.store.log.commitlog import CommitLog
from gantrymq.store.log.scan import scan
from gantrymq.store.log.segment import OpenFiles, file_name
from gantrymq.store.recovery import checkpoint
from gantrymq.store.recovery.offset_mark import CUT, OffsetMark

FOLDER: Final = "cut"
GROUP_FOLDER: Final = "raft"
"""What the members of a raft group have beside their log (`replication/group/files.py`)."""
FILES_OPEN_MAX: Final = 16


class OrderedCut(NamedTuple):
    """What a cut takes away."""

    at: int
    bytes: int
    messages: int
    saved: str
    """The folder that has them now; empty if there was nothing to save."""


async def order_cut(
    root: str, at: int, *, disk: Disk, offload: Offload, log_directory: str = ""
) -> OrderedCut:
    """Save what a stopped store has from log offset `at` on, and let its next start cut it off."""
    try:
        lock = disk.lock(f"{root}/lock")
    except LockedError as error:
        raise StoreError(f"a broker runs on {root}: stop it first ({error})") from error
    try:
        return await _order(root, at, disk, offload, log_directory or f"{root}/commitlog")
    finally:
        lock.release()


async def _order(
    root: str, at: int, disk: Disk, offload: Offload, log_directory: str
) -> OrderedCut:
    if disk.exists(f"{root}/{GROUP_FOLDER}"):
        raise StoreError(
            f"{root} is the store of a raft group's member: its leader decides what is cut. Start "
            "it empty if the group does not take it back"
        )
    last = checkpoint.load(disk, f"{root}/checkpoint")
    if last is None or last.sizes is None:
        raise StoreError(f"{root} is no store that a broker of GantryMQ has opened")
    log_ = CommitLog(OpenFiles(disk, FILES_OPEN_MAX), log_directory, last.sizes[0])
    await offload.run(lambda: log_.load(made_by_us=True))
    if not log_.bases or not log_.min <= at <= log_.end:
        raise StoreError(f"the log of {root} lies between {log_.min} and {log_.end}, not at {at}")
    base = log_.bases[(min(at, log_.end - 1) - log_.min) // log_.segment_bytes]
    bounds, messages, end = {base}, 0, base
    async for _, _, records in scan(log_, offload, base, log_.end):
        for _, _, _, position, size, *_ in records:
            end = position + size
            bounds.add(end)
            messages += position >= at
    if at not in bounds:
        nearest = max(bound for bound in bounds if bound <= at)
        raise StoreError(
            f"no record of {root} ends at {at}: the nearest end before it is {nearest}"
        )
    if at >= end:
        return OrderedCut(at, 0, 0, "")
    saved = await offload.run(_save, disk, log_, base, root, at)
    OffsetMark(disk, root, CUT).set(at)
    return OrderedCut(at, end - at, messages, saved)


def _save(disk: Disk, log_: CommitLog, base: int, root: str, at: int) -> str:
    """Copy the files from `base` on, as the log of a store of its own; returns its folder."""
    folder = f"{root}/{FOLDER}/{file_name(at)}"
    if disk.exists(folder):  # an order that was not finished, or one that is repeated
        if OffsetMark(disk, root, CUT).at != at:
            raise StoreError(f"{folder} has an earlier cut at the same place: move it away first")
        delete_tree(disk, folder)
    disk.make_dirs(f"{folder}/commitlog")
    for each in log_.bases:
        if each >= base:
            copy_file(disk, log_.path(each), f"{folder}/commitlog/{file_name(each)}")
    for directory in (f"{folder}/commitlog", folder, parent_of(folder), root):
        disk.sync_dir(directory)
    return folder
