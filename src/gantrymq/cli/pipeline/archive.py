"""`gantry pipeline archive`: copy topics into a lakehouse table, once or continuously."""

import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from gantrymq.base.clock import SystemClock
from gantrymq.cli.common.known import check_stored
from gantrymq.cli.common.output import ABOVE_0, Row, namesrv_option, output_option, print_rows
from gantrymq.cli.pipeline.spark_run import Run, spark_options

if TYPE_CHECKING:
    from gantrymq.pipelines.archive import ArchiveRun
    from gantrymq.pipelines.lake import Table
    from gantrymq.spark.options.points import Point
    from gantrymq.spark.options.source_options import SourceOptions

ALARM = 2
"""The exit code of --check when retention comes near."""
GROUP = "gantry-archive"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The options of the command."""

    topic: str | None
    pattern: str | None
    into: str
    form: str | None
    follow: bool
    trigger: float
    start: str
    store: str | None
    group: str
    patience: str | None
    allow_gaps: bool
    rows_per_commit: int
    alarm_hours: float
    again: bool
    since: str | None
    until: str | None
    zone: str | None
    commit_progress: bool
    compact: bool
    namesrv: str | None

    def options(self) -> "SourceOptions":
        """What to read, as options of Spark's source."""
        from gantrymq.spark.options.source_parser import parse_source_options

        settings = {
            "nameServer": self.namesrv or os.environ.get("NAMESRV_ADDR", ""),
            "topic": self.topic,
            "subscribePattern": self.pattern,
            "via": "store" if self.store else None,
            "storePath": self.store,
            "group": self.group or None,
            "patience": self.patience or ("1h" if self.follow else "2m"),
        }
        return parse_source_options({name: value for name, value in settings.items() if value})

    def run(self) -> "ArchiveRun":
        """What to archive, into which table, and how."""
        from gantrymq.pipelines.archive import ArchiveRequest, ArchiveRun

        request = ArchiveRequest(
            options=self.options(),
            start=self._start(),
            allow_gaps=self.allow_gaps,
            rows_per_commit=self.rows_per_commit,
        )
        return ArchiveRun(
            request=request,
            table=self.table(),
            follow_seconds=self.trigger if self.follow else None,
            compact=self.compact,
            commits_progress=bool(self.group),
            alarm_hours=self.alarm_hours,
        )

    def _start(self) -> "Point":
        """Where new topics begin: a word, offsets, or a time."""
        from gantrymq.base.time_text import local_zone, parse_moment
        from gantrymq.spark.options.points import AtTime, parse_point

        word = self.start.strip().lower()
        if word in ("earliest", "latest", "committed") or word.startswith("{"):
            return parse_point(self.start, "--from")
        now_ms = SystemClock().now_ms()
        return AtTime(parse_moment(self.start, self.zone or local_zone(), now_ms))

    def table(self) -> "Table":
        from gantrymq.pipelines.lake import open_table

        return open_table(self.into, self.form, create=not self.again)


