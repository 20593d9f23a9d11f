"""`gantry store verify`: check a whole store."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gantrymq.cli.common.audit_rows import print_audit
from gantrymq.cli.common.guard import GuardedCommand
from gantrymq.cli.common.output import Row, output_option
from gantrymq.cli.stores.options import (
    FINDINGS_CODE,
    Shown,
    ledger_in,
    log_option,
    path_or_none,
    quiet_option,
    store_argument,
)

if TYPE_CHECKING:
    from gantrymq.store.audit.findings import Finding


@click.command("verify", cls=GuardedCommand)
@store_argument
@log_option
@quiet_option
@output_option
def verify(folder: Path, log_folder: Path | None, quiet: bool, output: str) -> None:
    """Check every record, queue entry, index entry and table of STORE; nothing is written.

    The broker may run: what it has not flushed yet is left out. Exit code 1 means that something
    is wrong; each finding says what it means and what `gantry store repair` does about it.
    """
    from gantrymq.store.audit.whole import audit_store

    display = Shown("parts of the store", quiet=quiet)
    ledger = ledger_in(folder, log_folder)
    if ledger is not None:
        from gantrymq.store.tools.dledger import verify_dledger

        found = verify_dledger(ledger, display.tell)
    else:
        found = audit_store(str(folder), path_or_none(log_folder), display.tell)
    display.end()
    print_audit(found, [finding_row(each) for each in found.findings], output)
    raise SystemExit(0 if found.is_good else FINDINGS_CODE)


def finding_row(finding: "Finding") -> Row:
    """A finding with what it means and what a repair does."""
    from gantrymq.store.audit.advice import advice

    about = advice(finding.kind)
    return {**finding.row(), "means": about.means, "repair": about.repair}
