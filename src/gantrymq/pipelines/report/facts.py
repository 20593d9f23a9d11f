"""What is known without reading messages: topics, groups, progress and subscriptions."""

import asyncio
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from gantrymq.base.clock import WallClock
from gantrymq.base.errors import GantryError
from gantrymq.client.admin.admin import Admin
from gantrymq.client.admin.groups.members import together
from gantrymq.client.core.errors import NoRoute
from gantrymq.model import (
    DEAD_PREFIX,
    READ,
    REPLY_SUFFIX,
    RETRY_PREFIX,
    Queue,
    is_system_topic,
)
from gantrymq.pipelines.lake import open_table
from gantrymq.pipelines.report.request import ReportRequest
from gantrymq.pipelines.staging.group_progress import Snapshot, row, stored_progress
from gantrymq.protocol.subscription import parse_tags
from gantrymq.store.files.folder import StoreFolder

SYSTEM_GROUPS: Final = (
    "CID_RMQ_SYS_",
    "CID_ONS",
    "TOOLS_CONSUMER",
    "FILTERSRV_CONSUMER",
    "SELF_TEST_C_GROUP",
)
"""How their names begin."""

Subscribed = tuple[str, str, list[str] | None, bool]
"""Group, topic, tags let through (None: all), and whether that is all there is to know."""


@dataclass(kw_only=True)
class ClusterFacts:
    """Facts about a cluster or store, taken before messages and trace are read.

    What is acknowledged by then has been traced by then.
    """

    at_ms: int
    topics: list[str] = field(default_factory=list)
    """What the report is about."""
    live: set[str] = field(default_factory=set)
    """Every topic that brokers or a store have, those of copies and of systems included."""
    archived: set[str] = field(default_factory=set)
    """Every topic that the archive has."""
    groups: list[str] = field(default_factory=list)
    progress: Snapshot = field(default_factory=list)
    subscriptions: list[Subscribed] = field(default_factory=list)
    online: set[tuple[str, str]] = field(default_factory=set)
    """Groups and client ids of consumers that are connected."""
    queues: list[Queue] = field(default_factory=list)
    rows: int | None = None
    """About how many messages the topics have; None where nobody counts."""
    kept_since_ms: int | None = None
    """Before that brokers may have deleted messages."""
    notes: list[str] = field(default_factory=list)
    """What could not be found out, for the reader of the report."""

    @property
    def known(self) -> set[str]:
        """Every known topic."""
        return self.live | self.archived

    def choose(self, wanted: ReportRequest) -> None:
        """Keep only the requested topics and groups; note those that do not exist."""
        names = self.live if wanted.archive is None else self.archived
        for topic in wanted.topics:
            if topic not in names:
                self.notes.append(f"there is no topic {topic}")
        if wanted.topics:
            self.topics = [topic for topic in dict.fromkeys(wanted.topics) if topic in names]
        if wanted.groups:
            known = {*self.groups, *(each["group"] for each in self.progress)}
            if self.groups or self.progress:
                for group in wanted.groups:
                    if group not in known:
                        self.notes.append(f"no broker knows group {group}")
            self.groups = list(dict.fromkeys(wanted.groups))
            self.progress = [each for each in self.progress if each["group"] in self.groups]
        if not self.topics:
            self.notes.append("there are no topics to report on")


def gather(wanted: ReportRequest, clock: WallClock) -> ClusterFacts:
    """All facts from the places that the request names."""
    facts = ClusterFacts(at_ms=clock.now_ms())
    if wanted.namesrv is not None:
        asyncio.run(_from_cluster(facts, wanted.namesrv))
    if wanted.store is not None:
        _from_store(facts, wanted.store)
    if wanted.archive is not None:
        _from_archive(facts, wanted.archive)
    facts.topics = sorted(facts.topics)
    facts.choose(wanted)
    return facts


def user_topics(names: Iterable[str], besides: Collection[str] = ()) -> list[str]:
    """Topics of applications: no system topics."""
    return [
        name
        for name in names
        if not is_system_topic(name)
        and not name.startswith((RETRY_PREFIX, DEAD_PREFIX))
        and not name.endswith(REPLY_SUFFIX)
        and name not in besides
    ]


# a cluster


