"""The users of RocketMQ 5.3: the list, and one user on all brokers with its policies.

Brokers tell passwords to super users. They stay in here: no answer has one.
"""

from collections.abc import Sequence
from typing import Any

from gantrymq.console.api.ask import Ask
from gantrymq.console.api.endpoint import Answer, EndpointTable, OfCluster
from gantrymq.console.api.paging import LIMIT, Limit, Offset, begin_of_last, matches, part
from gantrymq.console.api.rights.members import (
    AccessKind,
    MemberRules,
    own_key,
    readable,
    rules_of_members,
    silent,
)
from gantrymq.console.errors import NotThere
from gantrymq.protocol.bodies import UserInfo

TABLE = EndpointTable("rights")


class WantedUsers(OfCluster, frozen=True, kw_only=True):
    """Which users to list."""

    search: str = ""
    """Words that the name contains, in any order."""
    offset: Offset = 0
    limit: Limit = LIMIT


class UserOnBroker(Answer, frozen=True, kw_only=True):
    """A user as one broker has it."""

    broker: str
    type: str
    """Super or Normal"""
    status: str
    """enable or disable"""


class UserLine(Answer, frozen=True, kw_only=True):
    """A user in a list."""

    user: str
    type: str
    """Several with a slash where brokers differ."""
    status: str
    rules: int
    """Different policy entries on all brokers."""
    missing_on: list[str]
    """Brokers with users that have no such one."""
    differs_in: list[str]
    """What is not the same on all brokers that have it: type, status, password, policies."""


class UserPart(Answer, frozen=True, kw_only=True):
    """A part of the users."""

    users: list[UserLine]
    count: int
    """All that match."""
    offset: int
    silent: dict[str, str]
    """Brokers that did not tell, and why: their users are missing."""


class NamedUser(OfCluster, frozen=True, kw_only=True):
    """A question about one user."""

    user: str


class ShownPolicy(Answer, frozen=True, kw_only=True):
    """One entry of a user's policies, and where it stands."""

    policy_type: str
    resource: str
    actions: list[str]
    sources: list[str]
    """Addresses and networks from which it counts; everywhere without any."""
    decision: str
    brokers: list[str]
    is_everywhere: bool
    """Whether all brokers that have the user have this entry."""


class UserDetails(Answer, frozen=True, kw_only=True):
    """One user."""

    user: str
    brokers: list[UserOnBroker]
    policies: list[ShownPolicy]
    missing_on: list[str]
    differs_in: list[str]
    not_in_force_on: list[str]
    """Brokers that keep it, and have access files or nothing in force."""
    unchecked_on: list[str]
    """Brokers on which its policies do not count: authorizationEnabled is off."""
    is_own: bool
    """Whether the console asks with this user's key."""
    silent: dict[str, str]


@TABLE.get("/clusters/{cluster}/rights/users")
async def list_users(ask: Ask, wanted: WantedUsers) -> UserPart:
    """The users of all brokers, in parts, with what differs from one broker to another."""
    members = await rules_of_members(await readable(ask, wanted.cluster))
    names = sorted({name for each in members for name in each.users or ()})
    found = [name for name in names if matches(name, wanted.search)]
    return UserPart(
        users=[_line(name, members) for name in part(found, wanted.offset, wanted.limit)],
        count=len(found),
        offset=min(wanted.offset, begin_of_last(len(found), wanted.limit)),
        silent=silent(members),
    )


def _line(name: str, members: Sequence[MemberRules]) -> UserLine:
    places = found_on(name, members)
    return UserLine(
        user=name,
        type="/".join(dict.fromkeys(info.user_type or "" for _, info in places)),
        status="/".join(dict.fromkeys(info.user_status or "" for _, info in places)),
        rules=len({rule for each, _ in places for rule in each.policies.get(name, ())}),
        missing_on=brokers_without(name, members),
        differs_in=_differences(name, members),
    )


def found_on(name: str, members: Sequence[MemberRules]) -> list[tuple[MemberRules, UserInfo]]:
    """The brokers that have a user."""
    return [(each, each.users[name]) for each in members if each.users and name in each.users]


def brokers_without(name: str, members: Sequence[MemberRules]) -> list[str]:
    return [each.name for each in members if each.users is not None and name not in each.users]


def _differences(name: str, members: Sequence[MemberRules]) -> list[str]:
    places = found_on(name, members)
    values: dict[str, set[Any]] = {
        "type": {info.user_type for _, info in places},
        "status": {info.user_status for _, info in places},
        "password": {info.password for _, info in places},
        "policies": {frozenset(each.policies.get(name, ())) for each, _ in places},
    }
    return [what for what, found in values.items() if len(found) > 1]


@TABLE.get("/clusters/{cluster}/rights/users/{user}")
async def show_user(ask: Ask, wanted: NamedUser) -> UserDetails:
    """A user on each broker, and its policies."""
    admin = await readable(ask, wanted.cluster)
    members = await rules_of_members(admin)
    places = places_of(wanted.user, members)
    return UserDetails(
        user=wanted.user,
        brokers=[
            UserOnBroker(broker=each.name, type=info.user_type or "", status=info.user_status or "")
            for each, info in places
        ],
        policies=_policies(wanted.user, [each for each, _ in places]),
        missing_on=brokers_without(wanted.user, members),
        differs_in=_differences(wanted.user, members),
        not_in_force_on=[each.name for each, _ in places if each.kind is not AccessKind.USERS],
        unchecked_on=[
            each.name
            for each, _ in places
            if each.kind is AccessKind.USERS and not each.checks_policies
        ],
        is_own=wanted.user == own_key(admin),
        silent=silent(members),
    )


def places_of(name: str, members: Sequence[MemberRules]) -> list[tuple[MemberRules, UserInfo]]:
    """The brokers that have a user; NotThere if none has."""
    places = found_on(name, members)
    if not places:
        why = "; ".join(f"{broker}: {each}" for broker, each in silent(members).items())
        raise NotThere(f"no broker has a user {name!r}" + (f" ({why})" if why else ""))
    return places


def _policies(name: str, members: Sequence[MemberRules]) -> list[ShownPolicy]:
    rules = sorted({rule for each in members for rule in each.policies.get(name, ())})
    found = []
    for rule in rules:
        brokers = [each.name for each in members if rule in each.policies.get(name, ())]
        found.append(
            ShownPolicy(
                policy_type=rule.policy_type,
                resource=rule.resource,
                actions=list(rule.actions),
                sources=list(rule.sources),
                decision=rule.decision,
                brokers=brokers,
                is_everywhere=len(brokers) == len(members),
            )
        )
    return found
