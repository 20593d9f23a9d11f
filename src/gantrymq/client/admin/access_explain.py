"""Asks a broker for its access rules and tells which of them decides about a user's action."""

import msgspec

from gantrymq.access.account_rules import AccessRules
from gantrymq.access.acl_bodies import new_user, policies_of
from gantrymq.access.addresses import parse_pattern
from gantrymq.access.explain import OFF, Explanation, explain_account, explain_user
from gantrymq.access.plain_acl import AccountEntry, account_of
from gantrymq.access.policies import SUBJECT_PREFIX, Action, Resource, UserAcl
from gantrymq.access.user_rules import UserRules
from gantrymq.client.admin.admin import Admin


async def explain_access(
    admin: Admin, place: str, user: str, action: Action, resource: Resource, address: str = ""
) -> Explanation:
    """What the broker at `place` decides, of whichever generation its rules are."""
    settings = await admin.broker_config(place)
    if settings.get("authenticationEnabled") == "true":
        rules = await _user_rules(admin, place, user, settings)
        return explain_user(rules, user, action, resource, address)
    if settings.get("aclEnable") == "true":
        return explain_account(await _account_rules(admin, place), user, action, resource, address)
    return OFF


async def _user_rules(admin: Admin, place: str, name: str, settings: dict[str, str]) -> UserRules:
    """The rules of the broker, as far as they are about one user."""
    info = await admin.get_user(place, name)
    acl = None if info is None else await admin.get_acl(place, SUBJECT_PREFIX + name)
    return UserRules(
        settings.get("brokerClusterName", ""),
        users={} if info is None else {name: new_user(name, info)},
        acls={} if acl is None else {name: UserAcl(name, tuple(policies_of(acl.policies)))},
        authorizes=settings.get("authorizationEnabled") == "true",
    )


async def _account_rules(admin: Admin, place: str) -> AccessRules:
    found = await admin.access_config(place)
    entries = [msgspec.convert(each, AccountEntry) for each in found.plain_access_configs]
    return AccessRules(
        {entry.access_key: account_of(entry) for entry in entries},
        tuple(parse_pattern(text) for text in found.global_white_addrs),
    )
