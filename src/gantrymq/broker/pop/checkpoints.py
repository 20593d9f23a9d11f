"""Checkpoints of popped messages, open until all their messages are settled. Pure.

A message is settled when it is acknowledged or revived.
"""

import heapq
import re
from collections.abc import Iterable, Sequence
from itertools import count

from gantrymq.base.errors import ProtocolError
from gantrymq.protocol.pop import AckBody, CheckpointBody

SETTLED_MAX = 1_024
"""How many settled checkpoints the list by due time may hold, beyond as many as are open."""

MESSAGES_MAX = 127
"""The most messages of one checkpoint; RocketMQ counts them in a byte."""
LONG_MAX = 2**63 - 1
PUT_TIMES = re.compile("[0-9]{1,9}")

Key = tuple[str, str, int, int, int]
"""Topic, group, queue, first offset looked at, time of the pop."""


class PopCheckpoint:
    """Messages of one queue that were popped together and are invisible until `due_ms`."""

    __slots__ = (
        "acked",
        "acking",
        "broker_name",
        "group",
        "invisible_ms",
        "offsets",
        "pop_ms",
        "put_times",
        "queue_id",
        "revive_offset",
        "revive_queue",
        "reviving",
        "start",
        "topic",
        "watched",
    )

    def __init__(
        self,
        topic: str,
        group: str,
        queue_id: int,
        start: int,
        offsets: Sequence[int],
        pop_ms: int,
        invisible_ms: int,
        broker_name: str,
        revive_queue: int,
    ) -> None:
        self.topic, self.group, self.queue_id = topic, group, queue_id
        self.start, self.offsets = start, list(offsets)
        self.pop_ms, self.invisible_ms = pop_ms, invisible_ms
        self.broker_name, self.revive_queue = broker_name, revive_queue
        self.revive_offset = -1
        self.acked = self.acking = 0
        """Bit i: the i-th message is settled; or its acknowledgement is on its way to the log."""
        self.put_times = 0
        self.reviving = self.watched = False

    @property
    def key(self) -> Key:
        return self.topic, self.group, self.queue_id, self.start, self.pop_ms

    @property
    def due_ms(self) -> int:
        return self.pop_ms + self.invisible_ms

    def bits(self, offsets: Iterable[int]) -> int:
        """One bit for each of these messages; offsets outside the checkpoint are ignored."""
        wanted = frozenset(offsets)
        return sum(1 << at for at, offset in enumerate(self.offsets) if offset in wanted)

    def open_offsets(self) -> list[int]:
        """The offsets of messages that are not settled yet."""
        return [offset for at, offset in enumerate(self.offsets) if not self.acked >> at & 1]

    def offsets_of(self, bits: int) -> list[int]:
        return [offset for at, offset in enumerate(self.offsets) if bits >> at & 1]

    @property
    def is_settled(self) -> bool:
        return self.acked == (1 << len(self.offsets)) - 1

    def body(self) -> CheckpointBody:
        return CheckpointBody(
            bm=self.acked,
            bn=self.broker_name,
            c=self.group,
            d=[offset - self.start for offset in self.offsets],
            it=self.invisible_ms,
            n=len(self.offsets),
            pt=self.pop_ms,
            q=self.queue_id,
            rp=str(self.put_times) if self.put_times else None,
            so=self.start,
            t=self.topic,
        )

    def ack_body(self, bits: int) -> AckBody:
        offsets = self.offsets_of(bits)
        one = len(offsets) == 1
        return AckBody(
            ao=offsets[0] if one else -1,
            aol=[] if one else offsets,
            bn=self.broker_name,
            c=self.group,
            pt=self.pop_ms,
            q=self.queue_id,
            so=self.start,
            t=self.topic,
        )


def read_checkpoint(body: CheckpointBody, revive_queue: int, revive_offset: int) -> PopCheckpoint:
    """The checkpoint of a record; old records have a count instead of distances.

    Clients can write to the revive topic, too: values that no broker writes are refused.
    """
    numbers, count = (body.so, body.pt, body.it, body.pt + body.it), max(len(body.d), body.n)
    if count > MESSAGES_MAX or not all(0 <= number <= LONG_MAX for number in numbers):
        raise ProtocolError("a checkpoint of too many messages, or of no time")
    distances = body.d or range(body.n)
    found = PopCheckpoint(
        body.t,
        body.c,
        body.q,
        body.so,
        [body.so + distance for distance in distances],
        body.pt,
        body.it,
        body.bn,
        revive_queue,
    )
    found.acked = body.bm & (1 << len(found.offsets)) - 1
    found.revive_offset = revive_offset
    found.put_times = int(body.rp) if body.rp and PUT_TIMES.fullmatch(body.rp) else 0
    return found


