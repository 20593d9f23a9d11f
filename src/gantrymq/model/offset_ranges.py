"""Offsets of queues and the ranges between them. Pure.

Spark and archives keep offsets as JSON, `{"topic": {"broker-a": {"0": 123}}}`, and Spark compares
them as text. There is one way to write them, `to_json`, with every level sorted; another order of
the same offsets would look like new data for ever. An end is exclusive: it is the next offset to
read.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from gantrymq.base.errors import ConfigError
from gantrymq.model.routes import Queue

QueueOffsets = dict[Queue, int]
JsonOffsets = dict[str, dict[str, dict[str, int]]]

_OFFSET_MIN: Final = -2
"""Below 0 lie the words for latest (-1) and earliest (-2)."""
_SHAPE: Final = 'not of the form {"topic": {"broker": {"0": 123}}}'


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Part of a queue, from `start` up to but not including `end`."""

    queue: Queue
    start: int
    end: int
    is_new: bool = False
    """The queue appeared while the query ran: it begins at its first message, wherever that is."""

    @property
    def rows(self) -> int:
        return self.end - self.start


def to_json(offsets: Mapping[Queue, int]) -> JsonOffsets:
    """Offsets as Spark keeps them, in the one canonical order: by topic, broker and queue id."""
    found: JsonOffsets = {}
    for queue in sorted(offsets):
        brokers = found.setdefault(queue.topic, {})
        brokers.setdefault(queue.broker_name, {})[str(queue.queue_id)] = offsets[queue]
    return found


def from_json(value: object) -> QueueOffsets:
    """The inverse of `to_json`; says what is wrong with anything else."""
    offsets: QueueOffsets = {}
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


def count_behind(start: QueueOffsets, highs: QueueOffsets) -> QueueOffsets:
    """How many rows each queue that has some has from `start`, else from 0, on."""
    left = {queue: high - start.get(queue, 0) for queue, high in highs.items()}
    return {queue: rows for queue, rows in left.items() if rows > 0}
