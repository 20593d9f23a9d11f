"""Administration of a cluster: topics, groups, brokers and searches for messages, typed."""

import asyncio
import logging
import random
from collections.abc import Iterable, Mapping
from typing import Final

from gantrymq.base import arguments
from gantrymq.base.clock import WallClock
from gantrymq.base.config import format_properties, parse_properties
from gantrymq.base.network import Network
from gantrymq.client.admin import (
    members,
    message_query,
    order_topics,
    reset_offsets,
    waiting_messages,
)
from gantrymq.client.admin.message_query import FOREVER_MS, QUERY_MESSAGES_MAX
from gantrymq.client.admin.reset_offsets import ResetRow, To
from gantrymq.client.admin.tables import (
    GroupProgress,
    attribute_changes,
    group_table,
    progress,
    topic_offsets,
)
from gantrymq.client.consume.membership import queue_offsets
from gantrymq.client.core.errors import TRANSPORT_ERRORS, ClientError, NoRoute
from gantrymq.client.core.instance import Hook, Instance
from gantrymq.client.core.lifecycle import ClientPorts, Lifecycle, RunningPart
from gantrymq.client.core.options import ClientOptions, with_namesrv
from gantrymq.client.core.routes import queue_data_of
from gantrymq.client.messages.received import Received
from gantrymq.model import (
    READ,
    WRITE,
    GroupConfig,
    Queue,
    Route,
    TopicConfig,
    check_group_name,
    check_topic_name,
    retry_topic,
)
from gantrymq.protocol import calls, fastjson
from gantrymq.protocol.bodies import (
    ClusterInfo,
    ConsumerConnections,
    GroupList,
    HaStatus,
    KvTable,
    OffsetWrapper,
    ProducerConnections,
    RaftStatus,
    SubscriptionConflict,
    TopicList,
    TopicOffset,
    TopicTable,
)
from gantrymq.protocol.codes import NO_REMARK, ResponseCode
from gantrymq.protocol.headers import clients as c
from gantrymq.protocol.headers import topics as t
from gantrymq.protocol.headers.base import Nothing
from gantrymq.protocol.headers.copies import TransferLeadershipRequest
from gantrymq.protocol.waiting import WaitingTable

log = logging.getLogger(__name__)

ANNOUNCE_SECONDS_MAX: Final = 5.0
"""How long a new topic may take until the name servers list it."""
ANNOUNCE_PAUSE_SECONDS: Final = 0.02


class NotAnnounced(ClientError):
    """The brokers accepted a change, but a name server does not list it in time."""


