"""Messages as lines of JSON: what `gantry send --jsonl` reads and `gantry tail -o jsonl` prints."""

import base64
import binascii
import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from gantrymq.client.core.errors import ClientError
from gantrymq.model import Message

FIELDS: Final = (
    "body", "bodyBase64", "bodyHex", "tags", "keys", "properties", "delay", "delayLevel",
    "deliverAt", "shardingKey",
)  # fmt: skip
BODIES: Final = FIELDS[:3]
PASSED_OVER: Final = frozenset(
    {"msgId", "offsetMsgId", "topic", "queueId", "queueOffset", "storeTime", "broker", "status"}
)
"""What a line says about where a message was: it means nothing for one that is sent."""


class LineRefused(ClientError):
    """A line is no message; the text has its number."""


@dataclass(frozen=True)
class MessageDefaults:
    """What every message gets that does not say otherwise."""

    topic: str
    tags: str | None = None
    keys: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    delay_level: int = 0
    delay: float | None = None
    deliver_at_ms: int | None = None

    def message(self, body: bytes) -> Message:
        """A message with this body; raises ValueError for a value that cannot be."""
        at = self.deliver_at_ms
        return Message(
            self.topic,
            body,
            tags=self.tags,
            keys=self.keys,
            properties=dict(self.properties),
            delay_level=self.delay_level,
            delay=self.delay,
            deliver_at=None if at is None else datetime.fromtimestamp(at / 1000, UTC),
        )


def read_line(line: bytes, number: int, defaults: MessageDefaults) -> Message:
    """The message of one line; raises LineRefused that says what is wrong with it."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise LineRefused(f"line {number} is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise LineRefused(f'line {number}: write an object, {{"body": "text"}}')
    unknown = sorted(value.keys() - {*FIELDS} - PASSED_OVER)
    if unknown:
        near = difflib.get_close_matches(unknown[0], FIELDS, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"there is {', '.join(FIELDS)}"
        raise LineRefused(f"line {number}: no field {unknown[0]!r}; {hint}")
    try:
        return _message(value, defaults)
    except (ValueError, TypeError, AttributeError) as error:
        raise LineRefused(f"line {number}: {error}") from None


def _message(value: Mapping[str, Any], defaults: MessageDefaults) -> Message:
    keys = value.get("keys")
    waits = [name for name in ("delay", "delayLevel", "deliverAt") if value.get(name) is not None]
    if waits:  # a line's own time takes the place of the options', whichever kind it is
        defaults = MessageDefaults(
            defaults.topic, defaults.tags, defaults.keys, defaults.properties
        )
    return Message(
        defaults.topic,
        _body(value),
        tags=value.get("tags") or defaults.tags,
        keys=keys or defaults.keys,
        properties={**defaults.properties, **(value.get("properties") or {})},
        delay_level=value.get("delayLevel") or defaults.delay_level,
        delay=value.get("delay", defaults.delay),
        deliver_at=value.get("deliverAt", defaults.deliver_at_ms),
        sharding_key=value.get("shardingKey"),
    )


def _body(value: Mapping[str, Any]) -> bytes:
    given = [name for name in BODIES if name in value]
    if len(given) != 1:
        raise ValueError(f"write one of {', '.join(BODIES)}, not {' and '.join(given) or 'none'}")
    body = value[given[0]]
    if given[0] == "body":
        # An object or a number is sent as its JSON.
        text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
        return text.encode()
    try:
        if given[0] == "bodyHex":
            return bytes.fromhex(body)
        return base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError, TypeError) as error:
        raise ValueError(f"{given[0]}: {error}") from None
