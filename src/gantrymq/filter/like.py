"""LIKE patterns: % stands for any text, _ for one character."""

import re
from typing import Final

PATTERN_CHARS_MAX: Final = 1_000
"""Every message is held against it on the broker's loop."""


class BadPattern(Exception):
    """A LIKE pattern is wrong; the text says why."""


def like(pattern: str, escape: str | None) -> re.Pattern[str]:
    """The pattern as a regular expression that never backtracks over a `%`.

    The shortest match up to the next piece is always sufficient, so each match is final, and the
    time is at most the length of the text times that of the pattern.
    """
    if len(pattern) > PATTERN_CHARS_MAX:
        raise BadPattern(f"a pattern has {PATTERN_CHARS_MAX} characters at most")
    pieces: list[str] = [""]
    letters = iter(pattern)
    for letter in letters:
        if letter == escape:
            meant = next(letters, "")
            if meant not in (escape, "%", "_"):
                raise BadPattern(f"{escape!r} must stand before %, _ or itself")
            pieces[-1] += re.escape(meant)
        elif letter == "%":
            pieces.append("")
        else:
            pieces[-1] += "." if letter == "_" else re.escape(letter)
    if len(pieces) == 1:
        return re.compile(pieces[0], re.DOTALL)
    first, *middle, last = pieces
    inner = "".join(f"(?>.*?{piece})" for piece in middle if piece)
    return re.compile(f"{first}{inner}.*{last}", re.DOTALL)
