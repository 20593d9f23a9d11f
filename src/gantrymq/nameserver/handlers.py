"""The handlers of a name server, one short function a request code."""

import zlib
from collections.abc import Callable
from typing import TypeVar

from gantrymq.base.clock import WallClock
from gantrymq.base.config import format_properties, parse_properties
from gantrymq.base.errors import GantryError, ProtocolError
from gantrymq.model import DataVersion, Route, check_readable_name
from gantrymq.nameserver.config import NameServerConfig
from gantrymq.nameserver.kv import ORDER_NAMESPACE, KvConfig
from gantrymq.nameserver.live_settings import NameServerSettings
from gantrymq.nameserver.registration import decode_body
from gantrymq.nameserver.route_bodies import RouteBodies, encode_route
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
from gantrymq.remoting.limits import LimitReached
from gantrymq.remoting.server import Guard, HandlerTable, Hot

NO_ROUTE = "No topic route info in name server for the topic: "
NO_TOPIC = t.RouteRequest().topic
FAQ = "\nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."

Q = TypeVar("Q", bound=Header)
R = TypeVar("R", bound=Header)
Answer = Command | None


class NotFound(GantryError):
    code = ResponseCode.QUERY_NOT_FOUND


class RouteMissing(GantryError):
    code = ResponseCode.TOPIC_NOT_EXIST


