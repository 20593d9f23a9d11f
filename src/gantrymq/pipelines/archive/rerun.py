"""Archive a period again: its rows are read once more and replace those in the table.

Exactly the rows stored in [since, until) are replaced, to the millisecond. Files that lie across a
limit are written again without the period's rows. If the broker no longer has a row that the table
has, nothing is replaced.
"""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from gantrymq.base.clock import WallClock
from gantrymq.base.errors import ConfigError, GantryError
from gantrymq.base.time_text import Period
from gantrymq.model import Queue
from gantrymq.model.offset_ranges import OffsetRange, QueueOffsets
from gantrymq.pipelines.archive.run import split, tasks_of
from gantrymq.pipelines.archive.upkeep import replaced
from gantrymq.pipelines.archive.work import TaskReport, Work, run_work
from gantrymq.pipelines.lake import Change, DataFile, Table, TableError
from gantrymq.pipelines.lake.file_rows import batches, within
from gantrymq.pipelines.lake.file_writer import FileWriter, remove, runs
from gantrymq.pipelines.lake.files import OffsetSpan, pruned, spans
from gantrymq.spark.options.columns import COLUMNS
from gantrymq.spark.options.source_options import SourceOptions
from gantrymq.spark.records.rows import Rows
from gantrymq.spark.source.rows import open_rows

Ints = npt.NDArray[np.int64]

TRIES_MAX: Final = 3


class GoneFromBroker(GantryError):
    """The broker no longer has all messages of the period."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """The work of one task: read a range again, or rewrite a file without the period's rows."""

    wanted: OffsetRange | None = None
    file: DataFile | None = None


@dataclass(frozen=True, slots=True)
class RerunResult:
    """What a rerun replaced."""

    rows: int
    """Rows of the period that the table has now."""
    dropped: int
    """Rows of the period that it had before."""


def replace_period(
    spark: Any,
    table: Table,
    options: SourceOptions,
    period: Period,
    *,
    run: str,
    clock: WallClock,
    report: Callable[[QueueOffsets], None] | None = None,
) -> RerunResult:
    """Replace a period's rows; the positions of the table stay."""
    if period.since_ms is None and period.until_ms is None:
        raise ConfigError("--again needs a period: --since, --until or both")
    for number in range(TRIES_MAX):
        table.refresh()
        found = _try(spark, table, options, period, run=f"{run}a{number}", clock=clock)
        if found is not None:
            if report is not None:
                report(table.positions())
            return found
    raise TableError(f"the table {table.root} changes all the time: {TRIES_MAX} tries")


def _try(
    spark: Any, table: Table, options: SourceOptions, period: Period, *, run: str, clock: WallClock
) -> RerunResult | None:
    since, until = period.since_ms, period.until_ms
    with open_rows(options) as rows:
        lows, highs = rows.bounds()
        topics = {queue.topic for queue in highs}
        old = pruned(table.files(), topics=topics, since_ms=since, until_ms=until)
        held = table.positions(highs)
        if not held:
            raise ConfigError(
                f"the table {table.root} has none of these topics: archive them first"
            )
        wanted = _wanted(rows, period, held, lows, old)
    dropped = [_span(each) for each in old if _inside(each, period)]
    parts = split(wanted, tasks_of(spark))
    tasks = [Rewrite(wanted=each) for each in parts]
    tasks += [Rewrite(file=each) for each in old if not _inside(each, period)]
    work = build_rewrite_work(table.root, options, period)
    did = run_work(spark, table.root, tasks, work, run)
    added = [*did.files, *did.kept]
    lost = missing([*dropped, *did.dropped], spans(did.files))
    if lost:
        remove(table.root, added)
        raise GoneFromBroker(
            f"messages {lost[0].start} to {lost[0].end - 1} of {lost[0].queue.text} are in the "
            "table but can no longer be read: nothing was replaced"
        )
    change = Change(clock.now_ms(), tuple(added), tuple(old), reason=f"again {since} to {until}")
    if (added or old) and not replaced(table, change):
        return None
    kept = sum(each.rows for each in did.kept)
    return RerunResult(sum(each.rows for each in did.files), sum(each.rows for each in old) - kept)


