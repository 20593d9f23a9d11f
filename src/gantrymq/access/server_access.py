"""Access control of one server: its rules, and the guard that asks for them."""

from dataclasses import dataclass

from gantrymq.access.accounts import AccessRules
from gantrymq.access.guard import AccessGuard
from gantrymq.access.rights import Need
from gantrymq.access.rule_files import RuleFiles, main_file
from gantrymq.base.clock import WallClock
from gantrymq.base.disk import Disk
from gantrymq.base.offload import Offload


@dataclass(frozen=True)
class ServerAccess:
    """The access files of a server, and the guard of its ports."""

    files: RuleFiles
    guard: AccessGuard


def open_access(
    rights: dict[int, Need],
    *,
    file: str,
    home: str,
    disk: Disk,
    offload: Offload,
    clock: WallClock,
) -> ServerAccess:
    """Read the rules; raises ConfigError if they are missing or damaged."""
    files = RuleFiles(disk, offload, clock, main_file(file, home))
    guard = AccessGuard(rights, files.rules)

    def take(rules: AccessRules) -> None:
        guard.rules = rules

    files.on_change.append(take)
    return ServerAccess(files, guard)
