"""The audit trail: who changed what through the console, when, and how it ended.

A line of JSON for each change, in the order of their ends. The file is only ever appended to.
"""

import os
from collections import deque
from itertools import islice
from pathlib import Path
from typing import Any, Final

import msgspec

FILE: Final = "audit.jsonl"
TEXT_CHARACTERS_MAX: Final = 500
"""Of one value."""
UNTOLD: Final = ("body", "password", "secretKey")
"""Values of which only the length is kept: a body may hold what is masked elsewhere."""


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One change."""

    at_ms: int
    user: str
    act: str
    """The name of the endpoint."""
    asked: dict[str, Any]
    """The question, long values cut."""
    error: str | None = None
    """Why it failed; None if it was done."""


class AuditTrail:
    """The file of all changes."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE

    def note(self, entry: AuditEntry) -> None:
        """Append an entry; it is on disk when this returns."""
        line = msgspec.json.encode(entry) + b"\n"
        self._path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(file, line)
            os.fdatasync(file)
        finally:
            os.close(file)

    def newest(
        self, count: int, containing: str = "", before_ms: int | None = None
    ) -> list[AuditEntry]:
        """The last entries, the newest first; those that contain a text, older than a time."""
        if not self._path.exists():
            return []
        with self._path.open("rb") as lines:
            wanted = containing.encode()
            found = deque(line for line in lines if wanted in line and line.endswith(b"\n"))
        entries = (msgspec.json.decode(line, type=AuditEntry) for line in reversed(found))
        older = (each for each in entries if before_ms is None or each.at_ms < before_ms)
        return list(islice(older, count))


def shortened(asked: dict[str, Any]) -> dict[str, Any]:
    """A question for the trail: long texts are cut, bodies are left out, and both are said."""
    return {
        key: f"({len(value)} characters)"
        if key in UNTOLD and isinstance(value, str)
        else _shorter(value)
        for key, value in asked.items()
    }


def _shorter(value: Any) -> Any:
    if isinstance(value, str) and len(value) > TEXT_CHARACTERS_MAX:
        return f"{value[:TEXT_CHARACTERS_MAX]}... ({len(value)} characters)"
    return value
