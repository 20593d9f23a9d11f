"""Rows as CSV: what is written is read, and no cell is a formula."""

import csv
import io

from hypothesis import given
from hypothesis import strategies as st

from gantrymq.console.api.csv_text import csv_row, csv_value


def test_other_values_stay() -> None:
    """Numbers are numbers, also negative ones; lists are joined, nothing is empty."""
    assert [csv_value(each) for each in (-5, "a=b", ["k1", "k2"], None, "")] == [
        -5, "a=b", "k1 k2", "", "",
    ]  # fmt: skip


@given(st.lists(st.text(), min_size=2, max_size=5))
def test_rows_are_read_as_they_were_written(values: list[str]) -> None:
    """Quotes, commas and line breaks inside; a formula is never read."""
    text = csv_row(values).decode()
    (row,) = csv.reader(io.StringIO(text, newline=""))

    assert [cell.removeprefix("'") for cell in row] == [
        value.replace("\0", "").removeprefix("'") for value in values
    ]
    assert not any(cell.lstrip().startswith(("=", "+", "-", "@")) for cell in row)
