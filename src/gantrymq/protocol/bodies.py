"""JSON bodies that several calls share. Fields are declared in Java's order: alphabetical."""

from typing import Annotated, Any

import msgspec

from gantrymq.base.hidden import repr_without
from gantrymq.base.javatypes import LONG_MAX, Int32, java_enum
from gantrymq.model import BrokerData, DataVersion, GroupConfig, Queue, Subscription, TopicConfig

ConsumeFromWhere = Annotated[
    str,
    java_enum(
        "CONSUME_FROM_LAST_OFFSET",
        "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST",
        "CONSUME_FROM_MIN_OFFSET",
        "CONSUME_FROM_MAX_OFFSET",
        "CONSUME_FROM_FIRST_OFFSET",
        "CONSUME_FROM_TIMESTAMP",
    ),
]
ConsumeType = Annotated[str, java_enum("CONSUME_ACTIVELY", "CONSUME_PASSIVELY", "CONSUME_POP")]
MessageModel = Annotated[str, java_enum("BROADCASTING", "CLUSTERING")]


class ProducerData(msgspec.Struct, kw_only=True, rename="camel"):
    group_name: str


class ConsumerData(msgspec.Struct, kw_only=True, rename="camel"):
    """One consumer group of one client, as its heartbeat reports it."""

    consume_from_where: ConsumeFromWhere | None = None
    consume_type: ConsumeType | None = None
    group_name: str
    message_model: MessageModel | None = None
    subscription_data_set: list[Subscription] = []
    unit_mode: bool = False


class Heartbeat(msgspec.Struct, kw_only=True, rename="camel"):
    client_id: str = msgspec.field(name="clientID", default="")
    consumer_data_set: list[ConsumerData] = []
    heartbeat_fingerprint: Int32 = 0
    producer_data_set: list[ProducerData] = []
    without_sub: bool = False


class ConsumerIdList(msgspec.Struct, kw_only=True, rename="camel"):
    consumer_id_list: list[str] = []


class LockRequest(msgspec.Struct, kw_only=True, rename="camel"):
    """LOCK_BATCH_MQ and UNLOCK_BATCH_MQ."""

    client_id: str
    consumer_group: str
    mq_set: list[Queue] = []
    only_this_broker: bool = False
    stops_when_lost: bool = False
    """Ours: without its connection this client begins no further message."""


class LockResponse(msgspec.Struct, kw_only=True):
    lock_ok: list[Queue] = msgspec.field(name="lockOKMQSet", default_factory=list)


