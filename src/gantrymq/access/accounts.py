"""Accounts and what they may do, parsed from access files and then never changed. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntFlag
from typing import Final

from gantrymq.access.addresses import NOBODY, AddressPattern
from gantrymq.access.signature import SigningKey
from gantrymq.base.errors import ConfigError
from gantrymq.model.names import RETRY_PREFIX


class Permission(IntFlag):
    """What an account may do with a topic or a group; the numbers are RocketMQ's."""

    DENY = 1
    ANY = 2
    """Only asked for: publishing or subscribing, whichever there is."""
    PUB = 4
    SUB = 8


PUB_SUB: Final = Permission.PUB | Permission.SUB
_WORDS: Final = {
    "DENY": Permission.DENY,
    "PUB": Permission.PUB,
    "SUB": Permission.SUB,
    "PUB|SUB": PUB_SUB,
    "SUB|PUB": PUB_SUB,
}


def parse_permission(text: str | None) -> Permission:
    """The permission of a word; nothing at all denies. Raises ConfigError."""
    if text is None or not text.strip():
        return Permission.DENY
    found = _WORDS.get(text.strip())
    if found is None:
        raise ConfigError(f"{text!r} is no permission: write DENY, PUB, SUB or PUB|SUB")
    return found


def group_resource(group: str) -> str:
    """The name under which rights of a consumer group are kept: that of its retry topic."""
    return group if group.startswith(RETRY_PREFIX) else RETRY_PREFIX + group


@dataclass(frozen=True)
class Account:
    """One access key and its rights."""

    access_key: str
    key: SigningKey
    white_addresses: AddressPattern = NOBODY
    """Who comes from there needs no signature, and may do everything, as in RocketMQ."""
    admin: bool = False
    default_topic: Permission = Permission.DENY
    default_group: Permission = Permission.DENY
    resources: Mapping[str, Permission] = field(default_factory=dict)
    """By topic; groups by their retry topic."""

    def may(self, resource: str, needed: Permission) -> bool:
        """Whether the account has a right to a topic, or by its retry topic to a group."""
        return self.ruling(resource, needed)[0]

    def ruling(self, resource: str, needed: Permission) -> tuple[bool, str]:
        """The same, and the rule that decides; an admin without any rule of its own has all."""
        if self.admin and not self.resources:
            return True, "admin"
        is_group = resource.startswith(RETRY_PREFIX)
        owned, rule = self.resources.get(resource), "groupPerms" if is_group else "topicPerms"
        if owned is None:
            owned = self.default_group if is_group else self.default_topic
            rule = "defaultGroupPerm" if is_group else "defaultTopicPerm"
        allowed = not owned & Permission.DENY and bool(
            owned & (PUB_SUB if needed & Permission.ANY else needed)
        )
        return allowed, f"{rule}: {owned.name}"
