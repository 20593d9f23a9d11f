"""`gantry pipeline report`: write tables, pictures and a page about topics and groups."""

import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gantrymq.cli.common.known import check_archived, check_names, check_stored
from gantrymq.cli.common.output import namesrv_option
from gantrymq.cli.pipeline.spark_run import Run, spark_options

if TYPE_CHECKING:
    from gantrymq.pipelines.report import Report, ReportRequest

STEPS = ("auto", "second", "minute", "hour", "day")
FOLDER = click.Path(path_type=Path, file_okay=False)


@click.command("report")
@click.option("--into", "folder", type=FOLDER, required=True, help="Folder for the report.")
@click.option("--topic", "topics", multiple=True, help="Only this topic; repeatable.")
@click.option("--group", "groups", multiple=True, help="Only this group; repeatable.")
@click.option("--since", metavar="WHEN", help="Messages stored then or later: 'yesterday 00:00'.")
@click.option("--until", metavar="WHEN", help="Messages stored before then.")
@click.option("--zone", metavar="ZONE", help="Time zone, such as Europe/Berlin; by default local.")
@click.option(
    "--by",
    type=click.Choice(STEPS),
    default="auto",
    show_default=True,
    help="Time step of the lines.",
)
@click.option("--archive", type=FOLDER, help="Read messages from an archive.")
@click.option("--store", type=FOLDER, help="Read messages from a broker's store folder.")
@click.option(
    "--trace-topic",
    default="RMQ_SYS_TRACE_TOPIC",
    show_default=True,
    help="The topic that clients trace into.",
)
@click.option(
    "--history",
    type=FOLDER,
    help="Folder where lags are kept for later reports; by default `history` in --into.",
)
@namesrv_option
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Format of the summary.",
)
@spark_options
def report(
    folder: Path,
    topics: tuple[str, ...],
    groups: tuple[str, ...],
    since: str | None,
    until: str | None,
    zone: str | None,
    by: str,
    archive: Path | None,
    store: Path | None,
    trace_topic: str,
    history: Path | None,
    namesrv: str | None,
    output: str,
    run: Run,
) -> None:
    """Write tables, pictures and report.html to a folder.

    Reads live topics, or --store, or --archive; with an archive and a name server the groups'
    progress and what is not archived yet come from the cluster. The exit code is 1 when messages
    are not accounted for, and 0 when that is not known because trace is missing.
    """
    if namesrv is None and store is None:
        namesrv = os.environ.get("NAMESRV_ADDR") or None
    with run.ending():
        request = _request(
            topics,
            groups,
            since,
            until,
            zone,
            by,
            namesrv=namesrv,
            archive=archive,
            store=store,
            trace_topic=trace_topic,
        )
        _check_names(topics, groups, archive, store, namesrv)
    progress = run.progress()
    with run.session("report", namesrv=namesrv) as spark, run.watched(spark, progress):
        from gantrymq.pipelines.report import ReportRun, run_report

        work = ReportRun(request=request, folder=folder, history=history or folder / "history")
        made = run_report(spark, work, progress=progress)
    _print(made, output)
    if made.unexplained:
        raise SystemExit(1)


def _check_names(
    topics: tuple[str, ...],
    groups: tuple[str, ...],
    archive: Path | None,
    store: Path | None,
    namesrv: str | None,
) -> None:
    """Raise UnknownName unless topics and groups are where they are read from."""
    if store is not None:
        check_stored(store, *topics, groups=groups)
        return
    if archive is not None:
        check_archived(archive, *topics)
        topics = ()
    if namesrv is not None and (topics or groups):
        asyncio.run(check_names(namesrv, topics=topics, groups=groups))


def _request(
    topics: tuple[str, ...],
    groups: tuple[str, ...],
    since: str | None,
    until: str | None,
    zone: str | None,
    by: str,
    **places: Any,
) -> "ReportRequest":
    from gantrymq.base.clock import SystemClock
    from gantrymq.base.time_text import find_zone, local_zone, parse_period
    from gantrymq.pipelines.report import ReportRequest
    from gantrymq.pipelines.report.steps import STEPS_MS

    name = find_zone(zone or local_zone()).key
    period = parse_period(since, until, name, SystemClock().now_ms())
    for note in period.notes:
        print(f"note: {note}", file=sys.stderr)
    return ReportRequest(
        topics=topics, groups=groups, period=period, zone=name, step_ms=STEPS_MS.get(by), **places
    )


def _print(made: "Report", output: str) -> None:
    from gantrymq.pipelines.report.report_files import as_json
    from gantrymq.pipelines.report.summary import figures, summary, verdict

    if output == "json":
        sys.stdout.write(as_json({**summary(made), "page": str(made.page)}))
        return
    _, first, second = verdict(made)
    print(first)
    print(second)
    for figure in figures(made):
        print(f"{figure.text:>12}  {figure.title}")
    for note in made.notes:
        print(f"note: {note}", file=sys.stderr)
    print(made.page)
