"""What a topic is for: a user's, by the type of its messages, or a group's or a broker's. Pure."""

from collections.abc import Mapping
from typing import Final

from gantrymq.client.admin.topics.topic_settings import (
    TopicConfigs,
    broker_names,
    is_of_brokers,
)
from gantrymq.model import DEAD_PREFIX, RETRY_PREFIX

MESSAGE_TYPE: Final = "message.type"
OWN_KINDS: Final = ("normal", "fifo", "delay", "transaction", "mixed")
"""Topics that users made, by `message.type`; normal is also what does not say."""
KINDS: Final = (*OWN_KINDS, "retry", "dead", "system")


def topic_kinds(known: Mapping[str, TopicConfigs]) -> dict[str, str]:
    """The kind of each topic, in the same order."""
    brokers = broker_names(known)
    return {name: _kind(name, known, brokers) for name in known}


def _kind(name: str, known: Mapping[str, TopicConfigs], brokers: frozenset[str]) -> str:
    if name.startswith(RETRY_PREFIX):
        return "retry"
    if name.startswith(DEAD_PREFIX):
        return "dead"
    if is_of_brokers(name, known, brokers):
        return "system"
    return message_kind(known[name])


def message_kind(configs: TopicConfigs) -> str:
    """The type of messages that brokers expect in a topic."""
    for config in configs.values():
        said = config.attributes.get(MESSAGE_TYPE, "").lower()
        if said in OWN_KINDS:
            return said
    return "normal"
