"""The tables of a cluster that lists need: topics, groups and progress, a few seconds old.

Each is one request to each broker, however many topics and groups there are. A broker that does not
answer is left out and named.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

from gantrymq.base.errors import GantryError
from gantrymq.client.admin.admin import Admin
from gantrymq.client.admin.doctor.checks import examine
from gantrymq.client.admin.doctor.collect import take_snapshot
from gantrymq.client.admin.doctor.findings import DoctorFinding
from gantrymq.client.admin.groups.all_progress import AllProgress, progress_at
from gantrymq.client.admin.groups.group_settings import Settings
from gantrymq.client.admin.topics.topic_settings import TopicConfigs
from gantrymq.console.cached import Cached

PROGRESS_SECONDS: Final = 10.0
"""The progress of all groups is the largest table, and costs brokers the most."""
FINDINGS_SECONDS: Final = 20.0
"""A doctor asks each group once."""

T = TypeVar("T")


@dataclass(frozen=True)
class TopicTableOfCluster:
    """All topics."""

    topics: Mapping[str, TopicConfigs]
    """Sorted by name; the settings of each by broker."""
    silent: Mapping[str, str] = field(default_factory=dict)
    """Brokers that did not answer, and why."""


@dataclass(frozen=True)
class GroupTableOfCluster:
    """All groups with their settings."""

    groups: Settings
    silent: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ProgressOfCluster:
    """The progress of all groups, and their lag."""

    progress: AllProgress
    lags: Mapping[str, int]
    """Unread messages of each group with progress, retries included."""
    silent: Mapping[str, str] = field(default_factory=dict)


class ClusterTables:
    """The tables by admin client, so that what one user may not see is not shown from another's."""

    def __init__(self) -> None:
        self._topics = Cached(_topics)
        self._groups = Cached(_groups)
        self._progress = Cached(self._ask_progress, PROGRESS_SECONDS)
        self._findings = Cached(_findings, FINDINGS_SECONDS)

    async def topics(self, admin: Admin) -> TopicTableOfCluster:
        return await self._topics.get(admin)

    async def groups(self, admin: Admin) -> GroupTableOfCluster:
        return await self._groups.get(admin)

    async def progress(self, admin: Admin) -> ProgressOfCluster:
        return await self._progress.get(admin)

    async def findings(self, admin: Admin) -> list[DoctorFinding]:
        """What is wrong, the worst first."""
        return await self._findings.get(admin)

    def forget(self, admin: Admin) -> None:
        """Ask again next time: a topic or group was changed."""
        self._topics.forget(admin)
        self._groups.forget(admin)
        self._progress.forget(admin)
        self._findings.forget(admin)

    async def _ask_progress(self, admin: Admin) -> ProgressOfCluster:
        groups = list((await self.groups(admin)).groups)

        async def ask(address: str) -> AllProgress:
            return await progress_at(admin, address, groups)

        parts, silent = await _at_each(admin, ask)
        found: AllProgress = {}
        for part in parts.values():
            for group, rows in part.items():
                found.setdefault(group, {}).update(rows)
        return ProgressOfCluster(found, lags(found), silent)


async def _topics(admin: Admin) -> TopicTableOfCluster:
    parts, silent = await _at_each(admin, admin.topic_configs)
    found: dict[str, TopicConfigs] = {}
    for broker, configs in parts.items():
        for name, config in configs.items():
            found.setdefault(name, {})[broker] = config
    return TopicTableOfCluster(dict(sorted(found.items())), silent)


async def _groups(admin: Admin) -> GroupTableOfCluster:
    parts, silent = await _at_each(admin, admin.group_configs)
    found: Settings = {}
    for broker, configs in parts.items():
        for name, config in configs.items():
            found.setdefault(name, {})[broker] = config
    return GroupTableOfCluster(dict(sorted(found.items())), silent)


async def _findings(admin: Admin) -> list[DoctorFinding]:
    snapshot = await take_snapshot(admin)
    return await asyncio.to_thread(examine, snapshot)


async def _at_each(
    admin: Admin, ask: Callable[[str], Awaitable[T]]
) -> tuple[dict[str, T], dict[str, str]]:
    """What each master answers by broker name, and why others do not; raises if none does."""
    masters = sorted((await admin.masters()).items())
    asked = await asyncio.gather(*(ask(address) for _, address in masters), return_exceptions=True)
    found: dict[str, T] = {}
    silent: dict[str, str] = {}
    failure: GantryError | None = None
    for (broker, _), answer in zip(masters, asked, strict=True):
        if isinstance(answer, GantryError):
            silent[broker], failure = str(answer), answer
        elif isinstance(answer, BaseException):
            raise answer
        else:
            found[broker] = answer
    if failure is not None and not found:
        raise failure
    return found, silent


def lags(progress: AllProgress) -> dict[str, int]:
    """Unread messages of each group."""
    return {
        group: sum(max(0, row.broker_offset - row.consumer_offset) for row in rows.values())
        for group, rows in progress.items()
    }
