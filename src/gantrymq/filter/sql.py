"""SQL conditions over message properties: compiled once, evaluated for every message."""

from collections.abc import Callable
from functools import lru_cache

from gantrymq.filter.compiler import function_of
from gantrymq.filter.errors import BadSql
from gantrymq.filter.parser import parse

CACHED_MAX = 256
"""Conditions kept, bad ones included: members of a group all say the same again and again."""


class Condition:
    """A compiled condition."""

    __slots__ = ("matches", "sql", "weight", "words")

    def __init__(self, sql: str) -> None:
        parsed = parse(sql)
        self.sql = sql
        self.weight = parsed.nodes
        """How large it is: what one evaluation costs grows with it."""
        self.words = frozenset(parsed.words)
        """Operators it uses that not every RocketMQ broker knows."""
        self.matches: Callable[[bytes], bool] = function_of(parsed.root)
        """Whether a message with these raw properties matches."""

    def __repr__(self) -> str:
        return f"Condition({self.sql!r})"


def condition(sql: str) -> Condition:
    """The condition, cached if it was used lately; BadSql if it cannot be parsed."""
    found = _cached(sql)
    if isinstance(found, BadSql):
        raise found.with_traceback(None)
    return found


@lru_cache(maxsize=CACHED_MAX)
def _cached(sql: str) -> Condition | BadSql:
    try:
        return Condition(sql)
    except BadSql as error:
        return error
