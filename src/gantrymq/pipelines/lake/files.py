"""The data files of an archive: what each holds, its name, and which a question needs. Pure.

A file holds a run of offsets of one queue, stored on one day, and says so in its name; so
every table format shows what is where without opening a file. Files that another program named (a
foreign compaction) may hold any queue of their topic.
"""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

from gantrymq.model import Queue
from gantrymq.model.offset_ranges import QueueOffsets

DATA: Final = "data"
"""The folder of the files, beside the table's log: `data/**/*.parquet` are files of rows only."""
_SAFE = re.compile(r"[A-Za-z0-9_.]")
_ESCAPE = re.compile(r"~([0-9a-f]{2})")
_NAME = re.compile(
    r"(?P<broker>[^/]+)-(?P<queue>\d+)-(?P<first>\d+)-(?P<last>\d+)-[0-9a-z]+\.parquet"
)
_DAY_ZERO: Final = date(1970, 1, 1)
_DAY_MS: Final = 86_400_000


@dataclass(frozen=True, slots=True)
class DataFile:
    """One Parquet file of a table."""

    path: str
    """Below the table's folder, with `/`."""
    topic: str
    day: date
    """The day (UTC) its messages were stored."""
    rows: int
    size: int
    queue: Queue | None
    first: int
    last: int
    """Its first and last queue offset; 0 and 0 where the queue is not known."""
    since_ms: int
    until_ms: int
    """The first and last store time in it."""


# names


def encoded(name: str) -> str:
    """A name as a part of a path: letters, digits, `_` and `.` as they are, `~xx` for others."""
    return "".join(
        char if _SAFE.match(char) or char == "-" else "".join(f"~{b:02x}" for b in char.encode())
        for char in name
    )


def decoded(text: str) -> str:
    """The inverse of `encoded`."""
    raw = _ESCAPE.sub(lambda hit: chr(int(hit[1], 16)), text)
    return raw.encode("latin-1", "replace").decode("utf-8", "replace")


def folder_of(topic: str, day: date) -> str:
    """The folder for files of a topic and a day.

    Not `topic=orders/dt=2026-01-31`: the files have both as columns, and readers that also find
    them in folder names report a contradiction. Readers skip names that begin with `_` or `.`.
    """
    name = encoded(topic)
    if name[0] in "_.":
        name = f"~{ord(name[0]):02x}{name[1:]}"
    return f"{DATA}/{name}/{day.isoformat()}"


def name_of(queue: Queue, first: int, last: int, token: str) -> str:
    """A file's name. Every attempt has a new token, so no file is ever overwritten."""
    return f"{encoded(queue.broker_name)}-{queue.queue_id}-{first}-{last}-{token}.parquet"


def facts_of(path: str, topic: str) -> tuple[Queue | None, int, int]:
    """Queue, first and last offset, as the name says them."""
    found = _NAME.fullmatch(path.rpartition("/")[2])
    if found is None:
        return None, 0, 0
    queue = Queue(topic, decoded(found["broker"]), int(found["queue"]))
    return queue, int(found["first"]), int(found["last"])


def day_start_ms(day: date) -> int:
    return (day - _DAY_ZERO).days * _DAY_MS


def day_of(at_ms: int) -> date:
    return _DAY_ZERO + timedelta(days=at_ms // _DAY_MS)


# choosing


def pruned(
    files: Iterable[DataFile],
    *,
    topics: Collection[str] | None = None,
    since_ms: int | None = None,
    until_ms: int | None = None,
) -> list[DataFile]:
    """The files that may hold rows of some topics stored in [since, until), in order."""
    kept = (
        each
        for each in files
        if (topics is None or each.topic in topics)
        and (since_ms is None or each.until_ms >= since_ms)
        and (until_ms is None or each.since_ms < until_ms)
    )
    return sorted(kept, key=lambda each: (each.topic, each.day, each.path))


# coverage


@dataclass(frozen=True, slots=True)
class OffsetSpan:
    """Offsets of a queue that are there, from `start` up to but not including `end`."""

    queue: Queue
    start: int
    end: int


def spans(files: Iterable[DataFile]) -> dict[Queue, list[OffsetSpan]]:
    """The archived offsets of each queue, neighbours joined. More than one span means a gap."""
    found: dict[Queue, list[OffsetSpan]] = {}
    known = ((each.queue, each) for each in files if each.queue is not None)
    for queue, each in sorted(known, key=lambda pair: (pair[0], pair[1].first)):
        parts = found.setdefault(queue, [])
        if parts and parts[-1].end >= each.first:
            parts[-1] = OffsetSpan(queue, parts[-1].start, max(parts[-1].end, each.last + 1))
        else:
            parts.append(OffsetSpan(queue, each.first, each.last + 1))
    return found


def doubled(files: Iterable[DataFile]) -> list[str]:
    """Files that hold offsets which another file holds too: there must be none."""
    wrong: list[str] = []
    ends: QueueOffsets = {}
    known = ((each.queue, each) for each in files if each.queue is not None)
    for queue, each in sorted(known, key=lambda pair: (pair[0], pair[1].first)):
        if each.first < ends.get(queue, 0):
            wrong.append(each.path)
        ends[queue] = max(ends.get(queue, 0), each.last + 1)
    return wrong
