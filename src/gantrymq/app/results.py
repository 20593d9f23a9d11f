"""Publishes the results of handlers that are declared with `@app.publish`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from gantrymq.client.core.consumer_errors import HandlerRefused
from gantrymq.client.messages.delivery import Delivery
from gantrymq.model import Message, check_topic_name


@dataclass(frozen=True, slots=True)
class ResultTopic:
    """The topic and tags of the results of a handler."""

    topic: str
    tags: str | None = None

    def __post_init__(self) -> None:
        check_topic_name(self.topic)
        Message(self.topic, b"x", self.tags)  # refuses bad tags

    def message(self, result: Any, cause: Delivery) -> Message:
        """The message with a result as its body; it has the keys of the handled one."""
        if isinstance(result, Message):
            raise HandlerRefused(
                f"a result that is published to {self.topic!r} is a body; return the object, "
                "or send the Message with app.producer"
            )
        return Message(self.topic, encoded(result), self.tags, cause.keys)


def encoded(result: Any) -> bytes:
    """A result as a body: bytes and strings as they are, everything else as JSON."""
    if isinstance(result, bytes | bytearray | memoryview):
        return bytes(result)
    if isinstance(result, str):
        return result.encode()
    dump: Callable[[], str] | None = getattr(result, "model_dump_json", None)  # a pydantic model
    return dump().encode() if dump is not None else msgspec.json.encode(result)
