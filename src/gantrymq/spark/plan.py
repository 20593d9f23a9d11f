"""What a batch reads: where it ends, its ranges, and their split into tasks. Pure."""

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

from gantrymq.model import Queue
from gantrymq.model.offset_ranges import OffsetRange, QueueOffsets

PARTS_MAX: Final = 100_000
"""More tasks than anybody wants, so that a mistyped minPartitions does not fill the memory."""


def advance(
    start: QueueOffsets,
    highs: QueueOffsets,
    rows_max: int | None = None,
    *,
    new: Mapping[Queue, int] | None = None,
) -> QueueOffsets:
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


def _within(new: Mapping[Queue, int], highs: QueueOffsets) -> QueueOffsets:
    return {queue: min(offset, highs[queue]) for queue, offset in new.items() if queue in highs}


def capped(highs: QueueOffsets, target: QueueOffsets | None) -> QueueOffsets:
    """`highs`, cut at the target, without queues that the target lacks; None does not limit."""
    if target is None:
        return highs
    return {queue: min(high, target[queue]) for queue, high in highs.items() if queue in target}


# ranges and tasks


def ranges(start: QueueOffsets, end: QueueOffsets, *, skips_new: bool = False) -> list[OffsetRange]:
    """What lies between two offsets, by queue. A retry computes the same ranges.

    A queue that is not in `start` appeared while the query ran: it is read from its first message,
    or with `skips_new` from the end of this batch on.

    A start may lie behind its end: after a crash in its first batch Spark gives a query that began
    at `latest` a new beginning with the old end; and a queue that was cut begins at its new start.
    Then the range is empty, and the next batch begins at the end.
    """
    return [
        OffsetRange(queue, start.get(queue, 0), end[queue], is_new=queue not in start)
        for queue in sorted(end)
        if start.get(queue, 0) < end[queue] and not (skips_new and queue not in start)
    ]


def split(
    found: Sequence[OffsetRange], rows_max: Mapping[Queue, int], tasks_min: int | None = None
) -> list[OffsetRange]:
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


def _cut(whole: OffsetRange, count: int) -> Iterable[OffsetRange]:
    edges = [whole.start + whole.rows * at // count for at in range(count + 1)]
    return (replace(whole, start=one, end=two) for one, two in pairwise(edges))


def pack(found: Sequence[OffsetRange], tasks_max: int) -> list[tuple[OffsetRange, ...]]:
    """Share ranges out over at most `tasks_max` tasks, the largest first, to the emptiest task.

    A task costs Spark about 40 ms whatever it reads, so a topic with many small queues is read
    several times faster by few tasks.
    """
    tasks: list[list[OffsetRange]] = [[] for _ in range(min(tasks_max, len(found)))]
    loads = [0] * len(tasks)
    for each in sorted(found, key=lambda each: (-each.rows, each.queue, each.start)):
        least = loads.index(min(loads))
        tasks[least].append(each)
        loads[least] += each.rows
    return [tuple(sorted(task, key=lambda each: (each.queue, each.start))) for task in tasks]