def _wanted(
    rows: Rows, period: Period, held: QueueOffsets, lows: QueueOffsets, old: list[DataFile]
) -> list[OffsetRange]:
    """The ranges to read: what the broker stored in the period, and what the table has of it.

    Both, because a broker's clock may have been set back. Never beyond the table's positions: later
    messages belong to the next run.
    """
    first = dict(lows)
    if period.since_ms is not None:
        first = rows.offsets_at(dict.fromkeys(held, period.since_ms))
    last = dict(held)
    if period.until_ms is not None:
        last = rows.offsets_at(dict.fromkeys(held, period.until_ms))
    found = []
    for queue, position in sorted(held.items()):
        mine = [each for each in old if each.queue == queue]
        begin = min([first.get(queue, 0), *(each.first for each in mine)])
        end = max([last.get(queue, 0), *(each.last + 1 for each in mine)])
        begin, end = max(begin, lows[queue]), min(end, position)
        if begin < end:
            found.append(OffsetRange(queue, begin, end))
    return found


def _inside(each: DataFile, period: Period) -> bool:
    """Whether all rows of a file belong to the period and to one known queue."""
    return (
        each.queue is not None
        and (period.since_ms is None or each.since_ms >= period.since_ms)
        and (period.until_ms is None or each.until_ms < period.until_ms)
    )


def _span(each: DataFile) -> OffsetSpan:
    assert each.queue is not None
    return OffsetSpan(each.queue, each.first, each.last + 1)


def missing(dropped: list[OffsetSpan], there: dict[Queue, list[OffsetSpan]]) -> list[OffsetSpan]:
    """Dropped spans that no span of `there` contains."""
    return [
        each
        for each in dropped
        if not any(
            span.start <= each.start and each.end <= span.end for span in there.get(each.queue, [])
        )
    ]


# the tasks


def build_rewrite_work(root: Path, options: SourceOptions, period: Period) -> Work:
    """The function that a task runs: it does one `Rewrite`."""

    def rewrite(task: Rewrite, token: str) -> TaskReport:
        if task.wanted is not None:
            return _copied(root, options, task.wanted, period, f"{token}n")
        assert task.file is not None
        return _cut(root, task.file, period, token)

    return rewrite


def _copied(
    root: Path, options: SourceOptions, wanted: OffsetRange, period: Period, token: str
) -> TaskReport:
    """Write the rows of a range that belong to the period into new files."""
    with FileWriter(root, wanted.queue, token) as writer, open_rows(options) as rows:
        for batch in rows.batches(wanted, tuple(COLUMNS)):
            kept = batch.filter(within(batch, period.since_ms, period.until_ms))
            if kept.num_rows:
                writer.add(kept)
        return TaskReport(files=writer.close())


def _cut(root: Path, file: DataFile, period: Period, token: str) -> TaskReport:
    """Write the rows of a file outside the period into new files; report the rows left out."""
    writers: dict[Queue, FileWriter] = {}
    dropped: dict[Queue, list[Ints]] = {}
    with ExitStack() as opened:
        for batch in batches(root, file):
            inside = within(batch, period.since_ms, period.until_ms)
            for queue, part in _by_queue(batch.filter(pc.invert(inside)), file):
                if queue not in writers:
                    writer = FileWriter(root, queue, f"{token}k{len(writers)}")
                    writers[queue] = opened.enter_context(writer)
                writers[queue].add(part)
            for queue, part in _by_queue(batch.filter(inside), file):
                dropped.setdefault(queue, []).append(part.column("queueOffset").to_numpy())
        files = [each for writer in writers.values() for each in writer.close()]
    gone = [span for queue, parts in dropped.items() for span in _spans(queue, parts)]
    return TaskReport(kept=files, dropped=gone)


def _by_queue(batch: Any, file: DataFile) -> list[tuple[Queue, Any]]:
    """The rows by queue, each in order of offset; a file of this package has one queue."""
    if not batch.num_rows:
        return []
    if file.queue is not None:
        return [(file.queue, batch)]
    found = []
    brokers, ids = batch.column("brokerName"), batch.column("queueId")
    for broker, queue_id in sorted(set(zip(brokers.to_pylist(), ids.to_pylist(), strict=True))):
        part = batch.filter(pc.and_(pc.equal(brokers, broker), pc.equal(ids, queue_id)))
        found.append((Queue(file.topic, broker, queue_id), part.sort_by("queueOffset")))
    return found


def _spans(queue: Queue, parts: list[Ints]) -> list[OffsetSpan]:
    """Ascending runs of offsets as spans."""
    offsets = np.unique(np.concatenate(parts))
    return [
        OffsetSpan(queue, int(offsets[first]), int(offsets[last - 1]) + 1)
        for first, last in runs(offsets)
    ]
