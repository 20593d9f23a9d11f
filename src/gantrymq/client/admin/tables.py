"""Answers to administrative requests as typed tables."""

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from gantrymq.base.errors import DECODE_ERRORS, ProtocolError
from gantrymq.model import GroupConfig, Queue
from gantrymq.protocol import fastjson
from gantrymq.protocol.bodies import OffsetWrapper, TopicOffset

T = TypeVar("T")

_OBJECT_KEY: Final = re.compile(rb"([{,])(\{[^{}]*\}):")
_decode_queue: Final = msgspec.json.Decoder(Queue).decode


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
    whole = load_keyed(body) if body else {}
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
    whole = load_keyed(body) if body else {}
    tps = whole.get("consumeTps", 0.0) if isinstance(whole, dict) else 0.0
    return GroupProgress(queue_table(body, OffsetWrapper), float(tps or 0.0))


def all_progress(body: bytes) -> dict[str, dict[Queue, OffsetWrapper]]:
    """Parse the answer to GET_BROKER_CONSUME_STATS: the progress of each group by queue."""
    whole = load_keyed(body) if body else {}
    listed = whole.get("consumeStatsList") if isinstance(whole, dict) else None
    found: dict[str, dict[Queue, OffsetWrapper]] = {}
    try:
        for row in listed or ():
            for group, parts in row.items():
                mine = found.setdefault(group, {})
                for part in parts:
                    for key, value in (part.get("offsetTable") or {}).items():
                        mine[_queue(key)] = msgspec.convert(value, OffsetWrapper, strict=False)
    except (AttributeError, TypeError, msgspec.ValidationError) as error:
        raise ProtocolError(f"consumeStatsList: {error}") from error
    return found


def load_keyed(body: bytes) -> Any:
    """The value of a body whose maps may have objects as keys, which become their JSON text.

    Large tables would take `fastjson` seconds: with the keys quoted they are JSON. Text that is
    none even so is read by `fastjson`.
    """
    if b"$ref" not in body:
        try:
            return msgspec.json.decode(_OBJECT_KEY.sub(_quoted, body))
        except DECODE_ERRORS:
            pass
    return fastjson.loads(body)


def _quoted(found: re.Match[bytes]) -> bytes:
    key = found[2].replace(b"\\", b"\\\\").replace(b'"', b'\\"')
    return b'%s"%s":' % (found[1], key)


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
    try:
        return _decode_queue(key)
    except (msgspec.DecodeError, TypeError):
        fields = fastjson.loads(key) if isinstance(key, str) else dict(key)
        return msgspec.convert(fields, Queue, strict=False)


def attribute_changes(wanted: Mapping[str, str | None]) -> str:
    """Attribute changes as RocketMQ's header has them: `+name=value` sets, `-name` removes."""
    return ",".join(
        f"-{name}" if value is None else f"+{name}={value}" for name, value in wanted.items()
    )
