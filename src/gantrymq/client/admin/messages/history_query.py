"""Collects what is known of one message: its copies, its traces, the progress of its groups.

Each source in turn adds what it finds to the query; a later source uses what earlier ones found.
To search another place where messages are kept, add a source to the list.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from itertools import pairwise
from typing import Final, Protocol, TypeVar

from gantrymq.base.errors import GantryError, ProtocolError
from gantrymq.base.plurals import counted
from gantrymq.client.admin.admin import Admin
from gantrymq.client.admin.messages.message_history import (
    GroupFacts,
    MessageFacts,
    MessageHistory,
    build_history,
    real_topic,
)
from gantrymq.client.admin.messages.message_query import (
    FOREVER_MS,
    by_offset_id,
    query_broker,
    read_records,
)
from gantrymq.client.admin.messages.trace_query import trace_of
from gantrymq.client.consume.queues.pull_request import PullStatus, pull_raw
from gantrymq.client.core.errors import ClientError, NoRoute
from gantrymq.client.messages.received import Received
from gantrymq.model import (
    CHECK_MAX_TOPIC,
    DEAD_PREFIX,
    HALF_TOPIC,
    OP_HALF_TOPIC,
    RETRY_PREFIX,
    SCHEDULE_TOPIC,
    TIMER_TOPIC,
    TRACE_TOPIC,
    GroupConfig,
    Queue,
    dead_topic,
    is_system_topic,
    retry_topic,
)
from gantrymq.protocol import properties as p
from gantrymq.protocol.ids import parse_offset_msg_id
from gantrymq.protocol.pop import pop_retry_topic
from gantrymq.protocol.subscription import parse_tags
from gantrymq.protocol.trace import EndTransaction, Pub

TOPICS_MAX: Final = 5_000
"""Topics that are searched for an id when nobody says which one it is."""
GROUPS_MAX: Final = 200
OPS_MAX: Final = 4_096
"""Decisions on transactions that are read, from the half message's time on."""
LATE_MS: Final = 5_000
"""A decision on a copy that was written anew counts if it comes this much later."""
AT_ONCE: Final = 8
SAY_EVERY: Final = 100
READER: Final = "TOOLS_CONSUMER"
"""The group under which decisions are read; every broker has it."""
_MS: Final = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}

T = TypeVar("T")


class NothingKnown(ClientError):
    """No source knows the message."""


class HistoryQuery:
    """A query for one message: its id and topic, and what was found so far."""

    def __init__(
        self, admin: Admin, msg_id: str, topic: str | None, say: Callable[[str], None]
    ) -> None:
        self.admin, self.instance, self.say = admin, admin.instance, say
        self.msg_id = msg_id
        """The id that copies are found by: the producer's, once it is known."""
        self.topic = topic
        self.brokers: dict[str, str] = {}
        """Masters by name."""
        self.facts = MessageFacts(
            msg_id=msg_id, topic=topic or "", now_ms=self.instance.clock.now_ms()
        )
        self._copies: dict[str, Received] = {}

    def add(self, copies: Sequence[Received]) -> None:
        """Add copies of the message; a copy sets the topic if unknown, and the producer's id."""
        for copy in copies:
            self._copies.setdefault(copy.offset_msg_id, copy)
            self.topic = self.topic or real_topic(copy)
            self.msg_id = copy.properties.get(p.UNIQ_KEY) or self.msg_id

    @property
    def copies(self) -> list[Received]:
        return list(self._copies.values())

    def unknown(self, what: str) -> None:
        """Note what could not be found out."""
        self.facts.unknown.append(what)

    async def all(self, works: Sequence[Callable[[], Awaitable[Sequence[T]]]]) -> list[T]:
        """Run AT_ONCE requests at a time; returns all results and notes those that fail."""
        gate, found = asyncio.Semaphore(AT_ONCE), list[T]()
        done = 0

        async def run(work: Callable[[], Awaitable[Sequence[T]]]) -> None:
            nonlocal done
            async with gate:
                try:
                    found.extend(await work())
                except GantryError as error:
                    self.unknown(str(error))
                done += 1
                if done % SAY_EVERY == 0:
                    self.say(f"{done} of {len(works)} questions asked")

        await asyncio.gather(*(run(work) for work in works))
        return found

    async def search(self, topics: Sequence[str]) -> None:
        """Look up the id in the indexes of all brokers, for these topics."""

        def ask(broker: str, address: str, topic: str) -> Callable[[], Awaitable[list[Received]]]:
            return lambda: query_broker(
                self.instance, address, broker, topic, self.msg_id, unique=True
            )

        pairs = (
            (broker, address, topic) for broker, address in self.brokers.items() for topic in topics
        )
        self.add(await self.all([ask(*pair) for pair in pairs]))


