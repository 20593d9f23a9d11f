"""What a producer refuses to begin with: group names, and objects that are no messages."""

from collections.abc import Iterable
from typing import Final

from gantrymq.base import arguments
from gantrymq.base.errors import GantryError
from gantrymq.model import Message, NameRefused, check_group_name

REFUSED_GROUP: Final = "DEFAULT_PRODUCER"


def check_producer_group(group: str) -> str:
    """Refuse a missing group name, and RocketMQ's default one."""
    if group == REFUSED_GROUP:
        raise NameRefused(f"producerGroup can not equal {REFUSED_GROUP}, please specify another.")
    return check_group_name(group)


def no_message(value: object) -> GantryError:
    return arguments.wrong_type("what is sent", "a Message, as in Message(topic, body)", value)


def check_messages(messages: Iterable[Message]) -> None:
    """Refuse what is no message."""
    for each in messages:
        if not isinstance(each, Message):
            raise no_message(each)


def check_batch(messages: Iterable[Message]) -> None:
    """Refuse what is no list of messages."""
    whole = not isinstance(messages, Message | str | bytes)
    if not whole or not all(isinstance(message, Message) for message in messages):
        raise arguments.wrong_type("a batch", "a list of messages", messages)
