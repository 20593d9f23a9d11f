"""What a user may do: resources, actions, policies, and which of their entries decides. Pure.

A policy has entries, each about one resource: `Topic:orders`, `Topic:ord*`, `Topic:*`, or `*`. Of
the entries that fit a request by resource, action and source address, one decides:

1. those of the policy Custom; only if none of them fits, those of the policy Default;
2. a whole name before a prefix, a longer prefix before a shorter one, `Topic:*` before `*`;
3. Deny before Allow.

If no entry fits, the request is denied. RocketMQ 5.3.3 means the same and sorts wrongly: it takes
the shortest prefix, and of a prefix and a name the one that was written last. Later
releases do not.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Final, Self

from gantrymq.access.users import NamedValue

SUBJECT_PREFIX: Final = "User:"
EVERYTHING: Final = "*"


class Action(NamedValue):
    """What is done to a resource."""

    ALL = "All"
    """Only written into policies: every action."""
    ANY = "Any"
    """Only asked for: whichever action there is."""
    PUB = "Pub"
    SUB = "Sub"
    CREATE = "Create"
    UPDATE = "Update"
    DELETE = "Delete"
    GET = "Get"
    LIST = "List"


class ResourceType(NamedValue):
    """What a resource is; ANY is every one of them."""

    ANY = "Any"
    CLUSTER = "Cluster"
    NAMESPACE = "Namespace"
    TOPIC = "Topic"
    GROUP = "Group"


class NamePattern(IntEnum):
    """How a resource names what it is about; the order in which entries decide."""

    LITERAL = 0
    PREFIX = 1
    ALL = 2


@dataclass(frozen=True)
class Resource:
    """One thing, or all things whose names fit."""

    type: ResourceType
    name: str = ""
    pattern: NamePattern = NamePattern.LITERAL

    @classmethod
    def parse(cls, text: str | None) -> Self | None:
        """The resource of a text like `Topic:orders*`; None if it is none."""
        if text == EVERYTHING:
            return cls(ResourceType.ANY, "", NamePattern.ALL)
        kind, _, name = (text or "").partition(":")
        found = ResourceType.named(kind)
        if found is None:
            return None
        if found is ResourceType.ANY:
            return cls(found, "", NamePattern.ALL)
        if name == EVERYTHING:
            return cls(found, "", NamePattern.ALL)
        if name.endswith(EVERYTHING):
            return cls(found, name.partition(EVERYTHING)[0], NamePattern.PREFIX)
        return cls(found, name)

    def __str__(self) -> str:
        if self.type is ResourceType.ANY:
            return EVERYTHING
        star = "" if self.pattern is NamePattern.LITERAL else EVERYTHING
        return f"{self.type.value}:{self.name}{star}"

    def fits(self, other: Self) -> bool:
        """Whether another one, which names a single thing, is among those that this one names."""
        if self.type is ResourceType.ANY:
            return True
        if self.type is not other.type:
            return False
        if self.pattern is NamePattern.LITERAL:
            return self.name == other.name
        return other.name.startswith(self.name)

    @property
    def rank(self) -> tuple[bool, int, int]:
        """Entries with a lower rank decide first."""
        return self.type is ResourceType.ANY, self.pattern, -len(self.name)


def is_source(text: str) -> bool:
    """Whether a text is an address, or a network like `10.0.0.0/8`."""
    try:
        ip_network(text, strict=False)
    except ValueError:
        return False
    return True


@dataclass(frozen=True)
class PolicyEntry:
    """One rule."""

    resource: Resource
    actions: tuple[Action, ...]
    allows: bool
    sources: tuple[str, ...] = ()
    """Addresses and networks from which it counts; from everywhere if there are none."""

    def fits(self, resource: Resource, actions: Sequence[Action], address: str) -> bool:
        """Whether the rule is about a request that may take any of these actions."""
        return (
            self.resource.fits(resource) and self.fits_action(actions) and self.fits_source(address)
        )

    def fits_action(self, actions: Sequence[Action]) -> bool:
        if Action.ANY in actions or Action.ALL in self.actions:
            return True
        return any(action in self.actions for action in actions)

    def fits_source(self, address: str) -> bool:
        if not self.sources:
            return True
        try:
            found = ip_address(address)
        except ValueError:
            return False
        return any(found in network for network in self._networks)

    @cached_property
    def _networks(self) -> list[IPv4Network | IPv6Network]:
        return [ip_network(text, strict=False) for text in self.sources]

    @property
    def decision(self) -> str:
        return "Allow" if self.allows else "Deny"

    def __str__(self) -> str:
        actions = ",".join(action.value for action in self.actions)
        sources = f" from {', '.join(self.sources)}" if self.sources else ""
        return f"{self.decision} {actions} on {self.resource}{sources}"


class PolicyType(NamedValue):
    """The policy Default counts where the policy Custom has no entry."""

    CUSTOM = "Custom"
    DEFAULT = "Default"


@dataclass(frozen=True)
class AclPolicy:
    """The entries of one type, at most one for each resource."""

    type: PolicyType
    entries: tuple[PolicyEntry, ...] = ()

    def with_entries(self, entries: Iterable[PolicyEntry]) -> "AclPolicy":
        """Each new entry replaces the one of its resource, else it is the last."""
        by_resource = {entry.resource: entry for entry in self.entries}
        by_resource.update({entry.resource: entry for entry in entries})
        return AclPolicy(self.type, tuple(by_resource.values()))

    def without(self, resource: Resource) -> "AclPolicy":
        kept = tuple(entry for entry in self.entries if entry.resource != resource)
        return AclPolicy(self.type, kept)


@dataclass(frozen=True)
class UserAcl:
    """The policies of one user."""

    username: str
    policies: tuple[AclPolicy, ...] = ()

    @property
    def subject(self) -> str:
        return SUBJECT_PREFIX + self.username

    def policy(self, kind: PolicyType) -> AclPolicy | None:
        return next((each for each in self.policies if each.type is kind), None)

    def with_policies(self, policies: Iterable[AclPolicy]) -> "UserAcl":
        """Entries of the same type and resource are replaced, others are added."""
        by_type = {policy.type: policy for policy in self.policies}
        for policy in policies:
            old = by_type.get(policy.type, AclPolicy(policy.type))
            by_type[policy.type] = old.with_entries(policy.entries)
        return UserAcl(self.username, tuple(by_type.values()))

    def without(self, kind: PolicyType, resource: Resource) -> "UserAcl":
        kept = (each.without(resource) if each.type is kind else each for each in self.policies)
        return UserAcl(self.username, tuple(each for each in kept if each.entries))


def username_of(subject: str | None) -> str | None:
    """The user that a subject like `User:shop` names; None if it names none."""
    kind, _, name = (subject or "").partition(":")
    return name if kind.lower() == "user" else None


@dataclass(frozen=True)
class Ruling:
    """What the policies of a user say to a request, and which entry says it."""

    allowed: bool
    policy: PolicyType | None = None
    entry: PolicyEntry | None = None
    """None: no entry fits, so the request is denied."""

    @property
    def detail(self) -> str:
        """Why a request is denied, in RocketMQ's words."""
        return "no matched policies." if self.entry is None else "the decision is deny."


def judge(
    acl: UserAcl | None, resource: Resource, actions: Sequence[Action], address: str
) -> Ruling:
    """Which entry decides about a request that may take any of these actions."""
    for kind in PolicyType:
        policy = None if acl is None else acl.policy(kind)
        if policy is None:
            continue
        found = [each for each in policy.entries if each.fits(resource, actions, address)]
        if found:
            entry = min(found, key=lambda each: (each.resource.rank, each.allows))
            return Ruling(entry.allows, kind, entry)
    return Ruling(allowed=False)
