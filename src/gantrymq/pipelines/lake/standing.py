"""What archives there are in a folder, and what they hold; read from their logs, without Spark."""

from dataclasses import dataclass, field
from pathlib import Path

from gantrymq.base.errors import GantryError
from gantrymq.model.offset_ranges import QueueOffsets
from gantrymq.pipelines.lake import is_table, open_table


@dataclass(frozen=True, kw_only=True)
class TableStanding:
    """An archive as it is now."""

    name: str
    """That of its folder."""
    format: str
    topics: tuple[str, ...] = ()
    queues: int = 0
    rows: int = 0
    size: int = 0
    """Bytes of its files."""
    files: int = 0
    first_ms: int | None = None
    last_ms: int | None = None
    """The first and last store time of its messages."""
    positions: QueueOffsets = field(default_factory=dict)
    """Where the next run goes on: the next offset of each queue."""
    trouble: str | None = None
    """Why it cannot be read."""


def tables_below(folder: Path) -> list[TableStanding]:
    """The archives in the folders of a folder, by name; other folders are passed over."""
    if not folder.is_dir():
        return []
    found = []
    for path in sorted(folder.iterdir()):
        if path.is_dir() and not path.name.startswith("."):
            standing = _standing(path)
            if standing is not None:
                found.append(standing)
    return found


def _standing(path: Path) -> TableStanding | None:
    if not is_table(path):
        return None
    try:
        table = open_table(path)
    except GantryError as error:
        return TableStanding(name=path.name, format="", trouble=str(error))
    try:
        table.refresh()
        files, queues = table.files(), table.positions()
    except GantryError as error:
        return TableStanding(name=path.name, format=table.format, trouble=str(error))
    return TableStanding(
        name=path.name,
        format=table.format,
        topics=tuple(sorted({each.topic for each in files} | {queue.topic for queue in queues})),
        queues=len(queues),
        rows=sum(each.rows for each in files),
        size=sum(each.size for each in files),
        files=len(files),
        first_ms=min((each.since_ms for each in files), default=None),
        last_ms=max((each.until_ms for each in files), default=None),
        positions=dict(sorted(queues.items())),
    )
