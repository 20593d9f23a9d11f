"""A waiting record as it was read; its fields are decoded on demand."""

import logging
from collections.abc import Mapping
from typing import NamedTuple

from gantrymq.kernel import cut_records, find_property
from gantrymq.model import TopicConfig
from gantrymq.protocol.record import MAGIC_V1, STORE_V6, RecordHead
from gantrymq.store.append import Append

log = logging.getLogger(__name__)

_REAL_TOPIC, _REAL_QUEUE = b"REAL_TOPIC", b"REAL_QID"


class WaitingRecord(NamedTuple):
    """One record of a system topic, inside the bytes it was read with."""

    data: bytes
    body_at: int
    head: RecordHead

    @property
    def properties(self) -> bytes:
        topic_at = self.body_at + self.head.body_size
        width = 1 if self.head.magic == MAGIC_V1 else 2
        size_at = topic_at + width + int.from_bytes(self.data[topic_at : topic_at + width], "big")
        size = int.from_bytes(self.data[size_at : size_at + 2], "big")
        return self.data[size_at + 2 : size_at + 2 + size]

    def copy(self, topic: str, queue_id: int, properties: bytes) -> Append:
        """The same message for another queue; its append does not wait for the disk."""
        head = self.head
        return Append(
            topic,
            queue_id,
            self.data[self.body_at : self.body_at + head.body_size],
            properties=properties,
            flag=head.flag,
            sys_flag=head.sys_flag & ~STORE_V6,
            born_ms=head.born_ms,
            born_host=head.born_host,
            reconsume_times=head.reconsume_times,
            wait=False,
        )


def waiting_records(data: bytes) -> list[WaitingRecord]:
    """The records of a read, in order; a broken one ends the list and is logged."""
    cuts, error = cut_records(data)
    if error is not None:
        log.error("what waits cannot be read to its end: %s", error)
    return [WaitingRecord(data, body_at, head) for _, body_at, head in cuts]


def destination(properties: bytes) -> tuple[str, int]:
    """The real topic and queue of a redirected message; "" if it has no topic."""
    topic, queue = (find_property(properties, name) for name in (_REAL_TOPIC, _REAL_QUEUE))
    number = int(queue) if queue is not None and queue.isdigit() else 0
    return (topic or b"").decode("utf-8", "replace"), number


def open_queue(topics: Mapping[str, TopicConfig], topic: str, queue_id: int) -> int:
    """The queue to deliver to: the topic may have fewer queues than when the message came."""
    config = topics.get(topic)
    if config is None or queue_id < max(config.read_queue_nums, config.write_queue_nums):
        return queue_id
    return queue_id % max(1, config.write_queue_nums)
