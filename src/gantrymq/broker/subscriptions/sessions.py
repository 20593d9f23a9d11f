"""Connected producers and consumers by group, from heartbeats. Pure: time comes in."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from gantrymq.broker.subscriptions.subscription_check import MemberConflict, MemberSubscriptions
from gantrymq.model import Subscription
from gantrymq.protocol.bodies import ConsumerData
from gantrymq.remoting.connection import Connection

SILENT_SECONDS_MAX = 120.0
SCAN_SECONDS = 10.0


@dataclass
class Client:
    """One client of one group."""

    client_id: str
    language: str
    version: int
    heard: float


@dataclass
class ConsumerGroup:
    """The members of a consumer group and their subscriptions."""

    consume_type: str | None = None
    message_model: str | None = None
    consume_from_where: str | None = None
    members: dict[Connection, Client] = field(default_factory=dict)
    subscriptions: dict[str, Subscription] = field(default_factory=dict)
    """As RocketMQ has it: one table for all, and the newest heartbeat wins."""
    own_subscriptions: dict[Connection, list[Subscription]] = field(default_factory=dict)
    """What each member itself is subscribed to."""
    member_subscriptions: MemberSubscriptions = field(default_factory=MemberSubscriptions)

    @property
    def client_ids(self) -> list[str]:
        return list(dict.fromkeys(client.client_id for client in self.members.values()))


class Sessions:
    """All clients that send heartbeats to this broker."""

    def __init__(self) -> None:
        self.consumers: dict[str, ConsumerGroup] = {}
        self.producers: dict[str, dict[Connection, Client]] = {}
        self._producer_at: dict[str, Connection] = {}

    def hear_producer(self, group: str, connection: Connection, client: Client) -> None:
        self.producers.setdefault(group, {})[connection] = client
        self._producer_at[client.client_id] = connection

    def producer_at(self, client_id: str) -> Connection | None:
        """The connection of a client's last producer heartbeat, for replies; None if it is gone."""
        connection = self._producer_at.get(client_id)
        if connection is None or not any(connection in each for each in self.producers.values()):
            return None
        return connection

    def hear_consumer(self, data: ConsumerData, connection: Connection, client: Client) -> bool:
        """Take a heartbeat; True if members or topics changed, so that members must rebalance.

        A newer version of the same subscription is not a change: clients raise it after every
        rebalance, so notifying members of it would never end.
        """
        group = self.consumers.setdefault(data.group_name, ConsumerGroup())
        group.consume_type = data.consume_type
        group.message_model = data.message_model
        group.consume_from_where = data.consume_from_where
        known = group.members.get(connection)
        group.members[connection] = client
        changed = known is None or known.client_id != client.client_id
        group.own_subscriptions[connection] = data.subscription_data_set
        group.member_subscriptions.hear(connection, client.client_id, data.subscription_data_set)
        return self._subscribe(group, data.subscription_data_set) or changed

    def _subscribe(self, group: ConsumerGroup, wanted: Iterable[Subscription]) -> bool:
        changed = False
        topics: dict[str, None] = {}
        for subscription in wanted:
            topics[subscription.topic] = None
            known = group.subscriptions.get(subscription.topic)
            if known is None:
                group.subscriptions[subscription.topic] = subscription
                changed = True
            elif subscription.sub_version > known.sub_version:
                group.subscriptions[subscription.topic] = subscription
        for topic in [topic for topic in group.subscriptions if topic not in topics]:
            del group.subscriptions[topic]
            changed = True
        return changed

    def objection(
        self, data: ConsumerData, connection: Connection, client: Client, grace: float
    ) -> MemberConflict | None:
        """The conflict for which a strict broker refuses this heartbeat; None if there is none."""
        group = self.consumers.get(data.group_name)
        if group is None:
            return None
        return group.member_subscriptions.objection(
            connection, client.client_id, data.subscription_data_set, client.heard, grace
        )

    def expel(self, group: str, connection: Connection) -> bool:
        """Remove a member and its subscriptions from the group; False if it was not a member."""
        if not self.leave_consumer(group, connection):
            return False
        known = self.consumers.get(group)
        if known is not None:
            left = [wanted for own in known.own_subscriptions.values() for wanted in own]
            left.sort(key=lambda wanted: wanted.sub_version)
            known.subscriptions = {wanted.topic: wanted for wanted in left}
        return True

    def leave_producer(self, group: str, connection: Connection) -> None:
        members = self.producers.get(group)
        if members is not None:
            members.pop(connection, None)
            if not members:
                del self.producers[group]

    def leave_consumer(self, group: str, connection: Connection) -> bool:
        """Remove a member; False if the connection was not a member."""
        known = self.consumers.get(group)
        if known is None or known.members.pop(connection, None) is None:
            return False
        known.own_subscriptions.pop(connection, None)
        known.member_subscriptions.leave(connection)
        if not known.members:
            del self.consumers[group]
        return True

    def drop(self, connection: Connection) -> list[str]:
        """Remove a closed connection from all groups; returns the consumer groups to notify."""
        for group in list(self.producers):
            self.leave_producer(group, connection)
        for client_id in [i for i, place in self._producer_at.items() if place is connection]:
            del self._producer_at[client_id]
        return [group for group in list(self.consumers) if self.leave_consumer(group, connection)]

    def memberships(self, connection: Connection) -> dict[str, str]:
        """Consumer group to the client id by which a connection is a member of it."""
        return {
            name: group.members[connection].client_id
            for name, group in self.consumers.items()
            if connection in group.members
        }

    def is_member(self, group: str, client_id: str) -> bool:
        """Whether a client is in a group over any connection."""
        known = self.consumers.get(group)
        return known is not None and client_id in known.client_ids

    def silent(self, now: float) -> list[Connection]:
        """Connections whose client sent no heartbeat for too long."""
        oldest = now - SILENT_SECONDS_MAX
        tables = [group.members for group in self.consumers.values()]
        tables += self.producers.values()
        found = (c for table in tables for c, client in table.items() if client.heard < oldest)
        return list(dict.fromkeys(found))

    def groups_of(self, topic: str) -> list[str]:
        """Groups whose members are subscribed to a topic right now."""
        return [name for name, group in self.consumers.items() if topic in group.subscriptions]
