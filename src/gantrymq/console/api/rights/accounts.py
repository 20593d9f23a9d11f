"""The accounts of RocketMQ 4.9's access files on all brokers, and the global white lists.

Brokers tell secret keys to admins. They stay in here: no answer has one.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from gantrymq.console.api.ask import Ask
from gantrymq.console.api.endpoint import Answer, EndpointTable, OfCluster
from gantrymq.console.api.paging import LIMIT, Limit, Offset, begin_of_last, matches, part
from gantrymq.console.api.rights.members import (
    MemberRules,
    own_key,
    readable,
    rules_of_members,
    silent,
)
from gantrymq.console.errors import NotThere

TABLE = EndpointTable("rights")

SECRET: Final = "secretKey"
DENY: Final = "DENY"


class WantedAccounts(OfCluster, frozen=True, kw_only=True):
    """Which accounts to list."""

    search: str = ""
    """Words that the access key contains, in any order."""
    offset: Offset = 0
    limit: Limit = LIMIT


class AccountRights(Answer, frozen=True, kw_only=True):
    """What an access key may do, on the brokers where it may exactly that."""

    brokers: list[str]
    admin: bool
    white_address: str
    """Addresses from which it needs no signature and may do everything; empty for none."""
    default_topic_perm: str
    """DENY, PUB, SUB or PUB|SUB, for topics without a rule."""
    default_group_perm: str
    topic_perms: dict[str, str]
    group_perms: dict[str, str]


class AccountDetails(Answer, frozen=True, kw_only=True):
    """One access key."""

    access_key: str
    variants: list[AccountRights]
    """One, unless brokers differ."""
    missing_on: list[str]
    """Brokers with an access file that have no such key."""
    has_other_secrets: bool
    """Whether its secret key is not the same on all brokers."""
    is_own: bool
    """Whether the console asks with this key."""
    silent: dict[str, str]


class AccountLine(Answer, frozen=True, kw_only=True):
    """An access key in a list."""

    access_key: str
    admin: bool
    """On any broker."""
    default_topic_perm: str
    """Several with a slash where brokers differ."""
    default_group_perm: str
    rules: int
    """Of topics and groups."""
    white_address: str
    missing_on: list[str]
    differs: bool
    """Whether brokers have other rights or another secret key for it."""


class AccountPart(Answer, frozen=True, kw_only=True):
    """A part of the accounts."""

    accounts: list[AccountLine]
    count: int
    """All that match."""
    offset: int
    silent: dict[str, str]


class WhiteList(Answer, frozen=True, kw_only=True):
    """The global white list of some brokers: from there no request needs a key."""

    brokers: list[str]
    addresses: list[str]


class WhiteLists(Answer, frozen=True, kw_only=True):
    """The global white lists."""

    lists: list[WhiteList]
    """One, unless brokers differ."""
    files: list[str]
    """Access files of brokers that have several; each file has a list of its own."""


class NamedAccount(OfCluster, frozen=True, kw_only=True):
    """A question about one access key."""

    access_key: str


@TABLE.get("/clusters/{cluster}/rights/accounts")
async def list_accounts(ask: Ask, wanted: WantedAccounts) -> AccountPart:
    """The access keys of all brokers with access files, in parts, without their secrets."""
    members = await rules_of_members(await readable(ask, wanted.cluster))
    names = sorted({name for each in members for name in each.accounts or ()})
    found = [name for name in names if matches(name, wanted.search)]
    return AccountPart(
        accounts=[_line(name, members) for name in part(found, wanted.offset, wanted.limit)],
        count=len(found),
        offset=min(wanted.offset, begin_of_last(len(found), wanted.limit)),
        silent=silent(members),
    )


def _line(name: str, members: Sequence[MemberRules]) -> AccountLine:
    variants = _variants(name, members)
    return AccountLine(
        access_key=name,
        admin=any(each.admin for each in variants),
        default_topic_perm="/".join(dict.fromkeys(each.default_topic_perm for each in variants)),
        default_group_perm="/".join(dict.fromkeys(each.default_group_perm for each in variants)),
        rules=max(len(each.topic_perms) + len(each.group_perms) for each in variants),
        white_address="/".join(dict.fromkeys(each.white_address for each in variants)),
        missing_on=_missing(name, members),
        differs=len(variants) > 1 or _has_other_secrets(name, members),
    )


def _variants(name: str, members: Sequence[MemberRules]) -> list[AccountRights]:
    found: list[tuple[AccountRights, list[str]]] = []
    for member in members:
        if not member.accounts or name not in member.accounts:
            continue
        rights = rights_of(member.accounts[name])
        brokers = next((brokers for each, brokers in found if each == rights), None)
        if brokers is None:
            found.append((rights, [member.name]))
        else:
            brokers.append(member.name)
    return [msgspec.structs.replace(rights, brokers=brokers) for rights, brokers in found]


def rights_of(account: Mapping[str, Any]) -> AccountRights:
    """An account as a broker tells it, without its secret and not yet on any broker."""
    return AccountRights(
        brokers=[],
        admin=account.get("admin") is True,
        white_address=account.get("whiteRemoteAddress") or "",
        default_topic_perm=account.get("defaultTopicPerm") or DENY,
        default_group_perm=account.get("defaultGroupPerm") or DENY,
        topic_perms=_perms(account.get("topicPerms")),
        group_perms=_perms(account.get("groupPerms")),
    )


def _perms(rules: Sequence[str] | None) -> dict[str, str]:
    pairs = (rule.partition("=") for rule in rules or ())
    return {name.strip(): words.strip() for name, _, words in pairs}


def _missing(name: str, members: Sequence[MemberRules]) -> list[str]:
    return [
        each.name for each in members if each.accounts is not None and name not in each.accounts
    ]


def _has_other_secrets(name: str, members: Sequence[MemberRules]) -> bool:
    secrets = {
        each.accounts[name].get(SECRET)
        for each in members
        if each.accounts and name in each.accounts
    }
    return len(secrets) > 1


@TABLE.get("/clusters/{cluster}/rights/accounts/{accessKey}")
async def show_account_rights(ask: Ask, wanted: NamedAccount) -> AccountDetails:
    """What an access key may do on each broker."""
    admin = await readable(ask, wanted.cluster)
    members = await rules_of_members(admin)
    check_known(wanted.access_key, members)
    return AccountDetails(
        access_key=wanted.access_key,
        variants=_variants(wanted.access_key, members),
        missing_on=_missing(wanted.access_key, members),
        has_other_secrets=_has_other_secrets(wanted.access_key, members),
        is_own=wanted.access_key == own_key(admin),
        silent=silent(members),
    )


def check_known(name: str, members: Sequence[MemberRules]) -> None:
    """NotThere if no broker has an access key."""
    if not any(name in (each.accounts or ()) for each in members):
        why = "; ".join(f"{broker}: {each}" for broker, each in silent(members).items())
        raise NotThere(f"no broker has an access key {name!r}" + (f" ({why})" if why else ""))


@TABLE.get("/clusters/{cluster}/rights/white-addresses")
async def list_white_addresses(ask: Ask, wanted: OfCluster) -> WhiteLists:
    """From where requests need no key, by broker."""
    members = await rules_of_members(await readable(ask, wanted.cluster))
    found: dict[tuple[str, ...], list[str]] = {}
    for each in members:
        if each.accounts is not None:
            found.setdefault(each.white_addresses, []).append(each.name)
    lists = [
        WhiteList(brokers=brokers, addresses=list(addresses))
        for addresses, brokers in found.items()
    ]
    files = {path for each in members if len(each.files) > 1 for path in each.files}
    return WhiteLists(lists=lists, files=sorted(files))
