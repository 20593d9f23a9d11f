"""`gantry pipeline audit`: check every record, queue entry and index entry of a store."""

import sys
from pathlib import Path

import click

from gantrymq.base.plurals import counted
from gantrymq.cli.common.audit_rows import print_audit
from gantrymq.cli.common.output import output_option
from gantrymq.cli.pipeline.spark_run import Run, spark_options

FOLDER = click.Path(path_type=Path, file_okay=False)
PAGE = click.Path(path_type=Path, dir_okay=False)
WRONG_CODE = 1


@click.command("audit")
@click.argument("store", type=FOLDER)
@click.option(
    "--rebuild",
    "rebuilds",
    is_flag=True,
    help="Rebuild queues and index from the log first; only for a store whose broker was "
    "stopped properly.",
)
@click.option(
    "--report", "report", type=PAGE, help="Also write the findings to this file, as a page."
)
@output_option
@spark_options
def audit(store: Path, rebuilds: bool, report: Path | None, output: str, run: Run) -> None:
    """Check a broker's STORE folder: checksums, the chain of the log, queues, index, times.

    The store is not changed without --rebuild, and the broker may run: what it has not flushed yet
    is left out. The exit code is 1 when something is wrong.
    """
    with run.ending():
        from gantrymq.store.files.folder import StoreFolder
        from gantrymq.store.tools.rebuild_store import rebuild_store

        StoreFolder(str(store))  # an error if it is no store
        if rebuilds:
            made = rebuild_store(str(store))
            print(
                f"rebuilt {counted(made.queues, 'queue')} with "
                f"{counted(made.entries, 'entry', 'entries', form=',')} and "
                f"{counted(made.index_files, 'index file')}; before: "
                f"{', '.join(made.kept) or 'nothing'}",
                file=sys.stderr,
            )
    progress = run.progress()
    with run.session("audit") as spark, run.watched(spark, progress):
        from gantrymq.pipelines.audit import AuditRun, run_audit

        found = run_audit(spark, AuditRun(store=store, page=report), progress=progress)
    print_audit(found, [each.row() for each in found.findings], output)
    raise SystemExit(0 if found.is_good else WRONG_CODE)
