"""The driver of the archive: from the table's positions to the present, commit by commit.

Nothing is remembered outside the table. A killed run is simply started again and goes on after
the last commit; files that it had written and not committed are swept up later. Of two runs that
copy the same rows one loses the commit, deletes its files and goes on from the new positions.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Final

from gantrymq.base.clock import WallClock
from gantrymq.base.errors import GantryError
from gantrymq.model.offset_ranges import OffsetRange, QueueOffsets
from gantrymq.pipelines.archive.watch import Watcher, left_of
from gantrymq.pipelines.archive.work import build_copy_work, run_work
from gantrymq.pipelines.common.progress import RunProgress, Silent
from gantrymq.pipelines.lake import Change, DataFile, Table
from gantrymq.pipelines.lake.commits import commit
from gantrymq.pipelines.lake.files import OffsetSpan, spans
from gantrymq.spark.options.points import EARLIEST, Point, resolve
from gantrymq.spark.options.source_options import SKIP, SourceOptions
from gantrymq.spark.plan import advance, pack
from gantrymq.spark.records.rows import Rows
from gantrymq.spark.source.rows import open_rows

ROWS_PER_COMMIT: Final = 1_000_000
ROWS_PER_RANGE_MIN: Final = 10_000
"""Queues are split over tasks, but not into pieces smaller than this."""
TASKS_MAX: Final = 1024


class ArchiveBehind(GantryError):
    """Messages were deleted before they were archived."""


class OtherQueue(GantryError):
    """A queue is not the one that was archived before: it ends before the table's position."""


@dataclass(slots=True)
class ArchiveResult:
    """What a run did."""

    rows: int = 0
    files: int = 0
    size: int = 0
    commits: int = 0
    lost_races: int = 0
    gaps: list[str] = field(default_factory=list)

    def add(self, files: list[DataFile]) -> None:
        self.rows += sum(each.rows for each in files)
        self.files += len(files)
        self.size += sum(each.size for each in files)
        self.commits += 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveRequest:
    """What to archive, and how."""

    options: SourceOptions
    start: Point = EARLIEST
    """Where topics begin that the table does not know yet."""
    rows_per_commit: int = ROWS_PER_COMMIT
    allow_gaps: bool = False


