"""Ordered pops: one batch of a queue at a time, delivered again in place.

A queue stays closed while a message of its last batch is neither acknowledged nor visible again.
The table is consumerOrderInfo.json in RocketMQ's format. No message is lost with it: only
acknowledgements move the group's progress, so a lost table means an earlier redelivery.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from gantrymq.base.disk import Disk
from gantrymq.base.offload import Offload
from gantrymq.base.saved import SavedFile
from gantrymq.broker.tables.registry import load_table
from gantrymq.protocol import fastjson

FORGET_MS = 24 * 3600 * 1000
"""A queue that nobody popped for so long is forgotten."""


class OrderedBatch(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The batch of one queue that was popped last."""

    a: str | None = None
    """The attempt it was popped by: the same attempt gets it again."""
    cm: int = 0
    """Bit i: the i-th message is acknowledged."""
    i: int = 0
    last_ms: int = msgspec.field(name="l", default=0)
    o: list[int] = []
    """The first offset, then distances to it."""
    oc: dict[int, int] = {}
    """Offset to how often it was delivered before."""
    ot: dict[int, int] = {}
    """Offset to when it is visible again, where that was changed."""
    pop_ms: int = msgspec.field(name="popTime", default=0)

    @property
    def offsets(self) -> list[int]:
        first = self.o[0]
        return [first, *(first + distance for distance in self.o[1:])]

    @property
    def next_offset(self) -> int:
        """The first offset that is not acknowledged; if all are, the one behind the last."""
        offsets = self.offsets
        for at, offset in enumerate(offsets):
            if not self.cm >> at & 1:
                return offset
        return offsets[-1] + 1

    def closed_until_ms(self) -> int:
        """When the last unacknowledged message is visible again; 0 if all are acknowledged."""
        times = [
            self.ot.get(offset, self.pop_ms + self.i)
            for at, offset in enumerate(self.offsets)
            if not self.cm >> at & 1
        ]
        return max(times, default=0)


class _File(msgspec.Struct, kw_only=True):
    table: dict[str, dict[int, OrderedBatch]] = {}


class OrderTable:
    """Which queues are closed for ordered pops of which group."""

    def __init__(self, disk: Disk, offload: Offload, directory: str) -> None:
        path = f"{directory}/consumerOrderInfo.json"
        self._file = SavedFile(disk, offload, path)
        self._table = load_table(disk, path, _File).table
        for key, queues in self._table.items():
            self._table[key] = {queue: batch for queue, batch in queues.items() if batch.o}
        self._changed = False

    def _batch(self, group: str, topic: str, queue_id: int, progress: int) -> OrderedBatch | None:
        """The popped batch; None if there is none or the group's progress was moved since."""
        queues = self._table.get(f"{topic}@{group}", {})
        batch = queues.get(queue_id)
        if batch is not None and batch.next_offset != progress:
            del queues[queue_id]
            self._changed = True
            return None
        return batch

    def closed_until_ms(
        self, group: str, topic: str, queue_id: int, progress: int, attempt: str | None
    ) -> int:
        """Until when the queue is closed; 0 or a past time means that it is open."""
        batch = self._batch(group, topic, queue_id, progress)
        if batch is None or (attempt is not None and batch.a == attempt):
            return 0
        return batch.closed_until_ms()

    def popped(
        self,
        group: str,
        topic: str,
        queue_id: int,
        progress: int,
        offsets: Sequence[int],
        pop_ms: int,
        invisible_ms: int,
        attempt: str | None,
    ) -> dict[int, int]:
        """Note a new batch; returns how often its messages were delivered before, by offset."""
        former = self._batch(group, topic, queue_id, progress)
        counts: dict[int, int] = {}
        if former is not None:
            if attempt is not None and former.a == attempt:
                counts = dict(former.oc)
            else:
                again = frozenset(former.offsets)
                counts = {o: former.oc.get(o, 0) + 1 for o in offsets if o in again}
        first = offsets[0]
        self._table.setdefault(f"{topic}@{group}", {})[queue_id] = OrderedBatch(
            a=attempt,
            i=invisible_ms,
            last_ms=pop_ms,
            o=[first, *(offset - first for offset in offsets[1:])],
            oc=counts,
            pop_ms=pop_ms,
        )
        self._changed = True
        return counts

    def ack(
        self, group: str, topic: str, queue_id: int, progress: int, offset: int, pop_ms: int
    ) -> int | None:
        """The group's new progress; None if this delivery is over, -1 if it never was."""
        batch = self._batch(group, topic, queue_id, progress)
        if batch is None or batch.pop_ms != pop_ms:
            return None
        if offset not in batch.offsets:
            return -1
        batch.cm |= 1 << batch.offsets.index(offset)
        self._changed = True
        return batch.next_offset

    def show_again_at(
        self,
        group: str,
        topic: str,
        queue_id: int,
        progress: int,
        offset: int,
        pop_ms: int,
        at_ms: int,
    ) -> bool:
        """Change when an open message is visible again; False when this delivery is over."""
        batch = self._batch(group, topic, queue_id, progress)
        if batch is None or batch.pop_ms != pop_ms or offset not in batch.offsets:
            return False
        batch.ot[offset] = at_ms
        self._changed = True
        return True

    async def save(self, now_ms: int) -> None:
        """Write the table if it changed, without queues that were not popped for 24 h."""
        if not self._changed:
            return
        self._changed = False
        self._table = {
            key: kept
            for key, queues in self._table.items()
            if (kept := {q: b for q, b in queues.items() if now_ms - b.last_ms <= FORGET_MS})
        }
        shape: Any = msgspec.to_builtins(_File(table=self._table), str_keys=False)
        try:
            await self._file.save(fastjson.pretty(shape))
        except OSError:
            self._changed = True
            raise
