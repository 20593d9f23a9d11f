"""Commands about users and policies: RocketMQ 5.3's access control."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

import msgspec

from gantrymq.cli.mqadmin.command import AdminOption, Invocation, WrongOption, command
from gantrymq.cli.mqadmin.commands.access import BY_INPUT, HIDDEN
from gantrymq.cli.mqadmin.output import Column
from gantrymq.cli.mqadmin.targets import BROKER, CLUSTER, ONE_OF, masters, members
from gantrymq.cli.mqadmin.values import address, password
from gantrymq.protocol.bodies import AclInfo, PolicyEntryInfo, PolicyInfo, UserInfo

T = TypeVar("T")


def _java_list(value: list[str] | None) -> str:
    return "null" if value is None else f"[{', '.join(value)}]"


USERNAME = AdminOption("u", "username", "The name of the user.", required=True)
SUBJECT = AdminOption("s", "subject", "Whose policies, as User:NAME.", required=True)
FROM = AdminOption("f", "fromBroker", "Address of the broker to read.", True, read=address)
TO = AdminOption("t", "toBroker", "Address of the broker to change.", True, read=address)
ENTRY = (
    SUBJECT,
    AdminOption("r", "resources", "As Topic:orders,Topic:ord*,Group:*,Cluster:NAME,*.", True),
    AdminOption("a", "actions", "All, or some of Pub,Sub,Create,Update,Delete,Get,List.", True),
    AdminOption("d", "decision", "Allow or Deny.", True),
    AdminOption("i", "sourceIp", "Addresses or networks from which it counts, with commas."),
)
USERS = (
    Column("username", "#UserName", 17),
    Column("password", "#Password", 23),
    Column("userType", "#UserType", 23),
    Column("userStatus", "#UserStatus", 22),
)
ACLS = (
    Column("subject", "#Subject", 17),
    Column("policyType", "#PolicyType", 11),
    Column("resource", "#Resource", 23),
    Column("actions", "#Actions", 21, show=_java_list),
    Column("sourceIps", "#SourceIp", 25, show=_java_list),
    Column("decision", "#Decision", 10),
)


def _words(text: str | None) -> list[str] | None:
    return None if text is None else [word.strip() for word in text.split(",") if word.strip()]


async def _copy(
    call: Invocation,
    what: str,
    names: list[str] | None,
    *,
    name_of: Callable[[T], str | None],
    read: Callable[[str, str], Awaitable[T | None]],
    read_all: Callable[[str], Awaitable[list[T]]],
    create: Callable[[str, T], Awaitable[None]],
    update: Callable[[str, T], Awaitable[None]],
) -> None:
    """Bring what a broker has of these names, or all without names, to another broker."""
    source, target = call["fromBroker"], call["toBroker"]
    if names is None:
        wanted = await read_all(source)
    else:
        found = [await read(source, name) for name in names]
        wanted = [each for each in found if each is not None]
    for each in wanted:
        name = name_of(each) or ""
        is_there = await read(target, name) is not None
        await (update if is_there else create)(target, each)
        call.out.done(f"copy {what} of {name} from {source} to {target} success.")


# users


@command(
    "createUser",
    "Create user to cluster.",
    BROKER,
    CLUSTER,
    USERNAME,
    AdminOption("p", "password", f"Its password{BY_INPUT}", required=True, read=password),
    AdminOption("t", "userType", "Super or Normal.", default="Normal"),
    one_of=ONE_OF,
)
async def create_user(call: Invocation) -> None:
    user = UserInfo(
        username=call["username"].strip(),
        password=call["password"].strip(),
        user_type=call["userType"].strip(),
    )
    for place in await members(call):
        await call.admin.create_user(place, user)
        call.out.done(f"create user to {place} success.")


@command(
    "updateUser",
    "Update user to cluster.",
    BROKER,
    CLUSTER,
    USERNAME,
    AdminOption("p", "password", f"Its new password{BY_INPUT}", read=password),
    AdminOption("t", "userType", "Super or Normal."),
    AdminOption("s", "userStatus", "enable or disable."),
    one_of=ONE_OF,
)
async def update_user(call: Invocation) -> None:
    fields = {name: call[name] for name in ("password", "userType", "userStatus") if call[name]}
    if not fields:
        raise WrongOption("updateUser: give -p, -t or -s, which is what changes")
    user = msgspec.convert({"username": call["username"].strip(), **fields}, UserInfo)
    for place in await members(call):
        await call.admin.update_user(place, user)
        call.out.done(f"update user to {place} success.")


@command("deleteUser", "Delete user from cluster.", BROKER, CLUSTER, USERNAME, one_of=ONE_OF)
async def delete_user(call: Invocation) -> None:
    for place in await members(call):
        await call.admin.delete_user(place, call["username"].strip())
        call.out.done(f"delete user to {place} success.")


@command("getUser", "Get user from cluster.", BROKER, CLUSTER, USERNAME, one_of=ONE_OF)
async def get_user(call: Invocation) -> None:
    for place in await masters(call):
        found = await call.admin.get_user(place, call["username"].strip())
        if found is not None:
            _show_users(call, [found])
            return


@command(
    "listUser",
    "List user from cluster.",
    BROKER,
    CLUSTER,
    AdminOption("f", "filter", "A text that the names have in them."),
    one_of=ONE_OF,
)
async def list_users(call: Invocation) -> None:
    for place in await masters(call):
        found = await call.admin.list_users(place, (call["filter"] or "").strip())
        if found:
            _show_users(call, found)
            if call["brokerAddr"] is None:
                call.out.text(f"get user from {place} success.")
            return


def _show_users(call: Invocation, users: Iterable[UserInfo]) -> None:
    """RocketMQ's tool shows passwords, we do not."""
    row = call.out.table(USERS)
    for user in users:
        row(user.username, HIDDEN, user.user_type, user.user_status)


