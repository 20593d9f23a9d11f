"""Decides how a store is repaired: which steps, and which messages are lost. Changes nothing.

Only the log is the truth, so only its damage loses messages. Records have their log offset in
them and cannot be moved; what is damaged between them is covered instead, by empty records that
belong to no queue, by the end mark of a file, or by a whole file that consists of its end mark.
Then readers, recovery and RocketMQ step over it. Queues and index are built anew from the log.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from gantrymq.base.disk import OsDisk
from gantrymq.kernel import FILLER_SIZE
from gantrymq.store.audit.advice import ADVICE
from gantrymq.store.audit.against_tables import BACKUP, RAFT, table_error, table_paths
from gantrymq.store.audit.findings import WRONG, Finding, runs
from gantrymq.store.audit.scope import Scope, scope_of
from gantrymq.store.audit.survey import LogSurvey, Tell, survey
from gantrymq.store.audit.walk import Damage
from gantrymq.store.audit.whole import audit_store
from gantrymq.store.files.folder import StoreFolder
from gantrymq.store.log.segment import bases_in
from gantrymq.store.tools.filler import FILLER_BYTES_MIN

BRIDGED_MAX: Final = 1024
"""Missing log files that are replaced; more are no accident of a disk."""
ENTRIES_PER_READ: Final = 1 << 16

FILL, END_MARK, GROW, BRIDGE, CUT = "fill", "end-mark", "grow", "bridge", "cut"
LOG_STEPS: Final = (GROW, BRIDGE, FILL, END_MARK, CUT)
REBUILD, DERIVE, RESTORE_TABLE, DROP_TABLE = "rebuild", "derive", "restore-table", "drop-table"


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that a repair does."""

    step: str
    file: str
    position: int
    """A log offset; -1 where the step is not about the log."""
    bytes: int
    text: str
    store_ms: int = 0
    """The store time that an empty record gets."""

    def row(self) -> dict[str, Any]:
        """The step as a row for output."""
        whole = asdict(self)
        del whole["store_ms"]
        return {name: None if value == -1 else value for name, value in whole.items()}


@dataclass(frozen=True, slots=True)
class LostMessages:
    """Messages of a queue whose records are damaged."""

    topic: str
    queue_id: int
    offset: int
    count: int
    position: int
    """The log offset of the first."""

    def row(self) -> dict[str, Any]:
        """The loss as a row for output."""
        return {
            "topic": self.topic,
            "queueId": self.queue_id,
            "offset": self.offset,
            "count": self.count,
            "position": self.position,
        }


@dataclass(frozen=True)
class RepairPlan:
    """What a repair does, and what it cannot."""

    directory: str
    log_directory: str
    steps: list[Step]
    lost: list[LostMessages]
    findings: list[Finding]
    """What is wrong with the store."""
    left: list[str] = field(default_factory=list)
    """What the repair leaves as it is, and who can do better."""

    @property
    def log_steps(self) -> list[Step]:
        """The steps that change the log."""
        return [each for each in self.steps if each.step in LOG_STEPS]


def plan_repair(directory: str, log_directory: str = "", tell: Tell | None = None) -> RepairPlan:
    """Look at a store and decide what to do."""
    findings = [
        each for each in audit_store(directory, log_directory, tell).findings if each.level == WRONG
    ]
    folder = StoreFolder(directory, log_directory)
    scope = scope_of(directory, log_directory)
    is_member = Path(directory, RAFT).is_dir()
    steps, left, found = _log_steps(folder, scope)
    if is_member and steps:
        left.append(
            "the log of a member of a raft group is its group's: it is not changed here. Start the "
            "member with an empty store; its group gives it everything"
        )
        steps = []
    lost = list(_lost(folder, [*found.damages, *([found.tail] if found.tail else [])]))
    derived = any(_is_derived(each) for each in findings)
    if (steps or derived) and not (is_member and left):
        steps += [_derive_step(folder, is_member=is_member)]
    left += [_left(each) for each in findings if ADVICE[each.kind].repair.startswith("nothing")]
    steps += _table_steps(Path(directory))
    return RepairPlan(directory, folder.log.directory, steps, lost, findings, left)


def _is_derived(finding: Finding) -> bool:
    return finding.kind.startswith(("entry-", "queue-", "index-", "ext-", "checkpoint-", "log-end"))


def _left(finding: Finding) -> str:
    return f"{finding.kind} in {finding.file}: {ADVICE[finding.kind].repair}"


def _derive_step(folder: StoreFolder, *, is_member: bool) -> Step:
    if is_member:
        text = "set queues and index aside: the member derives them when its group commits"
        return Step(DERIVE, folder.directory, -1, 0, text)
    text = "build queues, index and checkpoint anew from the log; the old ones are kept"
    return Step(REBUILD, folder.directory, -1, 0, text)


