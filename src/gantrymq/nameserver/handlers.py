"""What a name server answers, one short function a call."""

import zlib
from collections.abc import Callable
from typing import TypeVar

from gantrymq.base.clock import WallClock
from gantrymq.base.config import format_properties, parse_properties
from gantrymq.base.errors import GantryError, ProtocolError
from gantrymq.model import DataVersion, Route
from gantrymq.nameserver.config import NameServerConfig
from gantrymq.nameserver.kv import ORDER_NAMESPACE, KvConfig
from gantrymq.nameserver.live_settings import NameServerSettings
from gantrymq.nameserver.registration import decode_body
from gantrymq.nameserver.table import (
    UNIT_FLAG,
    UNIT_SUB_FLAG,
    Registration,
    RegistrationRefused,
    RouteTable,
)
from gantrymq.protocol import calls as c
from gantrymq.protocol import fastjson
from gantrymq.protocol.bodies import KvTable, TopicList
from gantrymq.protocol.calls import Call
from gantrymq.protocol.codes import ResponseCode
from gantrymq.protocol.command import Command, response
from gantrymq.protocol.headers import topics as t
from gantrymq.protocol.headers.base import Header
from gantrymq.remoting.connection import Connection
from gantrymq.remoting.server import HandlerTable, Hot

NO_ROUTE = "No topic route info in name server for the topic: "
FAQ = "\nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."

Q = TypeVar("Q", bound=Header)
R = TypeVar("R", bound=Header)
Answer = Command | None


class NotFound(GantryError):
    code = ResponseCode.QUERY_NOT_FOUND


class RouteMissing(GantryError):
    code = ResponseCode.TOPIC_NOT_EXIST


