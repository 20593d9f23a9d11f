"""Registers the broker and its topics with every name server: at start, every 30 s, on change."""

import asyncio
import logging
import zlib
from collections.abc import Iterable
from contextlib import suppress

from gantrymq.base import upkeep
from gantrymq.base.errors import GantryError
from gantrymq.base.network import Network, split_address
from gantrymq.broker.settings.config import BrokerConfig
from gantrymq.broker.settings.own_key import own_signer
from gantrymq.broker.tables.registry import Topics
from gantrymq.model import READ, WRITE, DataVersion, TopicConfig
from gantrymq.protocol import calls as c
from gantrymq.protocol import fastjson
from gantrymq.protocol.bodies import ClusterInfo, RegisterBrokerBody, TopicTable
from gantrymq.protocol.command import Command
from gantrymq.protocol.headers.topics import (
    BrokerIdentity,
    RegisterBrokerRequest,
    RegisterBrokerResponse,
)
from gantrymq.remoting.connection import Connection

log = logging.getLogger(__name__)

CONNECT_SECONDS_MAX = 3.0
AGAIN_SECONDS = 3.0
"""How soon a name server that was not reached is tried again; it has no route to us until then."""
ANNOUNCE_SECONDS_MAX = 3.0
"""How long the creator of a topic waits for the name servers."""
LOST_SECONDS = 0.2
"""How soon everything is announced again after a connection broke."""


