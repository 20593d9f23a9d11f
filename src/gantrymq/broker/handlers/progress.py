"""Progress of consumer groups, as operators' tools read and copy it."""

import asyncio
import time
from collections.abc import Iterable

import msgspec

from gantrymq.base.clock import WallClock
from gantrymq.base.javatypes import LONG_MAX
from gantrymq.broker.errors import BadRequest, TopicMissing
from gantrymq.broker.handlers.topics import ROWS_PER_TURN, queue_row
from gantrymq.broker.settings.config import BrokerConfig
from gantrymq.broker.stats_windows import StatsWindows
from gantrymq.broker.subscriptions.sessions import ConsumerGroup, Sessions
from gantrymq.broker.tables.offset_resets import Resets
from gantrymq.broker.tables.registry import Registry
from gantrymq.model import Queue, TopicConfig
from gantrymq.protocol import calls as c
from gantrymq.protocol import fastjson
from gantrymq.protocol.bodies import (
    ConsumeTimeSpans,
    CorrectionOffsets,
    GroupSubscription,
    OffsetWrapper,
    QueueTimeSpan,
    TopicList,
)
from gantrymq.protocol.command import Command, response
from gantrymq.protocol.pop import pop_retry_topic
from gantrymq.remoting.connection import Connection
from gantrymq.store.engine import Store

Row = tuple[dict[str, object], OffsetWrapper]


