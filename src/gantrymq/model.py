"""The nouns everybody speaks: messages, queues, topics, groups, subscriptions, routes.

Structs that also travel as JSON carry RocketMQ's wire names by `rename`; the Python names are ours.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, NoReturn, Self

import msgspec

from gantrymq import message_fields
from gantrymq.base.arguments import wrong_type, yes_or_no
from gantrymq.base.errors import GantryError
from gantrymq.base.javatypes import Int32, java_enum
from gantrymq.base.plurals import counted

TOPIC_FILTER_TYPES = ("SINGLE_TAG", "MULTI_TAG")
TopicFilterType = Annotated[str, java_enum(*TOPIC_FILTER_TYPES)]
READ, WRITE, INHERIT, PRIORITY = 4, 2, 1, 8

RETRY_PREFIX, DEAD_PREFIX = message_fields.RETRY_PREFIX, "%DLQ%"
REPLY_SUFFIX = "_REPLY_TOPIC"
TOPIC_BYTES_MAX, GROUP_BYTES_MAX = 127, 255
STORED_TOPIC_BYTES_MAX = 255
"""Of the topics that a broker makes from groups and topics: each is a directory."""
NAME_PATTERN = re.compile(r"[%|a-zA-Z0-9_-]+\Z")

SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
TIMER_TOPIC = "rmq_sys_wheel_timer"
TEMPLATE_TOPIC = "TBW102"
HALF_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC"
OP_HALF_TOPIC = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
TRACE_TOPIC = "RMQ_SYS_TRACE_TOPIC"
CHECK_MAX_TOPIC = "TRANS_CHECK_MAX_TIME_TOPIC"
SELF_TEST_TOPIC = "SELF_TEST_TOPIC"
OFFSET_MOVED_TOPIC = "OFFSET_MOVED_EVENT"
BENCHMARK_TOPIC = "BenchmarkTest"
STAGE_TOPIC = "RMQ_SYS_STAGE_TOPIC"
PUBLISH_TOPIC = "RMQ_SYS_PUBLISH_TOPIC"
"""Ours: what epochs are staged in, and what is decided about them."""

SYSTEM_TOPICS = frozenset(
    {
        TEMPLATE_TOPIC,
        SCHEDULE_TOPIC,
        BENCHMARK_TOPIC,
        HALF_TOPIC,
        OP_HALF_TOPIC,
        TRACE_TOPIC,
        CHECK_MAX_TOPIC,
        SELF_TEST_TOPIC,
        OFFSET_MOVED_TOPIC,
        STAGE_TOPIC,
        PUBLISH_TOPIC,
    }
)
UNSENDABLE_TOPICS = frozenset(
    {
        SCHEDULE_TOPIC,
        TIMER_TOPIC,
        HALF_TOPIC,
        OP_HALF_TOPIC,
        CHECK_MAX_TOPIC,
        SELF_TEST_TOPIC,
        OFFSET_MOVED_TOPIC,
        PUBLISH_TOPIC,
    }
)
"""Topics that clients may read but never send to."""


class NameRefused(GantryError, ValueError):
    """A topic or group name that RocketMQ would not take."""


def retry_topic(group: str) -> str:
    return RETRY_PREFIX + group


def dead_topic(group: str) -> str:
    return DEAD_PREFIX + group


def reply_topic(cluster: str) -> str:
    """Where the replies to requests go that were sent in a cluster."""
    return cluster + REPLY_SUFFIX


def is_system_topic(topic: str) -> bool:
    return topic in SYSTEM_TOPICS or topic.startswith("rmq_sys_")


def check_topic_name(topic: str) -> str:
    """Return the name, or say what is wrong with it. Names become folders: no path tricks."""
    return _checked("topic", topic, TOPIC_BYTES_MAX)


def check_group_name(group: str) -> str:
    return _checked("group", group, GROUP_BYTES_MAX)


def _checked(kind: str, name: str, size_max: int) -> str:
    if not isinstance(name, str):
        raise wrong_type(f"a {kind}", "named by a string", name)
    if not name or not name.strip():
        raise NameRefused(f"The specified {kind} is blank.")
    if len(name) > size_max:
        raise NameRefused(
            f"The specified {kind} is longer than {kind} max length {size_max}: "
            f"it has {len(name)} characters."
        )
    if not NAME_PATTERN.match(name):
        raise NameRefused(
            f"The specified {kind} contains illegal characters, allowing only %|a-zA-Z0-9_-: "
            f"{name[:64]!r}"
        )
    return name


class Queue(msgspec.Struct, frozen=True, order=True, rename="camel"):
    """One queue of one topic on one broker; sorts as RocketMQ's clients sort."""

    topic: str
    broker_name: str
    queue_id: Int32

    def __str__(self) -> str:
        return f"{self.topic}@{self.broker_name}:{self.queue_id}"


