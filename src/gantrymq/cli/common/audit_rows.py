"""What an audit of a store found, as rows, lines or JSON, and one line on stderr."""

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gantrymq.base.plurals import counted
from gantrymq.cli.common.output import Row, print_line, print_table

if TYPE_CHECKING:
    from gantrymq.store.audit.whole import Audit


def print_audit(found: "Audit", findings: Sequence[Row], output: str) -> None:
    """Print the findings, what was covered, and the verdict."""
    covered: list[Row] = [{"covered": k, "count": count} for k, count in found.covered.items()]
    if output == "json":
        whole = {
            "store": found.directory,
            "good": found.is_good,
            "seconds": round(found.seconds, 3),
            "findings": findings,
            "covered": found.covered,
            "notes": found.notes,
        }
        sys.stdout.write(json.dumps(whole, ensure_ascii=False, indent=2) + "\n")
    elif output == "jsonl":
        for row in (*findings, *covered):
            print_line(row)
    else:
        for table in (findings, covered):
            print_table(table)
    for note in found.notes:
        print(f"note: {note}", file=sys.stderr)
    size = found.covered.get("log bytes", 0)
    rate = size / found.seconds / 1e6 if found.seconds else 0.0
    print(
        f"{found.directory}: {_verdict(sum(row['level'] == 'wrong' for row in findings))}; "
        f"{counted(size, 'byte', form=',')} of records in {found.seconds:.1f} s "
        f"({rate:,.0f} MB/s)",
        file=sys.stderr,
    )


def _verdict(wrong: int) -> str:
    if not wrong:
        return "nothing is wrong"
    return "1 thing is wrong" if wrong == 1 else f"{wrong} things are wrong"
