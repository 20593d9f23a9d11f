"""A report as a value: its tables and notes, before pages and pictures are made. Pure."""

from dataclasses import dataclass, field
from pathlib import Path

from gantrymq.pipelines.marts import ledger
from gantrymq.pipelines.marts.mart import Mart, MartTable
from gantrymq.pipelines.report.request import ReportRequest
from gantrymq.pipelines.staging.coverage import Coverage


@dataclass(kw_only=True)
class Report:
    """Everything a report says, before pages and pictures are made."""

    request: ReportRequest
    made_ms: int
    step_ms: int
    """The step of lines over time."""
    heat_ms: int = 0
    """The step of the heat map."""
    tables: dict[str, MartTable] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    traced: bool = False
    gaps: list[Coverage] = field(default_factory=list)
    """Groups with messages whose fate is not known, because trace is missing."""
    page: Path | None = None
    """The path of the page, once it is written."""

    def table(self, mart: Mart) -> MartTable:
        return self.tables[mart.name]

    @property
    def unexplained(self) -> int:
        """How many messages have a state that nothing explains."""
        rows = self.table(ledger.KINDS).rows
        return sum(row["messages"] for row in rows if row["explained"] is False)

    @property
    def untraced(self) -> int:
        """How many messages have an unknown state, because trace is missing."""
        return self.table(ledger.GROUPS).total("untraced")
