"""A store's folder, read by other programs: topics, queues and the broker's name."""

import json
from pathlib import Path
from typing import Any, Final

from gantrymq.store.errors import StoreError
from gantrymq.store.files.mapped import MappedLog, QueueFiles, layout_of

SYSTEM_NAMES: Final = frozenset({"TBW102", "SELF_TEST_TOPIC", "BenchmarkTest"})
SYSTEM_PREFIX: Final = "rmq_sys_"
INHERIT: Final = 1
"""The permission that only a broker's own topics have."""


class StoreFolder:
    """One broker's store, read from outside. A broker may write to it meanwhile."""

    def __init__(self, directory: str, log_directory: str = "") -> None:
        self.directory = directory.rstrip("/") or "/"
        log_directory = log_directory or f"{self.directory}/commitlog"
        if not Path(log_directory).is_dir():
            raise StoreError(
                f"{directory} is no store: it has no commitlog folder. Name the folder that holds "
                "commitlog and consumequeue"
            )
        self.segment_bytes, self.file_entries = layout_of(self.directory, log_directory)
        self.log = MappedLog(log_directory, self.segment_bytes)
        self._queues: dict[tuple[str, int], QueueFiles] = {}

    @property
    def is_open(self) -> bool:
        """Whether a broker runs on it, or was not stopped cleanly."""
        return Path(self.directory, "abort").exists()

    def refresh(self) -> None:
        """Look for new and deleted files."""
        self.log.refresh()
        self._queues.clear()

    def close(self) -> None:
        self.log.close()

    def topics(self) -> list[str]:
        """Every topic that has queues or that the broker knows."""
        return sorted({*_names(self._queue_root), *self._configured()})

    def queue_ids(self, topic: str) -> list[int]:
        """The queues of a topic: those with files, and the read queues of its settings."""
        stored = {int(name) for name in _names(self._queue_root / topic) if name.isdecimal()}
        known = self._configured().get(topic, {})
        return sorted(stored | set(range(int(known.get("readQueueNums", 0)))))

    def queue(self, topic: str, queue_id: int) -> QueueFiles:
        """The entries of a queue; empty if it has no files."""
        found = self._queues.get((topic, queue_id))
        if found is None:
            directory = str(self._queue_root / topic / str(queue_id))
            found = self._queues[topic, queue_id] = QueueFiles(directory, self.file_entries)
        return found

    def broker_name(self) -> str | None:
        """The broker's name, from its topic of one queue with that name; None if unclear."""
        own = [
            name
            for name, topic in self._configured().items()
            if name not in SYSTEM_NAMES
            and not name.startswith(SYSTEM_PREFIX)
            and int(topic.get("perm", 0)) & INHERIT
            and topic.get("readQueueNums") == topic.get("writeQueueNums") == 1
        ]
        return own[0] if len(own) == 1 else None

    @property
    def _queue_root(self) -> Path:
        return Path(self.directory, "consumequeue")

    def _configured(self) -> dict[str, dict[str, Any]]:
        """The topics of `config/topics.json`; empty if it cannot be read."""
        try:
            text = Path(self.directory, "config", "topics.json").read_text()
            table = json.loads(text).get("topicConfigTable", {})
        except (OSError, ValueError, AttributeError):
            return {}
        return table if isinstance(table, dict) else {}


def _names(directory: Path) -> list[str]:
    try:
        return [path.name for path in directory.iterdir() if path.is_dir()]
    except (FileNotFoundError, NotADirectoryError):
        return []