class TopicConfig(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=False):
    """What a broker knows about a topic; the JSON shape of topics.json and of registration."""

    attributes: dict[str, str] = {}
    order: bool = False
    perm: Int32 = READ | WRITE
    read_queue_nums: Int32 = 8
    topic_filter_type: TopicFilterType = "SINGLE_TAG"
    topic_name: str = ""
    topic_sys_flag: Int32 = 0
    write_queue_nums: Int32 = 8


class GroupConfig(msgspec.Struct, kw_only=True, rename="camel"):
    """A subscription group's settings (subscriptionGroup.json), 5.x's members included."""

    attributes: dict[str, str] = {}
    broker_id: int = 0
    consume_broadcast_enable: bool = True
    consume_enable: bool = True
    consume_from_min_enable: bool = True
    consume_message_orderly: bool = False
    consume_timeout_minute: Int32 = 15
    group_name: str
    group_retry_policy: dict[str, Any] = msgspec.field(
        default_factory=lambda: {"type": "CUSTOMIZED"}
    )
    group_sys_flag: Int32 = 0
    notify_consumer_ids_changed_enable: bool = True
    retry_max_times: Int32 = 16
    retry_queue_nums: Int32 = 1
    which_broker_when_consume_slowly: int = 1


class DataVersion(msgspec.Struct, kw_only=True, rename="camel"):
    """Says whether two copies of a table are the same: equal on all three."""

    counter: int = 0
    state_version: int = 0
    timestamp: int = 0

    def next(self, now_ms: int) -> "DataVersion":
        return DataVersion(
            counter=self.counter + 1, state_version=self.state_version, timestamp=now_ms
        )


class Subscription(msgspec.Struct, kw_only=True, rename="camel"):
    """What a consumer wants from a topic, as heartbeats carry it."""

    class_filter_mode: bool = False
    code_set: list[Int32] = []
    expression_type: str = "TAG"
    sub_string: str = "*"
    sub_version: int = 0
    tags_set: list[str] = []
    topic: str


class BrokerData(msgspec.Struct, kw_only=True, rename="camel"):
    """The addresses behind one broker name; id 0 is the master."""

    broker_addrs: dict[str, str]
    broker_name: str
    cluster: str = ""
    enable_acting_master: bool = False

    @property
    def master(self) -> str | None:
        return self.broker_addrs.get("0")


class QueueData(msgspec.Struct, kw_only=True, rename="camel"):
    """How many queues of a topic one broker offers, and what may be done with them."""

    broker_name: str
    perm: Int32 = READ | WRITE
    read_queue_nums: Int32 = 4
    topic_sys_flag: Int32 = 0
    write_queue_nums: Int32 = 4


class Route(msgspec.Struct, kw_only=True, rename="camel"):
    """Where a topic lives."""

    broker_datas: list[BrokerData] = []
    filter_server_table: dict[str, Any] = {}
    order_topic_conf: str | None = None
    queue_datas: list[QueueData] = []


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
