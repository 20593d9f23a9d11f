"""Limits of decoders, and what they raise."""

from typing import Final

from gantrymq.base.errors import GantryError

DEPTH_MAX: Final = 60
VALUES_MAX: Final = 200_000
"""In one body."""
SCHEMA_CHARACTERS_MAX: Final = 200_000


class CannotDecode(GantryError):
    """The body is not of that form, or the schema is wrong; the text says where."""


class Budget:
    """Counts values, so that a few bytes cannot ask for millions of them."""

    def __init__(self) -> None:
        self._left = VALUES_MAX

    def take(self, depth: int) -> None:
        """One more value, at this depth."""
        self._left -= 1
        if self._left < 0:
            raise CannotDecode(f"the body has more than {VALUES_MAX:,} values")
        if depth > DEPTH_MAX:
            raise CannotDecode(f"the body is nested deeper than {DEPTH_MAX} levels")
