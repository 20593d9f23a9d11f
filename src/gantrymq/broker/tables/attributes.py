"""Attributes of topics and groups, checked as RocketMQ 5.3.3 checks them, with its error texts.

A request says `+name=value` to set one and `-name` to remove one; the table keeps plain names.
RocketMQ defines attributes for topics only, so every attribute of a group is unknown.
"""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from gantrymq.base.errors import GantryError
from gantrymq.base.javatypes import LONG_MAX
from gantrymq.broker.errors import BadRequest, InvalidParameter

MESSAGE_TYPE: Final = "message.type"
MESSAGE_TYPES = ("UNSPECIFIED", "NORMAL", "FIFO", "DELAY", "TRANSACTION", "MIXED")


class Attribute(NamedTuple):
    """Whether an attribute may change after the creation, and the check of its value."""

    changeable: bool
    check: Callable[[str], None]


class NotBuilt(GantryError):
    """A value that RocketMQ supports and this broker does not."""


def _one_of(*names: str, not_built: Mapping[str, str] | None = None) -> Callable[[str], None]:
    def check(value: str) -> None:
        if value not in names:
            raise BadRequest(f"value is not in set: [{', '.join(names)}]")
        if value in (not_built or {}):
            raise NotBuilt(f"{value} is not supported by this broker: {(not_built or {})[value]}")

    return check


def _duration(value: str) -> None:
    try:
        number = int(value)
    except ValueError:
        raise BadRequest(f'For input string: "{value}"') from None
    if not -1 <= number <= LONG_MAX:
        raise BadRequest(f"value is not in range(-1, {LONG_MAX})")


TOPIC_ATTRIBUTES: Final[Mapping[str, Attribute]] = {
    "queue.type": Attribute(
        False,
        _one_of(
            "BatchCQ",
            "SimpleCQ",
            not_built={
                "BatchCQ": "its queues keep one entry a message; leave queue.type out, or create "
                "the topic on a RocketMQ broker"
            },
        ),
    ),
    "cleanup.policy": Attribute(
        False,
        _one_of(
            "DELETE",
            "COMPACTION",
            not_built={
                "COMPACTION": "messages are deleted by age only; leave cleanup.policy out, or "
                "create the topic on a RocketMQ broker"
            },
        ),
    ),
    MESSAGE_TYPE: Attribute(True, _one_of(*MESSAGE_TYPES)),
    "reserve.time": Attribute(True, _duration),
}
GROUP_ATTRIBUTES: Final[Mapping[str, Attribute]] = {}


def parse_changes(text: str | None) -> dict[str, str]:
    """`+key1=value1,-key2` of a header as a map from signed names to values."""
    changes: dict[str, str] = {}
    for entry in (text or "").split(",") if text else ():
        key, equals, value = entry.partition("=")
        if equals and "+" not in key:
            raise BadRequest(f"add/alter attribute format is wrong: {key}")
        if not equals and "-" not in key:
            raise BadRequest(f"delete attribute format is wrong: {key}")
        if key in changes:
            raise BadRequest(f"key duplication: {key}")
        changes[key] = value
    return changes


def refuse_mixed(changes: Mapping[str, str]) -> None:
    """Refuse message type MIXED; called unless `enableMixedMessageType` is on."""
    if changes.get(f"+{MESSAGE_TYPE}") == "MIXED":
        raise InvalidParameter("MIXED message type is not supported.")


def altered(
    known: Mapping[str, Attribute],
    current: Mapping[str, str] | None,
    changes: Mapping[str, str],
) -> dict[str, str]:
    """The attributes after a request; `current` is None if it creates the topic or group."""
    found = dict(current or {})
    seen: set[str] = set()
    for signed, value in changes.items():
        sign, name = signed[:1], signed[1:]
        if not name or "+" in name or "-" in name:
            raise BadRequest("kv string format wrong.")
        if name in seen:
            raise BadRequest(f"alter duplication key. key: {name}")
        seen.add(name)
        _check_sign(sign, name, current)
        _check(known, name, value, creates=current is None, deletes=sign == "-")
        if sign == "-":
            del found[name]
        else:
            found[name] = value
    return found


def _check_sign(sign: str, name: str, current: Mapping[str, str] | None) -> None:
    if current is None and sign != "+":
        raise BadRequest(f"only add attribute is supported while creating topic. key: {name}")
    if sign not in ("+", "-"):
        raise BadRequest(f"wrong format key: {name}")
    if sign == "-" and name not in (current or {}):
        raise BadRequest(f"attempt to delete a nonexistent key: {name}")


def _check(
    known: Mapping[str, Attribute], name: str, value: str, *, creates: bool, deletes: bool
) -> None:
    attribute = known.get(name)
    if attribute is None:
        raise BadRequest(f"unsupported key: {name}")
    if not creates and not attribute.changeable:
        raise BadRequest(f"attempt to update an unchangeable attribute. key: {name}")
    if not deletes:
        attribute.check(value)