class Archive:
    """Copies topics into a table. `run` is a unique word for the names of this run's files."""

    def __init__(
        self,
        spark: Any,
        table: Table,
        job: ArchiveRequest,
        *,
        run: str,
        clock: WallClock,
        progress: RunProgress | None = None,
        report: Callable[[QueueOffsets], None] | None = None,
        watcher: Watcher | None = None,
    ) -> None:
        self._spark, self.table, self._job, self._clock = spark, table, job, clock
        self._progress = progress or Silent()
        self._report, self._watcher = report, watcher
        self._run = run
        self._tasks_max = tasks_of(spark)
        self.totals = ArchiveResult()
        self._untold: list[str] = []

    def run(self, *, stopped: Callable[[], bool] = lambda: False) -> ArchiveResult:
        """Copy everything up to the present; `stopped` is called between commits."""
        self.catch_up(stopped=stopped, counts=True)
        self._progress.done()
        return self.totals

    def catch_up(self, *, stopped: Callable[[], bool], counts: bool = False) -> None:
        """The same without an end of the progress; with `counts` the progress gets the total."""
        self.table.refresh()
        with open_rows(self._job.options) as rows:
            lows, target = rows.bounds()
            start = self._start(rows, lows, target)
            if counts:
                self._progress.start(sum(left_of(start, target).values()), "rows")
            while not stopped():
                if not self._step(start, target):
                    break
                self.table.refresh()
                start = self._start(rows, *rows.bounds())

    # what to copy

    def _start(self, rows: Rows, lows: QueueOffsets, highs: QueueOffsets) -> QueueOffsets:
        """The offset at which each queue goes on."""
        held = self.table.positions(highs)
        topics = {queue.topic for queue in held}
        fresh = [queue for queue in highs if queue not in held and queue.topic not in topics]
        chosen: QueueOffsets = {}
        if fresh:
            # A topic that appears beside others of a pattern is new: it is archived from its start.
            late = self._job.options.queues.pattern is not None and bool(held)
            chosen = resolve(
                EARLIEST if late else self._job.start,
                lows,
                highs,
                otherwise=EARLIEST,
                at_times=rows.offsets_at,
                committed=rows.committed,
            )
        start = {
            queue: held.get(queue, chosen[queue] if queue in fresh else low)
            for queue, low in lows.items()
            if queue in highs
        }
        start = self._checked(start, held, lows, highs)
        if self._watcher is not None:
            self._watcher.look(rows, start, highs)
        return start

    def _checked(
        self, start: QueueOffsets, held: QueueOffsets, lows: QueueOffsets, highs: QueueOffsets
    ) -> QueueOffsets:
        """The same, checked: each queue still has its next message, or gaps are allowed."""
        for queue, at in held.items():
            if at > highs[queue]:
                raise OtherQueue(
                    f"{queue.text} ends at {highs[queue]}, but the table {self.table.root} has "
                    f"it up to {at}: the topic was made anew, or this is another cluster. Archive "
                    "into another folder"
                )
            if at < lows[queue]:
                text = f"messages {at} to {lows[queue] - 1} of {queue.text}"
                if not self._job.allow_gaps:
                    raise ArchiveBehind(
                        f"{text} are deleted and were never archived. To archive what is left, and "
                        "have the gap written down, run again with --allow-gaps"
                    )
                self._gap(text)
                start = start | {queue: lows[queue]}
        return start

    def _gap(self, text: str) -> None:
        """Record a gap for the totals, the progress and the reason of the next commit."""
        if text not in self.totals.gaps:
            self.totals.gaps.append(text)
            self._untold.append(text)
            self._progress.note(f"gap: {text} are deleted and were never archived")

    # copying

    def _step(self, start: QueueOffsets, target: QueueOffsets) -> bool:
        """Copy up to a commit's worth of rows; False when there is nothing left."""
        known = self.table.positions(start)
        highs = {queue: target.get(queue, at) for queue, at in start.items()}
        end = advance(start, highs, self._job.rows_per_commit)
        wanted = [
            OffsetRange(queue, at, end[queue], is_new=queue not in known)
            for queue, at in sorted(start.items())
            if at < end[queue]
        ]
        if not wanted and known == end:
            return False
        options = self._job.options
        if self._job.allow_gaps:
            options = replace(options, on_loss=SKIP)
        tasks = pack(split(wanted, self._tasks_max), self._tasks_max)
        files = self._copied(tasks, options)
        if self._job.allow_gaps:
            for hole in holes(wanted, files):
                self._gap(f"messages {hole.start} to {hole.end - 1} of {hole.queue.text}")
        self._commit(files, known, end)
        return bool(wanted)

    def _copied(
        self, tasks: list[tuple[OffsetRange, ...]], options: SourceOptions
    ) -> list[DataFile]:
        if not tasks:
            return []
        root = self.table.root
        return run_work(self._spark, root, tasks, build_copy_work(root, options), self._run).files

    def _commit(self, files: list[DataFile], known: QueueOffsets, end: QueueOffsets) -> None:
        """Add files to the table; if another run committed these messages first, delete them."""
        moved = {queue: at for queue, at in end.items() if known.get(queue) != at}
        change = Change(self._clock.now_ms(), tuple(files), ends=moved, reason=self._reason())
        if not commit(self.table, change, lambda: self.table.positions(end) == known):
            self.totals.lost_races += 1
            self._progress.note("another run archived these messages: going on behind them")
            return
        self._untold.clear()
        self.totals.add(files)
        self._progress.advance(sum(each.rows for each in files))
        if self._report is not None:
            self._report(end)

    def _reason(self) -> str:
        return "; ".join(["archive", *(f"gap: {text}" for text in self._untold)])


def holes(wanted: list[OffsetRange], files: list[DataFile]) -> list[OffsetSpan]:
    """The parts of ranges that no file has. A new queue may begin at any offset."""
    there = spans(files)
    found: list[OffsetSpan] = []
    for each in wanted:
        at = each.start
        for span in there.get(each.queue, []):
            if span.start > at and not (each.is_new and at == each.start):
                found.append(OffsetSpan(each.queue, at, span.start))
            at = span.end
        if at < each.end and not (each.is_new and at == each.start):
            found.append(OffsetSpan(each.queue, at, each.end))
    return found


def split(wanted: list[OffsetRange], tasks: int) -> list[OffsetRange]:
    """The same ranges, cut so that tasks get even shares."""
    total = sum(each.rows for each in wanted)
    size = max(ROWS_PER_RANGE_MIN, -(-total // max(1, tasks)))
    return [part for each in wanted for part in _cut(each, size)]


def _cut(each: OffsetRange, size: int) -> list[OffsetRange]:
    """Pieces of nearly the same size; a small rest is not a piece of its own."""
    count = max(1, round(each.rows / size))
    ends = [each.start + each.rows * number // count for number in range(count + 1)]
    return [
        OffsetRange(each.queue, first, last, is_new=each.is_new and first == each.start)
        for first, last in pairwise(ends)
    ]


def tasks_of(spark: Any) -> int:
    """How many tasks run at once; 2 for a remote session, which does not report it."""
    try:
        count = int(spark.sparkContext.defaultParallelism)
    except Exception:
        count = 2
    return max(1, min(TASKS_MAX, count))