class NameServerHandlers:
    """The conversations of a name server over its two tables."""

    def __init__(
        self,
        table: RouteTable,
        kv: KvConfig,
        live: NameServerSettings,
        config: NameServerConfig,
        clock: WallClock,
    ) -> None:
        self._table, self._kv, self._config, self._clock = table, kv, config, clock
        self._live = live

    def routes(self) -> HandlerTable:
        """Everything a name server answers, on one screen."""
        return HandlerTable(
            hot=dict(
                [
                    _on(c.GET_KV_CONFIG, self._get_kv),
                    _on(c.GET_KVLIST_BY_NAMESPACE, self._kv_list),
                    _on(c.REGISTER_BROKER, self._register),
                    _on(c.UNREGISTER_BROKER, self._unregister),
                    _on(c.QUERY_DATA_VERSION, self._query_version),
                    _on(c.BROKER_HEARTBEAT, self._heartbeat),
                    _on(c.GET_BROKER_MEMBER_GROUP, self._members),
                    _on(c.GET_ROUTEINFO_BY_TOPIC, self._route),
                    _on(c.GET_BROKER_CLUSTER_INFO, self._cluster_info),
                    _on(c.WIPE_WRITE_PERM_OF_BROKER, self._wipe),
                    _on(c.ADD_WRITE_PERM_OF_BROKER, self._add_write),
                    _on(c.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, self._all_topics),
                    _on(c.DELETE_TOPIC_IN_NAMESRV, self._delete_topic),
                    _on(c.REGISTER_TOPIC_IN_NAMESRV, self._register_topic),
                    _on(c.GET_TOPICS_BY_CLUSTER, self._topics_by_cluster),
                    _on(c.GET_SYSTEM_TOPIC_LIST_FROM_NS, self._system_topics),
                    _on(c.GET_UNIT_TOPIC_LIST, self._unit_topics),
                    _on(c.GET_HAS_UNIT_SUB_TOPIC_LIST, self._unit_sub_topics),
                    _on(c.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST, self._unit_sub_only_topics),
                    _on(c.GET_NAMESRV_CONFIG, self._get_config),
                ]
            ),
            slow={
                c.PUT_KV_CONFIG.code: self._put_kv,
                c.DELETE_KV_CONFIG.code: self._delete_kv,
                c.UPDATE_NAMESRV_CONFIG.code: self._update_config,
            },
        )

    # brokers

    def _register(self, peer: Connection, request: Command, h: t.RegisterBrokerRequest) -> Answer:
        if h.body_crc32 and zlib.crc32(request.body) & 0x7FFF_FFFF != h.body_crc32:
            raise ProtocolError("crc32 not match")
        body = decode_body(request.body)
        new = Registration(
            cluster=h.cluster_name,
            name=h.broker_name,
            address=h.broker_addr,
            broker_id=h.broker_id,
            ha_address=h.ha_server_addr,
            silent_ms_max=h.heartbeat_timeout_millis or self._config.broker_silent_ms_max,
            acting_master=bool(h.enable_acting_master),
            version=body.topics.data_version,
            topics=body.topics.topic_config_table,
            filter_servers=tuple(body.filter_server_list),
        )
        try:
            master, ha = self._table.register(new, peer, self._clock.now_ms())
        except RegistrationRefused as error:
            raise ProtocolError(str(error)) from error
        order = self._kv.table(ORDER_NAMESPACE)
        return response(
            request,
            ext=t.RegisterBrokerResponse(ha_server_addr=ha, master_addr=master).to_ext(),
            body=fastjson.dumps(KvTable(table=order)) if order else b"",
        )

    def _unregister(self, peer: Connection, request: Command, h: t.BrokerIdentity) -> Answer:
        self._table.unregister(h.broker_name, h.broker_addr, h.broker_id)
        return response(request)

    def _query_version(self, peer: Connection, request: Command, h: t.BrokerIdentity) -> Answer:
        theirs = fastjson.load_as(request.body or b"{}", DataVersion)
        known = self._table.version_of(h.broker_addr)
        changed = known != theirs
        if not changed:
            self._table.heard(h.broker_addr, self._clock.now_ms())
        return response(
            request,
            ext=t.DataVersionResponse(changed=changed).to_ext(),
            body=fastjson.dumps(known) if known is not None else b"",
        )

    def _heartbeat(self, peer: Connection, request: Command, h: t.BrokerHeartbeatRequest) -> Answer:
        self._table.heard(h.broker_addr, self._clock.now_ms())
        return response(request)

    def _members(self, peer: Connection, request: Command, h: t.MemberGroupRequest) -> Answer:
        known = self._table.members(h.broker_name)
        group = {
            "brokerAddrs": known.broker_addrs if known else {},
            "brokerName": h.broker_name,
            "cluster": h.cluster_name,
        }
        return response(request, body=fastjson.dumps({"brokerMemberGroup": group}))

    def _wipe(self, peer: Connection, request: Command, h: t.BrokerNameRequest) -> Answer:
        count = self._table.set_write(h.broker_name, False)
        return response(request, ext=t.WipeResponse(wipe_topic_count=count).to_ext())

    def _add_write(self, peer: Connection, request: Command, h: t.BrokerNameRequest) -> Answer:
        count = self._table.set_write(h.broker_name, True)
        return response(request, ext=t.AddPermResponse(add_topic_count=count).to_ext())

    # routes and topics

    def _route(self, peer: Connection, request: Command, h: t.RouteRequest) -> Answer:
        route = self._table.route(h.topic)
        if route is None:
            raise RouteMissing(f"{NO_ROUTE}{h.topic}{FAQ}")
        if self._config.order_message_enable:
            route.order_topic_conf = self._kv.get(ORDER_NAMESPACE, h.topic)
        return response(request, body=_without_nulls(route))

    def _cluster_info(self, peer: Connection, request: Command, h: Header) -> Answer:
        return response(request, body=fastjson.dumps(self._table.cluster_info()))

    def _all_topics(self, peer: Connection, request: Command, h: Header) -> Answer:
        if not self._config.enable_all_topic_list:
            raise ProtocolError("disable")
        return _topic_list(request, self._table.topics())

    def _delete_topic(
        self, peer: Connection, request: Command, h: t.DeleteTopicInNamesrvRequest
    ) -> Answer:
        self._table.delete_topic(h.topic, h.cluster_name)
        return response(request)

    def _register_topic(self, peer: Connection, request: Command, h: t.TopicRequest) -> Answer:
        route = fastjson.load_as(request.body or b"{}", Route)
        self._table.add_topic(h.topic, route.queue_datas)
        return response(request)

    def _topics_by_cluster(self, peer: Connection, request: Command, h: t.ClusterRequest) -> Answer:
        return _topic_list(request, self._table.topics_of_cluster(h.cluster))

    def _system_topics(self, peer: Connection, request: Command, h: Header) -> Answer:
        names, address = self._table.system_names()
        return response(
            request, body=fastjson.dumps(TopicList(broker_addr=address, topic_list=names))
        )

    def _unit_topics(self, peer: Connection, request: Command, h: Header) -> Answer:
        return _topic_list(request, self._table.topics_by_flag(lambda f: bool(f & UNIT_FLAG)))

    def _unit_sub_topics(self, peer: Connection, request: Command, h: Header) -> Answer:
        return _topic_list(request, self._table.topics_by_flag(lambda f: bool(f & UNIT_SUB_FLAG)))

    def _unit_sub_only_topics(self, peer: Connection, request: Command, h: Header) -> Answer:
        both = UNIT_FLAG | UNIT_SUB_FLAG
        return _topic_list(
            request, self._table.topics_by_flag(lambda flag: flag & both == UNIT_SUB_FLAG)
        )

    # key-value configuration and settings

    async def _put_kv(self, peer: Connection, request: Command) -> Command:
        h = c.PUT_KV_CONFIG.request.parse(request.ext)
        await self._kv.put(h.namespace, h.key, h.value)
        return response(request)

    def _get_kv(self, peer: Connection, request: Command, h: t.KvRequest) -> Answer:
        value = self._kv.get(h.namespace, h.key)
        if value is None:
            raise NotFound(f"No config item, Namespace: {h.namespace} Key: {h.key}")
        return response(request, ext=t.KvResponse(value=value).to_ext())

    async def _delete_kv(self, peer: Connection, request: Command) -> Command:
        h = c.DELETE_KV_CONFIG.request.parse(request.ext)
        await self._kv.delete(h.namespace, h.key)
        return response(request)

    def _kv_list(self, peer: Connection, request: Command, h: t.NamespaceRequest) -> Answer:
        table = self._kv.table(h.namespace)
        if table is None:
            raise NotFound(f"No config item, Namespace: {h.namespace}")
        return response(request, body=fastjson.dumps(KvTable(table=table)))

    async def _update_config(self, peer: Connection, request: Command) -> Command:
        await self._live.change(parse_properties(request.body.decode("utf-8", "replace")))
        return response(request)

    def _get_config(self, peer: Connection, request: Command, h: Header) -> Answer:
        text = format_properties(self._live.in_force)
        return response(request, body=text.encode())


def _topic_list(request: Command, topics: list[str]) -> Command:
    return response(request, body=fastjson.dumps(TopicList(topic_list=topics)))


def _without_nulls(route: Route) -> bytes:
    data = {
        "brokerDatas": route.broker_datas,
        "filterServerTable": route.filter_server_table,
        "queueDatas": route.queue_datas,
    }
    if route.order_topic_conf is not None:
        data["orderTopicConf"] = route.order_topic_conf
    return fastjson.dumps(data)


def _on(call: Call[Q, R], handler: Callable[[Connection, Command, Q], Answer]) -> tuple[int, Hot]:
    """A route: parse the typed header, answer on the spot. All of it is memory work."""

    def hot(peer: Connection, request: Command) -> None:
        answer = handler(peer, request, call.request.parse(request.ext))
        assert answer is not None
        peer.reply(request, answer.code, ext=answer.ext, remark=answer.remark, body=answer.body)

    return call.code, hot
