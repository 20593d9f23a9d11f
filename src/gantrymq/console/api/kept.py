"""Small lists that the console keeps in its data folder: filters, rules, schemas, notes.

A list is a file of JSON, per cluster, written anew with each change. Every console has a folder of
its own, so one lock in the process is enough.
"""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, Generic, TypeVar
from urllib.parse import quote

import msgspec

from gantrymq.base.errors import ConfigError

KEPT: Final = "kept"
_locks: dict[Path, asyncio.Lock] = {}

T = TypeVar("T")


class KeptList(Generic[T]):
    """One list of one cluster: `await KeptList(data, "prod", "filters", SavedFilter).read()`."""

    def __init__(self, data: Path, cluster: str, name: str, kind: type[T]) -> None:
        self._path = data / KEPT / f"cluster-{quote(cluster, safe='')}" / f"{name}.json"
        self._kind = kind

    async def read(self) -> list[T]:
        """The list; empty before the first change."""
        return await asyncio.to_thread(self._read)

    async def change(self, edit: Callable[[list[T]], list[T]]) -> list[T]:
        """The list that `edit` makes of the present one, on disk when this returns."""
        lock = _locks.setdefault(self._path, asyncio.Lock())
        async with lock:
            made = edit(await self.read())
            await asyncio.to_thread(self._write, made)
            return made

    def _read(self) -> list[T]:
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise ConfigError(f"{self._path}: {error.strerror}") from error
        try:
            return msgspec.json.decode(data, type=list[self._kind])  # type: ignore[name-defined]
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            raise ConfigError(f"{self._path} cannot be read: {error}; mend or remove it") from None

    def _write(self, made: list[T]) -> None:
        data = msgspec.json.format(msgspec.json.encode(made), indent=1)
        part = self._path.with_suffix(".part")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            file = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            try:
                os.write(file, data)
                os.fsync(file)
            finally:
                os.close(file)
            part.replace(self._path)
        except OSError as error:
            raise ConfigError(f"{self._path} cannot be written: {error.strerror}") from error
