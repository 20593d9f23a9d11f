"""Who asks, about which cluster, and the parts of the console that can answer."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from gantrymq.base.clock import WallClock
from gantrymq.base.errors import GantryError
from gantrymq.client.admin.admin import Admin
from gantrymq.console.access.audit import AuditEntry, AuditTrail, shortened
from gantrymq.console.access.user import ConsoleUser, Role
from gantrymq.console.clusters import Clusters
from gantrymq.console.errors import Forbidden
from gantrymq.console.jobs import ConsoleJob, Jobs, Work
from gantrymq.console.sampling.cluster_tables import ClusterTables
from gantrymq.console.sampling.watch import ClusterWatch
from gantrymq.console.settings import ConsoleSettings


@dataclass(frozen=True)
class Parts:
    """The parts of a console that endpoints use."""

    settings: ConsoleSettings
    clusters: Clusters
    audit: AuditTrail
    clock: WallClock
    jobs: Jobs
    tables: ClusterTables
    watch: ClusterWatch
    """Samples and alarms, which go on in the background."""


@dataclass(frozen=True)
class Ask:
    """One request to the console, as endpoints see it."""

    user: ConsoleUser
    parts: Parts
    clusters: Clusters
    """The clients with which this user asks: the console's, or those with the user's own key."""
    is_live: Callable[[], bool] = lambda: True
    """Whether the login goes on: an answer without an end asks now and then."""

    @property
    def may_change(self) -> bool:
        """Whether the user may change anything here; the cluster may still refuse it."""
        return self.user.role is not Role.READER and not self.parts.settings.is_read_only

    @property
    def is_admin(self) -> bool:
        """Whether the user may look at the audit trail and change the console's own rules."""
        return self.user.role is Role.ADMIN

    def check_admin(self) -> None:
        """Forbidden unless the user is an admin of the console."""
        if not self.is_admin:
            raise Forbidden(f"{self.user.name} is no admin of this console")

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
            await self.parts.audit.keep(entry)

    def begin_job(self, cluster: str, subject: str, title: str, work: Work) -> ConsoleJob:
        """Begin a job of this user, who may log out meanwhile."""

        async def held(job: ConsoleJob) -> str:
            async with self.clusters.held():
                return await work(job)

        return self.parts.jobs.start(cluster, subject, title, self.user.name, held)

    async def admin(self, cluster: str) -> Admin:
        """The admin client of a cluster."""
        return await self.clusters.admin(cluster)
