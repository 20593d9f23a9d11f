"""Administration of groups: their settings, members and progress."""

from collections.abc import Sequence
from typing import Any, Final

from gantrymq.client.admin.admin_base import AdminBase
from gantrymq.client.admin.at_each import at_each
from gantrymq.client.admin.groups import members, reset_offsets
from gantrymq.client.admin.groups.reset_offsets import ResetRow, To
from gantrymq.client.admin.tables import GroupProgress, group_table, progress
from gantrymq.client.core.errors import NoRoute
from gantrymq.client.messages.received import Received
from gantrymq.model import GroupConfig, Queue, check_group_name, retry_topic
from gantrymq.protocol import calls, fastjson
from gantrymq.protocol.bodies import (
    ConsumerConnections,
    GroupConfigList,
    OffsetWrapper,
    ProducerConnections,
    SubscriptionConflict,
)
from gantrymq.protocol.codes import ResponseCode
from gantrymq.protocol.headers import clients as c
from gantrymq.protocol.headers.base import Nothing
from gantrymq.protocol.headers.progress import CloneOffsetRequest
from gantrymq.protocol.headers.relays import ConsumeDirectlyRequest
from gantrymq.protocol.pop import RequestMode

DIRECT_SECONDS_MAX: Final = 15.0
"""A broker gives the member 10 s."""


