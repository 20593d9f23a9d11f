"""Names of topics and groups: the system's own, prefixes, and which names RocketMQ takes."""

import re

from gantrymq import message_fields
from gantrymq.base.arguments import wrong_type
from gantrymq.base.errors import GantryError

RETRY_PREFIX, DEAD_PREFIX = message_fields.RETRY_PREFIX, "%DLQ%"
REPLY_SUFFIX = "_REPLY_TOPIC"
TOPIC_BYTES_MAX, GROUP_BYTES_MAX = 127, 255
READABLE_CHARS_MAX = 255
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


def check_readable_name(kind: str, name: str) -> str:
    """Return a name that is no directory, such as a client's id, or say what is wrong with it.

    RocketMQ takes any; but one with a control character would forge lines in logs and tables.
    """
    if not name or len(name) > READABLE_CHARS_MAX or not name.isprintable():
        raise NameRefused(
            f"The specified {kind} must have 1 to {READABLE_CHARS_MAX} printable characters: "
            f"{name[:64]!r} has {len(name)}."
        )
    return name


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