class NameServerHandlers:
    """Answers requests from the route table and the key-value table."""

    def __init__(
        self,
        table: RouteTable,
        kv: KvConfig,
        live: NameServerSettings,
        config: NameServerConfig,
        clock: WallClock,
    ) -> None:
        self._table, self._kv, self._config, self._clock = table, kv, config, clock
        self._live, self._bodies = live, RouteBodies(table)

    def routes(self, guard: Guard | None = None) -> HandlerTable:
        """Every request code that a name server answers, and its handler."""
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
                    (c.GET_ROUTEINFO_BY_TOPIC.code, self._route),
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
            guard=guard,
        )

    # brokers

    def _register(self, peer: Connection, request: Command, h: t.RegisterBrokerRequest) -> Answer:
        """REGISTER_BROKER (103): take over a broker's topics; answers its master's address.

        The body of the answer has the order topics of the key-value table, if there are any.
        """
        self._check_registration(h)
        if h.body_crc32 and zlib.crc32(request.body) & 0x7FFF_FFFF != h.body_crc32:
            raise ProtocolError("crc32 not match")
        body = decode_body(request.body, self._config.max_registration_bytes)
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

    def _check_registration(self, h: t.RegisterBrokerRequest) -> None:
        """Raise if clients could not use what a broker registers, or if there are too many."""
        check_readable_name("broker name", h.broker_name)
        check_readable_name("cluster name", h.cluster_name)
        check_readable_name("broker address", h.broker_addr)
        limit = self._config.max_brokers
        if self._table.is_new(h.broker_addr) and self._table.size >= limit:
            raise LimitReached("maxBrokers", f"no more brokers: raise maxBrokers (now {limit})")

    def _unregister(self, peer: Connection, request: Command, h: t.BrokerIdentity) -> Answer:
        """UNREGISTER_BROKER (104): remove an address; with a broker's last one, its queues."""
        self._table.unregister(h.broker_name, h.broker_addr, h.broker_id)
        return response(request)

    def _query_version(self, peer: Connection, request: Command, h: t.BrokerIdentity) -> Answer:
        """QUERY_DATA_VERSION (322): whether a broker's topics changed since it registered.

        If they did not change, the request counts as a heartbeat.
        """
        theirs = fastjson.load_as(request.body or b"{}", DataVersion, fastjson.DIALECT_BYTES_MAX)
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
        """BROKER_HEARTBEAT (904): keep a registered broker alive."""
        self._table.heard(h.broker_addr, self._clock.now_ms())
        return response(request)

    def _members(self, peer: Connection, request: Command, h: t.MemberGroupRequest) -> Answer:
        """GET_BROKER_MEMBER_GROUP (901): the addresses of a broker name, by broker id."""
        known = self._table.members(h.broker_name)
        group = {
            "brokerAddrs": known.broker_addrs if known else {},
            "brokerName": h.broker_name,
            "cluster": h.cluster_name,
        }
        return response(request, body=fastjson.dumps({"brokerMemberGroup": group}))

    def _wipe(self, peer: Connection, request: Command, h: t.BrokerNameRequest) -> Answer:
        """WIPE_WRITE_PERM_OF_BROKER (205): take write permission from all topics of a broker."""
        count = self._table.set_write(h.broker_name, False)
        return response(request, ext=t.WipeResponse(wipe_topic_count=count).to_ext())

    def _add_write(self, peer: Connection, request: Command, h: t.BrokerNameRequest) -> Answer:
        """ADD_WRITE_PERM_OF_BROKER (327): give write permission back to all topics of a broker."""
        count = self._table.set_write(h.broker_name, True)
        return response(request, ext=t.AddPermResponse(add_topic_count=count).to_ext())

    # routes and topics

    def _route(self, peer: Connection, request: Command) -> None:
        """GET_ROUTEINFO_BY_TOPIC (105): the brokers and queues of a topic."""
        # Every client asks for all its topics every 30 s: the field is read without a typed header.
        topic = request.ext.get("topic", NO_TOPIC)
        ordered = self._config.order_message_enable
        body = self._ordered_route(topic) if ordered else self._bodies.body_of(topic)
        if body is None:
            raise RouteMissing(f"{NO_ROUTE}{topic}{FAQ}")
        peer.reply(request, body=body)

    def _ordered_route(self, topic: str) -> bytes | None:
        """The route with the fixed queue list of the key-value table, which may change any time."""
        route = self._table.route(topic)
        if route is None:
            return None
        route.order_topic_conf = self._kv.get(ORDER_NAMESPACE, topic)
        return encode_route(route)

    def _cluster_info(self, peer: Connection, request: Command, h: Header) -> Answer:
        """GET_BROKER_CLUSTER_INFO (106): all clusters, brokers and addresses."""
        return response(request, body=fastjson.dumps(self._table.cluster_info()))

    def _all_topics(self, peer: Connection, request: Command, h: Header) -> Answer:
        """GET_ALL_TOPIC_LIST_FROM_NAMESERVER (206): the names of all topics."""
        if not self._config.enable_all_topic_list:
            raise ProtocolError("disable")
        return _topic_list(request, self._table.topics())

    def _delete_topic(
        self, peer: Connection, request: Command, h: t.DeleteTopicInNamesrvRequest
    ) -> Answer:
        """DELETE_TOPIC_IN_NAMESRV (216): delete the route of a topic, in one cluster if named."""
        self._table.delete_topic(h.topic, h.cluster_name)
        return response(request)

    def _register_topic(self, peer: Connection, request: Command, h: t.TopicRequest) -> Answer:
        """REGISTER_TOPIC_IN_NAMESRV (217): add a topic on brokers that are registered."""
        check_readable_name("topic", h.topic)
        route = fastjson.load_as(request.body or b"{}", Route, fastjson.DIALECT_BYTES_MAX)
        self._table.add_topic(h.topic, route.queue_datas)
        return response(request)

    def _topics_by_cluster(self, peer: Connection, request: Command, h: t.ClusterRequest) -> Answer:
        """GET_TOPICS_BY_CLUSTER (224): the topics of a cluster."""
        return _topic_list(request, self._table.topics_of_cluster(h.cluster))

    def _system_topics(self, peer: Connection, request: Command, h: Header) -> Answer:
        """GET_SYSTEM_TOPIC_LIST_FROM_NS (304): names of clusters and brokers, and one address."""
        names, address = self._table.system_names()
        return response(
            request, body=fastjson.dumps(TopicList(broker_addr=address, topic_list=names))
        )

    def _unit_topics(self, peer: Connection, request: Command, h: Header) -> Answer:
        """GET_UNIT_TOPIC_LIST (311): topics with the unit flag."""
        return _topic_list(request, self._table.topics_by_flag(lambda f: bool(f & UNIT_FLAG)))

    def _unit_sub_topics(self, peer: Connection, request: Command, h: Header) -> Answer:
        """GET_HAS_UNIT_SUB_TOPIC_LIST (312): topics with the unit subscription flag."""
        return _topic_list(request, self._table.topics_by_flag(lambda f: bool(f & UNIT_SUB_FLAG)))

    def _unit_sub_only_topics(self, peer: Connection, request: Command, h: Header) -> Answer:
        """GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST (313): topics with only the unit subscription flag."""
        both = UNIT_FLAG | UNIT_SUB_FLAG
        return _topic_list(
            request, self._table.topics_by_flag(lambda flag: flag & both == UNIT_SUB_FLAG)
        )

    # key-value configuration and settings

    async def _put_kv(self, peer: Connection, request: Command) -> Command:
        """PUT_KV_CONFIG (100): set a value; answered once it is on disk."""
        h = c.PUT_KV_CONFIG.request.parse(request.ext)
        check_readable_name("namespace", h.namespace)
        check_readable_name("key", h.key)
        limit = self._config.max_kv_bytes
        if self._kv.size + len(h.namespace) + len(h.key) + len(h.value) > limit:
            raise LimitReached("maxKvBytes", f"no more KV config: raise maxKvBytes (now {limit})")
        await self._kv.put(h.namespace, h.key, h.value)
        return response(request)

    def _get_kv(self, peer: Connection, request: Command, h: t.KvRequest) -> Answer:
        """GET_KV_CONFIG (101): the value of a key in a namespace."""
        value = self._kv.get(h.namespace, h.key)
        if value is None:
            raise NotFound(f"No config item, Namespace: {h.namespace} Key: {h.key}")
        return response(request, ext=t.KvResponse(value=value).to_ext())

    async def _delete_kv(self, peer: Connection, request: Command) -> Command:
        """DELETE_KV_CONFIG (102): delete a key; answered once that is on disk."""
        h = c.DELETE_KV_CONFIG.request.parse(request.ext)
        await self._kv.delete(h.namespace, h.key)
        return response(request)

    def _kv_list(self, peer: Connection, request: Command, h: t.NamespaceRequest) -> Answer:
        """GET_KVLIST_BY_NAMESPACE (219): all keys and values of a namespace."""
        table = self._kv.table(h.namespace)
        if table is None:
            raise NotFound(f"No config item, Namespace: {h.namespace}")
        return response(request, body=fastjson.dumps(KvTable(table=table)))

    async def _update_config(self, peer: Connection, request: Command) -> Command:
        """UPDATE_NAMESRV_CONFIG (318): change settings."""
        await self._live.change(parse_properties(request.body.decode("utf-8", "replace")))
        return response(request)

    def _get_config(self, peer: Connection, request: Command, h: Header) -> Answer:
        """GET_NAMESRV_CONFIG (319): all settings that are in force, as a property file."""
        text = format_properties(self._live.shown)
        return response(request, body=text.encode())


def _topic_list(request: Command, topics: list[str]) -> Command:
    return response(request, body=fastjson.dumps(TopicList(topic_list=topics)))


def _on(call: Call[Q, R], handler: Callable[[Connection, Command, Q], Answer]) -> tuple[int, Hot]:
    """The code and a hot handler that parses the typed header and answers at once, from memory."""

    def hot(peer: Connection, request: Command) -> None:
        answer = handler(peer, request, call.request.parse(request.ext))
        assert answer is not None
        peer.reply(request, answer.code, ext=answer.ext, remark=answer.remark, body=answer.body)

    hot.__doc__ = handler.__doc__  # docs/requests.md is printed from it
    return call.code, hot
