"""`gantry pipeline compact`: join small files of an archive and delete unused ones."""

import click

from gantrymq.base.clock import SystemClock
from gantrymq.base.tokens import run_token
from gantrymq.cli.common.output import output_option, print_rows
from gantrymq.cli.pipeline.spark_run import Run, spark_options

HOUR_MS = 3_600_000
VACUUM_HOURS_MIN = 1
"""Files of a run that has not committed yet must not be deleted."""


@click.command("compact")
@click.argument("table", metavar="FOLDER")
@click.option(
    "--vacuum-hours",
    default=24.0,
    show_default=True,
    type=click.FloatRange(VACUUM_HOURS_MIN),
    help="Delete unused files that are older.",
)
@output_option
@spark_options
def compact(run: Run, table: str, vacuum_hours: float, output: str) -> None:
    """Join small files of the archive in FOLDER, and delete files that it does not use.

    Rows and positions do not change, and the archive may run at the same time. Files of killed
    runs and files that were joined are deleted once they are old enough, so that no run still
    reads or commits them.
    """
    with run.ending():
        from gantrymq.pipelines.archive.upkeep import compact as join
        from gantrymq.pipelines.archive.upkeep import sweep
        from gantrymq.pipelines.lake import open_table

        archive, clock = open_table(table), SystemClock()
        with run.session("compact") as spark, run.watched(spark, run.progress()):
            before, after = join(spark, archive, run=run_token(), clock=clock)
        swept = sweep(archive, now_ms=clock.now_ms(), age_ms=int(vacuum_hours * HOUR_MS))
        print_rows([{"joined": before, "into": after, "deleted": swept}], output)
