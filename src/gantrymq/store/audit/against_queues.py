"""Checks that queue entries lead to their records, and the layout of queue files."""

from typing import Final

import numpy as np

from gantrymq.base.disk import OsDisk
from gantrymq.base.plurals import counted
from gantrymq.kernel import FILLER_SIZE
from gantrymq.protocol.record import BORN_V6, STORE_V6, version_of
from gantrymq.store.audit.against_ext import check_units
from gantrymq.store.audit.findings import WRONG, Finding, TaskFindings, runs
from gantrymq.store.audit.scope import Scope
from gantrymq.store.files.folder import StoreFolder
from gantrymq.store.files.mapped import (
    Bools,
    Bytes,
    Entries,
    Ints,
    MappedLog,
    QueueFiles,
    fitting,
    gather,
)
from gantrymq.store.log.segment import bases_in

ENTRIES_PER_READ: Final = 1 << 17
MANY_QUEUES: Final = "%LMQ%"
"""Topics whose queues hold entries of other topics' records."""

_REST_TYPE: Final = np.dtype([("flags", ">i4"), ("skip", "V44"), ("body_size", ">i4")])
_AT_FLAGS: Final = 36


def check_queue(
    folder: StoreFolder, scope: Scope, topic: str, queue_id: int, ledger: TaskFindings
) -> None:
    """Report entries that do not lead to a record of this queue and offset."""
    files = folder.queue(topic, queue_id)
    _check_layout(folder, files, topic, queue_id, ledger)
    stop = files.written()
    at, begun = files.begin, False
    while at < stop:
        entries = files.whole(at, min(stop, at + ENTRIES_PER_READ))
        offsets = at + np.arange(entries.size)
        is_open = entries["position"] >= scope.end  # beyond the end of the audit
        is_gone = (entries["position"] < folder.log.min) & (entries["size"] > 0)
        filler = entries["size"] == FILLER_SIZE
        lost = filler & (entries["position"] > 0)  # a repair has told of it
        filler &= ~lost
        hole = (entries["size"] <= 0) & ~is_open
        judged = ~is_open & ~is_gone & ~filler & ~lost & ~hole
        wrong = np.zeros(entries.size, bool)
        rows = np.flatnonzero(judged)
        wrong[rows] = ~fit(folder.log, entries[rows], queue_id, offsets[rows], topic)
        ledger.cover("queue entries with their record", rows.size)
        ledger.cover("queue entries of deleted log files", int((is_gone & ~lost).sum()))
        ledger.cover("queue entries of lost messages", int(lost.sum()))
        check_units(folder, topic, queue_id, offsets[rows], entries[rows], ledger)
        late = filler & (begun | (np.cumsum(judged) > 0))
        begun = begun or bool(judged.any())
        for kind, mask, text in (
            ("entry-surplus", wrong, "entries that lead to no record of this queue and offset"),
            ("entry-hole", hole | late, "empty entries in the middle of a queue"),
        ):
            _report(kind, text, files, topic, queue_id, offsets[mask], entries[mask], ledger)
        at += entries.size


def _check_layout(
    folder: StoreFolder, files: QueueFiles, topic: str, queue_id: int, ledger: TaskFindings
) -> None:
    """Report gaps between files, and files of a wrong size."""
    for base in bases_in(OsDisk(), files.directory):
        if base not in files.bases:
            text = "files between this one and the next are missing"
            path = f"{files.directory}/{base:020d}"
            ledger.add(Finding(WRONG, "queue-gap", path, topic=topic, queue_id=queue_id, text=text))
    for path, size in files.sizes():
        if size != files.file_bytes:
            ledger.add(
                Finding(
                    WRONG,
                    "queue-size",
                    path,
                    size,
                    topic=topic,
                    queue_id=queue_id,
                    text=f"the file has {counted(size, 'byte')} instead of {files.file_bytes}",
                )
            )


def _report(
    kind: str,
    text: str,
    files: QueueFiles,
    topic: str,
    queue_id: int,
    offsets: Ints,
    entries: Entries,
    ledger: TaskFindings,
) -> None:
    for first, count in runs(offsets):
        offset = int(offsets[first])
        path, at = files.place(offset)
        position = int(entries["position"][first])
        ledger.add(Finding(WRONG, kind, path, at, position, topic, queue_id, offset, count, text))


def fit(
    log: MappedLog, entries: Entries, queue_id: int, offsets: Ints, topic: str | None = None
) -> Bools:
    """Which entries lead to a record of this queue and offset, and of a topic if one is given."""
    fits = np.zeros(entries.size, bool)
    positions, sizes = entries["position"].astype(np.int64), entries["size"].astype(np.int64)
    bases = positions - positions % log.segment_bytes
    known = set(log.bases)
    for base in np.unique(bases).tolist():
        if base not in known:
            continue
        rows, view = np.flatnonzero(bases == base), log.file(base)
        starts = positions[rows] - base
        good = fitting(
            view, starts, sizes[rows], position=base, queue_id=queue_id, first=offsets[rows]
        )
        if topic is not None and not topic.startswith(MANY_QUEUES):
            good[good] = _is_topic(view, starts[good], sizes[rows][good], topic.encode())
        fits[rows] = good
    return fits


def _is_topic(view: Bytes, starts: Ints, sizes: Ints, topic: bytes) -> Bools:
    """Which of these records are of a topic; their sizes are checked, their parts are not."""
    rest = gather(view, starts + _AT_FLAGS, _REST_TYPE)
    flags = rest["flags"].astype(np.int64)
    plain = (flags & (BORN_V6 | STORE_V6)) == 0
    magic, width = version_of(topic)
    is_version = gather(view, starts + 4, ">i4") == magic
    at = starts + 88 + rest["body_size"].astype(np.int64)
    end = at + width + len(topic)
    inside = plain & is_version & (at >= starts) & (end <= starts + sizes)
    same: Bools = ~plain  # the rare layouts are left to the walk through the log
    rows = np.flatnonzero(inside)
    match = gather(view, at[rows], f">u{width}") == len(topic)
    names = gather(view, end[rows] - len(topic), f"V{len(topic)}")
    names = names.view(np.uint8).reshape(-1, len(topic))
    same[rows] = match & (names == np.frombuffer(topic, np.uint8)).all(axis=1)
    return same
