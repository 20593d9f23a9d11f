"""What commands of `mqadmin` print: RocketMQ's columns and sentences, or JSON."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class Column:
    """One column of a table. Its key names it in JSON."""

    key: str
    title: str
    width: int = 0
    """The least width in characters; longer values are printed whole."""
    right: bool = False
    show: Callable[[Any], str] = str
    """How a value is printed in text; JSON has the value itself."""

    def cell(self, text: str) -> str:
        return text.rjust(self.width) if self.right else text.ljust(self.width)


Columns = Sequence[Column]
AddRow = Callable[..., None]


class Output(Protocol):
    """Takes what a command finds or did."""

    def table(self, columns: Columns) -> AddRow:
        """Begin a table; returns the function that adds a row, a value for each column."""
        ...

    def field(self, key: str, value: Any, text: str | None = None) -> None:
        """A single value, and the line that says it in text; None: only JSON has it."""
        ...

    def item(self, value: Mapping[str, Any], lines: Callable[[], Sequence[str]]) -> None:
        """A thing with many fields: a row in JSON, several lines in text."""
        ...

    def done(self, text: str) -> None:
        """A sentence about something that was done."""
        ...

    def text(self, line: str = "") -> None:
        """A line that only people read."""
        ...

    def close(self) -> None:
        """The command has ended."""
        ...


class TextOutput:
    """Prints at once."""

    def table(self, columns: Columns) -> AddRow:
        def line(cells: Sequence[str]) -> None:
            shown = (column.cell(text) for column, text in zip(columns, cells, strict=True))
            self.text(" ".join(shown).rstrip())

        def add(*values: Any) -> None:
            line([_plain(each.show(v)) for each, v in zip(columns, values, strict=True)])

        if any(column.title for column in columns):
            line([column.title for column in columns])
        return add

    def field(self, key: str, value: Any, text: str | None = None) -> None:
        if text is not None:
            self.text(text)

    def item(self, value: Mapping[str, Any], lines: Callable[[], Sequence[str]]) -> None:
        for line in lines():
            self.text(line)

    def done(self, text: str) -> None:
        self.text(text)

    def text(self, line: str = "") -> None:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()

    def close(self) -> None:
        """Everything is printed."""


class JsonOutput:
    """Collects, and prints one JSON value at the end.

    It is a list if the command has rows only, else an object with `rows`, the fields by their keys,
    and `done`.
    """

    def __init__(self) -> None:
        self._rows: list[dict[str, Any]] | None = None
        self._whole: dict[str, Any] = {}

    def table(self, columns: Columns) -> AddRow:
        rows = self._rows = self._rows or []

        def add(*values: Any) -> None:
            rows.append({each.key: v for each, v in zip(columns, values, strict=True)})

        return add

    def field(self, key: str, value: Any, text: str | None = None) -> None:
        self._whole[key] = value

    def item(self, value: Mapping[str, Any], lines: Callable[[], Sequence[str]]) -> None:
        self._rows = [*(self._rows or []), dict(value)]

    def done(self, text: str) -> None:
        self._whole.setdefault("done", []).append(text)

    def text(self, line: str = "") -> None:
        """Programs do not read it."""

    def close(self) -> None:
        rows = self._rows
        whole = {"rows": rows, **self._whole} if rows is not None else self._whole
        value = rows if rows is not None and not self._whole else whole
        sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def _plain(text: str) -> str:
    """Escape control characters: text of messages must not control the terminal."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
