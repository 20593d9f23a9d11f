"""The bodies of route answers, kept until the route table changes. Pure.

Clients ask for the same routes every 30 seconds, and routes change rarely: to build and encode a
route costs more than all the rest of a look-up.
"""

from typing import Final

from gantrymq.model import Route
from gantrymq.nameserver.table import RouteTable
from gantrymq.protocol import fastjson

KEPT_BYTES_MAX: Final = 16 * 1024 * 1024
"""Routes of 20 brokers have 5 KB each; a table of very many of them is not kept whole."""


class RouteBodies:
    """Encoded routes by topic, of one revision of the route table."""

    def __init__(self, table: RouteTable) -> None:
        self._table = table
        self._kept: dict[str, bytes] = {}
        self._kept_bytes = 0
        self._revision = -1

    def body_of(self, topic: str) -> bytes | None:
        """The route of a topic in JSON; None without a route."""
        if self._revision != self._table.revision:
            self._revision = self._table.revision
            self._forget()
        body = self._kept.get(topic)
        if body is None:
            route = self._table.route(topic)
            if route is None:
                return None
            body = encode_route(route)
            self._keep(topic, body)
        return body

    def _keep(self, topic: str, body: bytes) -> None:
        if self._kept_bytes + len(body) > KEPT_BYTES_MAX:
            self._forget()
        self._kept[topic] = body
        self._kept_bytes += len(body)

    def _forget(self) -> None:
        self._kept.clear()
        self._kept_bytes = 0


def encode_route(route: Route) -> bytes:
    """A route in JSON, without an ordered queue list if there is none."""
    data = {
        "brokerDatas": route.broker_datas,
        "filterServerTable": route.filter_server_table,
        "queueDatas": route.queue_datas,
    }
    if route.order_topic_conf is not None:
        data["orderTopicConf"] = route.order_topic_conf
    return fastjson.dumps(data)
