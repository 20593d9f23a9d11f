"""Labels of topics and groups, as RocketMQ's metrics have them. Pure."""

from collections.abc import Mapping
from typing import Final

from gantrymq.metrics.metric import yes_no
from gantrymq.model import (
    DEAD_PREFIX,
    HALF_TOPIC,
    RETRY_PREFIX,
    SCHEDULE_TOPIC,
    TIMER_TOPIC,
    TopicConfig,
)
from gantrymq.model.names import is_system_topic
from gantrymq.protocol.pop import pop_retry_topic

SYSTEM_GROUP_PREFIX: Final = "cid_rmq_sys_"
_TYPE_OF: Final = {HALF_TOPIC: "transaction", SCHEDULE_TOPIC: "delay", TIMER_TOPIC: "delay"}
MESSAGE_TYPE: Final = "message.type"


def is_system(topic: str, group: str = "") -> str:
    """Whether a topic or a group is the broker's own."""
    return yes_no(is_system_topic(topic) or group.lower().startswith(SYSTEM_GROUP_PREFIX))


def is_retry(topic: str) -> str:
    return yes_no(topic.startswith((RETRY_PREFIX, DEAD_PREFIX)))


def message_type(topic: str, topics: Mapping[str, TopicConfig]) -> str:
    """The type of a topic's messages: that of the system topic, or the attribute `message.type`.

    RocketMQ looks at the properties of each message, which would cost every send something.
    """
    known = _TYPE_OF.get(topic)
    if known is not None:
        return known
    config = topics.get(topic)
    said = (config.attributes or {}).get(MESSAGE_TYPE) if config is not None else None
    return said.lower() if said else "normal"


def lag_labels(group: str, topic: str) -> tuple[str, str, str, str]:
    """Group, topic, is_retry, is_system; a retry topic of POP counts for its original topic."""
    shown = topic
    if topic.startswith(RETRY_PREFIX):
        for v2 in (False, True):
            head = pop_retry_topic(group, "", v2)
            if topic.startswith(head) and len(topic) > len(head):
                shown = topic[len(head) :]
                break
    return group, shown, is_retry(topic), is_system(topic, group)
