"""The lag of groups: by queue, since when, and which member holds the queue.

The broker stores the group's progress; the members report which queues they hold and when they last
pulled and finished. Both together show a queue that is stuck, and the member to look at.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from gantrymq.client.admin.admin import Admin
from gantrymq.client.admin.groups.all_progress import all_progress
from gantrymq.client.admin.groups.group_settings import Settings, settings
from gantrymq.client.admin.groups.members import HeldQueue, Member, Members, members_of, together
from gantrymq.client.admin.messages.message_query import read_records
from gantrymq.client.consume.membership.offset_store import RemoteOffsets
from gantrymq.client.consume.queues.pull_request import pull_raw
from gantrymq.client.core.errors import BrokerRefused, ClientError, NoRoute
from gantrymq.model import RETRY_PREFIX, Queue, dead_topic, is_system_topic, retry_topic
from gantrymq.protocol.bodies import OffsetWrapper, TopicOffset
from gantrymq.protocol.pop import pop_retry_topic

READER: Final = "TOOLS_CONSUMER"
"""The group that RocketMQ keeps for tools: looking is not consuming."""
STUCK_MS: Final = 60_000
"""Nothing finished for so long, with messages in hand: something is wrong."""
SPAN_MAX: Final = 2_000
"""Consumers stop pulling a queue when its unfinished messages are so far apart
(`consumeConcurrentlyMaxSpan`): one of them holds all others up."""


@dataclass(frozen=True)
class QueueLag:
    """The lag of one queue of one group."""

    queue: Queue
    end: int
    """The offset that the next message gets."""
    read: int
    """The offset that the group reads next, as far as it has said."""
    first: int = 0
    """The first message that is still there."""
    holders: tuple[str, ...] = ()
    """The clients that hold it; one, unless the group broadcasts or a rebalance is under way."""
    in_hand: int = 0
    """Messages that the holder has fetched and not finished."""
    oldest_ms: int | None = None
    """When the oldest unread message was stored."""
    trouble: str = ""
    """Why it does not go on, if something is wrong."""

    @property
    def lag(self) -> int:
        """Messages that are stored and not yet read."""
        return max(0, self.end - max(self.read, self.first))

    @property
    def deleted(self) -> int:
        """Messages that were deleted before the group read them."""
        return max(0, self.first - self.read)


@dataclass(frozen=True)
class TopicLag:
    """The lag of one topic of one group."""

    topic: str
    queues: tuple[QueueLag, ...]

    @property
    def lag(self) -> int:
        return sum(row.lag for row in self.queues)

    @property
    def is_retry(self) -> bool:
        return self.topic.startswith(RETRY_PREFIX)

    @property
    def oldest_ms(self) -> int | None:
        return min(
            (row.oldest_ms for row in self.queues if row.oldest_ms is not None), default=None
        )

    @property
    def queue_count(self) -> int:
        """Distinct queues: a broadcasting group has one row for each queue and member."""
        return len({row.queue for row in self.queues})


@dataclass(frozen=True)
class GroupLag:
    """The backlog of one group: topics, members, dead letters."""

    group: str
    topics: tuple[TopicLag, ...]
    members: Members = field(default_factory=Members)
    dead: tuple[QueueLag, ...] = ()
    """Its dead letters, which are no part of the lag."""
    may_consume: bool = True
    came_per_second: float = 0.0
    """Messages that were sent to its topics in the last minute."""
    read_per_second: float = 0.0
    """Messages that it got in the last minute."""

    @property
    def drain_seconds(self) -> float | None:
        """How long the backlog lasts at these rates; None if it does not shrink."""
        return drain_seconds(self.lag, self.came_per_second, self.read_per_second)

    @property
    def lag(self) -> int:
        """Unread messages, retries included."""
        return sum(topic.lag for topic in self.topics)

    @property
    def retry(self) -> int:
        return sum(topic.lag for topic in self.topics if topic.is_retry)

    @property
    def dead_count(self) -> int:
        return sum(row.lag for row in self.dead)

    @property
    def oldest_ms(self) -> int | None:
        times = [topic.oldest_ms for topic in self.topics if topic.oldest_ms is not None]
        return min(times, default=None)

    @property
    def slowest(self) -> QueueLag | None:
        """The queue with the most unread messages."""
        rows = [row for topic in self.topics for row in topic.queues]
        return max(rows, key=lambda row: row.lag, default=None)


def drain_seconds(lag: int, came: float, went: float) -> float | None:
    """How long a backlog lasts at these rates a second; None if it does not shrink."""
    if not lag:
        return 0.0
    return lag / (went - came) if went > came else None


class Backlog:
    """Measures the lag of groups of one cluster; changes no progress."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    async def of(self, group: str, *, topic: str | None = None) -> GroupLag:
        """One group, with or without a backlog."""
        known = await settings(self._admin)
        if group not in known:
            raise ClientError(f"no broker knows group {group!r}")
        names = frozenset(await self._admin.topics())
        return await self.look(group, topic, known, names)

    async def all(self, *, topic: str | None = None) -> list[GroupLag]:
        """The groups that have a backlog, the biggest first."""
        known = await settings(self._admin)
        names = frozenset(await self._admin.topics())
        masters = await self._admin.masters()
        progress = await all_progress(self._admin, known, masters)
        groups = [group for group, rows in progress.items() if is_behind(rows, topic)]
        found = await together(self.look(group, topic, known, names, masters) for group in groups)
        return sorted((one for one in found if one.lag), key=lambda one: (-one.lag, one.group))

    async def glance(
        self, group: str, names: frozenset[str], masters: Mapping[str, str]
    ) -> GroupLag:
        """The members and dead letters of a group that is not behind; its queues are left out."""
        members = await members_of(self._admin.instance, masters.values(), group)
        return GroupLag(group, (), members, await self._dead(group, names))

    async def look(
        self,
        group: str,
        topic: str | None,
        known: Settings,
        names: frozenset[str],
        masters: Mapping[str, str] | None = None,
    ) -> GroupLag:
        """One of the groups in `known`; `names` are all topics."""
        admin = self._admin
        if masters is None:
            masters = await admin.masters()
        members = await members_of(admin.instance, masters.values(), group)
        stats = await admin.consume_stats(group)
        progress = await self._progress(group, stats.queues, members, names)
        topics = []
        for name in sorted({queue.topic for queue in progress}):
            if is_system_topic(name) or topic not in (None, name):
                continue
            rows = {queue: row for queue, row in progress.items() if queue.topic == name}
            topics.append(await self._topic(name, rows, members))
        return GroupLag(
            group,
            topics=tuple(one for one in topics if one.queues),
            members=members,
            dead=await self._dead(group, names),
            may_consume=all(config.consume_enable for config in known[group].values()),
            came_per_second=await self._put_rate(topics),
            read_per_second=stats.tps,
        )

    async def _put_rate(self, topics: Iterable[TopicLag]) -> float:
        """What came in the last minute; 0 of a broker that keeps no statistics."""
        rate = 0.0
        for topic in topics:
            if topic.lag and not topic.is_retry:
                try:
                    rate += await self._admin.topic_put_rate(topic.topic)
                except (NoRoute, BrokerRefused):
                    continue
        return rate

    async def _progress(
        self,
        group: str,
        found: dict[Queue, OffsetWrapper],
        members: Members,
        names: frozenset[str],
    ) -> dict[Queue, OffsetWrapper]:
        """The group's progress by queue; adds subscribed topics and retry topics without any."""
        admin = self._admin
        for name in members.topics:
            if name in names and not any(queue.topic == name for queue in found):
                found |= (await admin.consume_stats(group, name)).queues
        seen = {queue.topic for queue in found}
        again = [retry_topic(group)]
        again += [pop_retry_topic(group, name, v2) for name in seen for v2 in (False, True)]
        offsets = RemoteOffsets(admin.instance, group, skip_young_queues=True)
        for name in (name for name in again if name in names and name not in seen):
            for queue, row in (await self._offsets_of(name)).items():
                found[queue] = OffsetWrapper(
                    broker_offset=row.max_offset, consumer_offset=await offsets.read(queue) or 0
                )
        return found

    async def _offsets_of(self, topic: str) -> dict[Queue, TopicOffset]:
        try:
            return await self._admin.topic_stats(topic)
        except NoRoute:
            return {}  # the topic was just deleted, or its brokers are down

    async def _topic(
        self, name: str, progress: Mapping[Queue, OffsetWrapper], members: Members
    ) -> TopicLag:
        now_ms = self._admin.instance.clock.now_ms()
        stored = await self._offsets_of(name)
        plain = []
        for queue, row in sorted(progress.items()):
            first = stored[queue].min_offset if queue in stored else 0
            plain.append(QueueLag(queue, row.broker_offset, row.consumer_offset, first))
        rows = list(_by_member(plain, members)) if members.broadcast else plain
        oldest = await together(self._oldest(row) for row in rows)
        return TopicLag(
            name,
            tuple(
                with_holders(replace(row, oldest_ms=at), members, now_ms)
                for row, at in zip(rows, oldest, strict=True)
            ),
        )

    async def _oldest(self, row: QueueLag) -> int | None:
        """Store time in ms of the first unread message; None without one."""
        if not row.lag:
            return None
        at = max(row.read, row.first)
        pulled = await pull_raw(self._admin.instance, READER, row.queue, at, max_count=1)
        found = read_records(pulled.body, row.queue.broker_name)
        return found[0].store_ms if found else None

    async def _dead(self, group: str, names: frozenset[str]) -> tuple[QueueLag, ...]:
        name = dead_topic(group)
        if name not in names:
            return ()
        rows = (await self._offsets_of(name)).items()
        return tuple(
            QueueLag(queue, row.max_offset, row.min_offset, row.min_offset) for queue, row in rows
        )


