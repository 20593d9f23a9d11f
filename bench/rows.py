"""A measured figure, the table of them, and the file they are kept in."""

import json
import platform
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

RESULTS = Path(__file__).resolve().parent / "results"


@dataclass(frozen=True)
class Row:
    """One figure. `target` is what it must reach, or with `at_most` what it must not exceed."""

    workload: str
    measure: str
    value: float
    unit: str
    target: float | None = None
    at_most: bool = False
    at: float | None = None
    """Of what grows, such as the number of queues: where the figure stands in a chart."""

    @property
    def verdict(self) -> str:
        if self.target is None:
            return ""
        good = self.value <= self.target if self.at_most else self.value >= self.target
        return "ok" if good else "MISSED"

    @property
    def wanted(self) -> str:
        if self.target is None:
            return ""
        return f"{'<=' if self.at_most else '>='} {number(self.target)}"


def number(value: float) -> str:
    """Readable at any size: 61,204 or 3.27."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def table(rows: Iterable[Row]) -> str:
    """Aligned columns."""
    lines = [("workload", "measure", "value", "unit", "wanted", "")]
    lines += [
        (row.workload, row.measure, number(row.value), row.unit, row.wanted, row.verdict)
        for row in rows
    ]
    widths = [max(len(line[at]) for line in lines) for at in range(6)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if at == 2 else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def save(rows: Iterable[Row], *, grade: str, quick: bool) -> Path:
    """Write a run below `results/`; newer files sort last."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / time.strftime("%Y%m%d-%H%M%S.json", time.gmtime())
    run = {
        "machine": platform.machine(),
        "python": platform.python_version(),
        "kernel": grade,
        "quick": quick,
        "rows": [asdict(row) | {"verdict": row.verdict} for row in rows],
    }
    path.write_text(json.dumps(run, indent=1) + "\n")
    return path
