"""The dispatcher: the only code that adds queue and index entries, live and in recovery."""

import logging
from collections.abc import Callable

from gantrymq.base.watermark import Watermark
from gantrymq.kernel import (
    Walked,
    dispatch_records,
    entry_runs,
    find_property,
    publish_queues,
    walk_records,
)
from gantrymq.protocol.record import BLANK_BYTES, TRANSACTION_MASK, TRANSACTION_ROLLBACK
from gantrymq.store.index.key_index import KeyIndex
from gantrymq.store.queues.consumequeue import ConsumeQueue
from gantrymq.store.queues.queue_table import TAIL_BYTES_MAX, QueueTable, TopicNameError

log = logging.getLogger(__name__)

SCHEDULE_TOPIC = b"SCHEDULE_TOPIC_XXXX"
UNKNOWN_LEVEL_MS = 1000
"""What RocketMQ waits for a delay level that its table does not have."""


CHANGES_TOPIC = b"RMQ_SYS_RAFT_CHANGES"
"""The topic of a raft group's changes of topics and groups: rollback records, in no queue."""

Marker = Callable[[bytes, bytes], bytes | None]
"""Topic and properties to the bitmap of the conditions that match; None if there are none."""


def due_ms(properties: bytes, store_ms: int, levels_ms: tuple[int, ...]) -> int | None:
    """When a delayed message is due (ms); None if it has no delay level."""
    text = find_property(properties, b"DELAY")
    if text is None or not text.isdigit() or int(text) <= 0:
        return None
    level = min(int(text), len(levels_ms))
    return store_ms + (levels_ms[level - 1] if level else UNKNOWN_LEVEL_MS)


class Dispatcher:
    """Turns records, in log order, into queue entries and index entries."""

    def __init__(
        self,
        queues: QueueTable,
        index: KeyIndex | None,
        levels_ms: tuple[int, ...],
        position: int,
    ) -> None:
        self._queues, self._index, self.levels_ms = queues, index, levels_ms
        self.dispatched = Watermark(position)
        self.last_store_ms = 0
        self.marker: Marker | None = None
        """Called for every message, if conditions are evaluated while messages are stored."""
        self.apply_change: Callable[[int, int], None] | None = None
        """Of a raft group's member: called with the log offset and size of each record that changes
        topics or groups, when all before it is dispatched and nothing behind it."""
        self.index_from = -1
        """Records up to this log offset are in the index already."""

    def feed(self, records: list[Walked], end: int) -> None:
        """Add entries for the records up to log offset `end`, then make them visible."""
        if self.apply_change is not None:
            done = 0
            for number, record in enumerate(records):
                if record[0] == CHANGES_TOPIC:
                    self._feed(records[done : number + 1], record[3] + record[4])
                    self.apply_change(record[3], record[4])
                    done = number + 1
            records = records[done:]
        self._feed(records, end)

    def feed_written(self, data: bytes, base: int) -> None:
        """Add entries for the records that were just written at log offset `base`, then make them
        visible: plain ones in the kernel, and all from the first other one on record by record."""
        end, reached = base + len(data), base
        if self.marker is None:
            rows = self._index.waiting if self._index is not None else None
            reached, touched, last_ms = dispatch_records(
                data, base, self._queues.by_bytes, rows, self.index_from
            )
            if reached > base:
                self.last_store_ms = last_ms
                self._show(touched, reached)
        if reached < end:
            rest = memoryview(data)[reached - base :]
            walk = walk_records(rest, reached, len(rest) + BLANK_BYTES, False)
            assert walk.end == end, "what was written can be read"
            self.feed(walk.records, end)

    def _feed(self, records: list[Walked], end: int) -> None:
        touched: dict[ConsumeQueue, None] = {}
        for topic, queue_id, queue_offset, start, stop, entries in entry_runs(records):
            queue = self._queues.by_bytes.get((topic, queue_id)) or self._queue(topic, queue_id)
            if queue is None:
                continue
            if queue_offset != queue.stop or self.marker is not None or topic == SCHEDULE_TOPIC:
                for record in records[start:stop]:
                    self._add_entry(queue, record)
            else:
                queue.tail += entries
                queue.stop = queue_offset + stop - start
            touched[queue] = None
        if self._index is not None:
            first = self.index_from
            self._index.waiting.add(
                record
                for record in records
                if record[3] > first and record[5] & TRANSACTION_MASK != TRANSACTION_ROLLBACK
            )
        if records:
            self.last_store_ms = records[-1][7]
        self._show(list(touched), end)

    def _show(self, touched: list[ConsumeQueue], end: int) -> None:
        """Make what was added up to log offset `end` visible, and keep little of it in memory."""
        self._queues.unwritten.update(dict.fromkeys(touched))
        self.dispatched.advance(end)
        large = publish_queues(touched, TAIL_BYTES_MAX)
        try:
            for queue in large:
                queue.write_tail()
            if self._index is not None and self._index.is_due:
                self._index.build()
        except OSError as error:  # a later write tries again
            log.error("queue and index entries stay in memory: %s", error)

    def _add_entry(self, queue: ConsumeQueue, record: Walked) -> None:
        """Add the entry of a record that is not the next one of its queue, or whose code is not
        that of its tag."""
        topic, _, queue_offset, position, size, _, code, store_ms, properties = record
        if topic == SCHEDULE_TOPIC:
            code = due_ms(properties, store_ms, self.levels_ms) or code
        if self.marker is not None:
            bitmap = self.marker(topic, properties)
            if bitmap is not None:
                code = self._queues.ext_of(queue).add(position, code, store_ms, bitmap)
        queue.add(queue_offset, position, size, code)

    def _queue(self, topic: bytes, queue_id: int) -> ConsumeQueue | None:
        try:
            return self._queues.at(topic.decode(), queue_id)
        except (TopicNameError, UnicodeDecodeError):
            log.error("a record of topic %r is in the log but cannot have a queue", topic)
            return None