class OpenCheckpoints:
    """Checkpoints that are not settled: by key, by offset in the revive log, by due time."""

    def __init__(self, queues: int) -> None:
        self.queues = queues
        self._by_key: dict[Key, PopCheckpoint] = {}
        self._by_place: list[dict[int, PopCheckpoint]] = [{} for _ in range(queues)]
        self._by_time: list[tuple[int, int, PopCheckpoint]] = []
        self._serial = count()

    def __len__(self) -> int:
        return len(self._by_key)

    def __contains__(self, key: Key) -> bool:
        return key in self._by_key

    def get(self, key: Key) -> PopCheckpoint | None:
        return self._by_key.get(key)

    def all(self) -> list[PopCheckpoint]:
        return list(self._by_key.values())

    def add(self, checkpoint: PopCheckpoint) -> None:
        """Add a checkpoint that is in the revive log at its `revive_offset`.

        It replaces an earlier copy of itself in the log; messages that were settled stay settled.
        """
        former = self._by_key.get(checkpoint.key)
        if former is not None:
            checkpoint.acked |= former.acked
            self.close(former)
        if checkpoint.is_settled:
            return
        self._by_key[checkpoint.key] = checkpoint
        self._by_place[checkpoint.revive_queue][checkpoint.revive_offset] = checkpoint
        self.watch(checkpoint, checkpoint.due_ms)

    def watch(self, checkpoint: PopCheckpoint, at_ms: int) -> None:
        """Let `take_due` return it at this time, unless it is scheduled already."""
        if checkpoint.watched:
            return
        checkpoint.watched = True
        if len(self._by_time) > 2 * len(self._by_key) + SETTLED_MAX:
            self._by_time = [entry for entry in self._by_time if self.is_open(entry[2])]
            heapq.heapify(self._by_time)
        heapq.heappush(self._by_time, (at_ms, next(self._serial), checkpoint))

    def settle(self, checkpoint: PopCheckpoint, bits: int) -> None:
        """Mark messages as settled; the last one closes the checkpoint."""
        checkpoint.acked |= bits
        if checkpoint.is_settled:
            self.close(checkpoint)

    def close(self, checkpoint: PopCheckpoint) -> None:
        """Remove the checkpoint."""
        if self._by_key.get(checkpoint.key) is checkpoint:
            del self._by_key[checkpoint.key]
            del self._by_place[checkpoint.revive_queue][checkpoint.revive_offset]

    def is_open(self, checkpoint: PopCheckpoint) -> bool:
        return self._by_key.get(checkpoint.key) is checkpoint

    def moved(self, checkpoint: PopCheckpoint, revive_offset: int) -> None:
        """The checkpoint was stored again at a later offset of the revive log."""
        if self.is_open(checkpoint):
            place = self._by_place[checkpoint.revive_queue]
            del place[checkpoint.revive_offset]
            place[revive_offset] = checkpoint
        checkpoint.revive_offset = revive_offset

    def first(self, queue: int) -> PopCheckpoint | None:
        """The first open checkpoint of a revive queue: no record before it is needed."""
        return next(iter(self._by_place[queue].values()), None)

    @property
    def next_due_ms(self) -> int | None:
        """When the next open checkpoint is due; None if there is none."""
        line = self._by_time
        while line and not self.is_open(line[0][2]):
            heapq.heappop(line)
        return line[0][0] if line else None

    def take_due(self, now_ms: int, count_max: int) -> list[PopCheckpoint]:
        """Checkpoints that are due, unscheduled; the caller closes them or watches them again."""
        due: list[PopCheckpoint] = []
        while len(due) < count_max:
            at_ms = self.next_due_ms
            if at_ms is None or at_ms > now_ms:
                break
            taken = heapq.heappop(self._by_time)[2]
            taken.watched = False
            due.append(taken)
        return due
