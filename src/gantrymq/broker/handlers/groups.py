"""Consumer groups: their settings and their progress."""

import asyncio
from collections.abc import Callable, Iterable

import msgspec

from gantrymq.base.plurals import counted
from gantrymq.broker.errors import BadRequest, GroupMissing
from gantrymq.broker.handlers.topics import QUEUES_MAX, ROWS_PER_TURN, queue_row
from gantrymq.broker.policy import Policy
from gantrymq.broker.settings.config import BrokerConfig
from gantrymq.broker.stats_windows import StatsWindows
from gantrymq.broker.subscriptions.sessions import Sessions
from gantrymq.broker.tables.attributes import GROUP_ATTRIBUTES, altered
from gantrymq.broker.tables.registry import Registry
from gantrymq.model import GroupConfig, NameRefused, Queue, check_group_name, retry_topic
from gantrymq.protocol import calls as c
from gantrymq.protocol import fastjson
from gantrymq.protocol.bodies import GroupConfigList, OffsetWrapper
from gantrymq.protocol.command import Command, response
from gantrymq.protocol.pop import pop_retry_topic
from gantrymq.remoting.connection import Connection
from gantrymq.store.engine import Store


class GroupHandler:
    """Settings of consumer groups (200, 201, 207, 225, 352) and GET_CONSUME_STATS (208)."""

    def __init__(
        self,
        config: BrokerConfig,
        store: Store,
        registry: Registry,
        policy: Policy,
        sessions: Sessions,
        windows: StatsWindows,
        releases: Iterable[Callable[[str], None]],
    ) -> None:
        self._config, self._store, self._registry = config, store, registry
        self._policy, self._sessions, self._windows = policy, sessions, windows
        self._releases = tuple(releases)
        """Each lets go of what waits for messages on behalf of a group."""

    async def update(self, connection: Connection, command: Command) -> Command:
        """UPDATE_AND_CREATE_SUBSCRIPTIONGROUP (200): create or change a group, on disk."""
        wanted = fastjson.load_request(command.body or b"{}", GroupConfig)
        await self._put(self._checked(wanted))
        return response(command)

    async def update_many(self, connection: Connection, command: Command) -> Command:
        """UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST (225): the same for a list.

        All groups are checked before the first one is changed.
        """
        wanted = fastjson.load_request(command.body or b"{}", GroupConfigList).group_config_list
        for group in [self._checked(group) for group in wanted]:
            await self._put(group)
        return response(command)

    def _checked(self, wanted: GroupConfig) -> GroupConfig:
        """The group with its attributes merged, ready to be stored. Raises if it is not valid."""
        try:
            check_group_name(wanted.group_name)
        except NameRefused as error:
            raise BadRequest(str(error)) from error
        if wanted.retry_queue_nums > QUEUES_MAX:
            raise BadRequest(
                f"{counted(wanted.retry_queue_nums, 'retry queue')}: {QUEUES_MAX} is the most"
            )
        known = self._registry.groups.get(wanted.group_name)
        current = known.attributes if known is not None else None
        kept = altered(GROUP_ATTRIBUTES, current, wanted.attributes)
        return msgspec.structs.replace(wanted, attributes=kept)

    async def _put(self, group: GroupConfig) -> None:
        await self._registry.groups.change(group.group_name, group)
        if self._registry.topics.get(retry_topic(group.group_name)) is not None:
            self._policy.ensure_retry_topic(group)
        if not group.consume_enable:
            for release in self._releases:
                release(group.group_name)

    async def all(self, connection: Connection, command: Command) -> Command:
        """GET_ALL_SUBSCRIPTIONGROUP_CONFIG (201): all groups and the version of the table."""
        groups = self._registry.groups
        body = {
            "dataVersion": groups.version,
            "forbiddenTable": {},
            "subscriptionGroupTable": groups.table,
        }
        return response(command, body=fastjson.dumps(body))

    async def one(self, connection: Connection, command: Command) -> Command:
        """GET_SUBSCRIPTIONGROUP_CONFIG (352): the settings of one group."""
        h = c.GET_SUBSCRIPTIONGROUP_CONFIG.request.parse(command.ext)
        found = self._registry.groups.get(h.group)
        if found is None:
            raise GroupMissing(f"No group in this broker. group: {h.group}")
        return response(command, body=fastjson.dumps(found))

    async def delete(self, connection: Connection, command: Command) -> Command:
        """DELETE_SUBSCRIPTIONGROUP (207): delete a group, and its progress if asked to."""
        h = c.DELETE_SUBSCRIPTIONGROUP.request.parse(command.ext)
        await self._registry.groups.change(h.group_name, None)
        if h.remove_offset or h.clean_offset:
            self._registry.offsets.delete_group(h.group_name)
            await self._registry.offsets.save()
        self._windows.forget_group(h.group_name)
        return response(command)

    async def progress(self, connection: Connection, command: Command) -> Command:
        """GET_CONSUME_STATS (208): the end of each queue and the group's progress in it."""
        h = c.GET_CONSUME_STATS.request.parse(command.ext)
        group = h.consumer_group
        topics = [h.topic] if h.topic else self._registry.offsets.topics_of(group)
        online = self._sessions.consumers.get(group)
        retried = pop_retry_topic(group, ""), pop_retry_topic(group, "", True)
        rows, tps = [], 0.0
        for name in topics:
            topic = self._registry.topics.get(name)
            wanted = online is None or name in online.subscriptions or name.startswith(retried)
            if topic is None or not wanted:
                continue
            for queue_id in range(topic.read_queue_nums):
                rows.append(await self._row(group, name, queue_id))
                if len(rows) % ROWS_PER_TURN == 0:
                    await asyncio.sleep(0)
            tps += self._windows.consume_tps(name, group)
        return response(
            command, body=fastjson.dump_object_keyed("offsetTable", rows, consumeTps=tps)
        )

    async def _row(
        self, group: str, topic: str, queue_id: int
    ) -> tuple[dict[str, object], OffsetWrapper]:
        end = self._store.queues.max_offset(topic, queue_id)
        read = max(0, self._registry.offsets.get(group, topic, queue_id) or 0)
        last = await self._store.reads.store_ms_at(topic, queue_id, read - 1) if read else 0
        row = OffsetWrapper(
            broker_offset=end,
            consumer_offset=read,
            last_timestamp=max(0, last),
            pull_offset=self._registry.offsets.pulled_to(group, topic, queue_id),
        )
        queue = Queue(topic=topic, broker_name=self._config.broker_name, queue_id=queue_id)
        return queue_row(queue), row
