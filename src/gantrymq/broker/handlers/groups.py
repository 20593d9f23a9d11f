"""Consumer groups: their settings."""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from gantrymq.broker.errors import BadRequest, GroupMissing
from gantrymq.broker.policy import Policy
from gantrymq.broker.settings.config import BrokerConfig
from gantrymq.broker.stats_windows import StatsWindows
from gantrymq.broker.tables.attributes import GROUP_ATTRIBUTES, altered
from gantrymq.broker.tables.registry import FORBIDDEN, Registry
from gantrymq.model import (
    READ,
    GroupConfig,
    NameRefused,
    check_group_name,
    check_topic_name,
    retry_topic,
)
from gantrymq.protocol import calls as c
from gantrymq.protocol import fastjson
from gantrymq.protocol.bodies import GroupConfigList, GroupForbidden
from gantrymq.protocol.command import Command, response
from gantrymq.remoting.connection import Connection


class GroupHandler:
    """Settings of consumer groups (200, 201, 207, 225, 352), and what they may read (353)."""

    def __init__(
        self,
        config: BrokerConfig,
        registry: Registry,
        policy: Policy,
        windows: StatsWindows,
        releases: Iterable[Callable[[str], None]],
    ) -> None:
        self._config, self._registry = config, registry
        self._policy, self._windows = policy, windows
        self._releases = tuple(releases)
        """Each lets go of what waits for messages on behalf of a group."""

    async def update(self, connection: Connection, command: Command) -> Command:
        """UPDATE_AND_CREATE_SUBSCRIPTIONGROUP (200): create or change a group, on disk."""
        wanted = fastjson.load_request(command.body or b"{}", GroupConfig)
        await self._put([self._checked(wanted)])
        return response(command)

    async def update_many(self, connection: Connection, command: Command) -> Command:
        """UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST (225): create or change all groups of a list.

        All groups are checked before the first one is changed.
        """
        wanted = fastjson.load_request(command.body or b"{}", GroupConfigList).group_config_list
        await self._put([self._checked(group) for group in wanted])
        return response(command)

    def _checked(self, wanted: GroupConfig) -> GroupConfig:
        """The group with its attributes merged, ready to be stored. Raises if it is not valid."""
        try:
            check_group_name(wanted.group_name)
        except NameRefused as error:
            raise BadRequest(str(error)) from error
        self._policy.check_queues(wanted.retry_queue_nums, f"group {wanted.group_name}")
        known = self._registry.groups.get(wanted.group_name)
        current = known.attributes if known is not None else None
        kept = altered(GROUP_ATTRIBUTES, current, wanted.attributes)
        return msgspec.structs.replace(wanted, attributes=kept)

    async def _put(self, groups: Sequence[GroupConfig]) -> None:
        self._policy.check_room_for_groups(group.group_name for group in groups)
        await self._registry.groups.change_many({group.group_name: group for group in groups})
        for group in groups:
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
            FORBIDDEN: self._registry.forbidden,
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
        self._registry.forbidden.pop(h.group_name, None)
        await self._registry.groups.change(h.group_name, None)
        if h.remove_offset or h.clean_offset:
            self._registry.offsets.delete_group(h.group_name)
            await self._registry.offsets.save()
        self._windows.forget_group(h.group_name)
        return response(command)

    async def forbidden(self, connection: Connection, command: Command) -> Command:
        """UPDATE_AND_GET_GROUP_FORBIDDEN (353): may a group read a topic; changes it if asked to.

        Members of a raft group agree on topics and groups, not on this.
        """
        h = c.UPDATE_AND_GET_GROUP_FORBIDDEN.request.parse(command.ext)
        table, groups = self._registry.forbidden, self._registry.groups
        if h.readable is not None:
            check_group_name(h.group)
            check_topic_name(h.topic)
            if self._config.enable_d_leger_commit_log:
                raise BadRequest(
                    "a raft group does not keep which topics a group may not read: "
                    "switch the group off instead (consumeEnable=false)"
                )
            topics = table.get(h.group, {})
            bits = topics.get(h.topic, 0)
            bits = bits & ~READ if h.readable else bits | READ
            kept = {**topics, h.topic: bits}
            table[h.group] = {topic: bits for topic, bits in kept.items() if bits}
            if not table[h.group]:
                del table[h.group]
            groups.renew_version()
            await groups.save()
            for release in self._releases:
                release(h.group)
        readable = not table.get(h.group, {}).get(h.topic, 0) & READ
        body = GroupForbidden(group=h.group, topic=h.topic, readable=readable)
        return response(command, body=fastjson.dumps(body))
