"""What each request code needs: a row for every code that broker and name server answer. Pure.

Rows follow RocketMQ 4.9 where it checks something. It does not look at batches, at transactions, at
POP, at the progress of groups and at its own access files, which any key may read and change there;
the rows here do. What a code needs is taken from the same fields that its handler reads.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from gantrymq.access.accounts import Permission, group_resource
from gantrymq.model.names import REPLY_SUFFIX, RETRY_PREFIX, STAGE_TOPIC, TRACE_TOPIC
from gantrymq.protocol import fastjson
from gantrymq.protocol.bodies import Heartbeat, LockRequest
from gantrymq.protocol.codes import RequestCode as Code
from gantrymq.protocol.command import Command
from gantrymq.protocol.pop import AssignmentRequest, read_batch_ack
from gantrymq.protocol.publishing import read_decision, read_share

PUB, SUB, ANY = Permission.PUB, Permission.SUB, Permission.ANY
Wanted = tuple[str, Permission]
"""A resource, and what is to be done with it."""
OPEN_TO_PUBLISH: Final = frozenset({TRACE_TOPIC, STAGE_TOPIC})
"""Every key may send there: traces as in RocketMQ, and what Spark stages, which nobody can read
before a request that names the real topics publishes it."""


@dataclass(frozen=True)
class Need:
    """What one request code needs besides a key that is known and a signature that is right."""

    topics: tuple[tuple[str, Permission], ...] = ()
    """Fields that name a topic. Without a value there is nothing to check."""
    groups: tuple[str, ...] = ()
    """Fields that name a consumer group, for which the account needs SUB."""
    admin: bool = False
    of_body: Callable[[bytes], Iterable[Wanted]] | None = None
    """Reads resources from the body; asked after the signature was found right."""
    own_retry_topics: bool = False
    """The topic may be one in which POP retries messages of the request's group."""

    fields: tuple[str, ...] = field(init=False)
    """The fields on which the decision depends."""
    field: str | None = field(init=False)
    """The only one of them, if there is only one: so it is with sends."""

    def __post_init__(self) -> None:
        names = tuple(name for name, _ in self.topics) + self.groups
        object.__setattr__(self, "fields", names)
        object.__setattr__(self, "field", names[0] if len(names) == 1 else None)

    def wanted(self, command: Command) -> list[Wanted]:
        """The resources that a request is about, and what it wants to do with them."""
        found: list[Wanted] = []
        ext = command.ext
        for name, permission in self.topics:
            topic = ext.get(name)
            if topic and not (self.own_retry_topics and _retries_for(topic, ext, self.groups)):
                found += _about_topic(topic, permission)
        found += [(group_resource(group), SUB) for n in self.groups if (group := ext.get(n))]
        if self.of_body is not None:
            found += self.of_body(command.body)
        return found


def _about_topic(topic: str, permission: Permission) -> list[Wanted]:
    if topic.startswith(RETRY_PREFIX):
        return [(topic, SUB)]  # whoever consumes as a group may put messages back for it
    if permission == PUB and topic in OPEN_TO_PUBLISH:
        return []
    return [(topic, permission)]


def _retries_for(topic: str, ext: dict[str, str], groups: tuple[str, ...]) -> bool:
    """Whether POP keeps retries of the request's own group in this topic."""
    own = tuple(f"{RETRY_PREFIX}{ext.get(name, '')}{sign}" for name in groups for sign in "_+")
    return topic.startswith(own)


# resources that stand in bodies


def _of_heartbeat(body: bytes) -> list[Wanted]:
    found: list[Wanted] = []
    for consumer in fastjson.load_request(body, Heartbeat).consumer_data_set:
        found.append((group_resource(consumer.group_name), SUB))
        found += [(each.topic, SUB) for each in consumer.subscription_data_set]
    return found


def _of_lock(body: bytes) -> list[Wanted]:
    asked = fastjson.load_request(body, LockRequest)
    topics = dict.fromkeys(queue.topic for queue in asked.mq_set)
    return [(group_resource(asked.consumer_group), SUB), *((topic, SUB) for topic in topics)]


def _of_assignment(body: bytes) -> list[Wanted]:
    asked = fastjson.load_request(body or b"{}", AssignmentRequest)
    return [(asked.topic, SUB), (group_resource(asked.consumer_group), SUB)]


def _of_acks(body: bytes) -> list[Wanted]:
    return [
        wanted
        for ack in read_batch_ack(body)
        for wanted in ((group_resource(ack.c), SUB), (ack.t, SUB))
    ]


def _of_share(body: bytes) -> list[Wanted]:
    return [(topic, PUB) for topic in dict.fromkeys(each.topic for each in read_share(body))]


