"""The audit trail: who changed what through the console, when, and how it ended.

A line of JSON for each change, in the order of their ends. The file is only ever appended to.
"""

import asyncio
import os
from collections import deque
from itertools import islice
from pathlib import Path
from typing import Any, Final

import msgspec

from gantrymq.console.errors import ConsoleError

FILE: Final = "audit.jsonl"
TEXT_CHARACTERS_MAX: Final = 500
"""Of one value."""
ITEMS_MAX: Final = 20
"""Of one list or map."""
UNTOLD: Final = ("body", "bodyBase64", "properties", "keys", "password", "secretKey")
"""Values of which only the length is kept: a message may hold what is masked elsewhere."""


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


class _Time(msgspec.Struct, rename="camel"):
    at_ms: int


_TIME: Final = msgspec.json.Decoder(_Time)


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

    async def keep(self, entry: AuditEntry) -> None:
        """The same beside the event loop; a ConsoleError says that the entry is not kept."""
        try:
            await asyncio.to_thread(self.note, entry)
        except OSError as error:
            how = "was done" if entry.error is None else f"failed ({entry.error})"
            raise ConsoleError(
                f"{entry.act} {how}, and could not be noted in the audit trail: {error.strerror}"
            ) from error

    async def keep_login(self, at_ms: int, name: str, address: str, error: str | None) -> None:
        """Note that somebody logged in, or was refused."""
        asked = {"address": address}
        await self.keep(
            AuditEntry(at_ms=at_ms, user=name[:200], act="log_in", asked=asked, error=error)
        )

    def newest(
        self, count: int, containing: str = "", before_ms: int | None = None
    ) -> list[AuditEntry]:
        """The last entries, the newest first; those that contain a text, older than a time."""
        if not self._path.exists():
            return []
        with self._path.open("rb") as lines:
            wanted = containing.encode()
            chosen = (line for line in lines if wanted in line and line.endswith(b"\n"))
            if before_ms is not None:
                chosen = (line for line in chosen if _TIME.decode(line).at_ms < before_ms)
            found = deque(chosen, count)  # however long the trail is
        return [msgspec.json.decode(line, type=AuditEntry) for line in reversed(found)]


def shortened(asked: dict[str, Any]) -> dict[str, Any]:
    """A question for the trail: long values are cut, bodies are left out, and both are said."""
    return {
        key: _untold(value) if key in UNTOLD else _shorter(value) for key, value in asked.items()
    }


def _untold(value: Any) -> Any:
    """How long a value is; names stay."""
    if isinstance(value, str):
        return f"({len(value)} characters)"
    if isinstance(value, dict):
        return _shorter({key: _untold(each) for key, each in value.items()})
    return f"({len(value)} values)" if isinstance(value, list | tuple) else value


def _shorter(value: Any) -> Any:
    if isinstance(value, str) and len(value) > TEXT_CHARACTERS_MAX:
        return f"{value[:TEXT_CHARACTERS_MAX]}... ({len(value)} characters)"
    if isinstance(value, dict):
        cut = {_shorter(key): _shorter(each) for key, each in islice(value.items(), ITEMS_MAX)}
        return cut | ({"...": f"({len(value)} in all)"} if len(value) > ITEMS_MAX else {})
    if isinstance(value, list | tuple):
        rest = [f"... ({len(value)} in all)"] if len(value) > ITEMS_MAX else []
        return [*(_shorter(each) for each in value[:ITEMS_MAX]), *rest]
    return value
