"""What to read: offsets, the ranges between them, and their split into tasks. Pure.

Spark keeps a stream's offsets as JSON, `{"topic": {"broker-a": {"0": 123}}}`, and compares them as
text. There is one way to write them, `to_json`, with every level sorted; another order of the same
offsets would look like new data for ever. An end is exclusive: it is the next offset to read.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gantrymq.base.errors import ConfigError
from gantrymq.model import Queue

Offsets = dict[Queue, int]
JsonOffsets = dict[str, dict[str, dict[str, int]]]

EARLIEST: Final = "earliest"
LATEST: Final = "latest"
AT_LATEST: Final = -1
AT_EARLIEST: Final = -2

Point = str | Offsets
"""Where to begin or end: `earliest`, `latest`, or an offset a queue (-1 latest, -2 earliest)."""


@dataclass(frozen=True, slots=True)
class Range:
    """Part of a queue, from `start` up to but not including `end`."""

    queue: Queue
    start: int
    end: int
    is_new: bool = False
    """The queue appeared while the query ran: it begins at its first message, wherever that is."""

    @property
    def rows(self) -> int:
        return self.end - self.start


# writing and reading offsets


def to_json(offsets: Mapping[Queue, int]) -> JsonOffsets:
    """Offsets as Spark keeps them, in the one canonical order: by topic, broker and queue id."""
    found: JsonOffsets = {}
    for queue in sorted(offsets):
        brokers = found.setdefault(queue.topic, {})
        brokers.setdefault(queue.broker_name, {})[str(queue.queue_id)] = offsets[queue]
    return found


def from_json(value: object) -> Offsets:
    """The inverse of `to_json`; says what is wrong with anything else."""
    shape = 'not of the form {"topic": {"broker": {"0": 123}}}'
    offsets: Offsets = {}
    for topic, brokers in _items(value, shape):
        for broker, queues in _items(brokers, shape):
            for queue_id, offset in _items(queues, shape):
                if not queue_id.isdecimal() or not isinstance(offset, int) or offset < AT_EARLIEST:
                    raise ConfigError(f"queue {queue_id!r} at {offset!r} is no offset: {shape}")
                offsets[Queue(topic, broker, int(queue_id))] = offset
    return offsets


def _items(value: object, shape: str) -> Iterable[tuple[str, object]]:
    if not isinstance(value, dict):
        raise ConfigError(f"offsets {value!r} are {shape}")
    return value.items()


def parse_point(text: str, option: str) -> Point:
    """The value of startingOffsets or endingOffsets."""
    word = text.strip()
    if word.lower() in (EARLIEST, LATEST):
        return word.lower()
    try:
        return from_json(json.loads(word))
    except json.JSONDecodeError as error:
        raise ConfigError(
            f"{option} is earliest, latest or JSON with an offset a queue, not {text!r}"
        ) from error


# choosing offsets


def resolve(point: Point, lows: Offsets, highs: Offsets, *, otherwise: str) -> Offsets:
    """An offset for every queue that exists. Queues a JSON point leaves out are at `otherwise`."""
    if isinstance(point, str):
        return dict(lows if point == EARLIEST else highs)
    missing = [queue for queue in point if queue not in highs]
    if missing:
        raise ConfigError(f"there is no {_name(missing[0])}: offsets were given for it")
    resolved = dict(lows if otherwise == EARLIEST else highs)
    for queue, offset in point.items():
        named = {AT_LATEST: highs[queue], AT_EARLIEST: lows[queue]}
        resolved[queue] = named.get(offset, offset)
    return resolved


def moves(point: Point) -> bool:
    """Whether the point means another offset each time it is resolved."""
    return point == LATEST if isinstance(point, str) else AT_LATEST in point.values()


def advance(start: Offsets, highs: Offsets, rows_max: int | None = None) -> Offsets:
    """Where a batch that begins at `start` ends: at `highs`, or `rows_max` rows on.

    Queues are never dropped and never go back: one that vanished, or whose broker lost messages,
    stays where it was. Queues that are new begin at 0. A limit is shared out by how much each
    queue has; every queue that has something gets at least one row.
    """
    begin = dict.fromkeys(highs, 0) | start
    behind = {queue: max(0, high - begin[queue]) for queue, high in highs.items()}
    total = sum(behind.values())
    if rows_max is None or total <= rows_max:
        return {queue: offset + behind.get(queue, 0) for queue, offset in begin.items()}
    share = {queue: min(rows, max(1, rows * rows_max // total)) for queue, rows in behind.items()}
    return {queue: offset + share.get(queue, 0) for queue, offset in begin.items()}


def capped(highs: Offsets, target: Offsets | None) -> Offsets:
    """`highs`, but nothing behind the target, and no queue that it does not know."""
    if target is None:
        return highs
    return {queue: min(high, target[queue]) for queue, high in highs.items() if queue in target}


# ranges and tasks


def ranges(start: Offsets, end: Offsets) -> list[Range]:
    """What lies between two offsets, by queue; a pure function, so every retry reads the same.

    A start behind its end is possible once: after a crash in its first batch a query that began at
    `latest` is given a new beginning together with the old end, which holds. Nothing is to be read
    then, and the next batch begins at the old end.
    """
    return [
        Range(queue, start.get(queue, 0), end[queue], is_new=queue not in start)
        for queue in sorted(end)
        if start.get(queue, 0) < end[queue]
    ]


def pack(found: Sequence[Range], tasks_max: int) -> list[tuple[Range, ...]]:
    """Share ranges out over at most so many tasks, the largest first to whoever has least.

    A task costs Spark about 40 ms whatever it reads, so a topic with many small queues is read
    several times faster by few tasks.
    """
    tasks: list[list[Range]] = [[] for _ in range(min(tasks_max, len(found)))]
    loads = [0] * len(tasks)
    for each in sorted(found, key=lambda each: (-each.rows, each.queue)):
        least = loads.index(min(loads))
        tasks[least].append(each)
        loads[least] += each.rows
    return [tuple(sorted(task, key=lambda each: each.queue)) for task in tasks]


def _name(queue: Queue) -> str:
    return f"queue {queue.queue_id} of {queue.topic} on {queue.broker_name}"
