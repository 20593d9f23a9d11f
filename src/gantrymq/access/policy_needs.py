"""What each request code needs of a user's policies: resources, and actions on them. Pure.

Rows follow RocketMQ 5.3.3. A row lists fields that name a topic or a group, in the order in which
5.3.3 asks about them, with the actions of which one must be allowed. 5.3.3 asks nothing about many
codes, among them changes of the broker's settings and of groups, locks by POP, batches of topics
and batches of acknowledgements. They get the row that access files have for them (`rights`): what
needs an admin there needs Update on the cluster here, with which a user can also make users.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from gantrymq.access.accounts import Permission
from gantrymq.access.policies import Action, Resource, ResourceType
from gantrymq.access.rights import BROKER_RIGHTS, Need, Wanted
from gantrymq.model.names import DEAD_PREFIX, RETRY_PREFIX, STAGE_TOPIC
from gantrymq.protocol import fastjson
from gantrymq.protocol.bodies import Heartbeat, LockRequest
from gantrymq.protocol.codes import RequestCode as Code
from gantrymq.protocol.command import Command

Actions = tuple[Action, ...]
Wish = tuple[Resource, Actions]
"""A resource, and actions of which one must be allowed."""

PUB, SUB, GET, LIST = (Action.PUB,), (Action.SUB,), (Action.GET,), (Action.LIST,)
CREATE, UPDATE, DELETE = (Action.CREATE,), (Action.UPDATE,), (Action.DELETE,)
SUB_GET: Final = (Action.SUB, Action.GET)
SUB_UPDATE: Final = (Action.SUB, Action.UPDATE)
OF_PERMISSION: Final = {
    Permission.PUB: PUB,
    Permission.SUB: SUB,
    Permission.ANY: (Action.PUB, Action.SUB, Action.GET),
}
"""Actions that stand for a permission of access files."""


def late_actions(code: int, permission: Permission) -> Actions:
    """What is asked about a topic that only the handler of a request has found."""
    return SUB_GET if code == Code.VIEW_MESSAGE_BY_ID else OF_PERMISSION[permission]


def topic_or_group(name: str) -> Resource:
    """A topic; for a retry topic, the group that it belongs to."""
    if name.startswith(RETRY_PREFIX):
        return group_named(name)
    return Resource(ResourceType.TOPIC, name)


def group_named(name: str) -> Resource:
    """A group, by its name or that of its retry topic."""
    if name.startswith(RETRY_PREFIX):
        name = name.removeprefix(RETRY_PREFIX).removeprefix(DEAD_PREFIX)
    return Resource(ResourceType.GROUP, name)


@dataclass(frozen=True)
class NamedField:
    """A field that names a resource. Without a value there is nothing to ask."""

    name: str
    is_group: bool
    actions: Actions
    splitter: str = ""
    """What stands between several names."""
    passes_retry: bool = False
    """A retry topic is not asked about: the request names the group in another field."""

    def wishes(self, ext: Mapping[str, str]) -> list[Wish]:
        text = ext.get(self.name) or ""
        names = text.split(self.splitter) if self.splitter else [text]
        return [self._wish(name) for name in names if name.strip() and not self._passes(name)]

    def _passes(self, name: str) -> bool:
        if self.passes_retry and name.startswith(RETRY_PREFIX):
            return True
        return name == STAGE_TOPIC and self.actions == PUB

    def _wish(self, name: str) -> Wish:
        if self.is_group:
            return group_named(name), self.actions
        if name.startswith(RETRY_PREFIX) and self.actions == PUB:
            return group_named(name), SUB  # whoever consumes as a group may put messages back
        return topic_or_group(name), self.actions


@dataclass(frozen=True)
class PolicyNeed:
    """What one request code needs besides a user that is known and a signature that is right."""

    named: tuple[NamedField, ...] = ()
    cluster: Actions = ()
    """Actions on the broker's cluster."""
    of_body: Callable[[bytes], Iterable[Wish]] | None = None
    old: Need | None = None
    """The row of access files, for codes about which 5.3.3 asks nothing."""
    own_retry_topics: bool = False
    """The topic may be one in which POP retries messages of the request's group."""

    fields: tuple[str, ...] = field(init=False)
    field: str | None = field(init=False)

    def __post_init__(self) -> None:
        names = tuple(each.name for each in self.named) if self.old is None else self.old.fields
        object.__setattr__(self, "fields", names)
        object.__setattr__(self, "field", names[0] if len(names) == 1 else None)

    def wishes(self, command: Command, cluster: str) -> list[Wish]:
        """The resources that a request is about, and what it wants to do with them."""
        found: list[Wish] = []
        if self.cluster:
            found.append((Resource(ResourceType.CLUSTER, cluster), self.cluster))
        if self.old is not None:
            return found + [_new(wanted) for wanted in self.old.wanted(command)]
        for each in self.named:
            if not (self.own_retry_topics and self._is_own_retry(each, command.ext)):
                found += each.wishes(command.ext)
        if self.of_body is not None:
            found += self.of_body(command.body)
        return found

    def _is_own_retry(self, asked: NamedField, ext: Mapping[str, str]) -> bool:
        own = f"{RETRY_PREFIX}{ext.get('consumerGroup', '')}"
        return not asked.is_group and ext.get(asked.name, "").startswith((f"{own}_", f"{own}+"))


