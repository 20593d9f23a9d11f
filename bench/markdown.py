"""Prints what a run measured as tables in Markdown, as they stand in docs/performance.md.

    python -m bench.markdown RESULTS.json [WORKLOAD]...

RESULTS.json is a file of `bench/results`. Without a name all workloads are printed. Of what was
compared there is a line each, with a column for each figure; then the ratios and what is wanted.
"""

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from bench.names import UnknownWorkload, chosen
from bench.rows import Row, number

RATIO: Final = "x"


def row_of(saved: Mapping[str, Any]) -> Row:
    """A row as `bench.rows.save` wrote it."""
    return Row(**{name: value for name, value in saved.items() if name != "verdict"})


def tables(rows: Sequence[Row]) -> Iterator[str]:
    """The figures of one workload, then its ratios and bounds."""
    figures = [row for row in rows if row.unit != RATIO and row.target is None]
    if figures:
        yield "\n".join(_figures(figures))
    judged = [row for row in rows if row not in figures]
    if judged:
        yield "\n".join(_judged(judged))


def _figures(rows: Iterable[Row]) -> Iterator[str]:
    subjects: dict[str, dict[str, str]] = {}
    columns: dict[str, None] = {}
    for row in rows:
        subject, _, figure = row.measure.rpartition(": ")
        column = f"{figure}, {row.unit}"
        columns[column] = None
        subjects.setdefault(subject, {})[column] = number(row.value)
    yield _line(["", *columns])
    yield _line(["---", *("---:" for _ in columns)])
    for subject, found in subjects.items():
        yield _line([subject, *(found.get(column, "") for column in columns)])


def _judged(rows: Iterable[Row]) -> Iterator[str]:
    yield _line(["", "measured", "wanted", ""])
    yield _line(["---", "---:", "---:", "---"])
    for row in rows:
        verdict = "**missed**" if row.verdict == "MISSED" else row.verdict
        yield _line([row.measure, f"{number(row.value)} {row.unit}", row.wanted, verdict])


def _line(cells: Iterable[str]) -> str:
    return "|" + "".join(f" {cell} |" if cell else " |" for cell in cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    parser.add_argument("names", nargs="*", metavar="WORKLOAD")
    given = parser.parse_args()
    found: dict[str, list[Row]] = {}
    for saved in json.loads(given.results.read_text())["rows"]:
        row = row_of(saved)
        found.setdefault(row.workload, []).append(row)
    try:
        names = chosen(given.names or found, found)
    except UnknownWorkload as unknown:
        parser.error(str(unknown))
    for name in names:
        print(f"### {name}\n")
        for each in tables(found[name]):
            print(f"{each}\n")


if __name__ == "__main__":
    main()