class HistorySource(Protocol):
    """A place to look for a message."""

    async def look(self, query: HistoryQuery) -> None:
        """Add copies and events to the query, and note what could not be found out."""


class IdSource:
    """The id itself: an offset message id names the broker and the log offset."""

    async def look(self, query: HistoryQuery) -> None:
        members = await query.admin.members()
        query.brokers = {name: ids[min(ids)] for name, ids in members.items() if ids}
        try:
            place = parse_offset_msg_id(query.msg_id)
        except ProtocolError:
            return
        host = f"[{place.host}]" if ":" in place.host else place.host
        names = {address: name for name, ids in members.items() for address in ids.values()}
        name = names.get(f"{host}:{place.port}")
        if name is None:
            return  # a producer's id looks the same; do not connect to an unknown host
        try:
            copy = await by_offset_id(query.instance, query.msg_id)
            copy.queue = Queue(copy.queue.topic, name, copy.queue.queue_id)
            query.add([copy])
        except GantryError as error:
            query.unknown(f"the id names a place of this cluster, but {error}")


class Traces:
    """The trace records that clients wrote."""

    def __init__(self, topic: str = TRACE_TOPIC) -> None:
        self._topic = topic

    async def look(self, query: HistoryQuery) -> None:
        trace = await trace_of(query.admin, query.msg_id, topic=self._topic)
        query.facts.trace = trace.events
        for gap in trace.gaps:
            query.unknown(gap)
        if not trace.events and not trace.gaps:
            query.unknown(f"no trace: no client that traces to {self._topic} had the message")
        for event in trace.events:
            if isinstance(event.record, Pub | EndTransaction):
                query.topic = query.topic or event.record.topic


