"""A part of a report: its tables, how they are made, its pictures, and its place on the page."""

from collections.abc import Callable
from dataclasses import dataclass

from gantrymq.pipelines.marts.mart import Mart, MartTable
from gantrymq.pipelines.report.pictures import Picture
from gantrymq.pipelines.report.report import Report
from gantrymq.pipelines.report.work import ReportWork


@dataclass(frozen=True, kw_only=True)
class Section:
    """One question about topics and groups, and its answer."""

    name: str
    title: str
    empty: str
    """Said where there is nothing to show."""
    make: Callable[[ReportWork], None]
    """Adds the tables to the report."""
    drawings: tuple[Callable[[Report], Picture | None], ...] = ()
    """The pictures; None where there is nothing to draw."""
    tables: tuple[Mart, ...]
    """All tables, in the order of the index."""
    beside: tuple[Mart, ...]
    """Tables that stand beside the pictures where there is room."""
    below: tuple[Mart, ...] = ()
    folded: tuple[Mart, ...] = ()
    """Tables that are shown when asked for."""


def select_rows(table: MartTable, keep: Callable[[dict[str, object]], bool]) -> MartTable:
    """The rows of a table that a check is about."""
    return MartTable(table.mart, [row for row in table.rows if keep(row)], None)
