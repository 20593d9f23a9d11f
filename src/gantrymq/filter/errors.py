"""The error of a condition, with its place."""

from gantrymq.protocol.subscription import BadSubscription

SHOWN_MAX = 60
"""Characters of the condition that stand around the mark."""


class BadSql(BadSubscription):
    """A condition cannot be parsed; the text shows the place."""

    def __init__(self, sql: str, at: int, problem: str) -> None:
        super().__init__(f"SQL condition, character {at + 1}: {problem}\n{mark(sql, at)}")
        self.at, self.problem = at, problem


def mark(sql: str, at: int) -> str:
    """The text around a place, and below it a caret."""
    first = max(0, at - SHOWN_MAX // 2)
    shown = "".join(c if c.isprintable() else " " for c in sql[first : first + SHOWN_MAX])
    return f"  {shown}\n  {' ' * (at - first)}^"