class Stored:
    """Stored copies: in the topic, in system topics, in retry and dead letter topics."""

    async def look(self, query: HistoryQuery) -> None:
        if query.topic is None:
            await self._search_everywhere(query)
        if query.topic is None:
            return
        groups = await self._groups(query, query.topic)
        owners = {
            pop_retry_topic(group, query.topic, v2): group
            for group in groups
            for v2 in (False, True)
        }
        query.facts.retry_owners = owners
        rooms = (HALF_TOPIC, CHECK_MAX_TOPIC, SCHEDULE_TOPIC, TIMER_TOPIC)
        again = [name for group in groups for name in (retry_topic(group), dead_topic(group))]
        await query.search([query.topic, *rooms, *again, *owners])
        await self._delay_levels(query)
        await self._decision(query)

    async def _search_everywhere(self, query: HistoryQuery) -> None:
        await query.search([SCHEDULE_TOPIC, TIMER_TOPIC, HALF_TOPIC])
        if query.topic is not None:
            return
        skipped = (RETRY_PREFIX, DEAD_PREFIX)
        names = [
            name
            for name in await query.admin.topics()
            if not is_system_topic(name) and not name.startswith(skipped)
        ]
        if len(names) > TOPICS_MAX:
            query.unknown(f"only {TOPICS_MAX} of {len(names)} topics were searched: name the topic")
            names = names[:TOPICS_MAX]
        query.say(
            f"searching {counted(len(names), 'topic')} on {counted(len(query.brokers), 'broker')}"
        )
        await query.search(names)

    async def _groups(self, query: HistoryQuery, topic: str) -> list[str]:
        try:
            groups = await query.admin.topic_groups(topic)
        except NoRoute:
            query.unknown(f"topic {topic} does not exist (any more): its groups are not known")
            return []
        if len(groups) > GROUPS_MAX:
            query.unknown(f"only {GROUPS_MAX} of the topic's {len(groups)} groups were looked at")
        return groups[:GROUPS_MAX]

    async def _delay_levels(self, query: HistoryQuery) -> None:
        """Read the broker's delay levels, from which the due time of a delayed copy follows."""
        waiting = [copy for copy in query.copies if copy.queue.topic == SCHEDULE_TOPIC]
        if waiting:
            address = query.brokers[waiting[-1].queue.broker_name]
            try:
                config = await query.admin.broker_config(address)
            except GantryError as error:
                query.unknown(f"when it is due is not known: {error}")
                return
            words = re.findall(r"(\d+)([smhd])", config.get("messageDelayLevel", ""))
            query.facts.levels_ms = tuple(int(number) * _MS[unit] for number, unit in words)

    async def _decision(self, query: HistoryQuery) -> None:
        """Find out when the half message was decided: its broker notes that in the op topic."""
        halves = [copy for copy in query.copies if copy.queue.topic == HALF_TOPIC]
        if not halves:
            return
        halves.sort(key=lambda copy: copy.store_ms)
        # Each check-back stores the half message again, and may note the old copy as decided.
        since = {str(old.offset): new.store_ms + LATE_MS for old, new in pairwise(halves)}
        since[str(halves[-1].offset)] = 0
        queue = Queue(OP_HALF_TOPIC, halves[0].queue.broker_name, 0)
        try:
            at = await query.admin.search_offset(queue, halves[0].store_ms)
            for _ in range(OPS_MAX // 32):
                pulled = await pull_raw(query.instance, READER, queue, at)
                if pulled.status is not PullStatus.FOUND:
                    return
                for note in read_records(pulled.body, queue.broker_name):
                    words = note.body.decode("utf-8", "replace").split(",")
                    if any(note.store_ms >= since.get(word, FOREVER_MS) for word in words):
                        query.facts.decided_ms = note.store_ms
                        return
                at = pulled.next_offset
            query.unknown(f"whether it was decided on: over {OPS_MAX} decisions came since")
        except GantryError as error:
            query.unknown(f"whether it was decided on: {error}")


class GroupSource:
    """The progress of the groups that read the topic."""

    async def look(self, query: HistoryQuery) -> None:
        topic = query.topic
        if topic is None or not query.copies:
            return
        groups = list(dict.fromkeys(query.facts.retry_owners.values()))
        configs = await query.admin.groups() if groups else {}
        tag = query.copies[0].tags

        def facts(group: str) -> Callable[[], Awaitable[list[GroupFacts]]]:
            return lambda: self._facts(query.admin, group, topic, tag, configs.get(group))

        found = await query.all([facts(group) for group in groups])
        query.facts.groups = sorted(found, key=lambda each: each.group)

    async def _facts(
        self, admin: Admin, group: str, topic: str, tag: str | None, config: GroupConfig | None
    ) -> list[GroupFacts]:
        progress = await admin.consume_stats(group)
        online = await admin.consumers(group)
        if config is None and not progress.queues and not online.connection_set:
            return []  # some RocketMQ releases list the topic's own name among its groups
        wanted = online.subscription_table.get(topic)
        unwanted = ""
        if wanted is not None and wanted.expression_type in ("TAG", "", None):
            tags = parse_tags(wanted.sub_string)
            if tags and (tag or "") not in tags:
                unwanted = f"subscribed to {wanted.sub_string!r}, the message has tag {tag!r}"
        return [
            GroupFacts(
                group=group,
                progress={queue: row.consumer_offset for queue, row in progress.queues.items()},
                retries_max=config.retry_max_times if config else 16,
                broadcast=online.message_model == "BROADCASTING",
                unwanted=unwanted,
            )
        ]


SOURCES: Final[tuple[HistorySource, ...]] = (IdSource(), Traces(), Stored(), GroupSource())


async def why(
    admin: Admin,
    msg_id: str,
    *,
    topic: str | None = None,
    sources: Sequence[HistorySource] = SOURCES,
    say: Callable[[str], None] = lambda _: None,
) -> MessageHistory:
    """The history of a message, by either kind of id. Without a topic all topics are searched.

    Raises NothingKnown when no source finds anything. `say` is called with progress lines.
    """
    query = HistoryQuery(admin, msg_id, topic, say)
    for source in sources:
        await source.look(query)
    facts = query.facts
    if not (query.copies or facts.trace or facts.events):
        raise NothingKnown(_nothing(query, topic))
    facts.msg_id, facts.topic, facts.copies = query.msg_id, query.topic or "", query.copies
    facts.unknown = list(dict.fromkeys(facts.unknown))
    return build_history(facts)


def _nothing(query: HistoryQuery, topic: str | None) -> str:
    where = f"topic {topic}" if topic else "any topic"
    also = "".join(f"; {what}" for what in dict.fromkeys(query.facts.unknown))
    return f"no message {query.msg_id} in {where}: it never was there, or is deleted by now{also}"
