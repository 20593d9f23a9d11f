"""What a broker does when its disk fails: the table in `fault_table.txt`, and its page.

.venv/bin/python tests/kits/fault_table.py > docs/faults.md

`tests/unit/test_fault_table.py` holds the table to the tests that it names, the page to the table.
"""

import sys
from pathlib import Path
from typing import NamedTuple

TEXT = Path(__file__).with_suffix(".txt")
FAULTS = [
    "write fails", "sync fails", "read fails", "bit flipped", "cut short", "missing", "too long",
]  # fmt: skip
OTHERS = "others"

HEAD = """# Faults of disks and files

What a broker does when a disk fails or a file is damaged, by the kind of file. *Write fails* is a
full disk (ENOSPC), an input/output error (EIO) and a file system that turned read-only (EROFS)
alike. A start looks at what was written since the last checkpoint and at names and sizes of files;
[`gantry store verify`](guides/store.md) reads everything. Whatever fails: nothing is answered as
stored that is not, and nothing is left out without a word.

Printed from `tests/kits/fault_table.txt`; each row has the test that shows it.
"""


class FaultRow(NamedTuple):
    """One fault of one kind of file: what happens, and the test that shows it."""

    part: str
    fault: str
    text: str
    test: str


def load() -> tuple[dict[str, str], list[FaultRow]]:
    """The kinds of files with their names, and all rows."""
    parts: dict[str, str] = {}
    rows: list[FaultRow] = []
    for line in TEXT.read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        name, _, text = (word.strip() for word in line.partition(":"))
        if not line.startswith(" "):
            parts[name] = text
        elif not line.startswith("    "):
            rows.append(FaultRow(list(parts)[-1], name, text, ""))
        else:
            rows[-1] = rows[-1]._replace(test=line.strip())
    return parts, rows


def page() -> str:
    """The page."""
    parts, rows = load()
    lines = [HEAD]
    for part, files in parts.items():
        lines += [f"\n## {part.capitalize()}\n\n{files}\n\n"]
        lines += ["| fault | what happens | test |\n|---|---|---|\n"]
        lines += [f"| {r.fault} | {r.text} | {_link(r.test)} |\n" for r in rows if r.part == part]
    return "".join(lines)


def _link(test: str) -> str:
    path, _, name = test.partition("::")
    return f"[`{name or path}`](../{path})"


if __name__ == "__main__":
    sys.stdout.write(page())