@command(
    "copyUser",
    "Copy user to cluster.",
    FROM,
    TO,
    AdminOption("u", "usernames", "Which users, with commas between; all without it."),
)
async def copy_users(call: Invocation) -> None:
    await _copy(
        call,
        "user",
        _words(call["usernames"]),
        name_of=lambda user: user.username,
        read=call.admin.get_user,
        read_all=call.admin.list_users,
        create=call.admin.create_user,
        update=call.admin.update_user,
    )


# policies


@command("createAcl", "Create acl to cluster.", BROKER, CLUSTER, *ENTRY, one_of=ONE_OF)
async def create_acl(call: Invocation) -> None:
    for place in await members(call):
        await call.admin.create_acl(place, _acl_of(call))
        call.out.done(f"create acl to {place} success.")


@command("updateAcl", "Update acl to cluster.", BROKER, CLUSTER, *ENTRY, one_of=ONE_OF)
async def update_acl(call: Invocation) -> None:
    for place in await members(call):
        await call.admin.update_acl(place, _acl_of(call))
        call.out.done(f"update acl to {place} success.")


def _acl_of(call: Invocation) -> AclInfo:
    entries = [
        PolicyEntryInfo(
            resource=resource,
            actions=_words(call["actions"]),
            source_ips=_words(call["sourceIp"]),
            decision=call["decision"].strip(),
        )
        for resource in _words(call["resources"]) or ()
    ]
    return AclInfo(subject=call["subject"].strip(), policies=[PolicyInfo(entries=entries)])


@command(
    "deleteAcl",
    "Delete acl from cluster.",
    BROKER,
    CLUSTER,
    SUBJECT,
    AdminOption("r", "resources", "The resource whose entry is deleted; all policies without it."),
    one_of=ONE_OF,
)
async def delete_acl(call: Invocation) -> None:
    for place in await members(call):
        resource = call["resources"]
        await call.admin.delete_acl(place, call["subject"].strip(), resource and resource.strip())
        call.out.done(f"delete acl to {place} success.")


@command("getAcl", "Get acl from cluster.", BROKER, CLUSTER, SUBJECT, one_of=ONE_OF)
async def get_acl(call: Invocation) -> None:
    for place in await masters(call):
        found = await call.admin.get_acl(place, call["subject"].strip())
        if found is not None:
            _show_acls(call, [found])


@command(
    "listAcl",
    "List acl from cluster.",
    BROKER,
    CLUSTER,
    AdminOption("s", "subject", "A text that the subjects have in them."),
    AdminOption("r", "resource", "A text that the resources have in them."),
    one_of=ONE_OF,
)
async def list_acls(call: Invocation) -> None:
    for place in await masters(call):
        subject, resource = ((call[name] or "").strip() for name in ("subject", "resource"))
        found = await call.admin.list_acls(place, subject, resource)
        if found:
            _show_acls(call, found)


def _show_acls(call: Invocation, acls: Iterable[AclInfo]) -> None:
    row = call.out.table(ACLS)
    for acl in acls:
        for kind, entry in _entries(acl):
            row(acl.subject, kind, entry.resource, entry.actions, entry.source_ips, entry.decision)


def _entries(acl: AclInfo) -> Iterable[tuple[Any, PolicyEntryInfo]]:
    return ((policy.policy_type, entry) for policy in acl.policies for entry in policy.entries)


@command(
    "copyAcl",
    "Copy acl to cluster.",
    FROM,
    TO,
    AdminOption("s", "subjects", "Whose policies, with commas between; all without it."),
)
async def copy_acls(call: Invocation) -> None:
    await _copy(
        call,
        "acl",
        _words(call["subjects"]),
        name_of=lambda acl: acl.subject,
        read=call.admin.get_acl,
        read_all=call.admin.list_acls,
        create=call.admin.create_acl,
        update=call.admin.update_acl,
    )


COMMANDS = (
    create_user, update_user, delete_user, get_user, list_users, copy_users,
    create_acl, update_acl, delete_acl, get_acl, list_acls, copy_acls,
)  # fmt: skip
