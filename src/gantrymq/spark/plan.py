"""What to read: offsets, the ranges between them, and their split into tasks. Pure.

Spark keeps a stream's offsets as JSON, `{"topic": {"broker-a": {"0": 123}}}`, and compares them as
text. There is one way to write them, `to_json`, with every level sorted; another order of the same
offsets would look like new data for ever. An end is exclusive: it is the next offset to read.
"""

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from gantrymq.base.errors import ConfigError
from gantrymq.model import Queue

Offsets = dict[Queue, int]
JsonOffsets = dict[str, dict[str, dict[str, int]]]

_OFFSET_MIN: Final = -2
"""Below 0 lie the words for latest (-1) and earliest (-2)."""
PARTS_MAX: Final = 100_000
"""More tasks than anybody wants, so that a mistyped minPartitions does not fill the memory."""
_SHAPE: Final = 'not of the form {"topic": {"broker": {"0": 123}}}'


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
    offsets: Offsets = {}
    for queue, offset in queue_table(value):
        if not isinstance(offset, int) or offset < _OFFSET_MIN:
            raise ConfigError(f"queue {queue.queue_id} at {offset!r} is no offset: {_SHAPE}")
        offsets[queue] = offset
    return offsets


def queue_table(value: object) -> Iterable[tuple[Queue, object]]:
    """Each queue of a table by topic, broker and queue id, with its value."""
    for topic, brokers in _items(value):
        for broker, queues in _items(brokers):
            for queue_id, content in _items(queues):
                if not queue_id.isdecimal():
                    raise ConfigError(f"queue {queue_id!r} is no number: {_SHAPE}")
                yield Queue(topic, broker, int(queue_id)), content


def _items(value: object) -> Iterable[tuple[str, object]]:
    if not isinstance(value, dict):
        raise ConfigError(f"offsets {value!r} are {_SHAPE}")
    return value.items()


# choosing offsets


def advance(
    start: Offsets,
    highs: Offsets,
    rows_max: int | None = None,
    *,
    new: Mapping[Queue, int] | None = None,
) -> Offsets:
    """Where a batch that begins at `start` ends: at `highs`, or `rows_max` rows on.

    Queues are never dropped and never go back: one that vanished stays where it was. Queues that
    appeared begin where `new` says, or at 0. A limit is shared out by how much each queue has;
    every queue that has something gets at least one row.
    """
    begin = dict.fromkeys(highs, 0) | _within(new or {}, highs) | start
    behind = {queue: max(0, high - begin[queue]) for queue, high in highs.items()}
    total = sum(behind.values())
    if rows_max is None or total <= rows_max:
        return {queue: offset + behind.get(queue, 0) for queue, offset in begin.items()}
    share = {queue: min(rows, max(1, rows * rows_max // total)) for queue, rows in behind.items()}
    return {queue: offset + share.get(queue, 0) for queue, offset in begin.items()}


def _within(new: Mapping[Queue, int], highs: Offsets) -> Offsets:
    return {queue: min(offset, highs[queue]) for queue, offset in new.items() if queue in highs}


def behind(start: Offsets, highs: Offsets) -> Offsets:
    """How many rows each queue that has some has from `start`, else from 0, on."""
    left = {queue: high - start.get(queue, 0) for queue, high in highs.items()}
    return {queue: rows for queue, rows in left.items() if rows > 0}


def capped(highs: Offsets, target: Offsets | None) -> Offsets:
    """`highs`, cut at the target, without queues that the target lacks; None does not limit."""
    if target is None:
        return highs
    return {queue: min(high, target[queue]) for queue, high in highs.items() if queue in target}


# ranges and tasks


def ranges(start: Offsets, end: Offsets, *, skips_new: bool = False) -> list[Range]:
    """What lies between two offsets, by queue. A retry computes the same ranges.

    A queue that is not in `start` appeared while the query ran: it is read from its first message,
    or with `skips_new` from the end of this batch on.

    A start may lie behind its end: after a crash in its first batch Spark gives a query that began
    at `latest` a new beginning with the old end; and a queue that was cut begins at its new start.
    Then the range is empty, and the next batch begins at the end.
    """
    return [
        Range(queue, start.get(queue, 0), end[queue], is_new=queue not in start)
        for queue in sorted(end)
        if start.get(queue, 0) < end[queue] and not (skips_new and queue not in start)
    ]


def split(
    found: Sequence[Range], rows_max: Mapping[Queue, int], tasks_min: int | None = None
) -> list[Range]:
    """Cut ranges so that none has more rows than its queue's limit, and there are enough.

    The range that has the largest pieces is cut first.
    """
    parts = [-(-each.rows // rows_max.get(each.queue, each.rows)) for each in found]
    if tasks_min is not None and found:
        queue = [
            (-each.rows / count, at)
            for at, (each, count) in enumerate(zip(found, parts, strict=True))
        ]
        heapq.heapify(queue)
        for _ in range(min(tasks_min, PARTS_MAX) - sum(parts)):
            size, at = heapq.heappop(queue)
            parts[at] += size < -1  # one row cannot be cut
            heapq.heappush(queue, (-found[at].rows / parts[at], at))
    return [piece for each, count in zip(found, parts, strict=True) for piece in _cut(each, count)]


def _cut(whole: Range, count: int) -> Iterable[Range]:
    edges = [whole.start + whole.rows * at // count for at in range(count + 1)]
    return (replace(whole, start=one, end=two) for one, two in pairwise(edges))


def pack(found: Sequence[Range], tasks_max: int) -> list[tuple[Range, ...]]:
    """Share ranges out over at most `tasks_max` tasks, the largest first, to the emptiest task.

    A task costs Spark about 40 ms whatever it reads, so a topic with many small queues is read
    several times faster by few tasks.
    """
    tasks: list[list[Range]] = [[] for _ in range(min(tasks_max, len(found)))]
    loads = [0] * len(tasks)
    for each in sorted(found, key=lambda each: (-each.rows, each.queue, each.start)):
        least = loads.index(min(loads))
        tasks[least].append(each)
        loads[least] += each.rows
    return [tuple(sorted(task, key=lambda each: (each.queue, each.start))) for task in tasks]


def named(queue: Queue) -> str:
    """A queue as errors name it."""
    return f"queue {queue.queue_id} of {queue.topic} on {queue.broker_name}"
