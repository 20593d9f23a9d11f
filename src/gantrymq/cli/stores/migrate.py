"""`gantry store migrate`: an ordinary store from one of RocketMQ's raft groups."""

import sys
from pathlib import Path

import click

from gantrymq.base.errors import GantryError
from gantrymq.base.plurals import counted
from gantrymq.cli.common.guard import GuardedCommand
from gantrymq.cli.common.output import output_option, print_rows
from gantrymq.cli.stores.options import NEW_FOLDER, ledger_in, log_option, store_argument


@click.command("migrate", cls=GuardedCommand)
@store_argument
@click.argument("target", metavar="NEW_STORE", type=NEW_FOLDER)
@log_option
@click.option("--all", "all_entries", is_flag=True, help="Also entries that may be uncommitted.")
@click.option("--dry-run", is_flag=True, help="Only count what would be taken over.")
@output_option
def migrate(
    folder: Path,
    target: Path,
    log_folder: Path | None,
    all_entries: bool,
    dry_run: bool,
    output: str,
) -> None:
    """Make NEW_STORE from STORE, whose log is that of a raft group of RocketMQ (DLedger).

    The committed entries are taken over, with topics, groups and progress. STORE is only read; its
    broker must be stopped. Message ids that are log offsets change, queue offsets do not.
    """
    from gantrymq.store.audit.whole import is_held
    from gantrymq.store.tools.migrate import migrate as migrate_store
    from gantrymq.store.tools.migrate import plan_migration

    source = ledger_in(folder, log_folder)
    if source is None:
        raise GantryError(f"{folder} has no log of DLedger: no dledger-ID/data lies in it")
    if is_held(str(folder)):
        raise GantryError(f"a broker runs on {folder}: stop it first")
    if dry_run:
        plan = plan_migration(source, all_entries=all_entries)
    else:
        plan = migrate_store(source, str(target), all_entries=all_entries)
    print_rows([{"store": str(target), **plan.row()}], output)
    if plan.behind:
        said = "behind the last that is known to be committed; --all takes them, too"
        print(f"{counted(plan.behind, 'entry', 'entries')} {said}", file=sys.stderr)
    for text in plan.damaged:
        print(f"damaged: {text}", file=sys.stderr)
    raise SystemExit(1 if plan.damaged else 0)
