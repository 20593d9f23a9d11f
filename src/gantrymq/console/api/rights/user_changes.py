"""Users of RocketMQ 5.3 created, changed, copied and deleted on all brokers.

A password goes into a broker and never comes out of the console: answers, texts and the audit
trail have none.
"""

from collections.abc import Sequence
from typing import Annotated, Final, Literal

from msgspec import Meta

from gantrymq.access.policies import SUBJECT_PREFIX
from gantrymq.base.hidden import repr_without
from gantrymq.base.plurals import counted
from gantrymq.client.admin.admin import Admin
from gantrymq.console.api.ask import Ask
from gantrymq.console.api.endpoint import Answer, Done, EndpointTable, OfCluster
from gantrymq.console.api.rights.changes import (
    change_each,
    check_confirmation,
    source_of,
    with_users,
)
from gantrymq.console.api.rights.members import (
    AccessKind,
    MemberRules,
    PolicyRule,
    names_of,
    own_key,
    readable,
    rules_of_members,
)
from gantrymq.console.api.rights.users import NamedUser, brokers_without, found_on, places_of
from gantrymq.console.errors import BadInput, NotThere
from gantrymq.protocol.bodies import AclInfo, PolicyEntryInfo, PolicyInfo, UserInfo

TABLE = EndpointTable("rights")

UserKind = Literal["Super", "Normal"]
UserState = Literal["enable", "disable"]
NewName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._@-]{0,254}$")]
Secret = Annotated[str, Meta(min_length=1, max_length=1000)]
SUPER: Final = "Super"
DISABLED: Final = "disable"


class NewUser(OfCluster, frozen=True, kw_only=True):
    """A user to create on all brokers that keep users."""

    user: NewName
    password: Secret
    type: UserKind = "Normal"
    status: UserState = "enable"

    def __repr__(self) -> str:
        return repr_without(self, ("password",))


class UserChanges(NamedUser, frozen=True, kw_only=True):
    """What to change of a user; what is left out stays as each broker has it."""

    password: Secret | None = None
    type: UserKind | None = None
    status: UserState | None = None

    def __repr__(self) -> str:
        return repr_without(self, ("password",))


class UserCopy(NamedUser, frozen=True, kw_only=True):
    """Make a user the same everywhere."""

    like: str
    """The broker whose user, with password and policies, the others get."""


class UserDeletion(NamedUser, frozen=True, kw_only=True):
    """A user to delete."""

    confirm: str
    """The name once more."""


class UserLoss(Answer, frozen=True, kw_only=True):
    """What is lost with a user."""

    text: str
    policies: dict[str, int]
    """Policy entries, each with the number of brokers that have it."""


def holders(name: str, members: Sequence[MemberRules]) -> list[MemberRules]:
    """The brokers that a change of a user is for: those that have it, and those that are silent.

    NotThere if none has it.
    """
    places_of(name, members)
    return [each for each in with_users(members) if each.users is None or name in each.users]


def untouched(name: str, members: Sequence[MemberRules]) -> str:
    """The end of a sentence about brokers that have no such user."""
    missing = brokers_without(name, members)
    return f"; {', '.join(missing)} has no such user" if missing else ""


@TABLE.post("/clusters/{cluster}/rights/users")
async def create_user(ask: Ask, wanted: NewUser) -> Done:
    """Create a user on every broker that keeps users, slaves too.

    After a failure at some brokers the same may be asked again. A broker that has another user of
    that name is not changed, and no other one either.
    """
    _check_password(wanted.password)
    admin = await ask.admin(wanted.cluster)
    members = with_users(await rules_of_members(admin))
    info = UserInfo(
        username=wanted.user,
        password=wanted.password,
        user_type=wanted.type,
        user_status=wanted.status,
    )
    known = {each.name: found for each, found in found_on(wanted.user, members)}
    others = [name for name, found in known.items() if found != info]
    missing = [each for each in members if each.name not in known]
    if others or not missing:
        raise BadInput(
            f"{', '.join(others or names_of(members))} has a user {wanted.user} already: change "
            "it, or copy it to the other brokers"
        )
    done = await change_each(
        f"user {wanted.user} is to be created",
        missing,
        lambda each: admin.create_user(each.address, info),
    )
    return Done(text=f"user {wanted.user} is created on {done}")


def _check_password(password: str | None) -> None:
    """Tools and key files take the spaces around a password away, and nobody could log in."""
    if password is not None and password != password.strip():
        raise BadInput("a password begins and ends with no space")


@TABLE.put("/clusters/{cluster}/rights/users/{user}")
async def update_user(ask: Ask, wanted: UserChanges) -> Done:
    """Change the password, the type or the status of a user on every broker that has it."""
    _check_password(wanted.password)
    if wanted.password is None and wanted.type is None and wanted.status is None:
        raise BadInput("say what to change: password, type or status")
    admin = await ask.admin(wanted.cluster)
    members = await rules_of_members(admin)
    if wanted.type == "Normal" or wanted.status == DISABLED:
        _check_way_back(admin, wanted.user, members)
    info = UserInfo(
        username=wanted.user,
        password=wanted.password,
        user_type=wanted.type,
        user_status=wanted.status,
    )
    done = await change_each(
        f"user {wanted.user} is to be changed",
        holders(wanted.user, members),
        lambda each: admin.update_user(each.address, info),
    )
    text = f"user {wanted.user} is changed on {done}{untouched(wanted.user, members)}"
    if wanted.password is not None and wanted.user == own_key(admin):
        text += "; this console asks with its old password: give it the new one"
    return Done(text=text)


