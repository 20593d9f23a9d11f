"""The name server's key-value configuration, kept in kvConfig.json."""

from typing import Any

import msgspec

from gantrymq.base.disk import Disk
from gantrymq.base.errors import ConfigError
from gantrymq.base.files import load_text, save_text
from gantrymq.protocol import fastjson

ORDER_NAMESPACE = "ORDER_TOPIC_CONFIG"


class KvConfig:
    """namespace -> key -> value; every change is on disk before it is answered."""

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk, self._path = disk, path
        self._tables: dict[str, dict[str, str]] = {}
        text = load_text(disk, path, usable=_is_table)
        if text is not None:
            self._tables = msgspec.convert(
                fastjson.loads(text)["configTable"], dict[str, dict[str, str]]
            )

    def get(self, namespace: str, key: str) -> str | None:
        return self._tables.get(namespace, {}).get(key)

    def table(self, namespace: str) -> dict[str, str] | None:
        return self._tables.get(namespace)

    def put(self, namespace: str, key: str, value: str) -> None:
        self._tables.setdefault(namespace, {})[key] = value
        self._save()

    def delete(self, namespace: str, key: str) -> None:
        if self._tables.get(namespace, {}).pop(key, None) is not None:
            self._save()

    def _save(self) -> None:
        try:
            save_text(self._disk, self._path, fastjson.pretty({"configTable": self._tables}))
        except OSError as error:
            raise ConfigError(f"cannot write {self._path}: {error}") from error


def _is_table(text: str) -> bool:
    try:
        data: Any = fastjson.loads(text)
        msgspec.convert(data["configTable"], dict[str, dict[str, str]])
    except Exception:
        return False
    return True
