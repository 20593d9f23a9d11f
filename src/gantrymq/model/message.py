"""A message to send, and what became of it."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Self

import msgspec

from gantrymq import message_fields
from gantrymq.base.arguments import wrong_type, yes_or_no
from gantrymq.base.errors import GantryError
from gantrymq.base.plurals import counted
from gantrymq.model.names import (
    GROUP_BYTES_MAX,
    RETRY_PREFIX,
    check_group_name,
    check_topic_name,
)
from gantrymq.model.routes import Queue

_NO_KEYS: tuple[str, ...] = ()
_set = msgspec.structs.force_setattr
_NAMED_TOPICS_MAX = 4_096
_named_topics: set[str] = set()
"""Topic names that were looked at already, so that the next message to one costs a look-up."""


def _message_topic(topic: Any) -> str:
    """A name that a message may be sent to; group names inside may be longer than topic names."""
    if not isinstance(topic, str):
        raise wrong_type("topic", "a string", topic)
    plain = str.__str__(topic)
    if plain.startswith(RETRY_PREFIX) and len(plain) <= GROUP_BYTES_MAX:
        check_group_name(plain)
    else:
        check_topic_name(plain)
    if len(_named_topics) >= _NAMED_TOPICS_MAX:
        _named_topics.clear()
    _named_topics.add(plain)
    return plain


class ImmutableMessage(GantryError, AttributeError):
    """A message was assigned to after it was made."""


class _Addressed(msgspec.Struct, frozen=True, eq=False):
    """What `Message` takes by position."""

    topic: str
    body: bytes
    tags: str | None = None
    keys: tuple[str, ...] = _NO_KEYS


class Message(_Addressed, frozen=True, eq=False, kw_only=True):
    """A message to send. One tag, any number of keys, your own properties.

    It can wait at the broker: until a time (`deliver_at`, a datetime or milliseconds since 1970),
    for a while (`delay`, a timedelta or seconds), or for one of the broker's levels. A wrong type
    or value is refused here, by an error that says what is right. A message does not change;
    `message.replace(tags="paid")` makes another one.
    """

    properties: dict[str, str] = None  # type: ignore[assignment]  # one of its own, made below
    flag: int = 0
    delay_level: int = 0
    deliver_at: datetime | int | None = None
    delay: timedelta | float | None = None
    wait_store_ok: bool = True
    sharding_key: str | None = None

    if TYPE_CHECKING:
        # More types are taken than kept. At run time the struct's own constructor fills the fields.
        def __init__(
            self,
            topic: str,
            body: bytes | bytearray | memoryview | str,
            tags: str | None = None,
            keys: Iterable[str] | str = _NO_KEYS,
            *,
            properties: Mapping[str, str] | None = None,
            flag: int = 0,
            delay_level: int = 0,
            deliver_at: datetime | int | None = None,
            delay: timedelta | float | None = None,
            wait_store_ok: bool = True,
            sharding_key: str | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        # Made for every send: the plain cases are told apart by `type` and `is`, which is cheap,
        # and only what has to be kept in another form is set again.
        topic, body, tags, keys = self.topic, self.body, self.tags, self.keys
        if type(topic) is not str or topic not in _named_topics:
            _set(self, "topic", _message_topic(topic))
        if type(body) is not bytes or not body:
            _set(self, "body", message_fields.body(body))
        if tags is not None and (type(tags) is not str or not tags.isalnum()):
            _set(self, "tags", message_fields.tag(tags))
        if keys is not _NO_KEYS:
            _set(self, "keys", message_fields.keys(keys))
        given: Mapping[str, str] | None = self.properties
        own = {} if given is None else message_fields.properties(given, self.topic)
        _set(self, "properties", own)  # never the caller's dict, which may change
        level = self.delay_level
        if self.flag or type(self.flag) is not int:
            _set(self, "flag", message_fields.flag(self.flag))
        if level or type(level) is not int:
            _set(self, "delay_level", message_fields.delay_level(level))
        if self.deliver_at is not None or self.delay is not None:
            message_fields.timer(self.deliver_at, self.delay, level)
        if self.wait_store_ok is not True:
            yes_or_no("wait_store_ok", self.wait_store_ok)
        if self.sharding_key is not None:
            _set(self, "sharding_key", message_fields.text("sharding_key", self.sharding_key))

    @property
    def timer(self) -> tuple[str, str] | None:
        """The property that asks for a time, and its value; None if it waits for no time."""
        if self.deliver_at is None and self.delay is None:
            return None
        return message_fields.timer(self.deliver_at, self.delay, self.delay_level)

    def replace(self, **changes: Any) -> Self:
        """Another message, of this one's fields but for those given; it is checked as well."""
        return msgspec.structs.replace(self, **changes)

    def __repr__(self) -> str:
        size = len(self.body)
        return f"Message(topic={self.topic!r}, {counted(size, 'byte')}, tags={self.tags!r})"


def _refuse_assignment(_: Message, name: str, __: object) -> NoReturn:
    raise ImmutableMessage(
        f"a message does not change once it is made: message.replace({name}=...) makes another"
    )


# A frozen struct refuses by itself, but does not say what to do instead.
Message.__setattr__ = _refuse_assignment  # type: ignore[method-assign, assignment]


class SendResult(NamedTuple):
    """What became of a message that was sent."""

    status: str
    """SEND_OK, FLUSH_DISK_TIMEOUT, FLUSH_SLAVE_TIMEOUT, SLAVE_NOT_AVAILABLE: all are stored."""
    msg_id: str
    offset_msg_id: str
    queue: Queue
    offset: int
    transaction_id: str | None = None
    recall_handle: str | None = None
    """By which a message that waits for its time can be recalled."""
