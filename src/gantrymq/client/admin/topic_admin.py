"""Administration of topics."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Final

from gantrymq.base import arguments
from gantrymq.client.admin.at_each import at_each
from gantrymq.client.admin.broker_admin import BrokerAdmin
from gantrymq.client.admin.tables import attribute_changes, topic_offsets
from gantrymq.client.admin.topics import order_topics
from gantrymq.client.core.errors import TRANSPORT_ERRORS, ClientError
from gantrymq.client.core.routes import queue_data_of
from gantrymq.model import READ, WRITE, Queue, Route, TopicConfig, check_topic_name
from gantrymq.protocol import calls, fastjson
from gantrymq.protocol.bodies import GroupList, TopicConfigList, TopicList, TopicOffset, TopicTable
from gantrymq.protocol.codes import NO_REMARK, ResponseCode
from gantrymq.protocol.headers import topics as t
from gantrymq.protocol.headers.base import Nothing

log = logging.getLogger(__name__)

ANNOUNCE_SECONDS_MAX: Final = 5.0
"""How long a new topic may take until the name servers list it."""
ANNOUNCE_PAUSE_SECONDS: Final = 0.02


class NotAnnounced(ClientError):
    """The brokers accepted a change, but a name server does not list it in time."""


class TopicAdmin(BrokerAdmin):
    """Creates, changes, deletes and describes topics."""

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
        sys_flag: int = 0,
        cluster: str | None = None,
        broker: str | None = None,
        address: str | None = None,
    ) -> dict[str, str]:
        """Create a topic, or change it, on every master asked for; returns their addresses.

        The masters are those of a cluster, or one broker by its name or its address. Returns when
        every reachable name server lists it. `order` fixes its queue list, so that a key always has
        the same queue: a send to a queue whose broker is down fails. `attributes` are those of
        RocketMQ 5 (`{"message.type": "FIFO"}`); None removes one, others stay. `sys_flag` marks
        topics of units, as RocketMQ does.
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
            topic_sys_flag=sys_flag,
        )
        if address is not None:
            masters = {await self.broker_name_at(address): address}
        else:
            masters = await self.masters(cluster=cluster, broker=broker)

        async def put(place: str) -> None:
            _, answer = await self.instance.call(place, calls.UPDATE_AND_CREATE_TOPIC, header)
            if answer.remark not in (None, "", NO_REMARK):
                log.warning("%s on %s: %s", name, place, answer.remark)

        await at_each(f"create topic {name}", masters.values(), put)
        await self._await_announced(header, masters)
        if order:
            await order_topics.fix_queues(
                self.instance,
                name,
                masters,
                header.write_queue_nums,
                others_stay=broker is not None or address is not None,
            )
        elif self.instance.routes.cached(name) is not None:
            await self.instance.routes.refresh(name)
        return masters

    async def put_topic(self, address: str, config: TopicConfig) -> None:
        """Create a topic on one broker, or change it; its attributes stay."""
        header = t.CreateTopicRequest(
            topic=check_topic_name(config.topic_name),
            read_queue_nums=config.read_queue_nums,
            write_queue_nums=config.write_queue_nums,
            perm=config.perm,
            order=config.order,
            topic_filter_type=config.topic_filter_type,
            topic_sys_flag=config.topic_sys_flag,
        )
        await self.instance.call(address, calls.UPDATE_AND_CREATE_TOPIC, header)

    async def put_topics(self, address: str, configs: Sequence[TopicConfig]) -> None:
        """Create or change many topics on one broker; one by one if it takes no lists."""
        for config in configs:
            check_topic_name(config.topic_name)
        body = fastjson.dumps(TopicConfigList(topic_config_list=list(configs)))
        _, answer = await self.instance.call(
            address,
            calls.UPDATE_AND_CREATE_TOPIC_LIST,
            Nothing(),
            body,
            expect=(ResponseCode.SUCCESS, ResponseCode.REQUEST_CODE_NOT_SUPPORTED),
        )
        if answer.code != ResponseCode.SUCCESS:
            for config in configs:
                await self.put_topic(address, config)

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
        masters = (await self.masters(cluster=cluster)).values()

        async def delete(place: str) -> None:
            await self.instance.call(
                place, calls.DELETE_TOPIC_IN_BROKER, t.TopicRequest(topic=name)
            )

        await at_each(f"delete topic {name}", masters, delete)
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

    async def topic_put_rate(self, name: str) -> float:
        """Messages a second that were sent to a topic in the last minute, over all its brokers."""
        found = [
            await self.broker_stats(address, "TOPIC_PUT_NUMS", name)
            for address in await self._addresses_of(name)
        ]
        return sum((stats.stats_minute.tps for stats in found if stats is not None), 0.0)
