"""Accounts of RocketMQ 4.9's access files and global white lists: put, copied and deleted.

Whoever changes an account without naming its secret key leaves the key that each broker has.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from gantrymq.access.addresses import parse_pattern
from gantrymq.base.errors import ConfigError, GantryError
from gantrymq.base.hidden import repr_without
from gantrymq.client.admin.admin import Admin
from gantrymq.client.core.errors import BrokerRefused
from gantrymq.console.api.ask import Ask
from gantrymq.console.api.endpoint import Answer, Done, EndpointTable, OfCluster
from gantrymq.console.api.rights.accounts import (
    SECRET,
    AccountRights,
    NamedAccount,
    check_known,
    rights_of,
)
from gantrymq.console.api.rights.changes import (
    change_each,
    check_confirmation,
    source_of,
    with_accounts,
)
from gantrymq.console.api.rights.members import (
    MemberRules,
    names_of,
    own_key,
    readable,
    rules_of_members,
)
from gantrymq.console.errors import BadInput, NotThere

TABLE = EndpointTable("rights")

Perm = Literal["DENY", "PUB", "SUB", "PUB|SUB"]
Perms = dict[Annotated[str, Meta(pattern=r"^[^\s,=]+$")], Perm]
"""By topic or group."""
NewKey = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._@-]{6,254}$")]
SecretKey = Annotated[str, Meta(min_length=7, max_length=1000)]
"""RocketMQ takes keys of more than six characters."""
AddressText = Annotated[str, Meta(max_length=1000)]


class NewAccount(OfCluster, frozen=True, kw_only=True):
    """An access key to add to the access files of all brokers."""

    access_key: NewKey
    secret_key: SecretKey
    admin: bool = False
    white_address: AddressText = ""
    """From there it needs no signature, and may do everything: `10.0.0.*`."""
    default_topic_perm: Perm = "DENY"
    default_group_perm: Perm = "DENY"
    topic_perms: Perms = msgspec.field(default_factory=dict)
    group_perms: Perms = msgspec.field(default_factory=dict)

    def __repr__(self) -> str:
        return repr_without(self, ("secret_key",))


class AccountChanges(NamedAccount, frozen=True, kw_only=True):
    """What to change of an access key; what is left out stays as each broker has it."""

    secret_key: SecretKey | None = None
    admin: bool | None = None
    white_address: AddressText | None = None
    """Empty: none."""
    default_topic_perm: Perm | None = None
    default_group_perm: Perm | None = None
    topic_perms: Perms | None = None
    """All rules of topics, instead of those that are there."""
    group_perms: Perms | None = None

    def __repr__(self) -> str:
        return repr_without(self, ("secret_key",))


class AccountCopy(NamedAccount, frozen=True, kw_only=True):
    """Make an account the same everywhere."""

    like: str
    """The broker whose account, with its secret key, the others get."""


class AccountDeletion(NamedAccount, frozen=True, kw_only=True):
    """An access key to delete."""

    confirm: str
    """The access key once more."""


class AccountLoss(Answer, frozen=True, kw_only=True):
    """What is lost with an access key."""

    text: str
    rules: dict[str, int]
    """Its rights, each with the number of brokers that have it."""


class NewWhiteAddresses(OfCluster, frozen=True, kw_only=True):
    """A global white list for all brokers with access files."""

    addresses: Annotated[tuple[AddressText, ...], Meta(max_length=1000)]
    """Patterns as `10.10.103.*`; who comes from there needs no key. None at all is nobody."""
    file: str = ""
    """Of brokers with several access files, which; the main one by default."""


FIELDS = ("admin", "white_address", "default_topic_perm", "default_group_perm", "topic_perms",
          "group_perms")  # fmt: skip


@TABLE.post("/clusters/{cluster}/rights/accounts")
async def create_account(ask: Ask, wanted: NewAccount) -> Done:
    """Add an access key to the access file of every broker, slaves too.

    After a failure at some brokers the same may be asked again. A broker that has the key already
    is not changed.
    """
    _check_secret(wanted.secret_key)
    _check_pattern(wanted.white_address)
    admin = await ask.admin(wanted.cluster)
    members = with_accounts(await rules_of_members(admin))
    missing = [each for each in members if wanted.access_key not in (each.accounts or ())]
    if not missing:
        raise BadInput(
            f"{', '.join(names_of(members))} has an access key {wanted.access_key} already: "
            "change it"
        )
    rights = _with_changes(rights_of({}), wanted)
    done = await change_each(
        f"account {wanted.access_key} is to be added",
        missing,
        lambda each: _put(admin, each.address, wanted.access_key, wanted.secret_key, rights),
    )
    return Done(text=f"account {wanted.access_key} is added on {done}")


def _check_secret(secret: str | None) -> None:
    """Brokers and key files take the spaces around a secret key away."""
    if secret is not None and secret != secret.strip():
        raise BadInput("a secret key begins and ends with no space")


def _check_pattern(text: str | None) -> None:
    try:
        parse_pattern(text)
    except ConfigError as error:
        raise BadInput(str(error)) from None


def _with_changes(rights: AccountRights, wanted: NewAccount | AccountChanges) -> AccountRights:
    given = {name: getattr(wanted, name) for name in FIELDS}
    changes = {name: value for name, value in given.items() if value is not None}
    return msgspec.structs.replace(rights, **changes)


async def _put(
    admin: Admin, place: str, access_key: str, secret_key: str, rights: AccountRights
) -> None:
    await admin.put_account(
        place,
        access_key,
        secret_key,
        admin=rights.admin,
        white_remote_address=rights.white_address or None,
        default_topic_perm=rights.default_topic_perm,
        default_group_perm=rights.default_group_perm,
        topic_perms=_rules(rights.topic_perms),
        group_perms=_rules(rights.group_perms),
    )


def _rules(perms: Mapping[str, str]) -> list[str] | None:
    """None where there is none: RocketMQ takes an empty list for a rule that it cannot read."""
    return [f"{name}={words}" for name, words in perms.items()] or None


async def _replace(
    admin: Admin, member: MemberRules, access_key: str, secret_key: str, rights: AccountRights
) -> None:
    """Put an account instead of the one that a broker has.

    What a request leaves out stays, and RocketMQ has none that empties a list or an address: the
    account is deleted then and added again, and its key is refused for that moment.
    """
    old = (member.accounts or {})[access_key]
    before = rights_of(old)
    is_emptied = any(
        getattr(before, name) and not getattr(rights, name)
        for name in ("white_address", "topic_perms", "group_perms")
    )
    if not is_emptied:
        await _put(admin, member.address, access_key, secret_key, rights)
        return
    await drop_account(admin, member.address, access_key)
    try:
        await _put(admin, member.address, access_key, secret_key, rights)
    except GantryError:
        with suppress(GantryError):
            await _put(admin, member.address, access_key, old[SECRET], before)
        raise


@TABLE.put("/clusters/{cluster}/rights/accounts/{accessKey}")
async def update_account(ask: Ask, wanted: AccountChanges) -> Done:
    """Change the rights or the secret key of an access key on every broker that has it."""
    _check_secret(wanted.secret_key)
    _check_pattern(wanted.white_address)
    if all(getattr(wanted, name) is None for name in (*FIELDS, "secret_key")):
        raise BadInput("say what to change: the secret key, or what the access key may do")
    admin = await ask.admin(wanted.cluster)
    members = await rules_of_members(admin)
    targets = _holders(wanted.access_key, members)
    if wanted.admin is False:
        _check_way_back(admin, wanted.access_key, members)

    async def change(member: MemberRules) -> None:
        known = _account(member, wanted.access_key)
        rights = _with_changes(rights_of(known), wanted)
        secret = wanted.secret_key or known[SECRET]
        await _replace(admin, member, wanted.access_key, secret, rights)

    done = await change_each(f"account {wanted.access_key} is to be changed", targets, change)
    text = f"account {wanted.access_key} is changed on {done}"
    missing = [each.name for each in members
               if each.accounts is not None and wanted.access_key not in each.accounts]  # fmt: skip
    if missing:
        text += f"; {', '.join(missing)} has no such access key"
    if wanted.secret_key is not None and wanted.access_key == own_key(admin):
        text += "; this console asks with its old secret key: give it the new one"
    return Done(text=text)


def _holders(name: str, members: Sequence[MemberRules]) -> list[MemberRules]:
    """The brokers that a change of an account is for; NotThere if none has it."""
    check_known(name, members)
    return [
        each for each in with_accounts(members) if each.accounts is None or name in each.accounts
    ]


def _account(member: MemberRules, access_key: str) -> Mapping[str, Any]:
    """The account as the broker has it; the reason if the broker does not tell."""
    if member.accounts is None:
        raise member.trouble or NotThere(f"{member.name} has no access file")
    return member.accounts[access_key]


def _check_way_back(admin: Admin, name: str, members: Sequence[MemberRules]) -> None:
    """BadInput if nobody could undo it: the key of the console, or the last admin."""
    if name == own_key(admin):
        raise BadInput(f"this console asks with the key {name}: give it another one first")
    for each in members:
        admins = [key for key, account in (each.accounts or {}).items() if rights_of(account).admin]
        if admins == [name]:
            raise BadInput(f"{each.name} would have no admin without {name}")


@TABLE.post("/clusters/{cluster}/rights/accounts/{accessKey}/copy")
async def copy_account(ask: Ask, wanted: AccountCopy) -> Done:
    """Give all brokers an access key as one of them has it, with its secret key."""
    admin = await ask.admin(wanted.cluster)
    members = with_accounts(await rules_of_members(admin))
    source = source_of(members, wanted.like)
    if not source.accounts or wanted.access_key not in source.accounts:
        raise NotThere(f"{source.name} has no access key {wanted.access_key!r}")
    account = source.accounts[wanted.access_key]
    rights, secret = rights_of(account), account[SECRET]
    if not rights.admin:
        _check_way_back(admin, wanted.access_key, members)

    async def copy(member: MemberRules) -> None:
        if wanted.access_key in (member.accounts or ()):
            await _replace(admin, member, wanted.access_key, secret, rights)
        else:
            await _put(admin, member.address, wanted.access_key, secret, rights)

    others = [each for each in members if each is not source]
    done = await change_each(
        f"account {wanted.access_key} is to be copied from {source.name}", others, copy
    )
    return Done(text=f"account {wanted.access_key} is on {done or 'no other'} as on {source.name}")


@TABLE.get("/clusters/{cluster}/rights/accounts/{accessKey}/deletion")
async def preview_account_deletion(ask: Ask, wanted: NamedAccount) -> AccountLoss:
    """What would be lost with an access key."""
    admin = await readable(ask, wanted.cluster)
    members = await rules_of_members(admin)
    targets = _holders(wanted.access_key, members)
    _check_way_back(admin, wanted.access_key, members)
    return _loss(wanted.access_key, targets)


def _loss(name: str, members: Sequence[MemberRules]) -> AccountLoss:
    rules: dict[str, int] = {}
    known = [each for each in members if each.accounts is not None]
    for each in known:
        rights = rights_of(_account(each, name))
        texts = [f"topic {topic}={words}" for topic, words in rights.topic_perms.items()]
        texts += [f"group {group}={words}" for group, words in rights.group_perms.items()]
        texts += ["admin"] if rights.admin else []
        for text in texts:
            rules[text] = rules.get(text, 0) + 1
    return AccountLoss(
        text=f"the access key on {', '.join(names_of(known))}, with its secret key and rights",
        rules=rules,
    )


@TABLE.delete("/clusters/{cluster}/rights/accounts/{accessKey}")
async def delete_account(ask: Ask, wanted: AccountDeletion) -> Done:
    """Delete an access key on every broker; it has to be given twice."""
    check_confirmation(wanted.access_key, wanted.confirm)
    admin = await ask.admin(wanted.cluster)
    members = await rules_of_members(admin)
    targets = _holders(wanted.access_key, members)
    _check_way_back(admin, wanted.access_key, members)
    done = await change_each(
        f"account {wanted.access_key} is to be deleted",
        targets,
        lambda each: drop_account(admin, each.address, wanted.access_key),
    )
    return Done(text=f"account {wanted.access_key} is deleted on {done}")


async def drop_account(admin: Admin, place: str, access_key: str) -> None:
    """Delete an access key on one broker, unless it is gone already.

    Brokers of one machine may share an access file, and read at once what another one wrote.
    """
    try:
        await admin.delete_account(place, access_key)
    except BrokerRefused:
        found = await admin.access_config(place)
        if any(each.get("accessKey") == access_key for each in found.plain_access_configs):
            raise


@TABLE.put("/clusters/{cluster}/rights/white-addresses")
async def put_white_addresses(ask: Ask, wanted: NewWhiteAddresses) -> Done:
    """Replace the global white list of every broker with access files."""
    addresses = [each.strip() for each in wanted.addresses if each.strip()]
    for each in addresses:
        _check_pattern(each)
        if "," in each:
            raise BadInput(f"{each!r}: write each address by itself, brokers split at commas")
    admin = await ask.admin(wanted.cluster)
    members = with_accounts(await rules_of_members(admin))
    if wanted.file:
        members = [each for each in members if wanted.file in each.files or each.trouble]
        if not members:
            raise NotThere(f"no broker has an access file {wanted.file!r}")
    done = await change_each(
        "the white list is to be changed",
        members,
        lambda each: admin.put_white_addresses(each.address, addresses, wanted.file),
    )
    text = ", ".join(addresses) or "nobody"
    return Done(text=f"no key is needed from {text} on {done}")
