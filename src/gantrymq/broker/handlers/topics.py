"""Topics: create, change, delete, list, and the offsets of their queues."""

import asyncio
import logging
from collections.abc import Sequence

import msgspec

from gantrymq.base.plurals import counted
from gantrymq.broker.errors import BadRequest, InvalidParameter
from gantrymq.broker.policy import Policy, boot_topics
from gantrymq.broker.settings.config import BrokerConfig
from gantrymq.broker.stats_windows import StatsWindows
from gantrymq.broker.subscriptions.sessions import Sessions
from gantrymq.broker.tables.attributes import TOPIC_ATTRIBUTES, altered, parse_changes, refuse_mixed
from gantrymq.broker.tables.registry import Registry
from gantrymq.model import (
    TOPIC_FILTER_TYPES,
    NameRefused,
    Queue,
    TopicConfig,
    check_topic_name,
    is_system_topic,
)
from gantrymq.protocol import calls as c
from gantrymq.protocol import fastjson
from gantrymq.protocol.bodies import GroupList, TopicConfigList, TopicList, TopicOffset
from gantrymq.protocol.command import Command, response
from gantrymq.remoting.connection import Connection
from gantrymq.store.engine import Store

log = logging.getLogger(__name__)

ROWS_PER_TURN = 64
"""After so many rows the loop gets its turn: a topic may have a thousand queues."""


