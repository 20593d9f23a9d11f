"""Users and policies as they stand in requests, in answers and in the broker's file. Pure.

The texts of errors are RocketMQ's: its tools print them.
"""

from collections.abc import Sequence

from gantrymq.access.denials import PolicyDenied
from gantrymq.access.policies import (
    AclPolicy,
    Action,
    PolicyEntry,
    PolicyType,
    Resource,
    UserAcl,
    is_source,
)
from gantrymq.access.users import User, UserStatus, UserType
from gantrymq.protocol.bodies import AclInfo, PolicyEntryInfo, PolicyInfo, UserInfo


def user_info(user: User) -> UserInfo:
    """A user with its password: `copyUser` needs it, and nobody else may ask."""
    return UserInfo(
        username=user.username,
        password=user.password,
        user_type=user.user_type.value,
        user_status=user.status.value,
    )


def new_user(username: str, info: UserInfo) -> User:
    """A user to be made; what is not said, or said wrongly, has RocketMQ's default."""
    if not (info.password or "").strip():
        raise PolicyDenied("password can not be blank")
    return User(
        username,
        info.password or "",
        UserType.named(info.user_type) or UserType.NORMAL,
        UserStatus.named(info.user_status) or UserStatus.ENABLE,
    )


def changed_user(old: User, info: UserInfo) -> User:
    """A user with what is given of a change."""
    return User(
        old.username,
        info.password if (info.password or "").strip() else old.password,  # type: ignore[arg-type]
        UserType.named(info.user_type) or old.user_type,
        UserStatus.named(info.user_status) or old.status,
    )


def acl_info(acl: UserAcl) -> AclInfo:
    policies = [
        PolicyInfo(
            policy_type=policy.type.value,
            entries=[
                PolicyEntryInfo(
                    resource=str(entry.resource),
                    actions=[action.value for action in entry.actions],
                    source_ips=list(entry.sources) or None,
                    decision=entry.decision,
                )
                for entry in policy.entries
            ],
        )
        for policy in acl.policies
    ]
    return AclInfo(subject=acl.subject, policies=policies)


def policies_of(infos: Sequence[PolicyInfo]) -> list[AclPolicy]:
    """The policies of a request; raises PolicyDenied with what is wrong with them."""
    found = [
        AclPolicy(
            PolicyType.named(info.policy_type) or PolicyType.CUSTOM,
            tuple(_entry(each) for each in info.entries),
        )
        for info in infos
        if info.entries
    ]
    if not found:
        raise PolicyDenied("The policies is empty.")
    return found


def _entry(info: PolicyEntryInfo) -> PolicyEntry:
    resource = Resource.parse(info.resource)
    if resource is None:
        raise PolicyDenied("The resource is null.")
    named = [Action.named(text) for text in info.actions or ()]
    actions = tuple(dict.fromkeys(action for action in named if action is not None))
    if not actions:
        raise PolicyDenied("The actions is empty.")
    if Action.ANY in actions:
        raise PolicyDenied("The actions can not be Any.")
    for text in info.source_ips or ():
        if not text.strip():
            raise PolicyDenied("The source ip is empty.")
        if not is_source(text):
            raise PolicyDenied("The source ip is invalid.")
    decision = (info.decision or "").lower()
    if decision not in ("allow", "deny"):
        raise PolicyDenied("The decision is null or illegal.")
    return PolicyEntry(resource, actions, decision == "allow", tuple(info.source_ips or ()))