def _of_decision(body: bytes) -> list[Wanted]:
    shares = read_decision(body).shares.values()
    topics = dict.fromkeys(stretch.topic for share in shares for stretch in share)
    return [(topic, PUB) for topic in topics]


# the rows

SIGNED: Final = Need()
"""Any account will do: lists, figures and settings that tools read."""
ADMIN: Final = Need(admin=True)
_PUBLISH: Final = Need(topics=(("topic", PUB),))
_PUBLISH_V2: Final = Need(topics=(("b", PUB),))
_ANY_TOPIC: Final = Need(topics=(("topic", ANY),))
_READ_TOPIC: Final = Need(topics=(("topic", SUB),))
_CONSUME: Final = Need(topics=(("topic", SUB),), groups=("consumerGroup",))
_CONSUME_AS_GROUP: Final = Need(topics=(("topic", SUB),), groups=("group",))
_FINISH_POPPED: Final = Need(
    topics=(("topic", SUB),), groups=("consumerGroup",), own_retry_topics=True
)
_GROUP: Final = Need(groups=("consumerGroup",))
_NAMED_GROUP: Final = Need(groups=("group",))

_BY_NEED: Final = (
    (_PUBLISH, (Code.SEND_MESSAGE, Code.END_TRANSACTION, Code.RECALL_MESSAGE)),
    (_PUBLISH_V2, (Code.SEND_MESSAGE_V2, Code.SEND_BATCH_MESSAGE)),
    (
        _CONSUME,
        (
            Code.PULL_MESSAGE, Code.LITE_PULL_MESSAGE, Code.POP_MESSAGE, Code.PEEK_MESSAGE,
            Code.NOTIFICATION, Code.POLLING_INFO, Code.QUERY_CONSUMER_OFFSET,
            Code.UPDATE_CONSUMER_OFFSET, Code.QUERY_CONSUME_QUEUE,
        ),
    ),
    (_FINISH_POPPED, (Code.ACK_MESSAGE, Code.CHANGE_MESSAGE_INVISIBLETIME)),
    (Need(of_body=_of_acks), (Code.BATCH_ACK_MESSAGE,)),
    (
        _CONSUME_AS_GROUP,
        (Code.INVOKE_BROKER_TO_RESET_OFFSET, Code.INVOKE_BROKER_TO_GET_CONSUMER_STATUS),
    ),
    (_NAMED_GROUP, (Code.CONSUMER_SEND_MSG_BACK,)),
    (Need(topics=(("topic", SUB),), groups=("srcGroup", "destGroup")), (Code.CLONE_GROUP_OFFSET,)),
    (
        _GROUP,
        (
            Code.UNREGISTER_CLIENT, Code.GET_CONSUMER_LIST_BY_GROUP, Code.GET_CONSUMER_RUNNING_INFO,
            Code.CONSUME_MESSAGE_DIRECTLY,
        ),
    ),
    (Need(of_body=_of_heartbeat), (Code.HEART_BEAT,)),
    (Need(of_body=_of_lock), (Code.LOCK_BATCH_MQ, Code.UNLOCK_BATCH_MQ)),
    (Need(of_body=_of_assignment), (Code.QUERY_ASSIGNMENT,)),
    (_READ_TOPIC, (Code.QUERY_MESSAGE, Code.VIEW_MESSAGE_BY_ID)),
    (
        _ANY_TOPIC,
        (
            Code.GET_MAX_OFFSET, Code.GET_MIN_OFFSET, Code.SEARCH_OFFSET_BY_TIMESTAMP,
            Code.GET_EARLIEST_MSG_STORETIME, Code.GET_WAITING_MESSAGES,
        ),
    ),
    (Need(of_body=_of_share), (Code.PREPARE_EPOCH, Code.PUBLISH_EPOCH)),
    (Need(of_body=_of_decision), (Code.DECIDE_EPOCH,)),
    (
        ADMIN,
        (
            Code.UPDATE_AND_CREATE_TOPIC, Code.UPDATE_AND_CREATE_TOPIC_LIST,
            Code.DELETE_TOPIC_IN_BROKER, Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP,
            Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST, Code.DELETE_SUBSCRIPTIONGROUP,
            Code.UPDATE_AND_GET_GROUP_FORBIDDEN, Code.UPDATE_BROKER_CONFIG,
            Code.SET_MESSAGE_REQUEST_MODE, Code.RESUME_CHECK_HALF_MESSAGE, Code.CHECK_HALF_MESSAGE,
            Code.CLEAN_EXPIRED_CONSUMEQUEUE, Code.CLEAN_UNUSED_TOPIC,
            Code.DELETE_EXPIRED_COMMITLOG, Code.TRANSFER_RAFT_LEADERSHIP,
            Code.INTRODUCE_SLAVE, Code.COMPARE_LOG, Code.EXCHANGE_BROKER_HA_INFO,
            Code.UPDATE_AND_CREATE_ACL_CONFIG, Code.DELETE_ACL_CONFIG,
            Code.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG, Code.GET_BROKER_CLUSTER_ACL_CONFIG,
            Code.AUTH_CREATE_USER, Code.AUTH_UPDATE_USER, Code.AUTH_DELETE_USER,
            Code.AUTH_GET_USER, Code.AUTH_LIST_USER, Code.AUTH_CREATE_ACL, Code.AUTH_UPDATE_ACL,
            Code.AUTH_DELETE_ACL, Code.AUTH_GET_ACL, Code.AUTH_LIST_ACL,
        ),
    ),
    (
        SIGNED,
        (
            Code.CHECK_CLIENT_CONFIG, Code.GET_CONSUMER_CONNECTION_LIST,
            Code.GET_PRODUCER_CONNECTION_LIST, Code.GET_ALL_MESSAGE_REQUEST_MODE,
            Code.GET_WRITER_STATE, Code.GET_ALL_TOPIC_CONFIG, Code.GET_TOPIC_CONFIG,
            Code.GET_SYSTEM_TOPIC_LIST_FROM_BROKER, Code.GET_TOPIC_STATS_INFO,
            Code.QUERY_TOPIC_CONSUME_BY_WHO, Code.GET_ALL_SUBSCRIPTIONGROUP_CONFIG,
            Code.GET_SUBSCRIPTIONGROUP_CONFIG, Code.GET_CONSUME_STATS,
            Code.GET_BROKER_CONSUME_STATS, Code.QUERY_CONSUME_TIME_SPAN,
            Code.QUERY_CORRECTION_OFFSET, Code.QUERY_TOPICS_BY_CONSUMER,
            Code.QUERY_SUBSCRIPTION_BY_CONSUMER, Code.GET_BROKER_CONFIG,
            Code.GET_BROKER_RUNTIME_INFO, Code.VIEW_BROKER_STATS_DATA, Code.GET_RAFT_STATUS,
            Code.GET_ALL_CONSUMER_OFFSET, Code.GET_ALL_DELAY_OFFSET, Code.GET_TIMER_CHECK_POINT,
            Code.GET_TIMER_METRICS, Code.GET_BROKER_HA_STATUS, Code.GET_BROKER_EPOCH_CACHE,
            Code.GET_ALL_PRODUCER_INFO, Code.GET_BROKER_CLUSTER_ACL_INFO,
        ),
    ),
)  # fmt: skip