class Admin(Lifecycle[RunningPart]):
    """An administrator's view of one cluster or several behind the same name servers."""

    def __init__(
        self,
        namesrv: str | None = None,
        *,
        client: ClientOptions | None = None,
        hooks: Iterable[Hook] = (),
        network: Network | None = None,
        clock: WallClock | None = None,
        rng: random.Random | None = None,
    ) -> None:
        ports = ClientPorts(network, clock, rng)
        super().__init__("the admin client", with_namesrv(client, namesrv), ports, hooks)

    async def _open(self, instance: Instance) -> RunningPart:
        return RunningPart(instance)

    async def _shut(self, running: RunningPart) -> None:
        """Nothing runs beside the instance."""

    # brokers

    async def cluster(self) -> ClusterInfo:
        """All brokers by name, and which cluster each belongs to."""
        _, answer = await self.instance.call_namesrv(calls.GET_BROKER_CLUSTER_INFO, Nothing())
        return fastjson.load_as(answer.body, ClusterInfo)

    async def masters(
        self, *, cluster: str | None = None, broker: str | None = None
    ) -> dict[str, str]:
        """Broker name to master address: of one broker, of one cluster, or of all."""
        members = await self.members(cluster=cluster, broker=broker)
        found = {name: addresses[0] for name, addresses in members.items() if 0 in addresses}
        if not found:
            raise ClientError(f"no master among {', '.join(members) or 'no brokers at all'}")
        return found

    async def members(
        self, *, cluster: str | None = None, broker: str | None = None
    ) -> dict[str, dict[int, str]]:
        """Broker name to the addresses of all its members, by id."""
        info = await self.cluster()
        if cluster is not None and cluster not in info.cluster_addr_table:
            known = ", ".join(sorted(info.cluster_addr_table)) or "none"
            raise ClientError(f"no cluster {cluster!r}; known: {known}")
        names = info.cluster_addr_table[cluster] if cluster else list(info.broker_addr_table)
        if broker is not None and broker not in names:
            raise ClientError(f"no broker {broker!r}; known: {', '.join(sorted(names)) or 'none'}")
        return {
            name: {int(key): value for key, value in data.broker_addrs.items()}
            for name, data in sorted(info.broker_addr_table.items())
            if name in names and broker in (None, name)
        }

    async def broker_runtime(self, address: str) -> dict[str, str]:
        """A broker's figures, by RocketMQ's names."""
        _, answer = await self.instance.call(address, calls.GET_BROKER_RUNTIME_INFO, Nothing())
        return fastjson.load_as(answer.body, KvTable).table

    async def ha_status(self, address: str) -> HaStatus:
        """How far the slaves of a master are, or how far a slave is."""
        _, answer = await self.instance.call(address, calls.GET_BROKER_HA_STATUS, Nothing())
        return fastjson.load_as(answer.body, HaStatus)

    async def raft_status(self, address: str) -> RaftStatus:
        """What a member of a raft group says of it."""
        _, answer = await self.instance.call(address, calls.GET_RAFT_STATUS, Nothing())
        return fastjson.load_as(answer.body, RaftStatus)

    async def transfer_raft_leadership(self, address: str, to: str | None = None) -> None:
        """Ask the leader of a raft group to hand leadership to a member; the best one by default.

        It returns when that has begun: `raft_status` says who leads.
        """
        header = TransferLeadershipRequest(to=to or "")
        await self.instance.call(address, calls.TRANSFER_RAFT_LEADERSHIP, header)

    async def broker_config(self, address: str) -> dict[str, str]:
        """A broker's settings, by RocketMQ's names."""
        _, answer = await self.instance.call(address, calls.GET_BROKER_CONFIG, Nothing())
        return parse_properties(answer.body.decode("utf-8", "replace"))

    async def update_broker_config(self, address: str, changes: Mapping[str, str]) -> str | None:
        """Change settings of a running broker; returns its remark on those not yet in force."""
        body = format_properties(changes).encode()
        _, answer = await self.instance.call(address, calls.UPDATE_BROKER_CONFIG, Nothing(), body)
        return answer.remark

    # topics

    async def create_topic(
        self,
        name: str,
        *,
        queues: int = 8,
        read_queues: int | None = None,
        write_queues: int | None = None,
        perm: int = READ | WRITE,
        order: bool = False,
        attributes: Mapping[str, str | None] | None = None,
        cluster: str | None = None,
        broker: str | None = None,
    ) -> dict[str, str]:
        """Create a topic, or change it, on every master asked for; returns their addresses.

        Returns when every reachable name server lists it. `order` fixes its queue list, so that a
        key always has the same queue: a send to a queue whose broker is down fails. `attributes`
        are those of RocketMQ 5 (`{"message.type": "FIFO"}`); None removes one, others stay.
        """
        arguments.whole("queues", queues, 1)
        for side, count in (("read_queues", read_queues), ("write_queues", write_queues)):
            if count is not None:
                arguments.whole(side, count, 0)
        header = t.CreateTopicRequest(
            topic=check_topic_name(name),
            read_queue_nums=queues if read_queues is None else read_queues,
            write_queue_nums=queues if write_queues is None else write_queues,
            perm=perm,
            order=order,
            attributes=attribute_changes(attributes or {}) or None,
        )
        masters = await self.masters(cluster=cluster, broker=broker)
        for address in masters.values():
            _, answer = await self.instance.call(address, calls.UPDATE_AND_CREATE_TOPIC, header)
            if answer.remark not in (None, "", NO_REMARK):
                log.warning("%s on %s: %s", name, address, answer.remark)
        await self._await_announced(header, masters)
        if order:
            await order_topics.fix_queues(
                self.instance,
                name,
                masters,
                header.write_queue_nums,
                others_stay=broker is not None,
            )
        elif self.instance.routes.cached(name) is not None:
            await self.instance.routes.refresh(name)
        return masters

    async def _await_announced(
        self, wanted: t.CreateTopicRequest, masters: Mapping[str, str]
    ) -> None:
        for address in self.instance.namesrv_addresses:
            try:
                async with asyncio.timeout(ANNOUNCE_SECONDS_MAX):
                    # The state is another process's, so polling is the only way to wait for it.
                    while not await self._lists(address, wanted, masters):  # noqa: ASYNC110
                        await asyncio.sleep(ANNOUNCE_PAUSE_SECONDS)
            except TRANSPORT_ERRORS:
                continue  # brokers register with a name server that is down once it is back
            except TimeoutError as error:
                raise NotAnnounced(
                    f"topic {wanted.topic!r} is on {', '.join(masters)}, but name server {address} "
                    f"does not list it after {ANNOUNCE_SECONDS_MAX:g} s"
                ) from error

    async def _lists(
        self, namesrv: str, wanted: t.CreateTopicRequest, masters: Mapping[str, str]
    ) -> bool:
        route = await self._route_at(namesrv, wanted.topic)
        if route is None:
            return False
        for name, address in masters.items():
            data = queue_data_of(route, name)
            if (
                data is None
                or data.read_queue_nums != wanted.read_queue_nums
                or data.write_queue_nums != wanted.write_queue_nums
            ):
                return False
            if data.perm != wanted.perm:
                if data.perm != wanted.perm & await self._permission(address):
                    return False
                log.warning(
                    "%s on %s: listed with permission %d instead of %d until brokerPermission "
                    "allows more",
                    wanted.topic,
                    name,
                    data.perm,
                    wanted.perm,
                )
        return True

    async def _permission(self, address: str) -> int:
        """A broker's brokerPermission, beyond which name servers list none of its topics."""
        config = await self.broker_config(address)
        return int(config.get("brokerPermission", READ | WRITE))

    async def _route_at(self, namesrv: str, topic: str) -> Route | None:
        _, answer = await self.instance.call(
            namesrv,
            calls.GET_ROUTEINFO_BY_TOPIC,
            t.RouteRequest(topic=topic, accept_standard_json_only=True),
            expect=(ResponseCode.SUCCESS, ResponseCode.TOPIC_NOT_EXIST),
        )
        found = answer.code == ResponseCode.SUCCESS and answer.body
        return fastjson.load_as(answer.body, Route) if found else None

    async def delete_topic(self, name: str, *, cluster: str | None = None) -> None:
        """Delete a topic on every master, then in every name server."""
        for address in (await self.masters(cluster=cluster)).values():
            await self.instance.call(
                address, calls.DELETE_TOPIC_IN_BROKER, t.TopicRequest(topic=name)
            )
        header = t.DeleteTopicInNamesrvRequest(topic=name, cluster_name=cluster)
        for address in self.instance.namesrv_addresses:
            try:
                await self.instance.call(address, calls.DELETE_TOPIC_IN_NAMESRV, header)
            except TRANSPORT_ERRORS:
                continue  # the brokers' next registration removes the topic there
        await order_topics.forget_queues(self.instance, name)
        self.instance.routes.drop(name)

    async def topics(self, *, cluster: str | None = None) -> list[str]:
        """The names of all topics, sorted."""
        if cluster is None:
            _, answer = await self.instance.call_namesrv(
                calls.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, Nothing()
            )
        else:
            _, answer = await self.instance.call_namesrv(
                calls.GET_TOPICS_BY_CLUSTER, t.ClusterRequest(cluster=cluster)
            )
        names = fastjson.load_as(answer.body, TopicList).topic_list if answer.body else []
        return sorted(names) if isinstance(names, list) else []

    async def topic_configs(self, address: str) -> dict[str, TopicConfig]:
        """The settings of all topics of one broker, by topic name."""
        _, answer = await self.instance.call(address, calls.GET_ALL_TOPIC_CONFIG, Nothing())
        return fastjson.load_as(answer.body, TopicTable).topic_config_table

    async def topic_route(self, name: str) -> Route:
        """The route of a topic, asked from a name server now."""
        return await self.instance.routes.refresh(name)

    async def topic_stats(self, name: str) -> dict[Queue, TopicOffset]:
        """First and next offset of every queue of a topic."""
        found: dict[Queue, TopicOffset] = {}
        for address in await self._addresses_of(name):
            _, answer = await self.instance.call(
                address, calls.GET_TOPIC_STATS_INFO, t.TopicRequest(topic=name)
            )
            found |= topic_offsets(answer.body)
        return dict(sorted(found.items()))

    async def topic_groups(self, name: str) -> list[str]:
        """The groups that consume a topic or consumed it before."""
        found: dict[str, None] = {}
        for address in await self._addresses_of(name):
            _, answer = await self.instance.call(
                address, calls.QUERY_TOPIC_CONSUME_BY_WHO, t.TopicRequest(topic=name)
            )
            found |= dict.fromkeys(fastjson.load_as(answer.body, GroupList).group_list)
        return sorted(found)

    async def _addresses_of(self, topic: str) -> list[str]:
        """One member of each broker that has the topic, the master where there is one."""
        route = await self.instance.routes.refresh(topic)
        routes = self.instance.routes
        return [routes.address_of(data.broker_name, any_id=True) for data in route.broker_datas]

    # groups

    async def groups(self, *, cluster: str | None = None) -> dict[str, GroupConfig]:
        """The settings of every consumer group; where brokers differ, the last one's."""
        found: dict[str, GroupConfig] = {}
        for address in (await self.masters(cluster=cluster)).values():
            _, answer = await self.instance.call(
                address, calls.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, Nothing()
            )
            found |= group_table(answer.body)
        return dict(sorted(found.items()))

    async def update_group(
        self, group: GroupConfig, *, cluster: str | None = None, broker: str | None = None
    ) -> dict[str, str]:
        """Create a group or change its settings on every master asked for."""
        check_group_name(group.group_name)
        masters = await self.masters(cluster=cluster, broker=broker)
        for address in masters.values():
            await self.instance.call(
                address, calls.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, Nothing(), fastjson.dumps(group)
            )
        return masters

    async def delete_group(
        self, name: str, *, cluster: str | None = None, with_offsets: bool = False
    ) -> None:
        """Delete a group's settings on every master, and `with_offsets` its progress."""
        header = c.DeleteGroupRequest(
            group_name=name, remove_offset=with_offsets, clean_offset=with_offsets
        )
        for address in (await self.masters(cluster=cluster)).values():
            await self.instance.call(address, calls.DELETE_SUBSCRIPTIONGROUP, header)

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

    async def consumers(self, group: str) -> ConsumerConnections:
        """The members of a group that are connected right now."""
        addresses = await self._addresses_of_group(group, None)
        return await members.consumers(self.instance, addresses, group)

    async def subscription_conflicts(self, group: str) -> list[SubscriptionConflict]:
        """Where members of a group differ in their subscriptions; such a group loses messages."""
        addresses = await self._addresses_of_group(group, None)
        return await members.subscription_conflicts(self.instance, addresses, group)

    async def producers(self, group: str, topic: str) -> ProducerConnections:
        """The producers of a group that are connected to a topic's brokers."""
        return await members.producers(self.instance, await self._addresses_of(topic), group)

    # back-tracking

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

    # queues and messages

    async def waiting(
        self, topic: str | None = None, *, count: int = 100, from_ms: int = 0
    ) -> dict[str, WaitingTable]:
        """Waiting messages by broker: figures by system topic and topic, and those due first."""
        masters = await self.masters()
        return await waiting_messages.waiting(self.instance, masters, topic, count, from_ms)

    async def min_offset(self, queue: Queue) -> int:
        """The offset of the oldest message that is still stored."""
        return await queue_offsets.min_offset(self.instance, queue)

    async def max_offset(self, queue: Queue) -> int:
        """The offset that the next message will get."""
        return await queue_offsets.max_offset(self.instance, queue)

    async def search_offset(self, queue: Queue, timestamp_ms: int) -> int:
        """The offset of the first message stored at that time or later."""
        return await queue_offsets.search_offset(self.instance, queue, timestamp_ms)

    async def message(self, msg_id: str, *, topic: str | None = None) -> Received:
        """A message by its id; the topic is needed for an id that the producer gave."""
        return await message_query.by_id(self.instance, msg_id, topic)

    async def query(
        self,
        topic: str,
        key: str,
        *,
        count_max: int = QUERY_MESSAGES_MAX,
        begin_ms: int = 0,
        end_ms: int = FOREVER_MS,
    ) -> list[Received]:
        """The messages of a topic that carry a key, oldest first."""
        return await message_query.by_key(
            self.instance, topic, key, count_max=count_max, begin_ms=begin_ms, end_ms=end_ms
        )
