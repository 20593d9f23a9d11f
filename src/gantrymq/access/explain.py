"""Which rule decides about an action of a user or an account, in words for operators. Pure.

The decisions are those of the guard: `policies.judge` and `Account.ruling`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gantrymq.access.account_rules import AccessRules
from gantrymq.access.accounts import Permission, group_resource
from gantrymq.access.denials import AccessDenied
from gantrymq.access.policies import (
    Action,
    PolicyEntry,
    PolicyType,
    Resource,
    ResourceType,
    UserAcl,
    judge,
)
from gantrymq.access.user_rules import UserRules

_CHANGES: Final = (Action.CREATE, Action.UPDATE, Action.DELETE)
_PERMISSIONS: Final = {
    Action.PUB: Permission.PUB,
    Action.SUB: Permission.SUB,
    Action.GET: Permission.ANY,
}


@dataclass(frozen=True)
class Explanation:
    """Whether a request is let through, which rule says so, and why that one."""

    allowed: bool
    rule: str
    why: str
    others: tuple[str, ...] = ()
    """Other entries about the same resource, each with the reason that it does not decide."""


OFF: Final = Explanation(True, "no access control", "the broker serves everybody")


def explain_user(
    rules: UserRules, username: str, action: Action, resource: Resource, address: str
) -> Explanation:
    """What a broker with users and policies decides; "" is an address that is not known."""
    try:
        user = rules.who_signs(username, address)
    except AccessDenied as denied:
        return Explanation(False, "authenticationEnabled=true", denied.why)
    if user.is_super:
        return Explanation(True, "userType Super", "a super user may do everything")
    if not rules.authorizes:
        return Explanation(True, "authorizationEnabled=false", "every user may do everything")
    acl = rules.acls.get(username)
    ruling = judge(acl, resource, [action], address)
    others = _others(acl, resource, action, address, ruling.entry)
    if ruling.entry is None or ruling.policy is None:
        why = "no policy entry fits, and what is not allowed is denied"
        return Explanation(False, "no entry", why, others)
    rule = f"{ruling.policy.value}: {ruling.entry}"
    return Explanation(ruling.allowed, rule, _reason(acl, ruling.policy), others)


def _reason(acl: UserAcl | None, policy: PolicyType) -> str:
    if policy is PolicyType.DEFAULT and acl is not None and acl.policy(PolicyType.CUSTOM):
        return "no entry of the policy Custom fits, and this one of the policy Default does"
    return "of the entries that fit, the one that names the resource most exactly"


def _others(
    acl: UserAcl | None,
    resource: Resource,
    action: Action,
    address: str,
    chosen: PolicyEntry | None,
) -> tuple[str, ...]:
    return tuple(
        f"{policy.type.value}: {entry} ({_why_not(entry, action, address)})"
        for policy in (acl.policies if acl is not None else ())
        for entry in policy.entries
        if entry is not chosen and entry.resource.fits(resource)
    )


def _why_not(entry: PolicyEntry, action: Action, address: str) -> str:
    if not entry.fits_action([action]):
        return "other actions"
    if not entry.fits_source(address):
        return "other addresses" if address else "only from its addresses: give one"
    return "another entry comes first"


def explain_account(
    rules: AccessRules, access_key: str, action: Action, resource: Resource, address: str
) -> Explanation:
    """What a broker with access files decides; "" is an address that is not known."""
    if address and rules.trusts(address):
        return Explanation(True, "globalWhiteRemoteAddresses", f"has {address}: no key is needed")
    try:
        account = rules.who_signs(access_key, address)
    except AccessDenied as denied:
        return Explanation(False, "accounts", denied.why)
    if account is None:
        return Explanation(True, "whiteRemoteAddress", f"has {address}: no signature is needed")
    permission = _PERMISSIONS.get(action)
    is_named = resource.type in (ResourceType.TOPIC, ResourceType.GROUP)
    if action in _CHANGES:
        return Explanation(account.admin, f"admin: {str(account.admin).lower()}", "an admin's")
    if permission is None or not is_named:
        return Explanation(True, "accounts", "every key may read lists and figures")
    is_group = resource.type is ResourceType.GROUP
    name = group_resource(resource.name) if is_group else resource.name
    allowed, rule = account.ruling(name, permission)
    return Explanation(allowed, rule, _WHY[rule.partition(":")[0]])


_WHY: Final[dict[str, str]] = {
    "admin": "an admin without any rule of its own may do everything",
    "topicPerms": "the account has a rule for the topic",
    "groupPerms": "the account has a rule for the group",
    "defaultTopicPerm": "the account has no rule for the topic",
    "defaultGroupPerm": "the account has no rule for the group",
}
ACTIONS: Final[Sequence[str]] = [
    each.value for each in Action if each not in (Action.ALL, Action.ANY)
]