class GroupAdmin(AdminBase):
    """Changes and deletes groups, lists who is connected, and moves progress."""

    async def groups(self, *, cluster: str | None = None) -> dict[str, GroupConfig]:
        """The settings of every consumer group; where brokers differ, the last one's."""
        found: dict[str, GroupConfig] = {}
        for address in (await self.masters(cluster=cluster)).values():
            found |= await self.group_configs(address)
        return dict(sorted(found.items()))

    async def update_group(
        self, group: GroupConfig, *, cluster: str | None = None, broker: str | None = None
    ) -> dict[str, str]:
        """Create a group or change its settings on every master asked for."""
        check_group_name(group.group_name)
        masters = await self.masters(cluster=cluster, broker=broker)

        async def put(address: str) -> None:
            await self.put_group(address, group)

        await at_each(f"change group {group.group_name}", masters.values(), put)
        return masters

    async def put_group(self, address: str, group: GroupConfig) -> None:
        """Create a group on one broker, or change its settings."""
        check_group_name(group.group_name)
        await self.instance.call(
            address, calls.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, Nothing(), fastjson.dumps(group)
        )

    async def put_groups(self, address: str, groups: Sequence[GroupConfig]) -> None:
        """Create or change many groups on one broker; one by one if it takes no lists."""
        for group in groups:
            check_group_name(group.group_name)
        _, answer = await self.instance.call(
            address,
            calls.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST,
            Nothing(),
            fastjson.dumps(GroupConfigList(group_config_list=list(groups))),
            expect=(ResponseCode.SUCCESS, ResponseCode.REQUEST_CODE_NOT_SUPPORTED),
        )
        if answer.code != ResponseCode.SUCCESS:
            for group in groups:
                await self.put_group(address, group)

    async def group_configs(self, address: str) -> dict[str, GroupConfig]:
        """The settings of all groups of one broker, by group name."""
        _, answer = await self.instance.call(
            address, calls.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, Nothing()
        )
        return group_table(answer.body)

    async def delete_group(
        self,
        name: str,
        *,
        cluster: str | None = None,
        address: str | None = None,
        with_offsets: bool = False,
    ) -> list[str]:
        """Delete a group's settings on every master, and `with_offsets` its progress.

        Returns the addresses of the masters; with `address` it is only that one.
        """
        header = c.DeleteGroupRequest(
            group_name=name, remove_offset=with_offsets, clean_offset=with_offsets
        )
        found = [address] if address else list((await self.masters(cluster=cluster)).values())

        async def delete(place: str) -> None:
            await self.instance.call(place, calls.DELETE_SUBSCRIPTIONGROUP, header)

        await at_each(f"delete group {name}", found, delete)
        return found

    async def consume_stats(self, group: str, topic: str | None = None) -> GroupProgress:
        """The progress of a group on all its brokers."""
        header = c.ConsumeStatsRequest(consumer_group=group, topic=topic)
        queues: dict[Queue, OffsetWrapper] = {}
        tps = 0.0
        for address in await self._addresses_of_group(group, topic):
            _, answer = await self.instance.call(address, calls.GET_CONSUME_STATS, header)
            part = progress(answer.body)
            queues |= part.queues
            tps += part.tps
        return GroupProgress(dict(sorted(queues.items())), tps)

    async def _addresses_of_group(self, group: str, topic: str | None) -> list[str]:
        """The brokers that know a group: those of its retry topic, else of the topic, else all."""
        for name in (retry_topic(group), topic):
            if name is not None:
                try:
                    return await self._addresses_of(name)
                except NoRoute:
                    continue
        return list((await self.masters()).values())

    async def consumers(self, group: str, *, address: str | None = None) -> ConsumerConnections:
        """The members of a group that are connected right now, to all brokers or to one."""
        addresses = [address] if address else await self._addresses_of_group(group, None)
        return await members.consumers(self.instance, addresses, group)

    async def subscription_conflicts(self, group: str) -> list[SubscriptionConflict]:
        """Where members of a group differ in their subscriptions; such a group loses messages."""
        addresses = await self._addresses_of_group(group, None)
        return await members.subscription_conflicts(self.instance, addresses, group)

    async def producers(self, group: str, topic: str) -> ProducerConnections:
        """The producers of a group that are connected to a topic's brokers."""
        return await members.producers(self.instance, await self._addresses_of(topic), group)

    async def preview_reset(
        self, group: str, topic: str, to: To, *, queue: Queue | None = None, force: bool = False
    ) -> list[ResetRow]:
        """What `reset` would do to each queue; changes nothing."""
        return await reset_offsets.preview(
            self.instance, group, topic, to, queue=queue, force=force
        )

    async def reset(
        self, group: str, topic: str, to: To, *, queue: Queue | None = None, force: bool = False
    ) -> list[ResetRow]:
        """Move a group's progress to "first", "last", an offset or a time; returns what moved.

        Progress only moves back, unless `force` is set: then a reset may skip messages. Running
        members read from the new offset at once.
        """
        rows = await self.preview_reset(group, topic, to, queue=queue, force=force)
        return await reset_offsets.reset(self.instance, group, rows)

    async def consumer_status(self, group: str, topic: str) -> dict[str, dict[Queue, int]]:
        """The progress that each running member reports, by client id."""
        found: dict[str, dict[Queue, int]] = {}
        for address in await self._addresses_of(topic):
            part = await reset_offsets.consumer_status(self.instance, address, group, topic)
            for client_id, queues in part.items():
                found.setdefault(client_id, {}).update(queues)
        return found

    async def clone_offsets(self, source: str, target: str, topic: str) -> None:
        """Give a group the progress of another one on a topic, on every broker of the topic."""
        header = CloneOffsetRequest(src_group=source, dest_group=target, topic=topic)

        async def clone(address: str) -> None:
            await self.instance.call(address, calls.CLONE_GROUP_OFFSET, header)

        await at_each(f"clone offsets of {source}", await self._addresses_of(topic), clone)

    async def set_request_mode(self, address: str, mode: RequestMode) -> None:
        """Let a group read a topic by pull or by POP."""
        await self.instance.call(
            address, calls.SET_MESSAGE_REQUEST_MODE, Nothing(), fastjson.dumps(mode)
        )

    async def running_info(
        self, group: str, client_id: str, *, stacks: bool = False
    ) -> dict[str, Any]:
        """What a member says of itself: RocketMQ's ConsumerRunningInfo, with `stacks` if asked."""
        addresses = await self._addresses_of_group(group, None)
        return await members.running_info(self.instance, addresses, group, client_id, stacks)

    async def consume_directly(
        self, message: Received, group: str, client_id: str
    ) -> dict[str, Any]:
        """Let one member consume a stored message now; progress does not move.

        Returns RocketMQ's ConsumeMessageDirectlyResult.
        """
        host, port = message.store_host
        header = ConsumeDirectlyRequest(
            consumer_group=group, client_id=client_id, msg_id=message.offset_msg_id
        )
        _, answer = await self.instance.call(
            f"{host}:{port}", calls.CONSUME_MESSAGE_DIRECTLY, header, timeout=DIRECT_SECONDS_MAX
        )
        result = fastjson.loads(answer.body)
        return dict(result) if isinstance(result, dict) else {}
