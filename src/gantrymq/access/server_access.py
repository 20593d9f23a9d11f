"""Access control of one server: its rules, and the guard that asks for them."""

from dataclasses import dataclass
from typing import Any

from gantrymq.access.account_rules import AccessRules
from gantrymq.access.guard import AccessGuard
from gantrymq.access.policy_needs import BROKER_NEEDS, NOTHING
from gantrymq.access.rights import SIGNED, Need
from gantrymq.access.rule_files import RuleFiles, main_file
from gantrymq.access.user_rules import UserRules
from gantrymq.access.user_table import UserTable
from gantrymq.base.clock import WallClock
from gantrymq.base.disk import Disk
from gantrymq.base.errors import ConfigError
from gantrymq.base.offload import Offload


@dataclass(frozen=True)
class ServerAccess:
    """The guard of a server's ports, and where its rules are."""

    guard: AccessGuard[Any, Any]
    files: RuleFiles | None = None
    """Access files, if they are in force."""
    users: UserTable | None = None
    """Users and policies of a broker: in force, or with access files made ready for it."""

    @property
    def is_by_users(self) -> bool:
        """Whether users and policies are in force."""
        return self.files is None


def open_access(
    rights: dict[int, Need],
    *,
    file: str,
    home: str,
    disk: Disk,
    offload: Offload,
    clock: WallClock,
) -> ServerAccess:
    """Read access files; raises ConfigError if they are missing or damaged."""
    files = RuleFiles(disk, offload, clock, main_file(file, home))
    guard = AccessGuard(rights, files.rules, SIGNED)

    def take(rules: AccessRules) -> None:
        guard.rules = rules

    files.on_change.append(take)
    return ServerAccess(guard, files)


def guard_by_users(users: UserTable) -> ServerAccess:
    """Access control by users and policies; raises ConfigError if there is no user."""
    if not users.rules.users:
        raise ConfigError(
            "authenticationEnabled=true, and there is no user yet: name the first one with "
            'initAuthenticationUser={"username":"...","password":"..."}'
        )
    guard = AccessGuard(BROKER_NEEDS, users.rules, NOTHING)

    def take(rules: UserRules) -> None:
        guard.rules = rules

    users.on_change.append(take)
    return ServerAccess(guard, None, users)