@click.command("archive")
@click.option("--topic", metavar="T,T", help="Topics, separated by commas.")
@click.option(
    "--pattern", metavar="REGEX", help="Instead of --topic: all topics whose whole name matches."
)
@click.option(
    "--into", required=True, metavar="FOLDER", help="The table; created if it is missing."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["delta", "iceberg", "parquet"]),
    help="Format of a new table.  [default: delta]",
)
@click.option("--follow", is_flag=True, help="Archive new messages until the command is stopped.")
@click.option(
    "--trigger",
    default=10.0,
    show_default=True,
    type=ABOVE_0,
    metavar="SECONDS",
    help="With --follow: seconds between two commits.",
)
@click.option(
    "--from",
    "start",
    default="earliest",
    show_default=True,
    metavar="WHERE",
    help="Where topics begin that are not in the table yet: earliest, latest, a time.",
)
@click.option(
    "--store", metavar="DIR", help="Read the store folder of a broker instead of the broker."
)
@click.option(
    "--group",
    default=GROUP,
    show_default=True,
    help="Group under which the progress is reported to brokers; '' for none.",
)
@click.option(
    "--patience",
    metavar="TIME",
    help="How long brokers may not answer.  [default: 2m, 1h with --follow]",
)
@click.option(
    "--allow-gaps", is_flag=True, help="Skip messages that were deleted before they were archived."
)
@click.option("--rows-per-commit", default=1_000_000, show_default=True, type=click.IntRange(1))
@click.option("--compact/--no-compact", default=True, help="Join small files.")
@click.option(
    "--alarm-hours",
    default=12.0,
    show_default=True,
    type=ABOVE_0,
    help="Warn if messages may be deleted within so many hours.",
)
@click.option(
    "--check",
    is_flag=True,
    help="Only print how far the archive is behind; exit code 2 for a warning.",
)
@click.option("--again", is_flag=True, help="Replace the rows of --since to --until.")
@click.option("--since", metavar="WHEN", help="With --again: stored then or later.")
@click.option("--until", metavar="WHEN", help="With --again: stored before that.")
@click.option(
    "--zone", metavar="NAME", help="Time zone of WHEN, such as Europe/Berlin; else this machine's."
)
@click.option("--commit-progress", is_flag=True, help="With --again: also report the progress.")
@namesrv_option
@output_option
@spark_options
def archive(run: Run, check: bool, output: str, **given: Any) -> None:
    """Archive topics into a lakehouse table.

    Every message is in the table once, also after a crash: run the same command again to go on.
    WHEN is a time such as 'yesterday 00:00' or '2h ago'.
    """
    asked = Asked(**given)
    if (asked.topic is None) == (asked.pattern is None):
        raise click.UsageError("say what to archive: --topic or --pattern")
    if asked.again and (asked.follow or check):
        raise click.UsageError("--again replaces a period: it goes without --follow and --check")
    if not asked.again and (asked.since or asked.until or asked.commit_progress):
        raise click.UsageError("--since, --until and --commit-progress belong to --again")
    with run.ending():
        if asked.store and asked.topic:
            check_stored(asked.store, *(name.strip() for name in asked.topic.split(",")))
        if check:
            rows = [_check(asked)]
        elif asked.again:
            rows = [_again(asked, run)]
        else:
            rows = [_archive(asked, run)]
        print_rows(rows, output)
    if check and rows[0]["alarm"]:
        raise SystemExit(ALARM)


def _archive(asked: Asked, run: Run) -> Row:
    from gantrymq.pipelines.archive.entry import check_source, run_archive
    from gantrymq.pipelines.common.spark_run import stop_on_signal

    progress, work = run.progress(), asked.run()
    check_source(work.request.options)
    with (
        run.session("archive") as spark,
        run.watched(spark, progress),
        stop_on_signal() as stop,
    ):
        result = run_archive(spark, work, progress=progress, stop=stop)
        stop.asked = stop.asked and not asked.follow  # a stream ends only this way
    return {
        "rows": result.rows,
        "files": result.files,
        "bytes": result.size,
        "commits": result.commits,
        "gaps": result.gaps,
        "table": str(work.table.root),
    }


def _again(asked: Asked, run: Run) -> Row:
    from gantrymq.base.time_text import describe, local_zone, parse_period
    from gantrymq.pipelines.archive.entry import rerun_archive

    zone = asked.zone or local_zone()
    period = parse_period(asked.since, asked.until, zone, SystemClock().now_ms())
    for note in period.notes:
        print(note, file=sys.stderr)
    options, table = asked.options(), asked.table()
    commits = asked.commit_progress and bool(asked.group)
    with run.session("archive") as spark, run.watched(spark, run.progress()):
        found = rerun_archive(spark, table, options, period, commits_progress=commits)
    since, until = (
        None if at is None else describe(at, zone) for at in (period.since_ms, period.until_ms)
    )
    return {"rows": found.rows, "replaced": found.dropped, "since": since, "until": until}


def _check(asked: Asked) -> Row:
    from gantrymq.pipelines.archive.entry import check_archive
    from gantrymq.pipelines.lake import open_table

    found = check_archive(open_table(asked.into), asked.options(), asked.alarm_hours)
    behind = found.behind
    print(behind.text, file=sys.stderr)
    return {
        "behindRows": behind.rows,
        "behindHours": round(behind.behind_hours, 2),
        "hoursLeft": None if behind.left_hours is None else round(behind.left_hours, 2),
        "lostRows": found.lost_rows,
        "alarm": found.alarm,
    }
