"""The subscriptions of a consumer, and how brokers learn of them.

The client parses an SQL condition first, then asks every broker of the topic whether it accepts it:
RocketMQ's brokers ignore an operator that they do not know and everything after it, so that the
consumer would wait for messages that never come.
"""

import logging
from collections.abc import Callable

from gantrymq.base.arguments import wrong_type
from gantrymq.base.errors import GantryError
from gantrymq.client.core.consumer_errors import ConsumerMisused
from gantrymq.client.core.errors import TRANSPORT_ERRORS, BrokerRefused
from gantrymq.client.core.instance import Instance
from gantrymq.filter import condition
from gantrymq.model import Subscription, check_topic_name, retry_topic
from gantrymq.protocol import calls, fastjson
from gantrymq.protocol.bodies import CheckClient
from gantrymq.protocol.codes import SQL_OPERATORS, VERSION_5_1_3, ResponseCode
from gantrymq.protocol.headers.base import Nothing
from gantrymq.protocol.subscription import ALL, subscription

log = logging.getLogger(__name__)

SQL = "SQL92"
TEXT_OPERATORS = frozenset({"CONTAINS", "STARTSWITH", "ENDSWITH"})
"""What RocketMQ has since 5.1.3."""


class Subscriptions:
    """The table of subscriptions; brokers get a change by heartbeat before the next pull."""

    def __init__(self, group: str, *, retries: bool) -> None:
        self._group, self._retries = group, retries
        self._instance: Instance | None = None
        self._wake: Callable[[], None] = lambda: None
        self._version = 0
        self._announced = 0
        self._checked: dict[str, int] = {}
        self.table: dict[str, Subscription] = {}

    def start(self, instance: Instance, wake: Callable[[], None]) -> None:
        """From now on announce subscriptions. A version is a time in ms: larger is newer."""
        self._instance, self._wake = instance, wake
        for topic, wanted in list(self.table.items()):
            self._put(topic, wanted.sub_string, wanted.expression_type)
        if self._retries:
            self._put(retry_topic(self._group), ALL, "TAG")

    def stop(self) -> None:
        self._wake = lambda: None

    def subscribe(self, topic: str, tags: str | None, sql: str | None) -> None:
        check_topic_name(topic)
        if sql is not None and not isinstance(sql, str):
            raise wrong_type("sql", "one string, the condition", sql)
        if sql is not None and tags not in (None, ALL):
            raise ConsumerMisused("give tags or sql, not both")
        if sql is not None:
            condition(sql)
        self._put(topic, tags if sql is None else sql, "TAG" if sql is None else SQL)
        self._wake()

    def unsubscribe(self, topic: str) -> None:
        if self.table.pop(topic, None) is not None:
            self._version = self._next_version()
            self._wake()

    def _put(self, topic: str, expression: str | None, kind: str) -> None:
        self._version = self._next_version()
        self.table[topic] = subscription(topic, expression, kind, self._version)

    def _next_version(self) -> int:
        now_ms = self._instance.clock.now_ms() if self._instance is not None else 0
        return max(now_ms, self._version + 1)

    async def announce(self) -> None:
        """Send changes by heartbeat; raises BrokerRefused if a broker refuses an SQL condition."""
        instance, version = self._instance, self._version
        assert instance is not None
        if version == self._announced:
            return
        for topic in list(self.table):
            try:
                await instance.routes.get(topic)
            except GantryError as error:
                log.info("route of %s: %s", topic, error)
        for wanted in list(self.table.values()):
            if wanted.expression_type == SQL:
                await self._check_sql(instance, wanted)
        await instance.heartbeat_now()
        if instance.heartbeats.versions:
            self._announced = version

    async def _check_sql(self, instance: Instance, wanted: Subscription) -> None:
        if self._checked.get(wanted.topic) == wanted.sub_version:
            return
        route = instance.routes.cached(wanted.topic)
        masters = [data.master for data in route.broker_datas if data.master] if route else []
        for address in masters:
            try:
                await check_sql(instance, self._group, address, wanted)
            except TRANSPORT_ERRORS as error:
                log.info("SQL condition of %s not checked at %s: %s", wanted.topic, address, error)
        if masters:
            self._checked[wanted.topic] = wanted.sub_version


async def check_sql(instance: Instance, group: str, address: str, wanted: Subscription) -> None:
    """Ask a broker whether it accepts an SQL condition; raises BrokerRefused with the reason."""
    body = CheckClient(client_id=instance.client_id, group=group, subscription_data=wanted)
    try:
        _, answer = await instance.call(
            address, calls.CHECK_CLIENT_CONFIG, Nothing(), fastjson.dumps(body)
        )
    except BrokerRefused as error:
        if error.code != ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
            raise
        log.info("%s cannot check SQL conditions ahead", address)
        return
    said = answer.ext.get(SQL_OPERATORS)
    known = frozenset(said.split(",")) if said else frozenset()
    if said is None and answer.version >= VERSION_5_1_3:
        known = TEXT_OPERATORS
    missing = condition(wanted.sub_string).words - known
    if missing:
        raise BrokerRefused(
            ResponseCode.SUBSCRIPTION_PARSE_FAILED,
            f"it has no {' and no '.join(sorted(missing))} in SQL conditions",
            address,
        )