def is_behind(rows: Mapping[Queue, OffsetWrapper], topic: str | None = None) -> bool:
    """Whether a group has a backlog: only at such a group the full look is taken."""
    return any(
        row.broker_offset > row.consumer_offset and topic in (None, queue.topic)
        for queue, row in rows.items()
        if not is_system_topic(queue.topic)
    )


def _by_member(rows: Iterable[QueueLag], members: Members) -> Iterable[QueueLag]:
    """One row for each member of a broadcasting group, with the progress that it reports."""
    for member in members.members:
        for row in rows:
            held = member.queues.get(row.queue)
            if held is not None:
                yield replace(row, read=held.commit_offset, holders=(member.client_id,))


def with_holders(row: QueueLag, members: Members, now_ms: int) -> QueueLag:
    """The row with what the members that hold the queue report."""
    holders = members.holders(row.queue)
    if row.holders:
        holders = [member for member in holders if member.client_id in row.holders]
    in_hand = sum(member.queues[row.queue].cached_msg_count for member in holders)
    trouble = ""
    if row.lag:
        trouble = _trouble(row, holders, now_ms) if holders else _orphaned(members)
    names = tuple(member.client_id for member in holders)
    return replace(row, holders=names, in_hand=in_hand, trouble=trouble)


def _orphaned(members: Members) -> str:
    if not members.members:
        return "no member runs"
    if members.pops:
        return ""
    silent = [member.client_id for member in members.members if not member.answers]
    if silent:
        return f"not known who holds it: {', '.join(silent)} does not answer"
    return "no member says that it holds it"


def _trouble(row: QueueLag, holders: list[Member], now_ms: int) -> str:
    for member in holders:
        held = member.queues[row.queue]
        if why := _stuck(held, row.oldest_ms or 0, member.started_ms, now_ms):
            return why
    return ""


def _stuck(held: HeldQueue, oldest_ms: int, started_ms: int, now_ms: int) -> str:
    """Why a queue is stuck, or "". Times before the member started, or before the oldest
    unread message was stored, do not count as idle."""
    idle_ms = now_ms - max(held.last_consume_timestamp, started_ms, oldest_ms)
    unpulled_ms = now_ms - max(held.last_pull_timestamp, started_ms, oldest_ms)
    if held.cached_msg_count and idle_ms >= STUCK_MS:
        return f"stuck: nothing finished for {idle_ms // 1000} s"
    if held.cached_msg_max_offset - held.cached_msg_min_offset >= SPAN_MAX:
        return f"stuck: offset {held.cached_msg_min_offset} holds up all behind it"
    if not held.cached_msg_count and unpulled_ms >= STUCK_MS:
        return f"not pulled for {unpulled_ms // 1000} s"
    return ""
