"""No cell that this project writes is a formula to a spreadsheet."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gantrymq.base.spreadsheet import plain_cell

FORMULAS = (
    "=1+1", "+1", "-1", "@x", "\t=1", "\r=1", "\n=1", "\t", " \n", "  =HYPERLINK(1)", "\xa0=1",
    "\x0b+1", "=cmd|' /C calc'!A0", "\uff1d1+1", "\uff201", " \uff0b1", "\uff0d1",
)  # fmt: skip


@pytest.mark.parametrize("text", FORMULAS)
def test_what_looks_like_a_formula_is_text(text: str) -> None:
    """
    An apostrophe stands in front.
    """
    assert f"'{text}" == plain_cell(text)
    assert f"'{text}" == plain_cell(f"\0{text}")


@pytest.mark.parametrize("text", ["", " ", "orders", "a=b", "1-2", "a\tb", "'=1", "x@y", "行"])
def test_other_text_stays(text: str) -> None:
    """
    Also what has an operator inside.
    """
    assert text == plain_cell(text)


@given(st.text())
def test_a_cell_is_its_text_and_perhaps_an_apostrophe(text: str) -> None:
    """
    Nothing else is added, and nothing but characters of the number 0 is lost.
    """
    shown = text.replace("\0", "")

    assert plain_cell(text) in (shown, f"'{shown}")
