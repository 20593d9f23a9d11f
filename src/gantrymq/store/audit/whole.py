"""The whole audit: tasks, here or on workers, and the sum of their findings."""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from gantrymq.base.clock import elapsed_seconds
from gantrymq.base.disk import LockedError, OsDisk, check_unlocked
from gantrymq.base.plurals import counted
from gantrymq.protocol.record import MAGIC_BLANK
from gantrymq.store.audit.against_tables import check_small_files
from gantrymq.store.audit.findings import (
    COVERED,
    JOINT,
    NOTE,
    WRONG,
    Finding,
    is_log_damage,
    joined,
    worst_first,
)
from gantrymq.store.audit.scope import Scope, Task, scope_of, stray_files, tasks_of
from gantrymq.store.audit.survey import survey
from gantrymq.store.audit.task import audit_task
from gantrymq.store.audit.walk import DEBRIS
from gantrymq.store.files.folder import StoreFolder
from gantrymq.store.files.index_files import index_files
from gantrymq.store.index.index_file import ENTRY_BYTES, HEADER, SLOT_BYTES
from gantrymq.store.recovery import checkpoint

WAVE_TASKS: Final = 32
"""Tasks that are run together: between waves the audit tells how far it is."""

BLANK: Final = struct.Struct(">ii")
CUT_THERE: Final = "records follow, which the next start would cut off with it"
ENTRY_KINDS: Final = ("entry-missing", "entry-place", "entry-size", "entry-tag")


@dataclass(frozen=True)
class Audit:
    """The result of an audit."""

    directory: str
    findings: list[Finding]
    covered: dict[str, int]
    seconds: float
    notes: list[str] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        """Whether nothing is wrong; notes do not count."""
        return not any(each.level == WRONG for each in self.findings)


Runner = Callable[[Scope, Sequence[Task]], list[Finding]]
Tell = Callable[[int, int], None]
"""Called with how many parts of the store are done, and how many there are."""


def audit_store(directory: str, log_directory: str = "", tell: Tell | None = None) -> Audit:
    """Check a store in this process, part by part."""
    return audit_by(run_here, directory, log_directory, tell, wave=1)


def run_here(scope: Scope, tasks: Sequence[Task]) -> list[Finding]:
    """Run tasks in this process, one after the other."""
    return [finding for task in tasks for finding in audit_task(scope, task)]


def audit_by(
    run: Runner,
    directory: str,
    log_directory: str = "",
    tell: Tell | None = None,
    *,
    wave: int = WAVE_TASKS,
) -> Audit:
    """The same with any function that runs tasks, `wave` of them at a time."""
    began, scope = elapsed_seconds(), scope_of(directory, log_directory)
    tasks = tasks_of(scope, len(index_files(scope.directory)))
    found: list[Finding] = []
    for at in range(0, len(tasks), wave):
        found += run(scope, tasks[at : at + wave])
        if tell is not None:
            tell(min(at + wave, len(tasks)), len(tasks))
    folder = StoreFolder(scope.directory, scope.log_directory)
    covered: dict[str, int] = {}
    for each in found:
        if each.level == COVERED:
            covered[each.kind] = covered.get(each.kind, 0) + each.count
    findings = [each for each in found if each.level in (WRONG, NOTE)]
    findings += [*_layout(folder), *_joints(found, scope), *_unchecked_tail(folder, scope)]
    findings += check_small_files(folder, scope)
    return Audit(
        scope.directory,
        worst_first(joined(_once(findings))),
        covered,
        elapsed_seconds() - began,
        _notes(scope, folder),
    )


def _layout(folder: StoreFolder) -> list[Finding]:
    """Log files of a wrong size, or with a gap behind them."""
    findings = [
        Finding(
            WRONG,
            "log-gap",
            folder.log.path(base),
            position=base,
            text="files between this one and the next are missing; nothing before is read",
        )
        for base in stray_files(folder)
    ]
    for base in folder.log.bases:
        size = folder.log.file(base).size
        if size != folder.segment_bytes:
            text = f"the file has {counted(size, 'byte')} instead of {folder.segment_bytes}"
            findings.append(
                Finding(WRONG, "log-size", folder.log.path(base), size, base, text=text)
            )
    return [*findings, *_index_sizes(folder)]


def _index_sizes(folder: StoreFolder) -> list[Finding]:
    """Index files of another size than the store was made with."""
    known = checkpoint.load(OsDisk(), f"{folder.directory}/checkpoint")
    if known is None or known.sizes is None:
        return []
    _, _, slots, entries = known.sizes
    wanted = HEADER.size + slots * SLOT_BYTES + entries * ENTRY_BYTES
    return [
        Finding(
            WRONG,
            "index-size",
            str(path),
            path.stat().st_size,
            text=f"the file has {counted(path.stat().st_size, 'byte')} instead of {wanted}",
        )
        for path in sorted(Path(folder.directory, "index").glob("[0-9]*"))
        if path.name.isdigit() and path.stat().st_size != wanted
    ]