def _new(wanted: Wanted) -> Wish:
    resource, permission = wanted
    return topic_or_group(resource), OF_PERMISSION[permission]


def _topic(name: str, actions: Actions, *, passes_retry: bool = False) -> NamedField:
    return NamedField(name, False, actions, passes_retry=passes_retry)


def _group(name: str, actions: Actions) -> NamedField:
    return NamedField(name, True, actions)


def _need(*named: NamedField) -> PolicyNeed:
    return PolicyNeed(named)


# resources that stand in bodies


def _of_heartbeat(body: bytes) -> list[Wish]:
    found: list[Wish] = []
    for consumer in fastjson.load_request(body, Heartbeat).consumer_data_set:
        found.append((group_named(consumer.group_name), SUB))
        topics = (each.topic for each in consumer.subscription_data_set)
        found += _topics(topics, SUB)
    return found


def _of_lock(body: bytes) -> list[Wish]:
    asked = fastjson.load_request(body, LockRequest)
    topics = dict.fromkeys(queue.topic for queue in asked.mq_set)
    return [(group_named(asked.consumer_group), SUB), *_topics(topics, SUB)]


def _topics(names: Iterable[str], actions: Actions) -> list[Wish]:
    """Topics but for retry topics, whose groups are asked about by themselves."""
    return [
        (Resource(ResourceType.TOPIC, name), actions)
        for name in names
        if not name.startswith(RETRY_PREFIX)
    ]


# the rows

NOTHING: Final = PolicyNeed()
"""Any user will do."""
_GROUP_TOPIC_SUB: Final = _need(_group("consumerGroup", SUB), _topic("topic", SUB))
_GET_TOPIC: Final = _need(_topic("topic", GET))
_READ_CLUSTER, _CHANGE_CLUSTER = PolicyNeed(cluster=GET), PolicyNeed(cluster=UPDATE)
_PUBLISH: Final = _need(_topic("topic", PUB))
_PUBLISH_V2: Final = _need(_topic("b", PUB))

