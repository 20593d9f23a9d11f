"""The revive log: checkpoints (`ck`) and acknowledgements (`ack`, `bAck`), as records of a topic.

The topic and the records are RocketMQ's. A checkpoint is stored before its pop is answered, so the
broker forgets no popped message: after a restart it reads the log again from the first checkpoint
that is still open.
"""

import asyncio
import logging
from collections.abc import Callable

from gantrymq.base.errors import ProtocolError
from gantrymq.base.plurals import counted
from gantrymq.broker.pop.checkpoints import OpenCheckpoints, PopCheckpoint, read_checkpoint
from gantrymq.broker.pop.progress import SafeProgress
from gantrymq.broker.tables.registry import Offsets
from gantrymq.protocol import fastjson, properties
from gantrymq.protocol.pop import (
    ACK_TAG,
    BATCH_ACK_TAG,
    CHECKPOINT_TAG,
    REVIVE_GROUP,
    AckBody,
    CheckpointBody,
)
from gantrymq.protocol.record import StoredMessage, decode_records
from gantrymq.store.append import Append, ReadResult, ReadStatus
from gantrymq.store.engine import Store

log = logging.getLogger(__name__)

LOAD_RECORDS, LOAD_BYTES = 512, 4 * 1024 * 1024
ACK_INTERVAL_MS = 1_000
"""A checkpoint's record is due so much before its messages are visible again, as in RocketMQ."""
CARRY_RECORDS = 10_000
"""A checkpoint with so many records behind it is stored again, so that a start reads few."""

Stored = Callable[[Append], None]