class TopicList(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    broker_addr: str | None = None
    topic_list: list[str] | msgspec.UnsetType = msgspec.UNSET


class KvTable(msgspec.Struct, kw_only=True):
    table: dict[str, str] = {}


class ClusterInfo(msgspec.Struct, kw_only=True, rename="camel"):
    broker_addr_table: dict[str, BrokerData] = {}
    cluster_addr_table: dict[str, list[str]] = {}


class TopicTable(msgspec.Struct, kw_only=True, rename="camel"):
    """All topics of a broker with their version: registration and GET_ALL_TOPIC_CONFIG."""

    data_version: DataVersion = msgspec.field(default_factory=DataVersion)
    topic_config_table: dict[str, TopicConfig] = {}


class TopicConfigList(msgspec.Struct, kw_only=True, rename="camel"):
    """UPDATE_AND_CREATE_TOPIC_LIST."""

    topic_config_list: list[TopicConfig] = []


class GroupConfigList(msgspec.Struct, kw_only=True, rename="camel"):
    """UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST."""

    group_config_list: list[GroupConfig] = []


class RegisterBrokerBody(msgspec.Struct, kw_only=True, rename="camel"):
    filter_server_list: list[str] = []
    topics: TopicTable = msgspec.field(
        name="topicConfigSerializeWrapper", default_factory=TopicTable
    )


class ClientConnection(msgspec.Struct, kw_only=True, rename="camel"):
    client_addr: str
    client_id: str
    language: str
    version: int


class SubscriptionConflict(msgspec.Struct, kw_only=True, rename="camel", frozen=True):
    """Two members of a group with different subscriptions of a topic; not in RocketMQ."""

    newer_client_id: str
    newer_expression: str
    older_client_id: str
    older_expression: str
    refused: bool = False
    """Whether the newer one is kept out of the group (strictSubscriptions)."""
    topic: str


class ConsumerConnections(msgspec.Struct, kw_only=True, rename="camel"):
    connection_set: list[ClientConnection] = []
    consume_from_where: str | msgspec.UnsetType = msgspec.UNSET
    consume_type: str | msgspec.UnsetType = msgspec.UNSET
    message_model: str | msgspec.UnsetType = msgspec.UNSET
    """What the members did not say is left out, as Java leaves out what is null."""
    subscription_conflicts: list[SubscriptionConflict] | msgspec.UnsetType = msgspec.UNSET
    """Left out when there are none; RocketMQ's tools ignore it."""
    subscription_table: dict[str, Subscription] = {}


class ProducerConnections(msgspec.Struct, kw_only=True, rename="camel"):
    connection_set: list[ClientConnection] = []


class ProducerInfo(msgspec.Struct, kw_only=True, rename="camel"):
    client_id: str
    language: str
    last_update_timestamp: int
    remote_ip: str = msgspec.field(name="remoteIP")
    version: int


class ProducerTableInfo(msgspec.Struct, kw_only=True, rename="camel"):
    """GET_ALL_PRODUCER_INFO: producer groups and their members."""

    data: dict[str, list[ProducerInfo]] = {}


class BrokerStatsItem(msgspec.Struct, kw_only=True, rename="camel"):
    """One window: its total, the total a second, and the total of a request."""

    avgpt: float = 0.0
    sum: int = 0
    tps: float = 0.0


class BrokerStatsData(msgspec.Struct, kw_only=True, rename="camel"):
    """VIEW_BROKER_STATS_DATA."""

    stats_day: BrokerStatsItem
    stats_hour: BrokerStatsItem
    stats_minute: BrokerStatsItem


class CheckClient(msgspec.Struct, kw_only=True, rename="camel"):
    """CHECK_CLIENT_CONFIG: asks whether the broker accepts a subscription."""

    client_id: str = ""
    group: str = ""
    subscription_data: Subscription | None = None


class GroupList(msgspec.Struct, kw_only=True, rename="camel"):
    group_list: list[str] = []


class TopicOffset(msgspec.Struct, kw_only=True, rename="camel"):
    last_update_timestamp: int = 0
    max_offset: int = 0
    min_offset: int = 0


class OffsetWrapper(msgspec.Struct, kw_only=True, rename="camel"):
    """One row of a group's progress."""

    broker_offset: int = 0
    consumer_offset: int = 0
    last_timestamp: int = 0
    pull_offset: int = 0


class HaConnectionInfo(msgspec.Struct, kw_only=True, rename="camel"):
    """One slave as its master sees it."""

    addr: str
    slave_ack_offset: int
    diff: int
    in_sync: bool
    transferred_byte_in_second: int = 0
    transfer_from_where: int = 0
    broker_id: int | msgspec.UnsetType = msgspec.UNSET
    """Which slave it is, if it has introduced itself; RocketMQ's tools pass over the key."""


class HaClientInfo(msgspec.Struct, kw_only=True, rename="camel"):
    """The connection of a slave to its master."""

    master_addr: str | msgspec.UnsetType = msgspec.UNSET
    transferred_byte_in_second: int = 0
    max_offset: int = 0
    last_read_timestamp: int = 0
    last_write_timestamp: int = 0
    master_flush_offset: int = 0
    activated: bool | msgspec.UnsetType = msgspec.UNSET


class HaStatus(msgspec.Struct, kw_only=True, rename="camel"):
    """GET_BROKER_HA_STATUS."""

    master: bool
    master_commit_log_max_offset: int
    in_sync_slave_nums: int = 0
    ha_connection_info: list[HaConnectionInfo] = []
    ha_client_runtime_info: HaClientInfo = msgspec.field(default_factory=HaClientInfo)


class RaftMemberInfo(msgspec.Struct, kw_only=True, rename="camel"):
    """A member of a raft group, as another one sees it."""

    id: str
    address: str
    """Its port for clients, or the one of its raft links if only that is known."""
    is_connected: bool
    holds: int | None = None
    """Up to which log offset it confirmed the log; only the leader knows."""


class RaftStatus(msgspec.Struct, kw_only=True, rename="camel"):
    """GET_RAFT_STATUS: one member's view of its raft group."""

    group: str
    me: str
    role: str
    serves: bool
    """It leads, and takes messages."""
    term: int
    leader: str | None
    may_vote: bool
    log_first: int
    log_end: int
    committed: int
    trouble: str = ""
    members: list[RaftMemberInfo] = []


class GroupConsumeStats(msgspec.Struct, kw_only=True, rename="camel"):
    """Progress of a group: GET_CONSUME_STATS, and a row of GET_BROKER_CONSUME_STATS."""

    consume_tps: float = 0.0
    offset_table: dict[Queue, OffsetWrapper] = {}
    """On the wire whole objects are keys, which only `fastjson` reads and writes."""


class ConsumeStatsList(msgspec.Struct, kw_only=True, rename="camel"):
    """GET_BROKER_CONSUME_STATS: each group with one row a topic."""

    broker_addr: str = ""
    consume_stats_list: list[dict[str, list[GroupConsumeStats]]] = []
    total_diff: int = 0
    """Messages that the groups have not finished."""
    total_inflight_diff: int = 0
    """Messages that they were given and have not finished."""


class QueueTimeSpan(msgspec.Struct, kw_only=True, rename="camel"):
    """The store times of one queue, and how far a group has come in it."""

    consume_time_stamp: int = 0
    """Of the last message that the group has finished, or of the first if it has none."""
    consume_time_stamp_str: str | msgspec.UnsetType = msgspec.UNSET
    """Each time once more, as Java's tools print it: `2026-11-18#03:31:52:627`, local."""
    delay_time: int = 0
    """How long the group's next message has been waiting; 0 if none waits."""
    max_time_stamp: int = 0
    max_time_stamp_str: str | msgspec.UnsetType = msgspec.UNSET
    message_queue: Queue
    min_time_stamp: int = 0
    min_time_stamp_str: str | msgspec.UnsetType = msgspec.UNSET


class ConsumeTimeSpans(msgspec.Struct, kw_only=True, rename="camel"):
    """QUERY_CONSUME_TIME_SPAN."""

    consume_time_span_set: list[QueueTimeSpan] = []


class CorrectionOffsets(msgspec.Struct, kw_only=True, rename="camel"):
    """QUERY_CORRECTION_OFFSET: an offset for each queue id."""

    correction_offsets: dict[int, int] = {}


class ConsumeQueueData(msgspec.Struct, kw_only=True, rename="camel"):
    """One entry of a consume queue; what Java has as null is left out."""

    bit_map: str | msgspec.UnsetType = msgspec.UNSET
    """Which conditions took the message when it was stored, bit by bit."""
    eval: bool = False
    """Whether the group's filter takes the message; False without a group."""
    extend_data_json: str | msgspec.UnsetType = msgspec.UNSET
    msg: str | msgspec.UnsetType = msgspec.UNSET
    physic_offset: int = 0
    physic_size: int = 0
    tags_code: int = 0


class ConsumeQueueBody(msgspec.Struct, kw_only=True, rename="camel"):
    """QUERY_CONSUME_QUEUE."""

    filter_data: str | msgspec.UnsetType = msgspec.UNSET
    max_queue_index: int = 0
    min_queue_index: int = 0
    queue_data: list[ConsumeQueueData] = []
    subscription_data: Subscription | msgspec.UnsetType = msgspec.UNSET


class GroupSubscription(msgspec.Struct, kw_only=True, rename="camel"):
    """QUERY_SUBSCRIPTION_BY_CONSUMER: what a group wants of a topic."""

    group: str
    subscription_data: Subscription | msgspec.UnsetType = msgspec.UNSET
    topic: str | msgspec.UnsetType = msgspec.UNSET


class GroupForbidden(msgspec.Struct, kw_only=True, rename="camel"):
    """UPDATE_AND_GET_GROUP_FORBIDDEN: whether a group may read a topic."""

    group: str
    readable: bool = True
    topic: str


class EpochEntry(msgspec.Struct, kw_only=True, rename="camel"):
    """Where in the log an epoch of a master begins and ends."""

    end_offset: int = LONG_MAX
    epoch: int
    start_offset: int


class EpochEntryCache(msgspec.Struct, kw_only=True, rename="camel"):
    """GET_BROKER_EPOCH_CACHE."""

    broker_id: int
    broker_name: str
    cluster_name: str
    epoch_list: list[EpochEntry] = []
    max_offset: int = 0


class SyncStateSet(msgspec.Struct, kw_only=True, rename="camel"):
    """NOTIFY_BROKER_ROLE_CHANGED: the brokers that hold all of the master's log."""

    sync_state_set: list[int] = []
    sync_state_set_epoch: int = 0


class ReplicaIdentity(msgspec.Struct, kw_only=True, rename="camel"):
    alive: bool | None = None
    broker_address: str = ""
    broker_id: int = 0
    broker_name: str = ""


class ReplicasInfo(msgspec.Struct, kw_only=True, rename="camel"):
    """One broker name as a controller of RocketMQ knows it."""

    in_sync_replicas: list[ReplicaIdentity] = []
    master_address: str | None = None
    master_broker_id: int | None = None
    master_epoch: int | None = None
    not_in_sync_replicas: list[ReplicaIdentity] = []
    sync_state_set_epoch: int | None = None


class BrokerReplicasInfo(msgspec.Struct, kw_only=True, rename="camel"):
    """CONTROLLER_GET_SYNC_STATE_DATA."""

    replicas_info_table: dict[str, ReplicasInfo] = {}


class RocksdbProgress(msgspec.Struct, kw_only=True, rename="camel"):
    """CHECK_ROCKSDB_CQ_WRITE_PROGRESS."""

    check_result: str | None = None
    check_status: int = 0


class UserInfo(msgspec.Struct, kw_only=True, rename="camel"):
    """A user of access control."""

    password: str | None = None
    user_status: str | None = None
    user_type: str | None = None
    username: str | None = None

    def __repr__(self) -> str:
        return f"UserInfo({self.username!r})"


class PolicyEntryInfo(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    actions: list[str] | None = None
    decision: str | None = None
    resource: str | None = None
    source_ips: list[str] | None = None


class PolicyInfo(msgspec.Struct, kw_only=True, rename="camel"):
    entries: list[PolicyEntryInfo] = []
    policy_type: str | None = None


class AclInfo(msgspec.Struct, kw_only=True, rename="camel"):
    """What a subject may do."""

    policies: list[PolicyInfo] = []
    subject: str | None = None


class AccessConfigBody(msgspec.Struct, kw_only=True, rename="camel"):
    """GET_BROKER_CLUSTER_ACL_CONFIG: accounts by RocketMQ's names, with their secret keys."""

    global_white_addrs: list[str] = []
    plain_access_configs: list[dict[str, Any]] = []

    def __repr__(self) -> str:
        return repr_without(self, ("plain_access_configs",))
