"""Lists in parts: which rows are shown, and where the others are. Pure."""

from collections.abc import Sequence
from typing import Annotated, Final, TypeVar

import msgspec

LIMIT: Final = 50
LIMIT_MAX: Final = 500

Offset = Annotated[int, msgspec.Meta(ge=0)]
Limit = Annotated[int, msgspec.Meta(ge=1, le=LIMIT_MAX)]

T = TypeVar("T")


def matches(name: str, search: str) -> bool:
    """Whether a name contains every word of a search, in any order and whatever the case."""
    lower = name.lower()
    return all(word in lower for word in search.lower().split())


def part(rows: Sequence[T], offset: int, limit: int) -> Sequence[T]:
    """The rows from an offset on, at most `limit`; the last full part for an offset beyond."""
    if offset >= len(rows):
        offset = begin_of_last(len(rows), limit)
    return rows[offset : offset + limit]


def begin_of_last(count: int, limit: int) -> int:
    """Where the last part begins."""
    return max(0, (count - 1) // limit * limit) if count else 0