class ReviveLog:
    """Writes checkpoints and acknowledgements, and keeps the open checkpoints."""

    def __init__(
        self,
        store: Store,
        offsets: Offsets,
        progress: SafeProgress,
        topic: str,
        queues: int,
        host: bytes,
    ) -> None:
        self._store, self._offsets, self._progress = store, offsets, progress
        self.topic, self._host = topic, host
        self.changed = True
        """Whether `advance` may have something to do."""
        self.on_change: Callable[[], None] = lambda: None
        self.written: dict[tuple[str, str, str, str], int] = {}
        """Records written, by group, topic, RocketMQ's type of them and the status of the write."""
        known = [queue + 1 for queue in store.queues.ids(topic)]
        self.open = OpenCheckpoints(max(queues, *known, 1) if known else max(queues, 1))

    # writing

    def put(self, checkpoint: PopCheckpoint, done: Stored) -> None:
        """Store a new checkpoint; it is open before `done` is called."""

        def stored(record: Append) -> None:
            self._count("CK", checkpoint, record)
            if record.status.is_stored:
                checkpoint.revive_offset = record.queue_offset
                self.open.add(checkpoint)
            done(record)

        body = fastjson.dumps(checkpoint.body())
        due_ms = checkpoint.due_ms - ACK_INTERVAL_MS
        self._append(checkpoint, CHECKPOINT_TAG, body, due_ms, False, stored)

    def settle(
        self, checkpoint: PopCheckpoint, bits: int, done: Stored, *, wait: bool = True
    ) -> None:
        """Store that messages are settled; they are before `done` is called, if it was stored."""
        checkpoint.acking |= bits

        def stored(record: Append) -> None:
            self._count("ACK", checkpoint, record)
            checkpoint.acking &= ~bits
            if record.status.is_stored:
                self.open.settle(checkpoint, bits)
            self.watch_again(checkpoint)
            done(record)

        body = checkpoint.ack_body(bits)
        tag = BATCH_ACK_TAG if body.aol else ACK_TAG
        self._append(checkpoint, tag, fastjson.dumps(body), checkpoint.due_ms, wait, stored)

    def watch_again(self, checkpoint: PopCheckpoint) -> None:
        """Schedule it again: it may have come due while an acknowledgement was being stored."""
        if self.open.is_open(checkpoint) and not checkpoint.reviving:
            self.open.watch(checkpoint, checkpoint.due_ms)

    def _count(self, kind: str, checkpoint: PopCheckpoint, record: Append) -> None:
        key = checkpoint.group, checkpoint.topic, kind, record.status.name
        self.written[key] = self.written.get(key, 0) + 1

    def _append(
        self,
        checkpoint: PopCheckpoint,
        tag: str,
        body: bytes,
        deliver_ms: int,
        wait: bool,
        done: Stored,
    ) -> None:
        found = {properties.TAGS: tag, properties.TIMER_DELIVER_MS: str(deliver_ms)}
        record = Append(
            self.topic,
            checkpoint.revive_queue,
            body,
            born_ms=checkpoint.pop_ms,
            properties=properties.encode(found).encode(),
            born_host=self._host,
            wait=wait,
            reply=done,
        )
        self._store.put(record)
        if not self.changed:
            self.changed = True
            self.on_change()

    # keeping it short

    def advance(self) -> None:
        """Move the log's own progress to the first open checkpoint of each queue."""
        self.changed = False
        for queue in range(self.open.queues):
            first = self.open.first(queue)
            end = self._store.queues.max_offset(self.topic, queue)
            if first is not None and end - first.revive_offset > CARRY_RECORDS:
                self._carry(first)
            place = end if first is None else first.revive_offset
            if place > (self._offsets.get(REVIVE_GROUP, self.topic, queue) or 0):
                move = self._progress.move(REVIVE_GROUP, self.topic, queue, place)
                move.safe_behind(self._store.log_max)
        self._progress.hurry()

    def _carry(self, checkpoint: PopCheckpoint) -> None:
        """Store the checkpoint again at the end, unless an ack or a revive of it is under way."""
        if checkpoint.acking or checkpoint.reviving:
            return
        checkpoint.put_times += 1

        def stored(record: Append) -> None:
            if record.status.is_stored:
                self.open.moved(checkpoint, record.queue_offset)

        body = fastjson.dumps(checkpoint.body())
        self._append(checkpoint, CHECKPOINT_TAG, body, checkpoint.due_ms, False, stored)

    # reading it again

    async def load(self) -> None:
        """Read the open checkpoints, from the log's progress on; called before clients can pop."""
        for queue in range(self.open.queues):
            at = self._offsets.get(REVIVE_GROUP, self.topic, queue) or 0
            at = max(at, self._store.queues.min_offset(self.topic, queue))
            while at < self._store.queues.max_offset(self.topic, queue):
                outcome = self._store.reads.pull(self.topic, queue, at, LOAD_RECORDS, LOAD_BYTES)
                pulled = outcome if isinstance(outcome, ReadResult) else await outcome
                if pulled.status is ReadStatus.FOUND:
                    for record in decode_records(pulled.body):
                        self._apply(record)
                    await asyncio.sleep(0)
                elif pulled.next_offset <= at:
                    break
                at = pulled.next_offset
        if len(self.open):
            log.info("open: %s of popped messages", counted(len(self.open), "checkpoint"))

    def _apply(self, record: StoredMessage) -> None:
        tag = record.properties.get(properties.TAGS)
        try:
            if tag == CHECKPOINT_TAG:
                body = fastjson.load_as(record.body, CheckpointBody)
                self.open.add(read_checkpoint(body, record.queue_id, record.queue_offset))
            elif tag in (ACK_TAG, BATCH_ACK_TAG):
                ack = fastjson.load_as(record.body, AckBody)
                found = self.open.get((ack.t, ack.c, ack.q, ack.so, ack.pt))
                if found is not None:
                    self.open.settle(found, found.bits(ack.offsets))
        except ProtocolError as error:
            log.warning(
                "%s queue %d offset %d is no record of the revive log: %s",
                self.topic,
                record.queue_id,
                record.queue_offset,
                error,
            )
