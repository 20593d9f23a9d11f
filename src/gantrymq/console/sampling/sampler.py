"""Samples one cluster at a fixed pace: rates and disks of brokers, lag of groups.

The cost is bounded: one request to each broker each 10 s, and one more each half minute for the
progress of all groups, less often where that takes long. A time at which something could not be
asked has no value.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from gantrymq.base.clock import WallClock
from gantrymq.base.errors import GantryError
from gantrymq.client.admin.admin import Admin
from gantrymq.console.clusters import Clusters
from gantrymq.console.sampling.cluster_tables import ClusterTables
from gantrymq.console.sampling.rings import STEP, SampleRings, named
from gantrymq.console.sampling.trends import ProgressSums, largest, rates_between, sums_of

log = logging.getLogger(__name__)

LAG_SECONDS: Final = 30.0
SHARE_MAX: Final = 0.05
"""The part of the time that looks at all groups may take."""
GROUPS_MAX: Final = 100
TOPICS_MAX: Final = 50
VIEWED_MAX: Final = 50
"""Groups and topics that somebody looked at last have samples, too."""
BROKERS_MAX: Final = 40
ASKED_TOPICS_MAX: Final = 10
"""Topics that no group reads and somebody looked at, which are asked one by one."""
MASTER_ID: Final = 0


@dataclass
class _Held:
    """What the last look at all groups said: it holds until the next one."""

    until: float = 0.0
    values: dict[str, float] = field(default_factory=dict)


class ClusterSampler:
    """Writes the samples of one cluster into its rings."""

    def __init__(
        self,
        cluster: str,
        clusters: Clusters,
        tables: ClusterTables,
        rings: SampleRings,
        clock: WallClock,
    ) -> None:
        self._cluster, self._clusters, self._tables = cluster, clusters, tables
        self._rings, self._clock = rings, clock
        self.trouble = ""
        """Why the last sample has gaps."""
        self._viewed: dict[tuple[str, str], None] = {}
        self._sums: ProgressSums | None = None
        self._asked: dict[str, int] = {}
        self._asked_at = 0.0
        self._held = _Held()
        self._next_look = 0.0

    def view(self, kind: str, name: str) -> None:
        """Somebody looks at a `group` or `topic`: it is sampled from now on."""
        self._viewed.pop((kind, name), None)
        self._viewed[kind, name] = None
        while len(self._viewed) > VIEWED_MAX:
            del self._viewed[next(iter(self._viewed))]

    async def run(self) -> None:
        """Sample until cancelled."""
        while True:
            await self.sample()
            # In the middle of a step: a timer that is a little early takes no other step's place.
            now = self._clock.now_ms() / 1000
            await asyncio.sleep(STEP - (now - STEP / 2) % STEP)

    async def sample(self) -> None:
        """One sample of everything; what fails is a gap."""
        at_s = self._clock.now_ms() // 1000
        troubles: list[str] = []
        values: dict[str, float] = {}
        try:
            admin = await self._clusters.admin(self._cluster)
            values |= await self._brokers(admin, troubles)
            values |= await self._groups(admin, troubles)
        except GantryError as error:
            troubles.append(str(error))
        for name, value in values.items():
            self._rings.write(name, at_s, value)
        trouble = "; ".join(troubles)
        if trouble and trouble != self.trouble:
            log.info("no whole sample of %s: %s", self._cluster, trouble)
        self.trouble = trouble

    # brokers

    async def _brokers(self, admin: Admin, troubles: list[str]) -> dict[str, float]:
        """The rates of each broker and of all: of all only if every one answered."""
        asked: list[tuple[str, int, asyncio.Task[dict[str, str]]]] = []
        known = list((await admin.members()).items())[:BROKERS_MAX]
        async with asyncio.TaskGroup() as tasks:
            for broker, members in known:
                for number, address in members.items():
                    work = tasks.create_task(_figures(admin, address))
                    asked.append((broker, number, work))
        found: dict[str, float] = {}
        silent: set[str] = set()
        for broker, number, work in asked:
            figures = work.result()
            if not figures:
                silent.add(broker)
                troubles.append(f"{broker} ({number}) does not answer")
                continue
            if number == MASTER_ID:
                _add(found, named("in", broker), figures.get("putTps"))
            rate = figures.get("getTransferredTps") or figures.get("getTransferedTps")
            _add(found, named("out", broker), rate)
            _add(found, named("disk", f"{broker}:{number}"), figures.get("commitLogDiskRatio"))
        for broker in silent:  # a slave that answers alone does not tell what the others served
            found.pop(named("out", broker), None)
        if not silent and asked:
            for kind in ("in", "out"):
                found[kind] = sum(
                    value for name, value in found.items() if name.startswith(f"{kind}:")
                )
        return found

    # groups

    async def _groups(self, admin: Admin, troubles: list[str]) -> dict[str, float]:
        now = asyncio.get_running_loop().time()
        if now >= self._next_look:
            self._next_look = now + LAG_SECONDS
            await self._look(admin, troubles)
        return self._held.values if now < self._held.until else {}

    async def _look(self, admin: Admin, troubles: list[str]) -> None:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        self._held = _Held()
        table = await self._tables.progress(admin)
        sums = sums_of(table.progress, begun)
        before, self._sums = self._sums, sums
        values: dict[str, float] = {}
        if table.silent:
            troubles += [f"{broker}: {why}" for broker, why in table.silent.items()]
            self._sums = None
        else:
            values |= self._values(table.lags, before, sums)
            values |= await self._asked_topics(admin, begun)
        took = loop.time() - begun
        pause = max(LAG_SECONDS, took / SHARE_MAX)
        self._next_look = begun + pause - STEP / 2
        self._held = _Held(begun + pause + STEP, values)

    def _values(
        self, lags: Mapping[str, int], before: ProgressSums | None, after: ProgressSums
    ) -> dict[str, float]:
        found: dict[str, float] = {"lag": float(sum(lags.values()))}
        groups = [*largest(lags, GROUPS_MAX), *self._names("group")]
        found |= {named("lag", name): float(lags[name]) for name in groups if name in lags}
        if before is None:
            return found
        seconds = after.at_seconds - before.at_seconds
        read = rates_between(before.read, after.read, seconds)
        found |= {named("read", name): read[name] for name in groups if name in read}
        sent = rates_between(before.sent, after.sent, seconds)
        topics = [*largest(sent, TOPICS_MAX), *self._names("topic")]
        found |= {named("sent", name): sent[name] for name in topics if name in sent}
        return found

    def _names(self, kind: str) -> list[str]:
        return [name for each, name in self._viewed if each == kind]

    async def _asked_topics(self, admin: Admin, begun: float) -> dict[str, float]:
        """The rates of topics that somebody looked at and no group reads."""
        known = self._sums.sent if self._sums else {}
        wanted = [name for name in self._names("topic") if name not in known]
        ends: dict[str, int] = {}
        for name in wanted[-ASKED_TOPICS_MAX:]:
            try:
                rows = await admin.topic_stats(name)
            except GantryError:
                continue  # deleted meanwhile
            ends[name] = sum(row.max_offset for row in rows.values())
        before, self._asked = self._asked, ends
        seconds = begun - self._asked_at
        self._asked_at = begun
        rates = rates_between(before, ends, seconds)
        return {named("sent", name): rate for name, rate in rates.items()}


async def _figures(admin: Admin, address: str) -> dict[str, str]:
    """What a broker says of itself; nothing if it does not answer."""
    try:
        return await admin.broker_runtime(address)
    except GantryError:
        return {}


def _add(found: dict[str, float], name: str, text: str | None) -> None:
    """Add a figure; RocketMQ gives rates of 10 s, 1 min and 10 min in one text."""
    words = (text or "").split()
    try:
        found[name] = found.get(name, 0.0) + float(words[0])
    except (IndexError, ValueError):
        return
