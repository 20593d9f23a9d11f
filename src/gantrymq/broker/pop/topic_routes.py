"""The queues of a topic on all brokers, from the name servers."""

import logging

from gantrymq.base.errors import GantryError
from gantrymq.base.network import Network, split_address
from gantrymq.broker.settings.config import BrokerConfig
from gantrymq.broker.settings.own_key import own_signer
from gantrymq.broker.tables.registry import Topics
from gantrymq.client.core.routes import subscribe_queues
from gantrymq.model import READ, Queue, Route
from gantrymq.protocol import calls as c
from gantrymq.protocol import fastjson
from gantrymq.protocol.codes import ResponseCode
from gantrymq.protocol.command import Command
from gantrymq.protocol.headers.topics import RouteRequest
from gantrymq.remoting.connection import Connection

log = logging.getLogger(__name__)

CONNECT_SECONDS_MAX = 3.0
ASK_SECONDS_MAX = 3.0
FRESH_SECONDS = 5.0
"""How long an answer is good: a group of many members asks the same again and again."""
TOPICS_MAX = 10_000


class TopicRoutes:
    """Asks name servers, keeps an answer for 5 s, and adds this broker's own queues."""

    def __init__(self, config: BrokerConfig, topics: Topics, network: Network) -> None:
        self._config, self._topics, self._network = config, topics, network
        self._connections: dict[str, Connection] = {}
        self._known: dict[str, tuple[float, list[Queue]]] = {}

    async def queues(self, topic: str, now: float) -> list[Queue] | None:
        """All readable queues of a topic; None if there are none or they are unknown."""
        if not self._config.name_servers:
            return self._own(topic) or None
        known = self._known.get(topic)
        if known is None or now - known[0] > FRESH_SECONDS:
            asked = await self._ask(topic)
            if asked is None:
                return known[1] if known is not None else None
            known = now, asked
            if len(self._known) >= TOPICS_MAX:
                self._known.clear()
            self._known[topic] = known
        others = [queue for queue in known[1] if queue.broker_name != self._config.broker_name]
        return sorted(others + self._own(topic)) or None

    def _own(self, topic: str) -> list[Queue]:
        found = self._topics.get(topic)
        if found is None or not found.perm & READ:
            return []
        name = self._config.broker_name
        return [Queue(topic, name, queue_id) for queue_id in range(found.read_queue_nums)]

    async def _ask(self, topic: str) -> list[Queue] | None:
        for server in self._config.name_servers:
            request = RouteRequest(topic=topic, accept_standard_json_only=True)
            command = Command(code=c.GET_ROUTEINFO_BY_TOPIC.code, ext=request.to_ext())
            try:
                connection = await self._connect(server)
                answer = await connection.call(command, ASK_SECONDS_MAX)
                if answer.code == ResponseCode.TOPIC_NOT_EXIST:
                    return []
                if answer.code == ResponseCode.SUCCESS:
                    return subscribe_queues(fastjson.load_as(answer.body, Route), topic)
            except GantryError as error:
                log.info("route of %s from %s: %s", topic, server, error)
        return None

    async def _connect(self, server: str) -> Connection:
        known = self._connections.get(server)
        if known is not None and known.open:
            return known
        host, port = split_address(server, 9876)
        connection = await self._network.connect(
            host, port, lambda: Connection(sign=own_signer(self._config)), CONNECT_SECONDS_MAX
        )
        self._connections[server] = connection
        return connection

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