def _check_way_back(admin: Admin, name: str, members: Sequence[MemberRules]) -> None:
    """BadInput if nobody could undo it: the user of the console, or the last super user."""
    if name == own_key(admin):
        raise BadInput(f"this console asks with the key of {name}: give it another one first")
    for each in members:
        supers = [
            info.username
            for info in (each.users or {}).values()
            if info.user_type == SUPER and info.user_status != DISABLED
        ]
        if each.kind is AccessKind.USERS and supers == [name]:
            raise BadInput(f"{each.name} would have no super user that is enabled without {name}")


@TABLE.post("/clusters/{cluster}/rights/users/{user}/copy")
async def copy_user(ask: Ask, wanted: UserCopy) -> Done:
    """Give all brokers a user as one of them has it, with its password and policies."""
    admin = await ask.admin(wanted.cluster)
    members = with_users(await rules_of_members(admin))
    source = source_of(members, wanted.like)
    if not source.users or wanted.user not in source.users:
        raise NotThere(f"{source.name} has no user {wanted.user!r}")
    info = source.users[wanted.user]
    if info.user_type != SUPER or info.user_status == DISABLED:
        _check_way_back(admin, wanted.user, members)
    rules = source.policies.get(wanted.user, [])

    async def copy(member: MemberRules) -> None:
        is_known = member.users is not None and wanted.user in member.users
        await (admin.update_user if is_known else admin.create_user)(member.address, info)
        old = member.policies.get(wanted.user, [])
        await _make_policies(admin, member.address, wanted.user, old, rules)

    done = await change_each(
        f"user {wanted.user} is to be copied from {source.name}",
        [each for each in members if each is not source],
        copy,
    )
    return Done(text=f"user {wanted.user} is on {done or 'no other'} as on {source.name}")


async def _make_policies(
    admin: Admin, place: str, user: str, old: Sequence[PolicyRule], new: Sequence[PolicyRule]
) -> None:
    """New entries first, so that nothing is refused meanwhile that both allow."""
    subject = SUBJECT_PREFIX + user
    if new:
        await admin.update_acl(place, AclInfo(subject=subject, policies=policy_infos(new)))
    kept = {(rule.policy_type, rule.resource) for rule in new}
    for rule in old:
        if (rule.policy_type, rule.resource) not in kept:
            await admin.delete_acl(place, subject, rule.resource, rule.policy_type)


def policy_infos(rules: Sequence[PolicyRule]) -> list[PolicyInfo]:
    """Entries as requests have them, by the type of their policy."""
    by_type: dict[str, list[PolicyEntryInfo]] = {}
    for rule in rules:
        by_type.setdefault(rule.policy_type, []).append(
            PolicyEntryInfo(
                resource=rule.resource,
                actions=list(rule.actions),
                source_ips=list(rule.sources) or None,
                decision=rule.decision,
            )
        )
    return [PolicyInfo(policy_type=kind, entries=entries) for kind, entries in by_type.items()]


@TABLE.get("/clusters/{cluster}/rights/users/{user}/deletion")
async def preview_user_deletion(ask: Ask, wanted: NamedUser) -> UserLoss:
    """What would be lost with a user."""
    admin = await readable(ask, wanted.cluster)
    members = await rules_of_members(admin)
    places = places_of(wanted.user, members)
    _check_way_back(admin, wanted.user, members)
    return _loss(wanted.user, [each for each, _ in places])


def _loss(name: str, members: Sequence[MemberRules]) -> UserLoss:
    policies: dict[str, int] = {}
    known = [each for each in members if each.users is not None]
    for each in known:
        for rule in each.policies.get(name, ()):
            policies[str(rule)] = policies.get(str(rule), 0) + 1
    count = counted(len(policies), "policy entry", "policy entries")
    places = ", ".join(names_of(known))
    return UserLoss(text=f"the user on {places}, with {count}", policies=policies)


@TABLE.delete("/clusters/{cluster}/rights/users/{user}")
async def delete_user(ask: Ask, wanted: UserDeletion) -> Done:
    """Delete a user with its policies on every broker; its name has to be given twice."""
    check_confirmation(wanted.user, wanted.confirm)
    admin = await ask.admin(wanted.cluster)
    members = await rules_of_members(admin)
    targets = holders(wanted.user, members)
    _check_way_back(admin, wanted.user, members)
    await change_each(
        f"user {wanted.user} is to be deleted",
        targets,
        lambda each: admin.delete_user(each.address, wanted.user),
    )
    loss = _loss(wanted.user, targets)
    return Done(text=f"deleted: user {wanted.user}, {loss.text}")
