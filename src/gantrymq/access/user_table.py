"""The users and policies of one broker, and the file that keeps them.

RocketMQ keeps them in two databases (RocksDB); here they are one JSON file that only the broker's
user can read, and that is written whole. A file that cannot be read stops the start: its backup may
have users and rights that were taken away since, so it is not taken in its place.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

import msgspec

from gantrymq.access.acl_bodies import acl_info, changed_user, new_user, policies_of, user_info
from gantrymq.access.denials import PolicyDenied
from gantrymq.access.policies import AclPolicy, PolicyType, Resource, UserAcl, username_of
from gantrymq.access.user_rules import UserRules
from gantrymq.access.users import User
from gantrymq.base.disk import Disk
from gantrymq.base.errors import DECODE_ERRORS, ConfigError, GantryError
from gantrymq.base.files import read_file, save_text
from gantrymq.base.offload import Offload
from gantrymq.protocol import fastjson
from gantrymq.protocol.bodies import AclInfo, UserInfo

log = logging.getLogger(__name__)

FILE: Final = "access.json"
"""Below the folder `config` of a broker."""
Users = dict[str, User]
Acls = dict[str, UserAcl]


class SavedUsers(msgspec.Struct, kw_only=True):
    """The file."""

    users: list[UserInfo]
    acls: list[AclInfo]


class UsersNotSaved(GantryError):
    """The file could not be written, so nothing was changed."""


class UserTable:
    """Changes are on disk and in force when a call returns."""

    def __init__(self, disk: Disk, offload: Offload, path: str, rules: UserRules) -> None:
        """`rules` are those of the settings, without users. Raises ConfigError."""
        self._disk, self._offload, self.path = disk, offload, path
        self._turn = asyncio.Lock()
        self.on_change: list[Callable[[UserRules], None]] = []
        users, acls = _loaded(disk, path)
        self.rules = replace(rules, users=users, acls=acls)

    def begin(self, users: list[User]) -> None:
        """Make the users that the settings name, unless there are users of these names."""
        missing = {user.username: user for user in users if user.username not in self.rules.users}
        if missing:
            self.rules = replace(self.rules, users={**self.rules.users, **missing})
            save_text(self._disk, self.path, _text(self.rules), private=True)
            log.info("users made from the settings: %s", ", ".join(missing))

    async def create_user(self, user: User) -> None:
        """Add a user; raises PolicyDenied if there is one of that name."""

        def change(users: Users, acls: Acls) -> None:
            if user.username in users:
                raise PolicyDenied("The user is existed")
            users[user.username] = user

        await self._change(change)

    async def update_user(self, username: str, info: UserInfo, *, by_super: bool) -> None:
        """Change what is given of a user; raises PolicyDenied."""

        def change(users: Users, acls: Acls) -> None:
            old = users.get(username)
            if old is None:
                raise PolicyDenied("The user is not exist")
            _check_super(old, by_super)
            users[username] = changed_user(old, info)

        await self._change(change)

    async def delete_user(self, username: str, *, by_super: bool) -> None:
        """Delete a user and its policies; one that is unknown is no error."""

        def change(users: Users, acls: Acls) -> None:
            old = users.pop(username, None)
            if old is not None:
                _check_super(old, by_super)
                acls.pop(username, None)

        await self._change(change)

    async def add_policies(self, username: str, policies: Sequence[AclPolicy]) -> None:
        """Add entries to a user's policies; those of the same resource are replaced."""

        def change(users: Users, acls: Acls) -> None:
            acl = acls.get(username, UserAcl(username))
            if username not in users:
                raise PolicyDenied(f"The subject of {acl.subject} is not exist.")
            acls[username] = acl.with_policies(policies)

        await self._change(change)

    async def delete_policies(
        self, username: str, kind: PolicyType, resource: Resource | None
    ) -> None:
        """Delete the entry of a resource, or without a resource all policies of a user."""

        def change(users: Users, acls: Acls) -> None:
            if username not in users:
                raise PolicyDenied("The subject is not exist.")
            acl = acls.pop(username, None)
            if acl is None:
                raise PolicyDenied("The acl is not exist.")
            left = None if resource is None else acl.without(kind, resource)
            if left is not None and left.policies:
                acls[username] = left

        await self._change(change)

    async def _change(self, change: Callable[[Users, Acls], None]) -> None:
        async with self._turn:
            users, acls = dict(self.rules.users), dict(self.rules.acls)
            change(users, acls)
            rules = replace(self.rules, users=users, acls=acls)
            try:
                text = _text(rules)
                await self._offload.run(_save, self._disk, self.path, text)
            except OSError as error:
                reason = error.strerror or error
                raise UsersNotSaved(f"nothing was changed, {self.path}: {reason}") from error
            self.rules = rules
            for tell in self.on_change:
                tell(rules)


def _check_super(user: User, by_super: bool) -> None:
    if user.is_super and not by_super:
        raise PolicyDenied("The super user can only be update by super user")


def _save(disk: Disk, path: str, text: str) -> None:
    save_text(disk, path, text, private=True)


def _text(rules: UserRules) -> str:
    """Sorted by names, as RocketMQ's databases and answers are."""
    return fastjson.pretty(
        {
            "acls": [msgspec.to_builtins(acl_info(acl)) for _, acl in sorted(rules.acls.items())],
            "users": [msgspec.to_builtins(user_info(u)) for _, u in sorted(rules.users.items())],
        }
    )


def _loaded(disk: Disk, path: str) -> tuple[Users, Acls]:
    backup = f"{path}.bak"
    if not disk.exists(path):
        if disk.exists(backup):
            raise ConfigError(
                f"{path} is missing, and {backup} may have users and rights that were taken away: "
                "look at it, then give it the name of the file, or delete it"
            )
        return {}, {}
    try:
        saved = msgspec.json.decode(read_file(disk, path), type=SavedUsers)
        users = [new_user(info.username or "", info) for info in saved.users]
        acls = [
            UserAcl(username_of(info.subject) or "", tuple(policies_of(info.policies)))
            for info in saved.acls
        ]
    except (*DECODE_ERRORS, PolicyDenied) as error:
        # The text of the error may quote the file, which has passwords.
        older = f"; {backup} is the file before its last change" if disk.exists(backup) else ""
        raise ConfigError(
            f"{path} is damaged ({type(error).__name__}): who may do what is not known, so the "
            f"broker does not start{older}"
        ) from None
    return {user.username: user for user in users}, {acl.username: acl for acl in acls}
