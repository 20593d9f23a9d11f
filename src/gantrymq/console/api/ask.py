"""Who asks, about which cluster, and the parts of the console that can answer."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import Enum
from typing import Any

from gantrymq.base.clock import WallClock
from gantrymq.base.errors import GantryError
from gantrymq.client.admin.admin import Admin
from gantrymq.console.access.audit import AuditEntry, AuditTrail, shortened
from gantrymq.console.clusters import Clusters
from gantrymq.console.errors import Forbidden
from gantrymq.console.settings import ConsoleSettings


class Role(Enum):
    """What a user of the console may do."""

    READER = "reader"
    """Look at everything."""
    ADMIN = "admin"
    """Change everything, too."""


@dataclass(frozen=True)
class User:
    """Who asks."""

    name: str
    role: Role


LOCAL_USER = User("local", Role.ADMIN)
"""Whoever sits at the machine, when the console listens on a loopback address only."""


@dataclass(frozen=True)
class Parts:
    """The parts of a console that endpoints use."""

    settings: ConsoleSettings
    clusters: Clusters
    audit: AuditTrail
    clock: WallClock


@dataclass(frozen=True)
class Ask:
    """One request to the console, as endpoints see it."""

    user: User
    parts: Parts

    @property
    def may_change(self) -> bool:
        """Whether the user may change anything here."""
        return self.user.role is Role.ADMIN and not self.parts.settings.is_read_only

    @asynccontextmanager
    async def change(self, act: str, asked: dict[str, Any]) -> AsyncIterator[None]:
        """A change, with its entry in the audit trail; Forbidden if the user may not."""
        if not self.may_change:
            raise Forbidden(f"{self.user.name} may look, and not change anything")
        error: str | None = "interrupted"
        try:
            yield
            error = None
        except GantryError as refused:
            error = str(refused)
            raise
        finally:
            entry = AuditEntry(
                at_ms=self.parts.clock.now_ms(), user=self.user.name, act=act,
                asked=shortened(asked), error=error,
            )  # fmt: skip
            await asyncio.to_thread(self.parts.audit.note, entry)

    async def admin(self, cluster: str) -> Admin:
        """The admin client of a cluster."""
        return await self.parts.clusters.admin(cluster)
