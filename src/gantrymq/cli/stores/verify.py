"""`gantry store verify`: check a whole store."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gantrymq.base.plurals import counted
from gantrymq.cli.common.guard import GuardedCommand
from gantrymq.cli.common.output import Row, output_option, print_line, print_table
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
    from gantrymq.store.audit.whole import Audit


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
    print_findings(found, output)
    raise SystemExit(0 if found.is_good else FINDINGS_CODE)


def print_findings(found: "Audit", output: str) -> None:
    """Print what an audit found and what it covered, and one line on stderr."""
    rows = [finding_row(each) for each in found.findings]
    covered = [{"covered": kind, "count": count} for kind, count in found.covered.items()]
    if output == "json":
        whole = {
            "store": found.directory,
            "good": found.is_good,
            "seconds": round(found.seconds, 3),
            "findings": rows,
            "covered": found.covered,
            "notes": found.notes,
        }
        sys.stdout.write(json.dumps(whole, ensure_ascii=False, indent=2) + "\n")
    elif output == "jsonl":
        for row in (*rows, *covered):
            print_line(row)
    else:
        for table in (rows, covered):
            print_table(table)
    for note in found.notes:
        print(f"note: {note}", file=sys.stderr)
    wrong = sum(row["level"] == "wrong" for row in rows)
    said = f"{counted(wrong, 'finding')}" if wrong else "nothing is wrong"
    size = found.covered.get("log bytes", 0)
    rate = size / found.seconds / 1e6 if found.seconds else 0.0
    print(
        f"{found.directory}: {said}; {counted(size, 'byte', form=',')} of records in "
        f"{found.seconds:.1f} s ({rate:,.0f} MB/s)",
        file=sys.stderr,
    )


def finding_row(finding: "object") -> Row:
    """A finding with what it means and what a repair does."""
    from gantrymq.store.audit.advice import advice
    from gantrymq.store.audit.findings import Finding

    assert isinstance(finding, Finding)
    about = advice(finding.kind)
    return {**finding.row(), "means": about.means, "repair": about.repair}
