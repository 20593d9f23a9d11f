"""Results as text."""

import pytest

from chaos import table
from chaos.checker import Downtime, Verdict
from chaos.faults import FAULTS
from chaos.modes import MODES
from chaos.promises import TrialResult

RESULTS = [
    TrialResult("sync-master", "leader-kill", "master", Verdict(acknowledged=7, lost=["a"]), True),
    TrialResult(
        "async-master",
        "leader-kill",
        "master",
        Verdict(acknowledged=5, lost_with_master=["b", "c"], downtime=Downtime(4.26, 4.26)),
        True,
    ),
]


def test_a_line_has_a_cell_for_each_heading() -> None:
    """The columns stand below their headings."""
    line = table.line(RESULTS[1])

    assert table.heading().index("hit") == line.index("master", 10)
    assert line.split()[:3] == ["async-master", "leader-kill", "5"]


def test_the_page_has_a_row_for_each_fault_and_each_mode() -> None:
    """Counts are added up over modes, the time without an answer is each mode's own."""
    tables = table.page_tables(RESULTS)

    assert "| leader-kill | kill -9 of the master | 1 | 0 | 0 | 0 | 4.3 s | 0.0 s |" in tables
    assert "| async-master | ASYNC_MASTER, ASYNC_FLUSH | 1 | 5 | 0 | 2 |" in tables
    assert "major-kill" not in tables


def test_tables_are_written_between_the_marks() -> None:
    """The text around them stays; a page without marks is refused."""
    page = f"before\n{table.BEGIN}\nold\n{table.END}\nafter\n"

    assert f"before\n{table.BEGIN}\nnew\n{table.END}\nafter\n" == table.with_tables(page, "new")
    with pytest.raises(ValueError, match="lacks"):
        table.with_tables("no marks", "new")


def test_every_name_fits_its_column() -> None:
    """Longer names would shift the rest of the line."""
    assert max(map(len, MODES)) <= 24
    assert max(map(len, FAULTS)) <= 17
