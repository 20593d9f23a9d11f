"""Carries out a plan of repair. One that was killed is run again: it plans anew from what it finds.

First everything that will change is saved in a folder of its own, with the plan beside it; then
the log is made whole, then queues and index are built anew, then tables are replaced. Each step
leaves a state that the next run, or a broker that starts, knows how to go on from.
"""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from gantrymq.base.clock import SystemClock
from gantrymq.base.disk import LockedError, OsDisk, copy_file, own_file, parent_of
from gantrymq.base.offload import ThreadOffload
from gantrymq.store.audit.against_tables import BACKUP
from gantrymq.store.errors import StoreError
from gantrymq.store.files.mapped import layout_of
from gantrymq.store.log.commitlog import CommitLog
from gantrymq.store.log.segment import OpenFiles, bases_in, file_name
from gantrymq.store.recovery import checkpoint
from gantrymq.store.recovery.offset_mark import CUT, OffsetMark
from gantrymq.store.recovery.rebuild import DERIVED, Rebuilt, rebuild_settled
from gantrymq.store.tools import repair_plan as steps
from gantrymq.store.tools.filler import end_mark, fillers
from gantrymq.store.tools.rebuild_store import config_of
from gantrymq.store.tools.repair_plan import RepairPlan, Step

FOLDER: Final = "repair"
REPORT: Final = "report.json"


@contextmanager
def locked(directory: str) -> Iterator[None]:
    """Hold the lock of a store; StoreError if a broker runs on it."""
    try:
        lock = OsDisk().lock(f"{directory}/lock")
    except LockedError as error:
        raise StoreError(f"a broker runs on {directory}: stop it first ({error})") from error
    try:
        yield
    finally:
        lock.release()


def carry_out(plan: RepairPlan) -> str:
    """Do what a plan says, with the store's lock held; returns the folder of what was saved."""
    if not plan.steps:
        return ""
    disk = OsDisk()
    saved = _save(disk, plan)
    segment_bytes, _ = layout_of(plan.directory, plan.log_directory)
    for name in steps.LOG_STEPS:
        for each in plan.steps:
            if each.step == name:
                _change_log(disk, plan, each, segment_bytes)
    for each in plan.steps:
        if each.step == steps.REBUILD:
            end = _rebuild(plan)
            mark = OffsetMark(disk, plan.directory, CUT)
            if mark.at == end:  # a cut of this repair, or of one that was killed
                mark.clear()
        elif each.step == steps.DERIVE:
            _set_derived_aside(disk, plan.directory, saved)
        elif each.step in (steps.RESTORE_TABLE, steps.DROP_TABLE):
            _replace_table(disk, each)
    return saved


def _save(disk: OsDisk, plan: RepairPlan) -> str:
    """Copy the files that will change, and write the plan beside them."""
    folder = _free_folder(disk, plan.directory)
    disk.make_dirs(folder)
    for path, name in _changing(disk, plan):
        target = f"{folder}/{name}/{Path(path).name}"
        if disk.exists(path) and not disk.exists(target):
            disk.make_dirs(parent_of(target))
            copy_file(disk, path, target)
            disk.sync_dir(parent_of(target))
    report = {
        "steps": [each.row() for each in plan.steps],
        "lost": [each.row() for each in plan.lost],
        "left": plan.left,
    }
    Path(folder, REPORT).write_text(json.dumps(report, indent=2) + "\n")
    for directory in (folder, parent_of(folder), plan.directory):
        disk.sync_dir(directory)
    disk.sync_all(folder)
    return folder


def _changing(disk: OsDisk, plan: RepairPlan) -> Iterator[tuple[str, str]]:
    """The files that will change or go, and the folder that each is saved in."""
    for each in plan.steps:
        if each.step == steps.CUT:
            for base in bases_in(disk, plan.log_directory):
                if file_name(base) >= Path(each.file).name:
                    yield f"{plan.log_directory}/{file_name(base)}", "commitlog"
        elif each.step in steps.LOG_STEPS and each.step != steps.BRIDGE:
            yield each.file, "commitlog"
        elif each.step in (steps.RESTORE_TABLE, steps.DROP_TABLE):
            yield each.file, "config"
            yield f"{each.file}{BACKUP}", "config"


def _free_folder(disk: OsDisk, directory: str) -> str:
    number = 1
    while disk.exists(f"{directory}/{FOLDER}/{number}"):
        number += 1
    return f"{directory}/{FOLDER}/{number}"


def _change_log(disk: OsDisk, plan: RepairPlan, step: Step, segment_bytes: int) -> None:
    at = step.position % segment_bytes
    if step.step == steps.BRIDGE:
        _bridge(disk, step.file, segment_bytes)
        return
    own_file(disk, step.file)
    if step.step == steps.CUT:
        # A broker that starts before the rest is done must not trust its old checkpoint.
        OffsetMark(disk, plan.directory, CUT).set(step.position)
        log = CommitLog(OpenFiles(disk, 16), parent_of(step.file), segment_bytes)
        log.load(made_by_us=True)
        log.cut(step.position)
        return
    file = disk.open(step.file)
    try:
        if step.step == steps.GROW:
            file.allocate(segment_bytes)
        elif step.step == steps.END_MARK:
            file.pwrite(end_mark(segment_bytes - at), at)
        else:
            for place, data in fillers(step.position, step.bytes, step.store_ms):
                file.pwrite(data, place % segment_bytes)
        file.sync()
    finally:
        file.close()


def _bridge(disk: OsDisk, path: str, segment_bytes: int) -> None:
    """Make a log file without records; it takes its name when it is whole."""
    file = disk.open(f"{path}.new", create=True)
    try:
        file.truncate(segment_bytes)
        file.pwrite(end_mark(segment_bytes), 0)
        file.sync()
    finally:
        file.close()
    disk.rename(f"{path}.new", path)
    disk.sync_dir(parent_of(path))


def _rebuild(plan: RepairPlan) -> int | None:
    """Build queues, index and checkpoint; returns the end of the log."""
    own = "" if plan.log_directory == f"{plan.directory}/commitlog" else plan.log_directory
    config = config_of(plan.directory, own)

    async def run() -> Rebuilt:
        offload = ThreadOffload()
        try:
            return await rebuild_settled(
                config, disk=OsDisk(), clock=SystemClock(), offload=offload
            )
        finally:
            offload.close()

    asyncio.run(run())
    made = checkpoint.load(OsDisk(), f"{plan.directory}/checkpoint")
    return made.dispatched if made is not None else None


def _set_derived_aside(disk: OsDisk, directory: str, saved: str) -> None:
    for name in DERIVED:
        if disk.exists(f"{directory}/{name}"):
            disk.rename(f"{directory}/{name}", f"{saved}/{name}")
    disk.sync_dir(saved)
    disk.sync_dir(directory)


def _replace_table(disk: OsDisk, step: Step) -> None:
    """Put the backup in place of a table, or remove a table that has none; it was saved before."""
    if step.step == steps.RESTORE_TABLE:
        copied = f"{step.file}.tmp"
        if disk.exists(copied):
            disk.delete(copied)
        copy_file(disk, f"{step.file}{BACKUP}", copied)
        disk.keep_mode(f"{step.file}{BACKUP}", copied)
        disk.rename(copied, step.file)
    else:
        for name in (step.file, f"{step.file}{BACKUP}"):
            if disk.exists(name):
                disk.delete(name)
    disk.sync_dir(parent_of(step.file))
