"""What the command line and programs call: archive topics, archive a period again, look how far
behind an archive is.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gantrymq.base.clock import SystemClock
from gantrymq.base.time_text import Period
from gantrymq.base.tokens import run_token
from gantrymq.model.offset_ranges import QueueOffsets
from gantrymq.pipelines.archive.follow import Tidy, follow
from gantrymq.pipelines.archive.rerun import RerunResult, replace_period
from gantrymq.pipelines.archive.run import Archive, ArchiveRequest, ArchiveResult
from gantrymq.pipelines.archive.upkeep import SMALL_MAX
from gantrymq.pipelines.archive.watch import Watch, Watcher, retention_hours
from gantrymq.pipelines.common.progress import RunProgress, Silent
from gantrymq.pipelines.common.spark_run import StopRequest
from gantrymq.pipelines.lake import Table, open_table
from gantrymq.spark.options.points import parse_point
from gantrymq.spark.options.source_options import ProgressReports, SourceOptions
from gantrymq.spark.options.source_parser import parse_source_options
from gantrymq.spark.source.progress import StreamProgress
from gantrymq.spark.source.rows import open_rows

CommitProgress = Callable[[QueueOffsets], None]


@dataclass(frozen=True, kw_only=True)
class ArchiveRun:
    """One run of an archive, as it is asked for."""

    request: ArchiveRequest
    table: Table
    follow_seconds: float | None = None
    """How often a stream archives what is new; None: up to the present, then end."""
    compact: bool = False
    """Join small files and delete leftovers of killed runs."""
    commits_progress: bool = False
    """Commit the positions under the options' group, so that tools which watch groups see them."""
    alarm_hours: float | None = None
    """Warn when retention is nearer than this; None does not ask."""


@dataclass(frozen=True)
class ArchiveStanding:
    """How an archive stands against its topics."""

    behind: Watch
    lost_rows: int
    """Messages that were deleted before they were archived."""
    alarm: bool


def check_source(options: SourceOptions) -> None:
    """Raise soon when no name server answers or a topic is missing; call it before Spark starts.

    The option `patience` is for brokers that go away during a run, not for a wrong address.
    """
    if options.cluster.namesrv:
        retention_hours(options.cluster.namesrv)  # asks name servers and brokers once
    with open_rows(options) as rows:
        rows.bounds()


def archive_topics(
    spark: Any,
    source: Mapping[str, str],
    into: str | Path,
    *,
    format: str | None = None,  # noqa: A002 - what users call it
    start: str = "earliest",
    allow_gaps: bool = False,
) -> ArchiveResult:
    """Archive topics up to the present; again and again, it goes on from the table.

    `source` has options of the format "rocketmq" that say what to read: nameServer, topic or
    subscribePattern, via, storePath, group. With a group the progress is reported to brokers.
    """
    options, table = parse_source_options(source), open_table(into, format, create=True)
    request = ArchiveRequest(
        options=options, start=parse_point(start, "start"), allow_gaps=allow_gaps
    )
    names_group = "group" in {name.lower() for name in source}
    return run_archive(
        spark, ArchiveRun(request=request, table=table, commits_progress=names_group)
    )


def run_archive(
    spark: Any,
    run: ArchiveRun,
    *,
    progress: RunProgress | None = None,
    stop: StopRequest | None = None,
) -> ArchiveResult:
    """Archive up to the present, or until `stop` is asked for."""
    progress, stop = progress or Silent(), stop or StopRequest()
    clock, token, options = SystemClock(), run_token(), run.request.options
    with _reporting(options, commits=run.commits_progress) as report:
        watcher = None
        if run.alarm_hours is not None:
            watcher = _watcher(options, run.alarm_hours, progress.note)
        archive = Archive(
            spark,
            run.table,
            run.request,
            run=token,
            clock=clock,
            progress=progress,
            report=report,
            watcher=watcher,
        )
        tidy = Tidy(spark, archive, run=token, clock=clock, say=progress.note)
        if run.follow_seconds is not None:
            tidying = tidy if run.compact else None
            return follow(archive, stop, run.follow_seconds, progress, tidying)
        archive.run(stopped=lambda: stop.asked)
        if run.compact and archive.totals.commits and not stop.asked:
            tidy.compact(SMALL_MAX)
            tidy.sweep()
        return archive.totals


def rerun_archive(
    spark: Any, table: Table, options: SourceOptions, period: Period, *, commits_progress: bool
) -> RerunResult:
    """Read a period again and replace its rows in one commit."""
    with _reporting(options, commits=commits_progress) as report:
        return replace_period(
            spark, table, options, period, run=run_token(), clock=SystemClock(), report=report
        )


def check_archive(table: Table, options: SourceOptions, alarm_hours: float) -> ArchiveStanding:
    """How far behind an archive is; this needs no Spark session."""
    watcher = _watcher(options, alarm_hours, lambda text: None)
    with open_rows(options) as rows:
        lows, highs = rows.bounds()
        held = table.positions(highs)
        lost = sum(max(0, lows[queue] - at) for queue, at in held.items())
        start = {queue: max(held.get(queue, 0), low) for queue, low in lows.items()}
        watcher.look(rows, start, highs)
    return ArchiveStanding(watcher.last, lost, watcher.last.alarms(alarm_hours) or lost > 0)


def _watcher(options: SourceOptions, alarm_hours: float, say: Callable[[str], None]) -> Watcher:
    retention = retention_hours(options.cluster.namesrv) if options.cluster.namesrv else {}
    return Watcher(retention, alarm_hours, SystemClock(), say)


@contextmanager
def _reporting(options: SourceOptions, *, commits: bool) -> Iterator[CommitProgress | None]:
    """How the progress is committed; None without a group or a cluster to commit to."""
    if not commits or not options.cluster.group or not options.cluster.namesrv:
        yield None
        return
    progress = StreamProgress(options.cluster, ProgressReports(commits=True))
    try:
        yield progress.report
    finally:
        progress.close()
