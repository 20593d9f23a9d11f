"""Every remote call, declared once for server, client, commands and docs."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from gantrymq.protocol import publishing
from gantrymq.protocol.codes import RequestCode
from gantrymq.protocol.headers import access as a
from gantrymq.protocol.headers import clients as c
from gantrymq.protocol.headers import controllers, copies, relays, timers
from gantrymq.protocol.headers import messages as m
from gantrymq.protocol.headers import pop as p
from gantrymq.protocol.headers import progress as g
from gantrymq.protocol.headers import resets as r
from gantrymq.protocol.headers import topics as t
from gantrymq.protocol.headers import transactions as x
from gantrymq.protocol.headers.base import Header, Nothing

Q = TypeVar("Q", bound=Header)
R = TypeVar("R", bound=Header)


@dataclass(frozen=True, slots=True)
class Call(Generic[Q, R]):
    """One remote procedure: its code and the types of its two headers."""

    code: RequestCode
    request: type[Q]
    response: type[R]


_C = RequestCode

SEND_MESSAGE = Call(_C.SEND_MESSAGE, m.SendRequest, m.SendResponse)
SEND_MESSAGE_V2 = Call(_C.SEND_MESSAGE_V2, m.SendRequestV2, m.SendResponse)
SEND_BATCH_MESSAGE = Call(_C.SEND_BATCH_MESSAGE, m.SendRequestV2, m.SendResponse)
SEND_REPLY_MESSAGE = Call(_C.SEND_REPLY_MESSAGE, m.SendRequest, m.SendResponse)
SEND_REPLY_MESSAGE_V2 = Call(_C.SEND_REPLY_MESSAGE_V2, m.SendRequestV2, m.SendResponse)
PUSH_REPLY_MESSAGE_TO_CLIENT = Call(_C.PUSH_REPLY_MESSAGE_TO_CLIENT, m.PushReplyRequest, Nothing)
PULL_MESSAGE = Call(_C.PULL_MESSAGE, m.PullRequest, m.PullResponse)
LITE_PULL_MESSAGE = Call(_C.LITE_PULL_MESSAGE, m.PullRequest, m.PullResponse)
CONSUMER_SEND_MSG_BACK = Call(_C.CONSUMER_SEND_MSG_BACK, m.SendBackRequest, Nothing)
QUERY_CONSUMER_OFFSET = Call(
    _C.QUERY_CONSUMER_OFFSET, m.QueryConsumerOffsetRequest, m.OffsetResponse
)
UPDATE_CONSUMER_OFFSET = Call(_C.UPDATE_CONSUMER_OFFSET, m.UpdateConsumerOffsetRequest, Nothing)
SEARCH_OFFSET_BY_TIMESTAMP = Call(
    _C.SEARCH_OFFSET_BY_TIMESTAMP, m.SearchOffsetRequest, m.OffsetResponse
)
GET_MAX_OFFSET = Call(_C.GET_MAX_OFFSET, m.QueueRequest, m.OffsetResponse)
GET_MIN_OFFSET = Call(_C.GET_MIN_OFFSET, m.QueueRequest, m.OffsetResponse)
GET_EARLIEST_MSG_STORETIME = Call(
    _C.GET_EARLIEST_MSG_STORETIME, m.QueueRequest, m.TimestampResponse
)
POP_MESSAGE = Call(_C.POP_MESSAGE, p.PopRequest, p.PopResponse)
ACK_MESSAGE = Call(_C.ACK_MESSAGE, p.AckRequest, Nothing)
BATCH_ACK_MESSAGE = Call(_C.BATCH_ACK_MESSAGE, Nothing, Nothing)
CHANGE_MESSAGE_INVISIBLETIME = Call(
    _C.CHANGE_MESSAGE_INVISIBLETIME, p.ChangeInvisibleRequest, p.ChangeInvisibleResponse
)
PEEK_MESSAGE = Call(_C.PEEK_MESSAGE, p.PeekRequest, p.PopResponse)
NOTIFICATION = Call(_C.NOTIFICATION, p.NotificationRequest, p.NotificationResponse)
POLLING_INFO = Call(_C.POLLING_INFO, p.PollingInfoRequest, p.PollingInfoResponse)
QUERY_ASSIGNMENT = Call(_C.QUERY_ASSIGNMENT, Nothing, Nothing)
SET_MESSAGE_REQUEST_MODE = Call(_C.SET_MESSAGE_REQUEST_MODE, Nothing, Nothing)
GET_ALL_MESSAGE_REQUEST_MODE = Call(_C.GET_ALL_MESSAGE_REQUEST_MODE, Nothing, Nothing)
VIEW_MESSAGE_BY_ID = Call(_C.VIEW_MESSAGE_BY_ID, m.ViewMessageRequest, Nothing)
QUERY_MESSAGE = Call(_C.QUERY_MESSAGE, m.QueryMessageRequest, m.QueryMessageResponse)
END_TRANSACTION = Call(_C.END_TRANSACTION, x.EndTransactionRequest, Nothing)
CHECK_TRANSACTION_STATE = Call(_C.CHECK_TRANSACTION_STATE, x.CheckTransactionRequest, Nothing)
RESUME_CHECK_HALF_MESSAGE = Call(_C.RESUME_CHECK_HALF_MESSAGE, x.ResumeCheckRequest, Nothing)
CHECK_HALF_MESSAGE = Call(_C.CHECK_HALF_MESSAGE, x.CheckHalfRequest, Nothing)

HEART_BEAT = Call(_C.HEART_BEAT, Nothing, Nothing)
UNREGISTER_CLIENT = Call(_C.UNREGISTER_CLIENT, c.UnregisterClientRequest, Nothing)
GET_CONSUMER_LIST_BY_GROUP = Call(_C.GET_CONSUMER_LIST_BY_GROUP, c.GroupRequest, Nothing)
NOTIFY_CONSUMER_IDS_CHANGED = Call(_C.NOTIFY_CONSUMER_IDS_CHANGED, c.GroupRequest, Nothing)
CHECK_CLIENT_CONFIG = Call(_C.CHECK_CLIENT_CONFIG, Nothing, Nothing)
LOCK_BATCH_MQ = Call(_C.LOCK_BATCH_MQ, Nothing, Nothing)
UNLOCK_BATCH_MQ = Call(_C.UNLOCK_BATCH_MQ, Nothing, Nothing)

UPDATE_AND_CREATE_TOPIC = Call(_C.UPDATE_AND_CREATE_TOPIC, t.CreateTopicRequest, Nothing)
DELETE_TOPIC_IN_BROKER = Call(_C.DELETE_TOPIC_IN_BROKER, t.TopicRequest, Nothing)
GET_ALL_TOPIC_CONFIG = Call(_C.GET_ALL_TOPIC_CONFIG, Nothing, Nothing)
GET_TOPIC_CONFIG = Call(_C.GET_TOPIC_CONFIG, t.TopicRequest, Nothing)
GET_SYSTEM_TOPIC_LIST_FROM_BROKER = Call(_C.GET_SYSTEM_TOPIC_LIST_FROM_BROKER, Nothing, Nothing)
GET_TOPIC_STATS_INFO = Call(_C.GET_TOPIC_STATS_INFO, t.TopicRequest, Nothing)
QUERY_TOPIC_CONSUME_BY_WHO = Call(_C.QUERY_TOPIC_CONSUME_BY_WHO, t.TopicRequest, Nothing)
UPDATE_AND_CREATE_SUBSCRIPTIONGROUP = Call(_C.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, Nothing, Nothing)
GET_ALL_SUBSCRIPTIONGROUP_CONFIG = Call(_C.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, Nothing, Nothing)
GET_SUBSCRIPTIONGROUP_CONFIG = Call(_C.GET_SUBSCRIPTIONGROUP_CONFIG, c.NamedGroupRequest, Nothing)
DELETE_SUBSCRIPTIONGROUP = Call(_C.DELETE_SUBSCRIPTIONGROUP, c.DeleteGroupRequest, Nothing)
GET_CONSUMER_CONNECTION_LIST = Call(_C.GET_CONSUMER_CONNECTION_LIST, c.GroupRequest, Nothing)
GET_PRODUCER_CONNECTION_LIST = Call(
    _C.GET_PRODUCER_CONNECTION_LIST, c.ProducerGroupRequest, Nothing
)
VIEW_BROKER_STATS_DATA = Call(_C.VIEW_BROKER_STATS_DATA, c.BrokerStatsRequest, Nothing)
GET_ALL_PRODUCER_INFO = Call(_C.GET_ALL_PRODUCER_INFO, Nothing, Nothing)
GET_CONSUME_STATS = Call(_C.GET_CONSUME_STATS, c.ConsumeStatsRequest, Nothing)
INVOKE_BROKER_TO_RESET_OFFSET = Call(_C.INVOKE_BROKER_TO_RESET_OFFSET, r.ResetRequest, Nothing)
INVOKE_BROKER_TO_GET_CONSUMER_STATUS = Call(
    _C.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, r.ConsumerStatusRequest, Nothing
)
GET_BROKER_CONFIG = Call(_C.GET_BROKER_CONFIG, Nothing, t.BrokerConfigResponse)
UPDATE_BROKER_CONFIG = Call(_C.UPDATE_BROKER_CONFIG, Nothing, Nothing)
GET_BROKER_RUNTIME_INFO = Call(_C.GET_BROKER_RUNTIME_INFO, Nothing, Nothing)
GET_BROKER_HA_STATUS = Call(_C.GET_BROKER_HA_STATUS, Nothing, Nothing)

PUT_KV_CONFIG = Call(_C.PUT_KV_CONFIG, t.PutKvRequest, Nothing)
GET_KV_CONFIG = Call(_C.GET_KV_CONFIG, t.KvRequest, t.KvResponse)
DELETE_KV_CONFIG = Call(_C.DELETE_KV_CONFIG, t.KvRequest, Nothing)
GET_KVLIST_BY_NAMESPACE = Call(_C.GET_KVLIST_BY_NAMESPACE, t.NamespaceRequest, Nothing)
REGISTER_BROKER = Call(_C.REGISTER_BROKER, t.RegisterBrokerRequest, t.RegisterBrokerResponse)
UNREGISTER_BROKER = Call(_C.UNREGISTER_BROKER, t.BrokerIdentity, Nothing)
GET_ROUTEINFO_BY_TOPIC = Call(_C.GET_ROUTEINFO_BY_TOPIC, t.RouteRequest, Nothing)
GET_BROKER_CLUSTER_INFO = Call(_C.GET_BROKER_CLUSTER_INFO, Nothing, Nothing)
GET_BROKER_MEMBER_GROUP = Call(_C.GET_BROKER_MEMBER_GROUP, t.MemberGroupRequest, Nothing)
BROKER_HEARTBEAT = Call(_C.BROKER_HEARTBEAT, t.BrokerHeartbeatRequest, Nothing)
WIPE_WRITE_PERM_OF_BROKER = Call(_C.WIPE_WRITE_PERM_OF_BROKER, t.BrokerNameRequest, t.WipeResponse)
ADD_WRITE_PERM_OF_BROKER = Call(_C.ADD_WRITE_PERM_OF_BROKER, t.BrokerNameRequest, t.AddPermResponse)
GET_ALL_TOPIC_LIST_FROM_NAMESERVER = Call(_C.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, Nothing, Nothing)
DELETE_TOPIC_IN_NAMESRV = Call(_C.DELETE_TOPIC_IN_NAMESRV, t.DeleteTopicInNamesrvRequest, Nothing)
REGISTER_TOPIC_IN_NAMESRV = Call(_C.REGISTER_TOPIC_IN_NAMESRV, t.TopicRequest, Nothing)
GET_TOPICS_BY_CLUSTER = Call(_C.GET_TOPICS_BY_CLUSTER, t.ClusterRequest, Nothing)
GET_SYSTEM_TOPIC_LIST_FROM_NS = Call(_C.GET_SYSTEM_TOPIC_LIST_FROM_NS, Nothing, Nothing)
GET_UNIT_TOPIC_LIST = Call(_C.GET_UNIT_TOPIC_LIST, Nothing, Nothing)
GET_HAS_UNIT_SUB_TOPIC_LIST = Call(_C.GET_HAS_UNIT_SUB_TOPIC_LIST, Nothing, Nothing)
GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST = Call(_C.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST, Nothing, Nothing)
UPDATE_NAMESRV_CONFIG = Call(_C.UPDATE_NAMESRV_CONFIG, Nothing, Nothing)
GET_NAMESRV_CONFIG = Call(_C.GET_NAMESRV_CONFIG, Nothing, Nothing)
QUERY_DATA_VERSION = Call(_C.QUERY_DATA_VERSION, t.BrokerIdentity, t.DataVersionResponse)
GET_CONSUMER_RUNNING_INFO = Call(_C.GET_CONSUMER_RUNNING_INFO, relays.RunningInfoRequest, Nothing)
CONSUME_MESSAGE_DIRECTLY = Call(_C.CONSUME_MESSAGE_DIRECTLY, relays.ConsumeDirectlyRequest, Nothing)
RECALL_MESSAGE = Call(_C.RECALL_MESSAGE, timers.RecallRequest, timers.RecallResponse)
GET_WAITING_MESSAGES = Call(_C.GET_WAITING_MESSAGES, timers.WaitingRequest, Nothing)
GET_WRITER_STATE = Call(_C.GET_WRITER_STATE, publishing.WriterRequest, Nothing)
PREPARE_EPOCH = Call(_C.PREPARE_EPOCH, publishing.EpochRequest, Nothing)
DECIDE_EPOCH = Call(_C.DECIDE_EPOCH, publishing.EpochRequest, Nothing)
PUBLISH_EPOCH = Call(_C.PUBLISH_EPOCH, publishing.EpochRequest, Nothing)
INTRODUCE_SLAVE = Call(
    _C.INTRODUCE_SLAVE, copies.IntroduceSlaveRequest, copies.IntroduceSlaveResponse
)
GET_RAFT_STATUS = Call(_C.GET_RAFT_STATUS, Nothing, Nothing)
TRANSFER_RAFT_LEADERSHIP = Call(
    _C.TRANSFER_RAFT_LEADERSHIP, copies.TransferLeadershipRequest, Nothing
)
COMPARE_LOG = Call(_C.COMPARE_LOG, copies.CompareLogRequest, copies.CompareLogResponse)

QUERY_CONSUME_TIME_SPAN = Call(_C.QUERY_CONSUME_TIME_SPAN, g.TimeSpanRequest, Nothing)
QUERY_CORRECTION_OFFSET = Call(_C.QUERY_CORRECTION_OFFSET, g.CorrectionOffsetRequest, Nothing)
CLONE_GROUP_OFFSET = Call(_C.CLONE_GROUP_OFFSET, g.CloneOffsetRequest, Nothing)
GET_BROKER_CONSUME_STATS = Call(_C.GET_BROKER_CONSUME_STATS, g.BrokerConsumeStatsRequest, Nothing)
QUERY_CONSUME_QUEUE = Call(_C.QUERY_CONSUME_QUEUE, g.ConsumeQueueRequest, Nothing)
QUERY_TOPICS_BY_CONSUMER = Call(_C.QUERY_TOPICS_BY_CONSUMER, c.NamedGroupRequest, Nothing)
QUERY_SUBSCRIPTION_BY_CONSUMER = Call(
    _C.QUERY_SUBSCRIPTION_BY_CONSUMER, g.GroupTopicRequest, Nothing
)
UPDATE_AND_GET_GROUP_FORBIDDEN = Call(
    _C.UPDATE_AND_GET_GROUP_FORBIDDEN, g.GroupForbiddenRequest, Nothing
)
UPDATE_AND_CREATE_TOPIC_LIST = Call(_C.UPDATE_AND_CREATE_TOPIC_LIST, Nothing, Nothing)
UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST = Call(
    _C.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST, Nothing, Nothing
)
UPDATE_AND_CREATE_STATIC_TOPIC = Call(
    _C.UPDATE_AND_CREATE_STATIC_TOPIC, t.CreateTopicRequest, Nothing
)
CLEAN_EXPIRED_CONSUMEQUEUE = Call(_C.CLEAN_EXPIRED_CONSUMEQUEUE, Nothing, Nothing)
CLEAN_UNUSED_TOPIC = Call(_C.CLEAN_UNUSED_TOPIC, Nothing, Nothing)
DELETE_EXPIRED_COMMITLOG = Call(_C.DELETE_EXPIRED_COMMITLOG, Nothing, Nothing)
GET_ALL_CONSUMER_OFFSET = Call(_C.GET_ALL_CONSUMER_OFFSET, Nothing, Nothing)
GET_ALL_DELAY_OFFSET = Call(_C.GET_ALL_DELAY_OFFSET, Nothing, Nothing)
GET_TIMER_CHECK_POINT = Call(_C.GET_TIMER_CHECK_POINT, Nothing, Nothing)
GET_TIMER_METRICS = Call(_C.GET_TIMER_METRICS, Nothing, Nothing)

NOTIFY_MIN_BROKER_ID_CHANGE = Call(
    _C.NOTIFY_MIN_BROKER_ID_CHANGE, copies.MinBrokerIdRequest, Nothing
)
EXCHANGE_BROKER_HA_INFO = Call(_C.EXCHANGE_BROKER_HA_INFO, copies.HaInfo, copies.HaInfo)
RESET_MASTER_FLUSH_OFFSET = Call(_C.RESET_MASTER_FLUSH_OFFSET, copies.FlushOffsetRequest, Nothing)
GET_BROKER_EPOCH_CACHE = Call(_C.GET_BROKER_EPOCH_CACHE, Nothing, Nothing)
NOTIFY_BROKER_ROLE_CHANGED = Call(_C.NOTIFY_BROKER_ROLE_CHANGED, copies.RoleChangeRequest, Nothing)
CONTROLLER_ELECT_MASTER = Call(
    _C.CONTROLLER_ELECT_MASTER, controllers.ElectMasterRequest, controllers.ElectMasterResponse
)
CONTROLLER_GET_METADATA_INFO = Call(
    _C.CONTROLLER_GET_METADATA_INFO, Nothing, controllers.ControllerMetadataResponse
)
CONTROLLER_GET_SYNC_STATE_DATA = Call(_C.CONTROLLER_GET_SYNC_STATE_DATA, Nothing, Nothing)
UPDATE_CONTROLLER_CONFIG = Call(_C.UPDATE_CONTROLLER_CONFIG, Nothing, Nothing)
GET_CONTROLLER_CONFIG = Call(_C.GET_CONTROLLER_CONFIG, Nothing, Nothing)
CLEAN_BROKER_DATA = Call(_C.CLEAN_BROKER_DATA, controllers.CleanBrokerDataRequest, Nothing)
ADD_BROKER = Call(_C.ADD_BROKER, g.AddBrokerRequest, Nothing)
REMOVE_BROKER = Call(_C.REMOVE_BROKER, g.RemoveBrokerRequest, Nothing)

CHECK_ROCKSDB_CQ_WRITE_PROGRESS = Call(
    _C.CHECK_ROCKSDB_CQ_WRITE_PROGRESS, g.RocksdbProgressRequest, Nothing
)
EXPORT_ROCKSDB_CONFIG = Call(_C.EXPORT_ROCKSDB_CONFIG, g.RocksdbExportRequest, Nothing)
UPDATE_COLD_DATA_FLOW_CTR_CONFIG = Call(_C.UPDATE_COLD_DATA_FLOW_CTR_CONFIG, Nothing, Nothing)
REMOVE_COLD_DATA_FLOW_CTR_CONFIG = Call(_C.REMOVE_COLD_DATA_FLOW_CTR_CONFIG, Nothing, Nothing)
GET_COLD_DATA_FLOW_CTR_INFO = Call(_C.GET_COLD_DATA_FLOW_CTR_INFO, Nothing, Nothing)
SET_COMMITLOG_READ_MODE = Call(_C.SET_COMMITLOG_READ_MODE, Nothing, Nothing)
POP_ROLLBACK = Call(_C.POP_ROLLBACK, Nothing, Nothing)

UPDATE_AND_CREATE_ACL_CONFIG = Call(_C.UPDATE_AND_CREATE_ACL_CONFIG, a.AccessConfigRequest, Nothing)
DELETE_ACL_CONFIG = Call(_C.DELETE_ACL_CONFIG, a.AccessKeyRequest, Nothing)
GET_BROKER_CLUSTER_ACL_INFO = Call(_C.GET_BROKER_CLUSTER_ACL_INFO, Nothing, a.AclVersionResponse)
UPDATE_GLOBAL_WHITE_ADDRS_CONFIG = Call(
    _C.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG, a.WhiteAddressesRequest, Nothing
)
GET_BROKER_CLUSTER_ACL_CONFIG = Call(_C.GET_BROKER_CLUSTER_ACL_CONFIG, Nothing, Nothing)
AUTH_CREATE_USER = Call(_C.AUTH_CREATE_USER, a.UserRequest, Nothing)
AUTH_UPDATE_USER = Call(_C.AUTH_UPDATE_USER, a.UserRequest, Nothing)
AUTH_DELETE_USER = Call(_C.AUTH_DELETE_USER, a.UserRequest, Nothing)
AUTH_GET_USER = Call(_C.AUTH_GET_USER, a.UserRequest, Nothing)
AUTH_LIST_USER = Call(_C.AUTH_LIST_USER, a.UserFilterRequest, Nothing)
AUTH_CREATE_ACL = Call(_C.AUTH_CREATE_ACL, a.AclSubjectRequest, Nothing)
AUTH_UPDATE_ACL = Call(_C.AUTH_UPDATE_ACL, a.AclSubjectRequest, Nothing)
AUTH_DELETE_ACL = Call(_C.AUTH_DELETE_ACL, a.DeleteAclRequest, Nothing)
AUTH_GET_ACL = Call(_C.AUTH_GET_ACL, a.AclSubjectRequest, Nothing)
AUTH_LIST_ACL = Call(_C.AUTH_LIST_ACL, a.AclFilterRequest, Nothing)
