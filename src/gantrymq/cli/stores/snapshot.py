"""`gantry store snapshot` and `restore`: a copy of a store that is in use, and the way back."""

import sys
import time
from pathlib import Path

import click

from gantrymq.base.plurals import counted
from gantrymq.cli.common.guard import GuardedCommand
from gantrymq.cli.common.output import Row, output_option, print_rows
from gantrymq.cli.stores.options import (
    FOLDER,
    NEW_FOLDER,
    log_option,
    path_or_none,
    store_argument,
)


@click.command("snapshot", cls=GuardedCommand)
@store_argument
@click.argument("target", metavar="FOLDER", type=NEW_FOLDER)
@log_option
@output_option
def snapshot(folder: Path, target: Path, log_folder: Path | None, output: str) -> None:
    """Copy STORE, while its broker may run, into FOLDER, which must be new or empty.

    All that was acknowledged before is in it. Log files that are full get a second name in place of
    a copy, if FOLDER is on the same file system. It opens as a store; `restore` makes another.
    """
    import msgspec

    from gantrymq.store.tools.snapshot import take_snapshot

    log_directory = path_or_none(log_folder)
    made = take_snapshot(str(folder), str(target), log_directory=log_directory, sleep=time.sleep)
    row: Row = {"snapshot": str(target), **msgspec.to_builtins(made)}
    print_rows([row], output)
    said = f"{counted(made.linked_files, 'log file')} shared, {counted(made.copied_files, 'file')}"
    print(f"{said} copied in {made.seconds:.1f} s", file=sys.stderr)


@click.command("restore", cls=GuardedCommand)
@click.argument("taken", metavar="SNAPSHOT", type=FOLDER)
@click.argument("folder", metavar="STORE", type=NEW_FOLDER)
@click.option(
    "--commit-log", "log_folder", type=NEW_FOLDER, help="storePathCommitLog, if the broker sets it."
)
@output_option
def restore(taken: Path, folder: Path, log_folder: Path | None, output: str) -> None:
    """Make STORE, which must be new or empty, from a SNAPSHOT; the snapshot stays as it is."""
    from gantrymq.store.tools.snapshot import restore_snapshot

    made = restore_snapshot(str(taken), str(folder), log_directory=path_or_none(log_folder))
    row: Row = {"store": str(folder), "logFirst": made.log_first, "logEnd": made.log_end}
    print_rows([{**row, "takenMs": made.taken_ms, "source": made.source}], output)
    print(f"{folder} can be started", file=sys.stderr)