_BY_NEED: Final = (
    (_PUBLISH, (Code.END_TRANSACTION, Code.RECALL_MESSAGE)),
    (_GROUP_TOPIC_SUB, (Code.POP_MESSAGE, Code.NOTIFICATION, Code.CONSUME_MESSAGE_DIRECTLY)),
    (
        PolicyNeed(_GROUP_TOPIC_SUB.named, own_retry_topics=True),
        (Code.ACK_MESSAGE, Code.CHANGE_MESSAGE_INVISIBLETIME),
    ),
    (_need(_topic("topic", SUB), _group("consumerGroup", SUB)), (Code.PEEK_MESSAGE,)),
    (
        _need(_topic("topic", SUB, passes_retry=True), _group("consumerGroup", SUB)),
        (Code.PULL_MESSAGE,),
    ),
    (
        _need(_topic("topic", SUB_GET, passes_retry=True), _group("consumerGroup", SUB_GET)),
        (Code.QUERY_CONSUMER_OFFSET,),
    ),
    (
        _need(_topic("topic", SUB_UPDATE, passes_retry=True), _group("consumerGroup", SUB_UPDATE)),
        (Code.UPDATE_CONSUMER_OFFSET,),
    ),
    (_need(_group("group", SUB)), (Code.CONSUMER_SEND_MSG_BACK,)),
    (_need(_topic("topic", SUB_GET)), (Code.QUERY_MESSAGE,)),
    (_need(_group("consumerGroup", SUB)), (Code.UNREGISTER_CLIENT,)),
    (_need(_group("consumerGroup", SUB_GET)), (Code.GET_CONSUMER_LIST_BY_GROUP,)),
    (PolicyNeed(of_body=_of_heartbeat), (Code.HEART_BEAT,)),
    (PolicyNeed(of_body=_of_lock), (Code.LOCK_BATCH_MQ, Code.UNLOCK_BATCH_MQ)),
    (_need(_group("consumerGroup", GET), _topic("topic", GET)), (Code.POLLING_INFO,)),
    (_need(_topic("topic", GET), _group("consumerGroup", GET)), (Code.QUERY_CONSUME_QUEUE,)),
    (
        _need(_group("consumerGroup", GET)),
        (Code.GET_CONSUMER_CONNECTION_LIST, Code.GET_CONSUMER_RUNNING_INFO),
    ),
    (
        _need(
            _group("consumerGroup", GET),
            _topic("topic", GET),
            NamedField("topicList", False, GET, splitter=";"),
        ),
        (Code.GET_CONSUME_STATS,),
    ),
    (
        _need(_topic("topic", GET), _group("group", GET)),
        (Code.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, Code.QUERY_CONSUME_TIME_SPAN),
    ),
    (
        _need(_group("group", GET), _topic("topic", GET)),
        (Code.QUERY_SUBSCRIPTION_BY_CONSUMER,),
    ),
    (
        _need(_group("group", GET)),
        (Code.QUERY_TOPICS_BY_CONSUMER, Code.GET_SUBSCRIPTIONGROUP_CONFIG),
    ),
    (
        _need(
            NamedField("filterGroups", True, GET, splitter=","),
            _group("compareGroup", GET),
            _topic("topic", GET),
        ),
        (Code.QUERY_CORRECTION_OFFSET,),
    ),
    (
        _need(_group("group", UPDATE), _topic("topic", UPDATE)),
        (Code.INVOKE_BROKER_TO_RESET_OFFSET, Code.UPDATE_AND_GET_GROUP_FORBIDDEN),
    ),
    (_need(_group("destGroup", UPDATE), _topic("topic", UPDATE)), (Code.CLONE_GROUP_OFFSET,)),
    (
        _need(_topic("topic", UPDATE)),
        (Code.RESUME_CHECK_HALF_MESSAGE, Code.CHECK_HALF_MESSAGE),
    ),
    (_need(_topic("topic", CREATE)), (Code.UPDATE_AND_CREATE_TOPIC,)),
    (_need(_topic("topic", DELETE)), (Code.DELETE_TOPIC_IN_BROKER,)),
    (_need(_group("groupName", DELETE)), (Code.DELETE_SUBSCRIPTIONGROUP,)),
    (
        _GET_TOPIC,
        (
            Code.GET_MAX_OFFSET, Code.GET_MIN_OFFSET, Code.SEARCH_OFFSET_BY_TIMESTAMP,
            Code.GET_EARLIEST_MSG_STORETIME, Code.GET_TOPIC_CONFIG, Code.GET_TOPIC_STATS_INFO,
            Code.QUERY_TOPIC_CONSUME_BY_WHO, Code.VIEW_MESSAGE_BY_ID,
        ),
    ),
    (
        _READ_CLUSTER,
        (
            Code.GET_PRODUCER_CONNECTION_LIST, Code.GET_ALL_PRODUCER_INFO,
            Code.GET_BROKER_CONSUME_STATS, Code.VIEW_BROKER_STATS_DATA, Code.AUTH_GET_USER,
            Code.AUTH_LIST_USER, Code.AUTH_GET_ACL, Code.AUTH_LIST_ACL,
        ),
    ),
    (
        _CHANGE_CLUSTER,
        (
            Code.EXCHANGE_BROKER_HA_INFO, Code.AUTH_CREATE_USER, Code.AUTH_UPDATE_USER,
            Code.AUTH_DELETE_USER, Code.AUTH_CREATE_ACL, Code.AUTH_UPDATE_ACL,
            Code.AUTH_DELETE_ACL,
        ),
    ),
    # A retry topic needs Sub of its own group, as with access files; 5.3.3 asks about the group
    # that the sender says it is.
    (_PUBLISH, (Code.SEND_MESSAGE,)),
    (_PUBLISH_V2, (Code.SEND_MESSAGE_V2, Code.SEND_BATCH_MESSAGE)),
)  # fmt: skip


def _old_row(need: Need) -> PolicyNeed:
    read = need.of_body
    of_body = None if read is None else lambda body: map(_new, read(body))
    return PolicyNeed(cluster=UPDATE if need.admin else (), of_body=of_body, old=need)


BROKER_NEEDS: Final[dict[int, PolicyNeed]] = {
    **{code: _old_row(need) for code, need in BROKER_RIGHTS.items()},
    **{code: need for need, codes in _BY_NEED for code in codes},
}
"""What a broker asks for, by request code."""