async def _from_cluster(facts: ClusterFacts, namesrv: str) -> None:
    async with Admin(namesrv) as admin:
        cluster = await admin.cluster()
        own = {*cluster.cluster_addr_table, *cluster.broker_addr_table}
        facts.live = set(await admin.topics())
        facts.topics = user_topics(facts.live, own)
        facts.groups = [group for group in await admin.groups() if _is_users(group)]
        facts.at_ms = admin.instance.clock.now_ms()
        await together(_ask_group(facts, admin, group) for group in facts.groups)
        await together(_ask_route(facts, admin, name) for name in sorted(facts.live))
        await together(_ask_topic(facts, admin, topic) for topic in facts.topics)
        await together(
            _ask_broker(facts, admin, address) for address in (await admin.masters()).values()
        )


def _is_users(group: str) -> bool:
    """Whether an application made the group: not one that brokers have for tools or themselves."""
    return not group.startswith(SYSTEM_GROUPS)


async def _ask_group(facts: ClusterFacts, admin: Admin, group: str) -> None:
    try:
        found = await admin.consume_stats(group)
        online = await admin.consumers(group)
    except GantryError as error:
        facts.notes.append(f"group {group} could not be asked: {error}")
        return
    facts.online |= {(group, each.client_id) for each in online.connection_set}
    if online.message_model == "BROADCASTING":
        facts.notes.append(f"group {group} broadcasts: its members keep their own progress")
    else:
        facts.progress += [
            row(
                facts.at_ms,
                group,
                queue,
                each.broker_offset,
                each.consumer_offset,
                each.last_timestamp or None,
            )
            for queue, each in found.queues.items()
            if not is_system_topic(queue.topic)
        ]
    for topic, wanted in online.subscription_table.items():
        by_tag = wanted.expression_type in ("TAG", "", None)
        tags = list(parse_tags(wanted.sub_string)) if by_tag else []
        facts.subscriptions.append((group, topic, tags or None, by_tag))


async def _ask_route(facts: ClusterFacts, admin: Admin, topic: str) -> None:
    """Look up a topic's route; a topic that cannot be read is left out and noted."""
    try:
        route = await admin.topic_route(topic)
    except NoRoute:
        why = "has no route: its brokers are away"
    else:
        if any(data.perm & READ for data in route.queue_datas):
            return
        why = "may not be read"
        if topic.startswith(DEAD_PREFIX):
            why += f": `gantry dlq mend {topic.removeprefix(DEAD_PREFIX)}` gives it permission"
    facts.live.discard(topic)
    if topic in facts.topics:
        facts.topics.remove(topic)
    elif not topic.startswith((DEAD_PREFIX, RETRY_PREFIX)):
        return  # a system's: nothing of the report is in it
    facts.notes.append(f"topic {topic} {why}")


async def _ask_topic(facts: ClusterFacts, admin: Admin, topic: str) -> None:
    try:
        found = await admin.topic_stats(topic)
    except NoRoute:
        return  # deleted just now: reading will tell
    facts.queues += found
    rows = sum(each.max_offset - each.min_offset for each in found.values())
    facts.rows = (facts.rows or 0) + rows


async def _ask_broker(facts: ClusterFacts, admin: Admin, address: str) -> None:
    found = await admin.broker_runtime(address)
    text = found.get("earliestMessageTimeStamp", "")
    if text.isdecimal() and int(text) > 0:
        facts.kept_since_ms = max(facts.kept_since_ms or 0, int(text))


# files


def _from_store(facts: ClusterFacts, path: Path) -> None:
    folder = StoreFolder(str(path))
    try:
        names, broker = folder.topics(), folder.broker_name()
        facts.live = set(names)
        facts.topics = user_topics(names)
        facts.queues = [
            Queue(topic, broker or "", number)
            for topic in facts.topics
            for number in folder.queue_ids(topic)
        ]
    finally:
        folder.close()
    facts.progress = stored_progress(path, broker or "", facts.at_ms)
    facts.groups = sorted({each["group"] for each in facts.progress if _is_users(each["group"])})


def _from_archive(facts: ClusterFacts, path: Path) -> None:
    """Take the topics from an archive; a cluster that is named, too, has groups and newer rows."""
    files = open_table(path).files()
    facts.archived = {each.topic for each in files}
    facts.rows = (facts.rows or 0) + sum(each.rows for each in files)
    facts.topics = user_topics(sorted(facts.archived))
    facts.kept_since_ms = None
    if not facts.progress:
        facts.notes.append("progress of groups is not known here: name the cluster with --namesrv")
