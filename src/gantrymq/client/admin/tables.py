"""Answers to administrative requests as typed tables."""

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

import msgspec

from gantrymq.base.errors import ProtocolError
from gantrymq.model import GroupConfig, Queue
from gantrymq.protocol import fastjson
from gantrymq.protocol.bodies import OffsetWrapper, TopicOffset

T = TypeVar("T")


class GroupProgress(NamedTuple):
    """The progress of a group by queue, and its messages a second."""

    queues: dict[Queue, OffsetWrapper]
    tps: float

    @property
    def lag(self) -> int:
        """Messages stored and not yet consumed, over all queues."""
        return sum(max(row.broker_offset - row.consumer_offset, 0) for row in self.queues.values())


def queue_table(body: bytes, row: type[T], name: str = "offsetTable") -> dict[Queue, T]:
    """A map from queues, as fastjson writes it, with typed rows."""
    whole = fastjson.loads(body) if body else {}
    table = whole.get(name) if isinstance(whole, dict) else None
    if not isinstance(table, dict):
        raise ProtocolError(f"answer has no {name}")
    try:
        return {
            _queue(key): msgspec.convert(value, row, strict=False) for key, value in table.items()
        }
    except msgspec.ValidationError as error:
        raise ProtocolError(f"{name}: {error}") from error


def topic_offsets(body: bytes) -> dict[Queue, TopicOffset]:
    """Parse the answer to GET_TOPIC_STATS_INFO."""
    return queue_table(body, TopicOffset)


def progress(body: bytes) -> GroupProgress:
    """Parse the answer to GET_CONSUME_STATS."""
    whole = fastjson.loads(body) if body else {}
    tps = whole.get("consumeTps", 0.0) if isinstance(whole, dict) else 0.0
    return GroupProgress(queue_table(body, OffsetWrapper), float(tps or 0.0))


def group_table(body: bytes) -> dict[str, GroupConfig]:
    """Parse the answer to GET_ALL_SUBSCRIPTIONGROUP_CONFIG."""
    whole = fastjson.loads(body) if body else {}
    table = whole.get("subscriptionGroupTable") if isinstance(whole, dict) else None
    try:
        return msgspec.convert(table or {}, dict[str, GroupConfig], strict=False)
    except msgspec.ValidationError as error:
        raise ProtocolError(f"subscriptionGroupTable: {error}") from error


def _queue(key: Any) -> Queue:
    """A queue as the key of a map: an object, or (later fastjson) its JSON as a string."""
    fields = fastjson.loads(key) if isinstance(key, str) else dict(key)
    return msgspec.convert(fields, Queue, strict=False)


def attribute_changes(wanted: Mapping[str, str | None]) -> str:
    """Attribute changes as RocketMQ's header has them: `+name=value` sets, `-name` removes."""
    return ",".join(
        f"-{name}" if value is None else f"+{name}={value}" for name, value in wanted.items()
    )