def _joints(found: Sequence[Finding], scope: Scope) -> list[Finding]:
    """Gaps between the parts of the log, and an end before the expected one."""
    folder = StoreFolder(scope.directory, scope.log_directory)
    damaged = {each.position + each.count for each in found if is_log_damage(each)}
    findings, expected = [], max(scope.log_min, folder.log.min)
    for part in sorted((f for f in found if f.level == JOINT), key=lambda f: f.position):
        expected = _behind_blank(folder, expected)
        if part.kind == DEBRIS and part.position < expected:
            continue  # bytes after the end mark of a file have no meaning
        if part.position > expected and expected not in damaged:
            findings.append(_gap(folder, expected, part.position))
        if part.kind == DEBRIS:
            findings.append(_gap(folder, part.position, part.position + part.count))
        expected = max(expected, part.position + part.count)
    expected = _behind_blank(folder, expected)
    if expected < scope.end and expected not in damaged:
        base = folder.log.base_of(expected)
        text = f"the log ends here, but queues or the checkpoint reach up to {scope.end}"
        findings.append(
            Finding(
                WRONG,
                "log-end",
                folder.log.path(base),
                expected - base,
                expected,
                count=scope.end - expected,
                text=text,
            )
        )
    return findings


def _unchecked_tail(folder: StoreFolder, scope: Scope) -> list[Finding]:
    """What the next start does to the log of a broker of ours that died.

    The parts of the audit end where the checkpoint does.
    """
    if scope.is_clean or scope.dispatched is None or is_held(scope.directory):
        return []
    found = survey(folder.log, scope.end, folder.log.limit)
    behind = [(WRONG, each, CUT_THERE) for each in found.damages]
    if found.tail is not None:
        behind.append((NOTE, found.tail, "a torn write: the next start cuts it off"))
    return [
        Finding(
            level,
            each.kind,
            folder.log.path(folder.log.base_of(each.start)),
            each.start % folder.segment_bytes,
            each.start,
            count=each.end - each.start,
            text=f"{each.text}; {said}",
        )
        for level, each, said in behind
    ]


def is_held(directory: str) -> bool:
    """Whether a process has the store open now."""
    try:
        check_unlocked(f"{directory}/lock")
    except LockedError:
        return True
    except OSError:
        return False  # the lock file may not be written, so nobody can hold it
    return False


def _behind_blank(folder: StoreFolder, position: int) -> int:
    """The start of the next file if the end mark of this file stands here, else `position`."""
    base = folder.log.base_of(position)
    mark = folder.log.file(base)[position - base : position - base + BLANK.size]
    rest = base + folder.segment_bytes - position
    is_end = mark.size == BLANK.size and BLANK.unpack(mark.tobytes()) == (rest, MAGIC_BLANK)
    return position + rest if is_end else position


def _gap(folder: StoreFolder, start: int, end: int) -> Finding:
    base = folder.log.base_of(start)
    return Finding(
        WRONG,
        "log-chain",
        folder.log.path(base),
        start - base,
        start,
        count=end - start,
        text="no record can be read here",
    )


def _once(findings: Sequence[Finding]) -> list[Finding]:
    """One finding for one fault: leave out those that another finding explains."""
    damaged = [(f.position, f.position + f.count) for f in findings if is_log_damage(f)]
    explained: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for each in joined([f for f in findings if f.kind in ENTRY_KINDS]):
        stretch = each.offset, each.offset + each.count
        explained.setdefault((each.topic, each.queue_id), []).append(stretch)

    def is_new(each: Finding) -> bool:
        if each.kind not in ("entry-surplus", "entry-hole", "index-nowhere"):
            return True
        if each.kind != "entry-hole" and any(a <= each.position < b for a, b in damaged):
            return False
        known = explained.get((each.topic, each.queue_id), ())
        return not any(a <= each.offset and each.offset + each.count <= b for a, b in known)

    return [each for each in findings if is_new(each)]


def _notes(scope: Scope, folder: StoreFolder) -> list[str]:
    notes = []
    if not scope.is_clean:
        notes.append(
            f"the store is open (a broker runs on it or died on it): records from log offset "
            f"{scope.end} on are left out"
        )
    elif folder.is_open:
        notes.append("a broker was started meanwhile: what was found may be its work")
    if not index_files(scope.directory):
        notes.append("the store has no key index that could be read")
    return notes
