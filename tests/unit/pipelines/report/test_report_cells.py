"""Cells of a report's tables."""

from hypothesis import given
from hypothesis import strategies as st

from gantrymq.base.spreadsheet import plain_cell
from gantrymq.console.api.csv_text import csv_value
from gantrymq.pipelines.report import report_files


@given(st.one_of(st.text(), st.sampled_from("=+-@\t\n").map(lambda first: f"{first}1")))
def test_texts_are_no_formulas_in_reports_and_exports(text: str) -> None:
    """
    Both write them by the rule of `tests/unit/base/test_spreadsheet.py`.
    """
    assert report_files.csv_value(text) == csv_value(text) == plain_cell(text)