def _reply_need(field: str) -> Need:
    """Replies to the client that asked are open; any other topic is published to."""

    class ReplyNeed(Need):
        def wanted(self, command: Command) -> list[Wanted]:
            topic = command.ext.get(field, "")
            return [] if topic.endswith(REPLY_SUFFIX) else _about_topic(topic, PUB)

    return ReplyNeed(topics=((field, PUB),))


BROKER_RIGHTS: Final[dict[int, Need]] = {
    **{code: need for need, codes in _BY_NEED for code in codes},
    Code.SEND_REPLY_MESSAGE: _reply_need("topic"),
    Code.SEND_REPLY_MESSAGE_V2: _reply_need("b"),
}
"""What a broker asks for, by request code."""

NAME_SERVER_RIGHTS: Final[dict[int, Need]] = {
    **dict.fromkeys(
        (
            Code.PUT_KV_CONFIG, Code.DELETE_KV_CONFIG, Code.REGISTER_BROKER,
            Code.UNREGISTER_BROKER, Code.BROKER_HEARTBEAT, Code.WIPE_WRITE_PERM_OF_BROKER,
            Code.ADD_WRITE_PERM_OF_BROKER, Code.DELETE_TOPIC_IN_NAMESRV,
            Code.REGISTER_TOPIC_IN_NAMESRV, Code.UPDATE_NAMESRV_CONFIG,
        ),
        ADMIN,
    ),
    **dict.fromkeys(
        (
            Code.GET_KV_CONFIG, Code.GET_KVLIST_BY_NAMESPACE, Code.QUERY_DATA_VERSION,
            Code.GET_BROKER_MEMBER_GROUP, Code.GET_ROUTEINFO_BY_TOPIC,
            Code.GET_BROKER_CLUSTER_INFO, Code.GET_ALL_TOPIC_LIST_FROM_NAMESERVER,
            Code.GET_TOPICS_BY_CLUSTER, Code.GET_SYSTEM_TOPIC_LIST_FROM_NS,
            Code.GET_UNIT_TOPIC_LIST, Code.GET_HAS_UNIT_SUB_TOPIC_LIST,
            Code.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST, Code.GET_NAMESRV_CONFIG,
        ),
        SIGNED,
    ),
}  # fmt: skip
"""What a name server asks for; RocketMQ's of 4.9 ask for nothing."""
