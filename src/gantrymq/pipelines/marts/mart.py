"""What a mart guarantees: columns, key and size; and the error if a result breaks it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pyspark.sql import DataFrame

from gantrymq.base.errors import GantryError
from gantrymq.base.plurals import counted

ROWS_MAX: Final = 1_000_000
"""Rows a mart may have: it is a summary, held in memory and shown on a page."""
EXAMPLES_MAX: Final = 3


class CheckFailed(GantryError):
    """A mart's result breaks its guarantees; nothing is reported."""

    def __init__(self, mart: str, check: str, examples: Sequence[object] = ()) -> None:
        shown = "; ".join(str(each) for each in examples[:EXAMPLES_MAX])
        super().__init__(f"mart {mart} fails its check: {check}{': ' if shown else ''}{shown}")


@dataclass(frozen=True, slots=True)
class Field:
    """A column: its name and type in the tables, and its title for people."""

    name: str
    kind: str
    title: str
    unit: str = ""
    null: bool = False
    """Whether a row may have none."""


TOPIC: Final = Field("topic", "string", "Topic")
GROUP: Final = Field("group", "string", "Group")
SOME_GROUP: Final = Field("group", "string", "Group", null=True)
"""The group, in marts that also have rows of a topic as a whole."""


def tally(name: str, title: str, *, null: bool = False) -> Field:
    """A column that counts messages."""
    return Field(name, "bigint", title, "messages", null)


@dataclass(frozen=True, slots=True)
class Mart:
    """The guarantees of a mart."""

    name: str
    title: str
    about: str
    """A sentence or two for whoever looks at the table."""
    fields: tuple[Field, ...]
    key: tuple[str, ...]
    rows_max: int = ROWS_MAX

    @property
    def schema(self) -> str:
        return ", ".join(f"{each.name} {each.kind}" for each in self.fields)

    def field(self, name: str) -> Field:
        return next(each for each in self.fields if each.name == name)


@dataclass(frozen=True)
class MartTable:
    """A mart's checked result, in memory."""

    mart: Mart
    rows: list[dict[str, Any]]
    arrow: Any = field(repr=False)
    """The same as a `pyarrow.Table`."""

    def column(self, name: str) -> list[Any]:
        return [row[name] for row in self.rows]

    def total(self, name: str) -> int:
        return sum(value for value in self.column(name) if value is not None)


def settle(mart: Mart, frame: DataFrame) -> MartTable:
    """Run the frame and check the result; rows are sorted by the mart's key."""
    _check_schema(mart, frame)
    arrow = frame.limit(mart.rows_max + 1).toArrow()
    rows = sorted(arrow.to_pylist(), key=lambda row: _order(mart, row))
    check_rows(mart, rows)
    return MartTable(mart, rows, type(arrow).from_pylist(rows, schema=arrow.schema))


def _rows(count: int) -> str:
    return f"{counted(count, 'row')} {'has' if count == 1 else 'have'}"


def check_rows(mart: Mart, rows: Sequence[Mapping[str, Any]]) -> None:
    """Check the number of rows, nulls, and that each key has one row."""
    if len(rows) > mart.rows_max:
        raise CheckFailed(
            mart.name,
            f"it has more than {mart.rows_max} rows: choose topics, groups or a shorter time",
        )
    for each in mart.fields:
        if not each.null:
            empty = [dict(row) for row in rows if row[each.name] is None]
            if empty:
                raise CheckFailed(mart.name, f"{_rows(len(empty))} no {each.name}", empty)
    seen: set[tuple[Any, ...]] = set()
    twice = []
    for row in rows:
        key = tuple(row[name] for name in mart.key)
        if key in seen:
            twice.append(key)
        seen.add(key)
    if twice:
        raise CheckFailed(mart.name, f"its key ({', '.join(mart.key)}) comes twice", twice)


def check_agree(
    mart: Mart, what: str, left: Mapping[Any, object], right: Mapping[Any, object]
) -> None:
    """Check that two ways to count the same agree, key by key."""
    wrong = [
        f"{key}: {left.get(key, 0)} and {right.get(key, 0)}"
        for key in sorted({*left, *right}, key=str)
        if left.get(key, 0) != right.get(key, 0)
    ]
    if wrong:
        raise CheckFailed(mart.name, f"{what} must agree", wrong)


def sums(table: MartTable, by: Sequence[str], of: str) -> dict[tuple[Any, ...], int]:
    """The sums of a column by others."""
    found: dict[tuple[Any, ...], int] = {}
    for row in table.rows:
        key = tuple(row[name] for name in by)
        found[key] = found.get(key, 0) + (row[of] or 0)
    return found


def _check_schema(mart: Mart, frame: DataFrame) -> None:
    made = ", ".join(f"{each.name} {each.dataType.simpleString()}" for each in frame.schema.fields)
    if made != mart.schema:
        raise CheckFailed(mart.name, f"its columns are {made} instead of {mart.schema}")


def _order(mart: Mart, row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Sort key: nulls first; values of a column are of one type."""
    return tuple((row[name] is not None, row[name]) for name in mart.key)
