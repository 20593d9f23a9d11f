"""Clients: heartbeats, members of groups, notices of changes, queue locks."""

import logging

import msgspec

from gantrymq.broker.errors import BadRequest, NotOnline, NotPermitted
from gantrymq.broker.locks import QueueLockTable
from gantrymq.broker.policy import Policy
from gantrymq.broker.settings.config import BrokerConfig
from gantrymq.broker.stats import BrokerStats
from gantrymq.broker.subscriptions.consumer_filters import FilterTable
from gantrymq.broker.subscriptions.pull_filter import Filters
from gantrymq.broker.subscriptions.sessions import Client, ConsumerGroup, Sessions
from gantrymq.broker.subscriptions.subscription_check import MemberConflict
from gantrymq.model import check_readable_name
from gantrymq.protocol import calls as c
from gantrymq.protocol import fastjson
from gantrymq.protocol.bodies import (
    CheckClient,
    ConsumerConnections,
    ConsumerData,
    ConsumerIdList,
    Heartbeat,
    LockRequest,
    LockResponse,
    ProducerConnections,
    SubscriptionConflict,
)
from gantrymq.protocol.bodies import (
    ClientConnection as ConnectionRow,
)
from gantrymq.protocol.codes import SQL_OPERATORS, RequestCode
from gantrymq.protocol.command import Command
from gantrymq.remoting.connection import Connection
from gantrymq.remoting.limits import Refusals

log = logging.getLogger(__name__)

OPERATORS = "CONTAINS,ENDSWITH,LIKE,STARTSWITH"


