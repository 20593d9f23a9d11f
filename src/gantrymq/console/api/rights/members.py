"""What every broker of a cluster says of its access control.

Each broker has users or accounts of its own, slaves and members of a raft group as well. All are
asked at once; one that does not answer, or refuses, is told with the reason.
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from gantrymq.access.key_sources import find_credentials
from gantrymq.access.policies import SUBJECT_PREFIX
from gantrymq.base.errors import GantryError
from gantrymq.client.admin.admin import Admin
from gantrymq.client.core.errors import BrokerRefused
from gantrymq.console.access.user import Role
from gantrymq.console.api.ask import Ask
from gantrymq.console.errors import Forbidden
from gantrymq.protocol.bodies import AccessConfigBody, UserInfo
from gantrymq.protocol.codes import ResponseCode

HOW_TO_TURN_ON: Final = (
    "start a new cluster with `gantry up --secure`, or give each broker aclEnable=true with an "
    "access file, or authenticationEnabled=true and authorizationEnabled=true with a first user"
)


class AccessKind(Enum):
    """Which rules a broker has in force."""

    USERS = "users"
    """Users and policies of RocketMQ 5.3."""
    ACCOUNTS = "accounts"
    """Access files of RocketMQ 4.9."""
    NONE = "none"
    """It serves everybody."""
    UNKNOWN = "unknown"
    """It does not tell."""


@dataclass(frozen=True, order=True)
class PolicyRule:
    """One entry of a user's policies."""

    policy_type: str
    resource: str
    actions: tuple[str, ...]
    sources: tuple[str, ...]
    decision: str

    def __str__(self) -> str:
        places = f" from {', '.join(self.sources)}" if self.sources else ""
        return f"{self.decision} {','.join(self.actions)} on {self.resource}{places}"


@dataclass(frozen=True, kw_only=True)
class MemberRules:
    """The access control of one broker."""

    broker: str
    id: int
    address: str
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    """RocketMQ's brokers tell admins the secret ones, too."""
    users: Mapping[str, UserInfo] | None = None
    """By name; None if it keeps none, or does not tell."""
    policies: Mapping[str, list[PolicyRule]] = field(default_factory=dict)
    """By user."""
    accounts: Mapping[str, Mapping[str, Any]] | None = field(default=None, repr=False)
    """By access key, with their secret keys; None if it has no access file, or does not tell."""
    white_addresses: tuple[str, ...] = ()
    files: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Access files, each with how often and when a tool changed it."""
    trouble: GantryError | None = None
    """Why it does not tell what it has in force."""

    @property
    def name(self) -> str:
        """A slave, or another member of a raft group, has its id behind a slash."""
        return f"{self.broker}/{self.id}" if self.id else self.broker

    @property
    def kind(self) -> AccessKind:
        if not self.settings:
            return AccessKind.UNKNOWN
        if self.settings.get("authenticationEnabled") == "true":
            return AccessKind.USERS
        is_by_accounts = self.settings.get("aclEnable") == "true"
        return AccessKind.ACCOUNTS if is_by_accounts else AccessKind.NONE

    @property
    def checks_policies(self) -> bool:
        """Whether policies count; else every user may do everything."""
        return self.settings.get("authorizationEnabled") == "true"

    @property
    def should_have_users(self) -> bool:
        """Whether a change of users is for this one; the change fails if it does not answer."""
        return self.users is not None or self.kind in (AccessKind.USERS, AccessKind.UNKNOWN)

    @property
    def should_have_accounts(self) -> bool:
        return self.accounts is not None or self.kind in (AccessKind.ACCOUNTS, AccessKind.UNKNOWN)


async def rules_of_members(admin: Admin) -> list[MemberRules]:
    """Ask all brokers, the master of each broker name first."""
    members = await admin.members()
    asked = [
        _ask(admin, MemberRules(broker=broker, id=number, address=address))
        for broker, addresses in members.items()
        for number, address in sorted(addresses.items())
    ]
    return list(await asyncio.gather(*asked))


async def _ask(admin: Admin, member: MemberRules) -> MemberRules:
    fields: dict[str, Any] = {"broker": member.broker, "id": member.id, "address": member.address}
    try:
        fields["settings"] = await admin.broker_config(member.address)
        known = MemberRules(**fields)
        fields |= await _users(admin, known)
        if known.kind is AccessKind.ACCOUNTS:
            fields |= await _accounts(admin, known)
    except GantryError as error:
        fields["trouble"] = error
    return MemberRules(**fields)


async def _users(admin: Admin, member: MemberRules) -> dict[str, Any]:
    """Also of a broker with access files, where users may be made before it is switched over."""
    try:
        users = await admin.list_users(member.address)
        acls = await admin.list_acls(member.address)
    except BrokerRefused as error:
        if member.kind is AccessKind.USERS or error.code == ResponseCode.NO_PERMISSION:
            raise
        return {}  # an older release, or one that keeps no users as it is set
    policies = {
        (acl.subject or "").removeprefix(SUBJECT_PREFIX): [
            PolicyRule(
                policy.policy_type or "Custom",
                entry.resource or "",
                tuple(entry.actions or ()),
                tuple(entry.source_ips or ()),
                entry.decision or "",
            )
            for policy in acl.policies
            for entry in policy.entries
        ]
        for acl in acls
    }
    return {"users": {user.username or "": user for user in users}, "policies": policies}


async def _accounts(admin: Admin, member: MemberRules) -> dict[str, Any]:
    found: AccessConfigBody = await admin.access_config(member.address)
    _, files = await admin.access_versions(member.address)
    return {
        "accounts": {str(each.get("accessKey")): each for each in found.plain_access_configs},
        "white_addresses": tuple(found.global_white_addrs),
        "files": files,
    }


async def readable(ask: Ask, cluster: str) -> Admin:
    """The client with which to ask; Forbidden for a reader, who sees nobody's rights.

    With a key of the cluster its brokers decide.
    """
    if ask.user.role is Role.READER:
        raise Forbidden(f"{ask.user.name} is a reader: who may do what is shown to admins")
    return await ask.admin(cluster)


def own_key(admin: Admin) -> str | None:
    """The access key with which the console asks."""
    options = admin.instance.options
    found = options.credentials or find_credentials(options.key_file)
    return None if found is None else found.access_key


def names_of(members: Iterable[MemberRules]) -> list[str]:
    return [each.name for each in members]


def silent(members: Iterable[MemberRules]) -> dict[str, str]:
    """Brokers that do not tell, and why."""
    return {each.name: str(each.trouble) for each in members if each.trouble is not None}