class Announcer:
    """One connection to each name server; a name server that is down is tried again."""

    def __init__(
        self, config: BrokerConfig, address: str, ha_address: str, topics: Topics, network: Network
    ) -> None:
        self._config, self.address, self.ha_address = config, address, ha_address
        self._topics, self._network = topics, network
        self._connections: dict[str, Connection] = {}
        self._silent: dict[str, str] = {}
        self._changed: dict[str, TopicConfig] = {}
        self._last_version: DataVersion | None = None
        """Of the last registration that was sent; name servers take no news under it again."""
        self._waiting_callers: list[asyncio.Future[None]] = []
        """Resolved when everything that has changed so far is announced."""
        self._wake = asyncio.Event()
        self._forgotten = False
        """Whether a connection broke: its name server has dropped this broker."""
        self.master: RegisterBrokerResponse | None = None
        """Of a slave: the master's addresses, as a name server last told them."""

    def topic_changed(self, topic: TopicConfig) -> None:
        """Announce one topic soon; all changes of one turn of the loop go in one request."""
        self._changed[topic.topic_name] = topic
        self._wake.set()

    async def announce(self, topics: Iterable[TopicConfig]) -> None:
        """Announce topics in one request, and return when the name servers have them.

        The wait ends after `ANNOUNCE_SECONDS_MAX`: a name server that does not answer by then
        learns of the topics when it is back.
        """
        for topic in topics:
            self.topic_changed(topic)
        announced: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting_callers.append(announced)
        with suppress(TimeoutError):
            await asyncio.wait_for(announced, ANNOUNCE_SECONDS_MAX)

    async def run(self) -> None:
        """Announce changes and, every `registerNameServerPeriod` (10 to 60 s), everything."""
        loop = asyncio.get_running_loop()
        due = loop.time() + self._period
        while True:
            again = upkeep.call_at(due, self.announce_all)
            try:
                await self._wake.wait()
            finally:
                again.cancel()
            self._wake.clear()
            callers, self._waiting_callers = self._waiting_callers, []
            if self._forgotten:
                self._forgotten = False
                await self.register_all()
                due = loop.time() + (AGAIN_SECONDS if self._silent else self._period)
            elif not await self._register_changes():
                due = min(due, loop.time() + AGAIN_SECONDS)
            for waiting in callers:
                if not waiting.done():
                    waiting.set_result(None)

    @property
    def _period(self) -> float:
        return min(max(self._config.register_name_server_period / 1000, 10.0), 60.0)

    def _lost(self, connection: Connection) -> None:
        # Not at once: a name server that closes every connection would be called in a loop.
        asyncio.get_running_loop().call_later(LOST_SECONDS, self.announce_all)

    def announce_all(self) -> None:
        """Announce everything soon."""
        self._forgotten = True
        self._wake.set()

    async def register_all(self) -> bool:
        """Announce everything; True when at least one name server took it."""
        self._changed.clear()
        self._leave_old_servers()
        return any(await self._to_each(self._topics.table))

    async def _register_changes(self) -> bool:
        """Announce what has changed; False when a name server did not take it.

        A name server takes topics only with a version that is new to it. These may be late: a topic
        that was created while they were being saved has been announced with their version.
        """
        changed, self._changed = self._changed, {}
        if self._topics.version == self._last_version:
            self._topics.renew_version()
        return all(await self._to_each(changed))

    async def _to_each(self, topics: dict[str, TopicConfig]) -> list[bool]:
        """Register at each name server: these topics, or all where the connection is a new one."""
        version = self._last_version = self._topics.version
        known = {server: self._is_connected(server) for server in self._config.name_servers}
        # Encoded in one step with the version: a topic that is created later has a later version.
        bodies = {
            each: self._body(topics if each else self._topics.table, version)
            for each in set(known.values())
        }
        return await asyncio.gather(
            *(self._register(server, bodies[each]) for server, each in known.items())
        )

    def _is_connected(self, server: str) -> bool:
        return server in self._connections and self._connections[server].open

    def _leave_old_servers(self) -> None:
        """Disconnect from name servers that the settings no longer name; they drop this broker."""
        for server in self._connections.keys() - set(self._config.name_servers):
            self._connections.pop(server).close()
            self._silent.pop(server, None)

    def _body(self, topics: dict[str, TopicConfig], version: DataVersion) -> bytes:
        """These topics, without a permission that the broker itself does not have."""
        allowed = self._config.broker_permission & (READ | WRITE)
        if allowed != READ | WRITE:
            topics = {name: _limited(topic, allowed) for name, topic in topics.items()}
        table = TopicTable(data_version=version, topic_config_table=topics)
        return fastjson.dumps(RegisterBrokerBody(topics=table))

    async def _register(self, server: str, body: bytes) -> bool:
        header = RegisterBrokerRequest(
            broker_name=self._config.broker_name,
            broker_addr=self.address,
            cluster_name=self._config.broker_cluster_name,
            ha_server_addr=self.ha_address,
            broker_id=self._config.broker_id,
            compressed=False,
            body_crc32=zlib.crc32(body) & 0x7FFF_FFFF,
        )
        command = Command(code=c.REGISTER_BROKER.code, ext=header.to_ext(), body=body)
        try:
            connection = await self._connect(server)
            answer = await connection.call(
                command, self._config.register_broker_timeout_mills / 1000
            )
        except GantryError as error:
            self._say_once(server, str(error))
            return False
        if answer.code != 0:
            self._say_once(server, f"refused with {answer.code}: {answer.remark}")
            return False
        if self._silent.pop(server, None) is not None:
            log.info("name server %s knows this broker now", server)
        told = RegisterBrokerResponse.parse(answer.ext)
        if self._config.broker_id and told.master_addr:
            self.master = told
        return True

    async def slave_hosts(self) -> frozenset[str]:
        """The hosts that name servers have as slaves of this broker."""
        hosts: set[str] = set()
        command = Command(code=c.GET_BROKER_CLUSTER_INFO.code)
        for connection in [each for each in self._connections.values() if each.open]:
            with suppress(GantryError):
                answer = await connection.call(command, CONNECT_SECONDS_MAX)
                info = fastjson.load_as(answer.body, ClusterInfo)
                data = info.broker_addr_table.get(self._config.broker_name)
                if data is not None and data.cluster == self._config.broker_cluster_name:
                    hosts |= {
                        split_address(address)[0]
                        for number, address in data.broker_addrs.items()
                        if number != "0"
                    }
        return frozenset(hosts)

    def _say_once(self, server: str, why: str) -> None:
        if self._silent.get(server) != why:
            self._silent[server] = why
            log.warning("name server %s not reached, trying again: %s", server, why)

    async def _connect(self, server: str) -> Connection:
        known = self._connections.get(server)
        if known is not None and known.open:
            return known
        host, port = split_address(server, 9876)
        connection = await self._network.connect(
            host,
            port,
            lambda: Connection(on_lost=self._lost, sign=own_signer(self._config)),
            CONNECT_SECONDS_MAX,
        )
        self._connections[server] = connection
        return connection

    def close(self) -> None:
        """Close the connections; name servers keep what they know for a while."""
        for connection in self._connections.values():
            connection.close()

    async def unregister(self) -> None:
        """Unregister from every name server, so that clients stop using this broker at once."""
        identity = BrokerIdentity(
            broker_name=self._config.broker_name,
            broker_addr=self.address,
            cluster_name=self._config.broker_cluster_name,
            broker_id=self._config.broker_id,
        )
        for server, connection in self._connections.items():
            if connection.open:
                command = Command(code=c.UNREGISTER_BROKER.code, ext=identity.to_ext())
                try:
                    await connection.call(command, CONNECT_SECONDS_MAX)
                except GantryError as error:
                    log.warning("name server %s was not told of the stop: %s", server, error)
            connection.close()


def _limited(topic: TopicConfig, allowed: int) -> TopicConfig:
    copy = TopicConfig(**{name: getattr(topic, name) for name in topic.__struct_fields__})
    copy.perm &= allowed
    return copy