class ClientHandler:
    """HEART_BEAT, UNREGISTER_CLIENT, members of groups, and queue locks.

    Sends NOTIFY_CONSUMER_IDS_CHANGED (40) to the members of a group that changed.
    """

    def __init__(
        self,
        policy: Policy,
        sessions: Sessions,
        filters: Filters,
        table: FilterTable,
        locks: QueueLockTable,
        stats: BrokerStats,
        config: BrokerConfig,
        refusals: Refusals,
    ) -> None:
        self._policy, self._sessions, self._locks = policy, sessions, locks
        self._filters, self._table, self._stats = filters, table, stats
        self._config, self._refusals = config, refusals

    # membership

    def heartbeat(self, connection: Connection, command: Command) -> None:
        """HEART_BEAT (34): register a client in its producer and consumer groups."""
        if len(command.body) > self._config.max_heartbeat_bytes:
            raise self._refusals.reached(
                "maxHeartbeatBytes",
                f"a heartbeat of {len(command.body)} bytes",
                connection.address,
            )
        beat = fastjson.load_request(command.body, Heartbeat)
        self._check(beat)
        if not beat.client_id and (beat.producer_data_set or beat.consumer_data_set):
            raise BadRequest(
                "a heartbeat without clientID: members of a group are told apart by it"
            )
        client = Client(
            client_id=beat.client_id,
            language=command.language or "OTHER",
            version=command.version,
            heard=connection.loop.time(),
        )
        for producer in beat.producer_data_set:
            self._sessions.hear_producer(producer.group_name, connection, client)
        refused: list[str] = []
        for consumer in beat.consumer_data_set:
            group = self._policy.group(consumer.group_name)
            if group.retry_queue_nums > 0:
                self._policy.ensure_retry_topic(group)
            conflict = self._objection(consumer, connection, client)
            if conflict is not None:
                refused.append(f"group {consumer.group_name} is strict: {conflict}")
                if self._sessions.expel(consumer.group_name, connection):
                    self._tell(consumer.group_name)
            elif self._sessions.hear_consumer(consumer, connection, client):
                self._tell(consumer.group_name)
            self._remember(consumer.group_name)
            self._report(consumer.group_name)
        if refused:
            raise NotPermitted("; ".join(refused))
        connection.reply(command)

    def _check(self, beat: Heartbeat) -> None:
        """Raise if the broker would keep something endless or unreadable of a heartbeat."""
        if beat.client_id:
            check_readable_name("client id", beat.client_id)
        for producer in beat.producer_data_set:
            check_readable_name("group", producer.group_name)
        for consumer in beat.consumer_data_set:
            for wanted in consumer.subscription_data_set:
                check_readable_name("topic", wanted.topic)
                self._filters.check_tags(wanted)

    def _objection(
        self, data: ConsumerData, connection: Connection, client: Client
    ) -> MemberConflict | None:
        """The conflict for which a strict broker refuses this member; None if it may join."""
        if not self._config.strict_subscriptions:
            return None
        grace = self._config.strict_subscriptions_grace_mills / 1000
        return self._sessions.objection(data, connection, client, grace)

    def _remember(self, group: str) -> None:
        """Keep the group's SQL conditions in the filter table while the group has members."""
        known = self._sessions.consumers.get(group)
        if known is not None:
            self._table.hear(group, known.subscriptions.values())
        else:
            self._table.leave(group)

    def _report(self, group: str) -> None:
        """Log each new subscription conflict once: such members lose messages."""
        known = self._sessions.consumers.get(group)
        for conflict in known.member_subscriptions.news() if known is not None else ():
            self._stats.count("subscriptionConflicts")
            log.warning(
                "group %s does not agree: %s. %s",
                group,
                conflict,
                "The newer one is kept out."
                if conflict.refused
                else "Messages are lost as long as this lasts.",
            )

    def unregister(self, connection: Connection, command: Command) -> None:
        """UNREGISTER_CLIENT (35): a client leaves its groups and gives up its queue locks."""
        h = c.UNREGISTER_CLIENT.request.parse(command.ext)
        if h.producer_group:
            self._sessions.leave_producer(h.producer_group, connection)
        if h.consumer_group and self._sessions.leave_consumer(h.consumer_group, connection):
            if not self._sessions.is_member(h.consumer_group, h.client_id):
                self._locks.leave(h.consumer_group, h.client_id)
            self._tell(h.consumer_group)
        connection.reply(command)

    def forget(self, connection: Connection) -> None:
        """Remove a closed connection from all its groups, and notify the other members."""
        was = self._sessions.memberships(connection)
        for group in self._sessions.drop(connection):
            if not self._sessions.is_member(group, was[group]):
                self._locks.lose(group, was[group], connection.loop.time())
            self._tell(group)

    def expire(self, now: float) -> None:
        """Close the connections of clients that sent no heartbeat for too long."""
        for connection in self._sessions.silent(now):
            log.info("client %s silent for too long, dropped", connection.address)
            self.forget(connection)
            connection.close()

    def _tell(self, group: str) -> None:
        """Send NOTIFY_CONSUMER_IDS_CHANGED (40), so that members rebalance at once.

        Without it they rebalance at their next round, within 20 s.
        """
        members = self._sessions.consumers.get(group)
        if members is None:
            self._table.leave(group)
        notify = self._config.notify_consumer_ids_changed_enable
        if members is None or not notify or members.message_model == "BROADCASTING":
            return
        if not self._policy.group(group).notify_consumer_ids_changed_enable:
            return
        for connection in list(members.members):
            connection.oneway(
                Command(code=RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, ext={"consumerGroup": group})
            )

    # questions

    def ids(self, connection: Connection, command: Command) -> None:
        """GET_CONSUMER_LIST_BY_GROUP (38): the client ids of a group's members."""
        h = c.GET_CONSUMER_LIST_BY_GROUP.request.parse(command.ext)
        group = self._sessions.consumers.get(h.consumer_group)
        if group is None or not group.members:
            raise BadRequest(f"no consumer for this group, {h.consumer_group}")
        body = fastjson.dumps(ConsumerIdList(consumer_id_list=group.client_ids))
        connection.reply(command, body=body)

    def consumers(self, connection: Connection, command: Command) -> None:
        """GET_CONSUMER_CONNECTION_LIST (203): members, subscriptions and conflicts of a group."""
        h = c.GET_CONSUMER_CONNECTION_LIST.request.parse(command.ext)
        group = self._sessions.consumers.get(h.consumer_group)
        if group is None:
            raise NotOnline(f"the consumer group[{h.consumer_group}] not online")
        rows = ConsumerConnections(
            connection_set=_rows(group.members),
            consume_from_where=group.consume_from_where or msgspec.UNSET,
            consume_type=group.consume_type or msgspec.UNSET,
            message_model=group.message_model or msgspec.UNSET,
            subscription_conflicts=_conflicts(group) or msgspec.UNSET,
            subscription_table=group.subscriptions,
        )
        connection.reply(command, body=fastjson.dumps(rows))

    def producers(self, connection: Connection, command: Command) -> None:
        """GET_PRODUCER_CONNECTION_LIST (204): the members of a producer group."""
        h = c.GET_PRODUCER_CONNECTION_LIST.request.parse(command.ext)
        members = self._sessions.producers.get(h.producer_group)
        if members is None:
            raise BadRequest(f"the producer group[{h.producer_group}] not exist")
        rows = ProducerConnections(connection_set=_rows(members))
        connection.reply(command, body=fastjson.dumps(rows))

    def check(self, connection: Connection, command: Command) -> None:
        """CHECK_CLIENT_CONFIG (46): refuse a subscription that this broker cannot filter by.

        Consumers with SQL conditions ask before they start.
        """
        wanted = fastjson.load_request(command.body or b"{}", CheckClient).subscription_data
        if wanted is not None:
            self._filters.check(wanted)
        connection.reply(command, ext={SQL_OPERATORS: OPERATORS})

    # queue locks

    def lock(self, connection: Connection, command: Command) -> None:
        """LOCK_BATCH_MQ (41): lock queues for an ordered consumer; answers those it holds now."""
        wanted = fastjson.load_request(command.body, LockRequest)
        check_readable_name("client id", wanted.client_id)
        self._policy.group(wanted.consumer_group)
        now = connection.loop.time()
        taken = self._locks.lock(
            wanted.consumer_group,
            filter(self._policy.has_queue, wanted.mq_set),
            wanted.client_id,
            now,
            stops_when_lost=wanted.stops_when_lost,
        )
        connection.reply(command, body=fastjson.dumps(LockResponse(lock_ok=taken)))

    def unlock(self, connection: Connection, command: Command) -> None:
        """UNLOCK_BATCH_MQ (42): release queue locks."""
        wanted = fastjson.load_request(command.body, LockRequest)
        self._locks.unlock(wanted.consumer_group, wanted.mq_set, wanted.client_id)
        connection.reply(command)


def _conflicts(group: ConsumerGroup) -> list[SubscriptionConflict]:
    return [
        SubscriptionConflict(
            newer_client_id=conflict.newer.client_id,
            newer_expression=conflict.newer.expression,
            older_client_id=conflict.older.client_id,
            older_expression=conflict.older.expression,
            refused=conflict.refused,
            topic=conflict.topic,
        )
        for conflict in group.member_subscriptions.conflicts
    ]


def _rows(members: dict[Connection, Client]) -> list[ConnectionRow]:
    return [
        ConnectionRow(
            client_addr=connection.address,
            client_id=client.client_id,
            language=client.language,
            version=client.version,
        )
        for connection, client in members.items()
    ]
