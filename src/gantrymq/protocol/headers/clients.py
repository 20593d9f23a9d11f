"""Clients and groups: membership, and requests of a broker to a client."""

from msgspec import field

from gantrymq.protocol.headers.base import Header


class UnregisterClientRequest(Header, frozen=True, kw_only=True):
    client_id: str = field(name="clientID")
    producer_group: str | None = None
    consumer_group: str | None = None


class GroupRequest(Header, frozen=True, kw_only=True):
    """Any call about one consumer group that says `consumerGroup`."""

    consumer_group: str


class ConsumeStatsRequest(Header, frozen=True, kw_only=True):
    """GET_CONSUME_STATS: of one topic, since 5.x of several, or of all of the group's."""

    consumer_group: str
    topic: str | None = None
    topic_list: str | None = None
    """Names with semicolons between."""

    @property
    def topics(self) -> list[str]:
        """The topics that are named; none means all."""
        listed = [name for name in (self.topic_list or "").split(";") if name.strip()]
        return listed or ([self.topic] if self.topic else [])


class BrokerStatsRequest(Header, frozen=True, kw_only=True):
    """VIEW_BROKER_STATS_DATA."""

    stats_name: str
    stats_key: str


class ProducerGroupRequest(Header, frozen=True, kw_only=True):
    producer_group: str


class NamedGroupRequest(Header, frozen=True, kw_only=True):
    """GET_SUBSCRIPTIONGROUP_CONFIG says `group`."""

    group: str


class DeleteGroupRequest(Header, frozen=True, kw_only=True):
    """4.9 calls the flag removeOffset, 5.x cleanOffset."""

    group_name: str
    remove_offset: bool = False
    clean_offset: bool = False
