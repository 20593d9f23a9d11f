"""Rows as CSV that spreadsheets do not take for formulas. Pure."""

import csv
import io
from collections.abc import Sequence
from typing import Any

from gantrymq.base.spreadsheet import plain_cell


def csv_row(values: Sequence[Any]) -> bytes:
    """One line. A text that looks like a formula gets an apostrophe in front."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerow([csv_value(each) for each in values])
    return out.getvalue().encode()


def csv_value(value: Any) -> Any:
    """A value as a cell; a list is joined by spaces."""
    if value is None:
        return ""
    if isinstance(value, list | tuple):
        value = " ".join(map(str, value))
    return plain_cell(value) if isinstance(value, str) else value
