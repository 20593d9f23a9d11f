"""Text that spreadsheets show and do not compute. Pure."""

from typing import Final

_OPERATORS: Final = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
"""Beginnings that spreadsheets take for a formula, also behind blanks; Chinese and Japanese ones
take the wide forms, too."""
_BREAKS: Final = ("\t", "\r", "\n")
"""Some programs end a cell there and read a new one."""


def plain_cell(text: str) -> str:
    """A text for a cell of CSV; one that looks like a formula gets an apostrophe in front.

    Characters of the number 0 are left out: programs cut a cell there, or pass over them.
    """
    shown = text.replace("\0", "")
    is_formula = shown.lstrip().startswith(_OPERATORS) or shown.lstrip(" ").startswith(_BREAKS)
    return f"'{shown}" if is_formula else shown
