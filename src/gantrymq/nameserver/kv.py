"""The name server's key-value configuration, kept in kvConfig.json."""

from typing import Any

import msgspec

from gantrymq.base.disk import Disk
from gantrymq.base.errors import ConfigError
from gantrymq.base.files import load_parsed
from gantrymq.base.offload import Offload
from gantrymq.base.saved import SavedFile
from gantrymq.protocol import fastjson

ORDER_NAMESPACE = "ORDER_TOPIC_CONFIG"


class KvConfig:
    """namespace -> key -> value; every change is on disk before it is answered.

    The file is written off the event loop: a busy disk takes seconds, and routes must not wait.
    """

    def __init__(self, disk: Disk, offload: Offload, path: str) -> None:
        """Raises ConfigError if the file and its backup are damaged."""
        self._file, self._path = SavedFile(disk, offload, path), path
        self._tables = load_parsed(disk, path, _tables_of) or {}

    def get(self, namespace: str, key: str) -> str | None:
        return self._tables.get(namespace, {}).get(key)

    def table(self, namespace: str) -> dict[str, str] | None:
        return self._tables.get(namespace)

    @property
    def size(self) -> int:
        """Characters of all namespaces, keys and values."""
        return sum(
            len(namespace) + len(key) + len(value)
            for namespace, table in self._tables.items()
            for key, value in table.items()
        )

    async def put(self, namespace: str, key: str, value: str) -> None:
        await self._change(namespace, key, value)

    async def delete(self, namespace: str, key: str) -> None:
        if self.get(namespace, key) is not None:
            await self._change(namespace, key, None)

    async def _change(self, namespace: str, key: str, value: str | None) -> None:
        """Set or remove a value; if it cannot be saved, nothing changes."""
        before = self.get(namespace, key)
        self._set(namespace, key, value)
        try:
            await self._file.save(fastjson.pretty({"configTable": self._tables}))
        except OSError as error:
            if self.get(namespace, key) == value:
                self._set(namespace, key, before)
            raise ConfigError(f"cannot write {self._path}: {error}") from error

    def _set(self, namespace: str, key: str, value: str | None) -> None:
        if value is None:
            self._tables.get(namespace, {}).pop(key, None)
        else:
            self._tables.setdefault(namespace, {})[key] = value


def _tables_of(text: str) -> dict[str, dict[str, str]]:
    data: Any = fastjson.loads(text)
    return msgspec.convert(data["configTable"], dict[str, dict[str, str]])