class ProgressHandler:
    """Lag (208, 317), time spans (303), corrections and copies of offsets (308, 314).

    Also what a group reads: its topics (343) and its subscription of one (345).
    """

    def __init__(
        self,
        config: BrokerConfig,
        store: Store,
        registry: Registry,
        resets: Resets,
        sessions: Sessions,
        windows: StatsWindows,
        clock: WallClock,
        address: str,
    ) -> None:
        self._config, self._store, self._registry = config, store, registry
        self._resets, self._sessions, self._windows = resets, sessions, windows
        self._clock, self._address = clock, address
        self._rows_made = 0

    # Lag

    async def of_group(self, connection: Connection, command: Command) -> Command:
        """GET_CONSUME_STATS (208): the end of each queue and the group's progress in it."""
        h = c.GET_CONSUME_STATS.request.parse(command.ext)
        group = h.consumer_group
        topics = h.topics or self._registry.offsets.topics_of(group)
        online = self._sessions.consumers.get(group)
        rows: list[Row] = []
        tps = 0.0
        for topic in self._read_by(group, topics, online):
            rows += await self._rows(group, topic, topic.read_queue_nums)
            tps += self._windows.consume_tps(topic.topic_name, group)
        return response(
            command, body=fastjson.dump_object_keyed("offsetTable", rows, consumeTps=tps)
        )

    async def of_all_groups(self, connection: Connection, command: Command) -> Command:
        """GET_BROKER_CONSUME_STATS (317): the progress of every group, one table a topic.

        With isOrder only topics that are ordered. What a group was given and has not finished is
        counted from its pulls; RocketMQ forgets them here and counts below 0.
        """
        h = c.GET_BROKER_CONSUME_STATS.request.parse(command.ext)
        listed: list[dict[str, list[msgspec.Raw]]] = []
        behind = in_flight = 0
        for group in list(self._registry.groups.table):
            tables = []
            topics = self._registry.offsets.topics_of(group)
            for topic in self._read_by(group, topics, self._sessions.consumers.get(group)):
                if h.is_order and not topic.order:
                    continue
                rows = await self._rows(group, topic, topic.write_queue_nums)
                behind += sum(row.broker_offset - row.consumer_offset for _, row in rows)
                in_flight += sum(row.pull_offset - row.consumer_offset for _, row in rows)
                tps = self._windows.consume_tps(topic.topic_name, group)
                text = fastjson.dump_object_keyed("offsetTable", rows, consumeTps=tps)
                tables.append(msgspec.Raw(text))
            listed.append({group: tables})
        body = {
            "brokerAddr": self._address,
            "consumeStatsList": listed,
            "totalDiff": behind,
            "totalInflightDiff": in_flight,
        }
        return response(command, body=fastjson.dumps(body))

    def _read_by(
        self, group: str, topics: Iterable[str], online: ConsumerGroup | None
    ) -> list[TopicConfig]:
        """The topics among these that exist and that the group, if it is online, subscribes to."""
        retried = pop_retry_topic(group, ""), pop_retry_topic(group, "", True)
        return [
            topic
            for name in topics
            if (topic := self._registry.topics.get(name)) is not None
            if online is None or name in online.subscriptions or name.startswith(retried)
        ]

    async def _rows(self, group: str, topic: TopicConfig, queues: int) -> list[Row]:
        rows = []
        for queue_id in range(queues):
            rows.append(await self._row(group, topic.topic_name, queue_id))
            self._rows_made += 1
            if self._rows_made % ROWS_PER_TURN == 0:
                await asyncio.sleep(0)
        return rows

    async def _row(self, group: str, topic: str, queue_id: int) -> Row:
        end = self._store.queues.max_offset(topic, queue_id)
        read = max(0, self._registry.offsets.get(group, topic, queue_id) or 0)
        last = await self._store.reads.store_ms_at(topic, queue_id, read - 1) if read else 0
        row = OffsetWrapper(
            broker_offset=end,
            consumer_offset=read,
            last_timestamp=max(0, last),
            pull_offset=self._registry.offsets.pulled_to(group, topic, queue_id),
        )
        return queue_row(self._queue(topic, queue_id)), row

    def _queue(self, topic: str, queue_id: int) -> Queue:
        return Queue(topic=topic, broker_name=self._config.broker_name, queue_id=queue_id)

    # Times

    async def time_spans(self, connection: Connection, command: Command) -> Command:
        """QUERY_CONSUME_TIME_SPAN (303): store times of each queue, and how late the group is."""
        h = c.QUERY_CONSUME_TIME_SPAN.request.parse(command.ext)
        topic = self._registry.topics.get(h.topic)
        if topic is None:
            raise TopicMissing(f"topic[{h.topic}] not exist")
        spans = []
        for queue_id in range(topic.write_queue_nums):
            spans.append(await self._span(h.group, h.topic, queue_id))
            if len(spans) % ROWS_PER_TURN == 0:
                await asyncio.sleep(0)
        return response(command, body=fastjson.dumps(ConsumeTimeSpans(consume_time_span_set=spans)))

    async def _span(self, group: str, topic: str, queue_id: int) -> QueueTimeSpan:
        reads, end = self._store.reads, self._store.queues.max_offset(topic, queue_id)
        read = max(0, self._registry.offsets.get(group, topic, queue_id) or 0)
        first = await reads.earliest_store_ms(topic, queue_id)
        last = await reads.store_ms_at(topic, queue_id, end - 1)
        done = await reads.store_ms_at(topic, queue_id, read - 1) if read else first
        waits = await reads.store_ms_at(topic, queue_id, read) if read < end else -1
        return QueueTimeSpan(
            consume_time_stamp=done,
            consume_time_stamp_str=java_time(done),
            delay_time=max(0, self._clock.now_ms() - waits) if waits >= 0 else 0,
            max_time_stamp=last,
            max_time_stamp_str=java_time(last),
            message_queue=self._queue(topic, queue_id),
            min_time_stamp=first,
            min_time_stamp_str=java_time(first),
        )

    # Corrections and copies

    async def corrections(self, connection: Connection, command: Command) -> Command:
        """QUERY_CORRECTION_OFFSET (308): the smallest progress of all groups in each queue.

        Where the group that is compared is behind all others the answer is Java's largest number.
        RocketMQ deletes the progress of filterGroups on the way; here it only does not count.
        """
        h = c.QUERY_CORRECTION_OFFSET.request.parse(command.ext)
        offsets, queues = self._registry.offsets, self._store.queues
        passed_over = {name.strip() for name in (h.filter_groups or "").split(",")}
        smallest: dict[int, int] = {}
        for group in offsets.groups_of(h.topic):
            if group in passed_over:
                continue
            for queue_id, offset in offsets.table[f"{h.topic}@{group}"].items():
                if offset >= queues.min_offset(h.topic, queue_id):
                    smallest[queue_id] = min(offset, smallest.get(queue_id, LONG_MAX))
        compared = offsets.table.get(f"{h.topic}@{h.compare_group}", {})
        for queue_id, offset in compared.items():
            if smallest.get(queue_id, LONG_MAX) > offset:
                smallest[queue_id] = LONG_MAX
        return response(
            command, body=fastjson.dumps(CorrectionOffsets(correction_offsets=smallest))
        )

    async def clone(self, connection: Connection, command: Command) -> Command:
        """CLONE_GROUP_OFFSET (314): give a group the progress of another, in a topic or in all.

        Unless `offline` is set, topics that an online source is not subscribed to are left out.
        """
        h = c.CLONE_GROUP_OFFSET.request.parse(command.ext)
        if not h.dest_group:
            raise BadRequest("destGroup is empty: name the group that gets the progress")
        offsets = self._registry.offsets
        topics = [h.topic] if h.topic else offsets.topics_of(h.src_group)
        online = None if h.offline else self._sessions.consumers.get(h.src_group)
        for topic in self._read_by(h.src_group, topics, online):
            known = offsets.table.get(f"{topic.topic_name}@{h.src_group}", {})
            for queue_id, offset in dict(known).items():
                self._resets.move(h.dest_group, topic.topic_name, queue_id, offset)
        await offsets.save()
        return response(command)

    # Subscriptions

    async def topics_of(self, connection: Connection, command: Command) -> Command:
        """QUERY_TOPICS_BY_CONSUMER (343): the topics in which a group has progress."""
        h = c.QUERY_TOPICS_BY_CONSUMER.request.parse(command.ext)
        topics = self._registry.offsets.topics_of(h.group)
        found = TopicList(broker_addr=self._address, topic_list=topics)
        return response(command, body=fastjson.dumps(found))

    async def subscription(self, connection: Connection, command: Command) -> Command:
        """QUERY_SUBSCRIPTION_BY_CONSUMER (345): what an online group wants of a topic."""
        h = c.QUERY_SUBSCRIPTION_BY_CONSUMER.request.parse(command.ext)
        online = self._sessions.consumers.get(h.group)
        wanted = online.subscriptions.get(h.topic or "") if online is not None else None
        found = GroupSubscription(
            group=h.group,
            topic=h.topic if h.topic is not None else msgspec.UNSET,
            subscription_data=wanted if wanted is not None else msgspec.UNSET,
        )
        return response(command, body=fastjson.dumps(found))


def java_time(ms: int) -> str:
    """A local time as Java's tools print it."""
    seconds, rest = divmod(ms, 1000)
    return f"{time.strftime('%Y-%m-%d#%H:%M:%S', time.localtime(seconds))}:{rest:03d}"