class TopicHandler:
    """Settings of topics (17, 18, 21, 215, 305, 351), their offsets (202) and groups (300)."""

    def __init__(
        self,
        config: BrokerConfig,
        store: Store,
        registry: Registry,
        policy: Policy,
        sessions: Sessions,
        windows: StatsWindows,
    ) -> None:
        self._config, self._store, self._registry = config, store, registry
        self._policy, self._sessions, self._windows = policy, sessions, windows

    async def create(self, connection: Connection, command: Command) -> Command:
        """UPDATE_AND_CREATE_TOPIC (17): create or change a topic; answered once it is on disk."""
        h = c.UPDATE_AND_CREATE_TOPIC.request.parse(command.ext)
        wanted = TopicConfig(
            topic_name=h.topic,
            read_queue_nums=h.read_queue_nums,
            write_queue_nums=h.write_queue_nums,
            perm=h.perm,
            topic_filter_type=h.topic_filter_type,
            topic_sys_flag=h.topic_sys_flag or 0,
            order=h.order,
            attributes=parse_changes(h.attributes),
        )
        return response(command, remark=await self._put([self._checked(wanted)]))

    async def create_many(self, connection: Connection, command: Command) -> Command:
        """UPDATE_AND_CREATE_TOPIC_LIST (18): create or change all topics of a list.

        All topics are checked before the first one is changed.
        """
        wanted = fastjson.load_request(command.body or b"{}", TopicConfigList).topic_config_list
        await self._put([self._checked_in_list(topic) for topic in wanted])
        return response(command)

    def _checked_in_list(self, wanted: TopicConfig) -> TopicConfig:
        """Refuse a bad name with the code of 5.3.3, the first release that has such lists."""
        try:
            check_topic_name(wanted.topic_name)
        except NameRefused as error:
            raise InvalidParameter(str(error)) from error
        return self._checked(wanted)

    async def _put(self, topics: Sequence[TopicConfig]) -> str | None:
        """Create or change topics; returns advice about the queue counts of the last, or None."""
        advice = None
        if not topics:
            return None
        for topic in topics:
            advice = _advice(topic.read_queue_nums, topic.write_queue_nums)
            if advice is not None:
                log.warning("topic %s: %s", topic.topic_name, advice)
        await self._policy.change_topics(topics)
        return advice

    def _checked(self, wanted: TopicConfig) -> TopicConfig:
        """The topic with its attributes merged, ready to be stored. Raises if it is not valid."""
        name = wanted.topic_name
        check_topic_name(name)
        if is_system_topic(name) or name == self._config.broker_cluster_name:
            raise BadRequest(f"The topic[{name}] is conflict with system topic.")
        for count in (wanted.read_queue_nums, wanted.write_queue_nums):
            if count < 0:
                raise BadRequest(f"{counted(count, 'queue')}: a topic has 0 or more")
            self._policy.check_queues(count, f"topic {name}")
        if not 0 <= wanted.perm <= 15:
            raise BadRequest(
                f"perm {wanted.perm} is no set of permissions: 2 write, 4 read, 6 both"
            )
        if wanted.topic_filter_type not in TOPIC_FILTER_TYPES:
            raise BadRequest(
                f"topicFilterType {wanted.topic_filter_type!r}: write one of "
                f"{', '.join(TOPIC_FILTER_TYPES)}"
            )
        if not self._config.enable_mixed_message_type:
            refuse_mixed(wanted.attributes)
        known = self._registry.topics.get(name)
        current = known.attributes if known is not None else None
        kept = altered(TOPIC_ATTRIBUTES, current, wanted.attributes)
        return msgspec.structs.replace(wanted, attributes=kept)

    async def delete(self, connection: Connection, command: Command) -> Command:
        """DELETE_TOPIC_IN_BROKER (215): delete a topic, its queues, progress and statistics."""
        h = c.DELETE_TOPIC_IN_BROKER.request.parse(command.ext)
        check_topic_name(h.topic)
        if is_system_topic(h.topic):
            raise BadRequest(f"The topic[{h.topic}] is conflict with system topic.")
        await self._registry.topics.change(h.topic, None)
        self._registry.offsets.delete_topic(h.topic)
        if not self._config.enable_d_leger_commit_log:
            # A raft group deletes the queues where the change stands in its log.
            self._store.delete_topic(h.topic)
        self._windows.forget_topic(h.topic)
        await self._registry.offsets.save()
        return response(command)

    async def all(self, connection: Connection, command: Command) -> Command:
        """GET_ALL_TOPIC_CONFIG (21): all topics and the version of the table."""
        topics = self._registry.topics
        body = {
            "dataVersion": topics.version,
            "mappingDataVersion": topics.version,
            "topicConfigTable": topics.table,
            "topicQueueMappingDetailMap": {},
            "topicQueueMappingInfoMap": {},
        }
        return response(command, body=fastjson.dumps(body))

    async def one(self, connection: Connection, command: Command) -> Command:
        """GET_TOPIC_CONFIG (351): the settings of one topic."""
        h = c.GET_TOPIC_CONFIG.request.parse(command.ext)
        found = self._registry.topics.get(h.topic)
        topic = found if found is not None else self._policy.topic(h.topic)
        return response(command, body=fastjson.dumps(topic))

    async def system(self, connection: Connection, command: Command) -> Command:
        """GET_SYSTEM_TOPIC_LIST_FROM_BROKER (305): the names of this broker's system topics."""
        own = [topic.topic_name for topic in boot_topics(self._config)]
        names = dict.fromkeys([*own, *filter(is_system_topic, self._registry.topics.table)])
        return response(command, body=fastjson.dumps(TopicList(topic_list=list(names))))

    async def stats(self, connection: Connection, command: Command) -> Command:
        """GET_TOPIC_STATS_INFO (202): first offset, end and last store time (ms) of each queue.

        And how many messages a second were sent to the topic in the last minute.
        """
        h = c.GET_TOPIC_STATS_INFO.request.parse(command.ext)
        topic = self._policy.topic(h.topic)
        rows = []
        for queue_id in range(max(topic.read_queue_nums, topic.write_queue_nums)):
            low = max(0, self._store.queues.min_offset(h.topic, queue_id))
            high = self._store.queues.max_offset(h.topic, queue_id)
            last = await self._store.reads.store_ms_at(h.topic, queue_id, high - 1) if high else 0
            queue = _queue_row(h.topic, self._config.broker_name, queue_id)
            row = TopicOffset(last_update_timestamp=max(0, last), max_offset=high, min_offset=low)
            rows.append((queue, row))
            if len(rows) % ROWS_PER_TURN == 0:
                await asyncio.sleep(0)
        tps = self._windows.put_tps(h.topic)
        body = fastjson.dump_object_keyed("offsetTable", rows, topicPutTps=tps)
        return response(command, body=body)

    async def consumed_by(self, connection: Connection, command: Command) -> Command:
        """QUERY_TOPIC_CONSUME_BY_WHO (300): groups that are subscribed or have progress."""
        h = c.QUERY_TOPIC_CONSUME_BY_WHO.request.parse(command.ext)
        names = dict.fromkeys(self._sessions.groups_of(h.topic))
        names |= dict.fromkeys(self._registry.offsets.groups_of(h.topic))
        return response(command, body=fastjson.dumps(GroupList(group_list=list(names))))


def _advice(read: int, write: int) -> str | None:
    """Advice about unequal queue counts, or None. The change is made in any case."""
    if write > read:
        return f"{write} write and {read} read queues: nobody reads what goes to the others"
    if write < read:
        return f"{write} write and {read} read queues: consumers of the others stay idle"
    return None


def _queue_row(topic: str, broker: str, queue_id: int) -> dict[str, object]:
    """A queue as a JSON object with its fields in Java's order."""
    return {"brokerName": broker, "queueId": queue_id, "topic": topic}


def queue_row(queue: Queue) -> dict[str, object]:
    return _queue_row(queue.topic, queue.broker_name, queue.queue_id)
