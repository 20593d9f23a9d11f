"""Queue entries and index rows of records that were just written: the pure twin."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

from gantrymq.kernel.keys import KeyRows
from gantrymq.kernel.records import ENTRY, walk_records
from gantrymq.model import SCHEDULE_TOPIC
from gantrymq.protocol.record import (
    BLANK_BYTES,
    TRANSACTION_MASK,
    TRANSACTION_PREPARED,
    TRANSACTION_ROLLBACK,
)

DELAYED = SCHEDULE_TOPIC.encode()
"""Its entries have the time at which a message is due in place of a tag's code."""


class End(Protocol):
    """Where the readable entries of a queue end."""

    @property
    def advance(self) -> Callable[[int], Any]: ...


class QueueTail:
    """The newest entries of a queue: what changes with every message."""

    __slots__ = ("end", "next", "stop", "tail")

    end: End
    """Behind the last entry that readers may see."""
    next: int
    """The offset that the next message of this queue gets."""
    stop: int
    """Behind the last entry that was built."""
    tail: bytearray
    """The newest entries, up to `stop`; they are not in a file yet."""

    def publish(self) -> None:
        """Make the added entries visible to readers."""
        if self.next < self.stop:
            self.next = self.stop
        self.end.advance(self.stop)


Tail = TypeVar("Tail", bound=QueueTail)


def dispatch_records(
    data: bytes,
    base: int,
    queues: Mapping[tuple[bytes, int], Tail],
    rows: KeyRows | None,
    rows_from: int,
) -> tuple[int, list[Tail], int]:
    """Add the entries of records that lie back to back from log offset `base`, and their rows to
    the key index if they lie behind `rows_from`.

    Stops at the first record that is not plain: of a transaction that is not committed, with a
    delay level, for a queue that is not known or whose next offset is another one. Returns the log
    offset that was reached, the queues that have new entries, and when the last record was stored.
    """
    touched: dict[Tail, None] = {}
    reached, last_ms = base, 0
    for record in walk_records(data, base, len(data) + BLANK_BYTES, False).records:
        topic, queue_id, queue_offset, position, size, sys_flag, code, store_ms, _ = record
        kind = sys_flag & TRANSACTION_MASK
        queue = queues.get((topic, queue_id))
        if (
            kind in (TRANSACTION_PREPARED, TRANSACTION_ROLLBACK)
            or topic == DELAYED
            or queue is None
            or queue.stop != queue_offset
        ):
            break
        queue.tail += ENTRY.pack(position, size, code)
        queue.stop = queue_offset + 1
        touched[queue] = None
        if rows is not None and position > rows_from:
            rows.add([record])
        reached, last_ms = position + size, store_ms
    return reached, list(touched), last_ms


def publish_queues(queues: list[Tail], tail_bytes_max: int) -> list[Tail]:
    """Make new entries visible to readers; returns the queues that have many entries in memory."""
    large = []
    for queue in queues:
        queue.publish()
        if len(queue.tail) > tail_bytes_max:
            large.append(queue)
    return large