def _log_steps(folder: StoreFolder, scope: Scope) -> tuple[list[Step], list[str], LogSurvey]:
    """How the log is made whole, what stays as it is, and what was found."""
    log, size = folder.log, folder.segment_bytes
    steps, left = [], []
    there = bases_in(OsDisk(), log.directory)
    missing = [base for base in range(there[0], there[-1], size) if base not in set(there)]
    if any((base - there[0]) % size for base in there) or len(missing) > BRIDGED_MAX:
        left.append(f"the files of {log.directory} do not follow each other in steps of {size}")
    else:
        log.bases = there
        steps = [
            Step(BRIDGE, log.path(base), base, size, "put a file of its end mark in this place")
            for base in missing
        ]
    is_ours = scope.dispatched is not None
    found = survey(log, log.min, log.limit if is_ours else min(scope.end, log.limit))
    steps += list(_size_steps(folder, left))
    missing_files = set(missing) if steps else set()
    for each in found.damages:
        steps += _cover(folder, each, missing_files, left)
    is_torn = not scope.is_clean and found.tail is not None
    if found.tail is not None and not (is_torn and found.tail.start >= (scope.dispatched or 0)):
        path, length = log.path(log.base_of(found.tail.start)), found.tail.end - found.tail.start
        text = f"cut the log here: {found.tail.text}, and no record follows"
        steps.append(Step(CUT, path, found.tail.start, length, text))
    return steps, left, found


def _size_steps(folder: StoreFolder, left: list[str]) -> Iterator[Step]:
    """Log files that are too short are filled up with zeros."""
    for base in folder.log.bases:
        size = folder.log.file(base).size
        if size > folder.segment_bytes:
            left.append(f"{folder.log.path(base)} is too long: is it of this store?")
        elif size < folder.segment_bytes and Path(folder.log.path(base)).exists():
            is_last = base == folder.log.bases[-1]
            if not (is_last and size == 0):
                more = folder.segment_bytes - size
                yield Step(GROW, folder.log.path(base), base + size, more, "fill up with zeros")


def _cover(
    folder: StoreFolder, damage: Damage, missing: set[int], left: list[str]
) -> Iterator[Step]:
    """Steps that let readers pass over a stretch of damage."""
    log = folder.log
    path, size = log.path(log.base_of(damage.start)), damage.end - damage.start
    ends_file = (damage.end - log.min) % log.segment_bytes == 0
    if log.base_of(damage.start) in missing:
        return
    if ends_file:
        text = f"write the end mark of the file here: {damage.text}"
        yield Step(END_MARK, path, damage.start, size, text)
    elif size >= FILLER_BYTES_MIN:
        text = f"write an empty record over it: {damage.text}"
        stored = damage.before_ms or log.store_ms(damage.end)
        yield Step(FILL, path, damage.start, size, text, stored)
    else:
        left.append(f"{size} bytes at {damage.start} of the log are too few for a record")


def _lost(folder: StoreFolder, damages: Sequence[Damage]) -> Iterator[LostMessages]:
    """The queue offsets whose entries lead into damage; entries may be damaged themselves."""
    if not damages:
        return
    starts = np.array([each.start for each in damages], np.int64)
    ends = np.array([each.end for each in damages], np.int64)
    for topic in folder.topics():
        for queue_id in folder.queue_ids(topic):
            yield from _lost_of(folder, topic, queue_id, starts, ends)


def _lost_of(
    folder: StoreFolder, topic: str, queue_id: int, starts: Any, ends: Any
) -> Iterator[LostMessages]:
    files = folder.queue(topic, queue_id)
    stop = files.written()
    for at in range(files.begin, stop, ENTRIES_PER_READ):
        entries = files.whole(at, min(stop, at + ENTRIES_PER_READ))
        places = entries["position"].astype(np.int64)
        which = np.searchsorted(starts, places, side="right") - 1
        inside = (which >= 0) & (places < ends[which]) & (entries["size"] > 0)
        rows = np.flatnonzero(inside & (entries["size"] != FILLER_SIZE))
        for first, count in runs(rows):
            row = int(rows[first])
            yield LostMessages(topic, queue_id, at + row, count, int(places[row]))


def _table_steps(root: Path) -> Iterator[Step]:
    for path in table_paths(root):
        if not (error := table_error(path)):
            continue
        backup = path.with_name(path.name + BACKUP)
        if table_error(backup):
            text = (
                f"set it aside ({error}): its backup cannot be read either, the broker begins anew"
            )
            yield Step(DROP_TABLE, str(path), -1, 0, text)
        else:
            text = f"set it aside ({error}) and put its backup in place"
            yield Step(RESTORE_TABLE, str(path), -1, backup.stat().st_size, text)
