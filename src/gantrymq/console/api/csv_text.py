"""Rows as CSV that spreadsheets do not take for formulas. Pure."""

import csv
import io
from collections.abc import Sequence
from typing import Any, Final

FORMULAS: Final = ("=", "+", "-", "@", "\t", "\r", "\n")
"""Beginnings that spreadsheets take for a formula, also behind spaces."""


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
    if isinstance(value, str):
        text = value.replace("\0", "")
        is_formula = text.lstrip(" ").startswith(FORMULAS)
        return f"'{text}" if is_formula else text
    return value
