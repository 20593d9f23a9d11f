"""Who asks, and what they may do. Pure."""

from dataclasses import dataclass
from enum import Enum
from typing import Final


class Role(Enum):
    """What a user of the console may do."""

    READER = "reader"
    """Look at everything."""
    ADMIN = "admin"
    """Change everything, too."""
    CLUSTER_USER = "cluster user"
    """What the access control of each cluster allows its key; nothing of the console itself."""


FILE_ROLES: Final = (Role.READER, Role.ADMIN)
"""Roles that the file of users may give."""


@dataclass(frozen=True)
class ConsoleUser:
    """Who asks."""

    name: str
    role: Role


LOCAL_USER: Final = ConsoleUser("local", Role.ADMIN)
"""Whoever sits at the machine, when the console listens on a loopback address only."""

NOBODY: Final = ConsoleUser("nobody", Role.READER)
"""Who is not logged in, on pages that need no login."""
