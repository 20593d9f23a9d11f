"""`gantry pipeline run` and `again`: run a job for new messages, or again for a period."""

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING

import click

from gantrymq.cli.common.output import Row, namesrv_option, output_option, print_rows
from gantrymq.cli.pipeline.spark_run import Run, spark_options

if TYPE_CHECKING:
    from gantrymq.pipelines.jobs.job import Job, JobResult


@click.command("run")
@click.argument("target", metavar="MODULE:JOB")
@namesrv_option
@output_option
@spark_options
def run(target: str, namesrv: str | None, output: str, run: Run) -> None:
    """Run the job JOB of MODULE for all messages that are new since its last run.

    All periods that have new messages are computed and replaced in one commit.
    """
    with run.ending():
        job = find_job(target)
        with run.session(f"run {job.name}") as spark, run.watched(spark, run.progress()):
            outcome = job.run(spark, _address(namesrv))
        print_rows([_row(job, outcome)], output)


@click.command("again")
@click.argument("target", metavar="MODULE:JOB")
@click.option(
    "--since",
    required=True,
    metavar="WHEN",
    help="Begin of the period: 'yesterday 00:00', '2026-01-31 08:00'.",
)
@click.option("--until", metavar="WHEN", help="End of the period, exclusive; by default now.")
@click.option(
    "--zone", metavar="ZONE", help="Time zone of WHEN, such as Europe/Berlin; by default the job's."
)
@click.option("--archive", metavar="FOLDER", help="Read an archive instead of the topic.")
@click.option("--commit-progress", is_flag=True, help="Also report the progress of the group.")
@click.option("--dry-run", is_flag=True, help="Compute and count, but change no table.")
@namesrv_option
@output_option
@spark_options
def again(
    target: str,
    since: str,
    until: str | None,
    zone: str | None,
    archive: str | None,
    commit_progress: bool,
    dry_run: bool,
    namesrv: str | None,
    output: str,
    run: Run,
) -> None:
    """Run the job JOB of MODULE again for a period, and replace the rows of that period.

    No other row changes, and the progress of the job's group does not move. The table changes in
    one commit: it has either the old rows or the new ones.
    """
    with run.ending():
        job = find_job(target)
        for note in job.notes(since, until, zone):
            print(note, file=sys.stderr)
        with run.session(f"again {job.name}") as spark, run.watched(spark, run.progress()):
            outcome = job.again(
                spark,
                _address(namesrv),
                since=since,
                until=until,
                zone=zone,
                archive=archive,
                commit_progress=commit_progress,
                dry_run=dry_run,
            )
        print_rows([_row(job, outcome)], output)
        if dry_run:
            print("nothing was changed", file=sys.stderr)


def find_job(target: str) -> "Job":
    """Import the job of `module:name`; the current folder is searched first."""
    from gantrymq.pipelines.jobs.job import Job

    module_name, mark, name = target.partition(":")
    if not mark or not name or not module_name:
        raise click.UsageError(f"write MODULE:JOB, not {target!r}")
    sys.path.insert(0, "")
    try:
        module = import_module(module_name)
    except ModuleNotFoundError as error:
        raise click.UsageError(f"{error}: write MODULE:JOB") from error
    found = getattr(module, name, None)
    if not isinstance(found, Job):
        raise click.UsageError(f"{module_name} has no job called {name!r}: decorate it with @job")
    return found


def _address(namesrv: str | None) -> str:
    return namesrv or os.environ.get("NAMESRV_ADDR", "")


def _row(job: "Job", outcome: "JobResult") -> Row:
    from gantrymq.base.time_text import describe

    since, until = (
        None if ms is None else describe(ms, job.zone)
        for ms in (outcome.since_ms, outcome.until_ms)
    )
    return {
        "job": job.name,
        "since": since,
        "until": until,
        "rowsBefore": outcome.rows_before,
        "rows": outcome.rows,
        "version": outcome.version,
    }
