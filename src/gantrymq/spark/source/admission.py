"""How much a micro-batch takes: limits by rows and bytes, and a delay for small batches.

Spark applies one limit at a time, so all of them are applied here. Pure: offsets, sizes and the
time are arguments.
"""

from collections.abc import Mapping

from gantrymq.model import Queue
from gantrymq.model.offset_ranges import QueueOffsets, count_behind
from gantrymq.spark.options.source_options import TaskLimits, TriggerLimits


class Admission:
    """Decides whether a batch is put off; remembers when the last one began."""

    def __init__(self, limits: TriggerLimits) -> None:
        self._limits = limits
        self._begun: float | None = None

    def waits(self, start: QueueOffsets, highs: QueueOffsets, now: float) -> bool:
        """Whether the batch waits for more rows; `now` in seconds of any clock."""
        rows = sum(count_behind(start, highs).values())
        if self._limits.rows_min is None or not rows:
            return False
        late = self._begun is None or now - self._begun >= self._limits.delay_ms / 1000
        if rows < self._limits.rows_min and not late:
            return True
        self._begun = now
        return False


def rows_limit(
    rows_max: int | None,
    bytes_max: int | None,
    start: QueueOffsets,
    highs: QueueOffsets,
    sizes: Mapping[Queue, float],
) -> int | None:
    """The rows a batch may have, by both limits; None for no limit. Unknown sizes count as 0."""
    left = count_behind(start, highs)
    total = sum(rows * sizes.get(queue, 0) for queue, rows in left.items())
    if bytes_max is None or total <= bytes_max:
        return rows_max
    rows = max(1, int(sum(left.values()) * bytes_max / total))
    return rows if rows_max is None else min(rows, rows_max)


def row_limits(
    limits: TaskLimits, sizes: Mapping[Queue, float], queues: Mapping[Queue, int]
) -> dict[Queue, int]:
    """The rows that one task may have of each queue; a queue without a limit is left out."""
    found: dict[Queue, int] = {}
    for queue in queues:
        both = []
        if limits.rows_max is not None:
            both.append(limits.rows_max)
        if limits.bytes_max is not None and queue in sizes:
            both.append(max(1, int(limits.bytes_max / sizes[queue])))
        if both:
            found[queue] = min(both)
    return found
