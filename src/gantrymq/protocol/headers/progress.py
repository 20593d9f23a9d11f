"""Progress of groups and entries of queues, as operators' tools ask for them."""

from msgspec import field

from gantrymq.protocol.headers.base import Header


class BrokerConsumeStatsRequest(Header, frozen=True, kw_only=True):
    """GET_BROKER_CONSUME_STATS: groups that consume in order, or those that do not."""

    is_order: bool = False


class TimeSpanRequest(Header, frozen=True, kw_only=True):
    """QUERY_CONSUME_TIME_SPAN."""

    topic: str
    group: str


class CorrectionOffsetRequest(Header, frozen=True, kw_only=True):
    """QUERY_CORRECTION_OFFSET."""

    topic: str
    compare_group: str
    filter_groups: str | None = None
    """Groups that do not count, with commas between."""


class CloneOffsetRequest(Header, frozen=True, kw_only=True):
    """CLONE_GROUP_OFFSET."""

    src_group: str
    dest_group: str
    topic: str | None = None
    """None: every topic of the source."""
    offline: bool = False


class ConsumeQueueRequest(Header, frozen=True, kw_only=True):
    """QUERY_CONSUME_QUEUE."""

    topic: str | None = None
    queue_id: int = 0
    index: int = 0
    """Below 0: the newest entries."""
    count: int = 0
    consumer_group: str | None = None
    """Whose filter is asked about each entry."""


class GroupTopicRequest(Header, frozen=True, kw_only=True):
    """QUERY_SUBSCRIPTION_BY_CONSUMER."""

    group: str
    topic: str | None = None


class GroupForbiddenRequest(Header, frozen=True, kw_only=True):
    """UPDATE_AND_GET_GROUP_FORBIDDEN."""

    group: str
    topic: str
    readable: bool | None = None
    """None only asks."""


class RocksdbProgressRequest(Header, frozen=True, kw_only=True):
    """CHECK_ROCKSDB_CQ_WRITE_PROGRESS."""

    topic: str
    check_store_time: int = 0


class RocksdbExportRequest(Header, frozen=True, kw_only=True):
    """EXPORT_ROCKSDB_CONFIG."""

    config_type: str
    """`topics`, `subscriptionGroups` and `consumerOffsets`, each with a semicolon behind it."""


class AddBrokerRequest(Header, frozen=True, kw_only=True):
    """ADD_BROKER, to a container of brokers."""

    config_path: str | None = None


class RemoveBrokerRequest(Header, frozen=True, kw_only=True):
    """REMOVE_BROKER, to a container of brokers."""

    broker_name: str
    cluster: str = field(name="brokerClusterName")
    broker_id: int
