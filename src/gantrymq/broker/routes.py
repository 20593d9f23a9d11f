"""Every request code that a broker answers, and its handler."""

from dataclasses import dataclass
from typing import Any

from gantrymq.access.guard import AccessGuard
from gantrymq.access.guarded_sends import GuardedSends
from gantrymq.broker.errors import Refused
from gantrymq.broker.handlers.access import AccessHandler
from gantrymq.broker.handlers.acks import AckHandler
from gantrymq.broker.handlers.admin import AdminHandler
from gantrymq.broker.handlers.assignment import AssignmentHandler
from gantrymq.broker.handlers.cleaning import CleaningHandler
from gantrymq.broker.handlers.clients import ClientHandler
from gantrymq.broker.handlers.copies import CopyHandler
from gantrymq.broker.handlers.groups import GroupHandler
from gantrymq.broker.handlers.offsets import OffsetHandler
from gantrymq.broker.handlers.pop import PopHandler
from gantrymq.broker.handlers.progress import ProgressHandler
from gantrymq.broker.handlers.publishing import PublishHandler
from gantrymq.broker.handlers.pull import PullHandler
from gantrymq.broker.handlers.query import QueryHandler
from gantrymq.broker.handlers.queue_entries import QueueEntryHandler
from gantrymq.broker.handlers.raft_group import RaftGroupHandler
from gantrymq.broker.handlers.relays import RelayHandler
from gantrymq.broker.handlers.reply import ReplyHandler
from gantrymq.broker.handlers.resets import ResetHandler
from gantrymq.broker.handlers.send import SendHandler
from gantrymq.broker.handlers.sendback import SendBackHandler
from gantrymq.broker.handlers.stats import StatsHandler
from gantrymq.broker.handlers.timers import TimerHandler
from gantrymq.broker.handlers.topics import TopicHandler
from gantrymq.broker.handlers.transactions import TransactionHandler
from gantrymq.broker.handlers.users import UserHandler
from gantrymq.protocol.codes import RequestCode as Code
from gantrymq.protocol.command import Command
from gantrymq.protocol.refusals import REFUSED
from gantrymq.remoting.connection import Connection
from gantrymq.remoting.server import HandlerTable, Hot, Slow

PULL_CODES = (
    Code.PULL_MESSAGE,
    Code.LITE_PULL_MESSAGE,
    Code.POP_MESSAGE,
    Code.PEEK_MESSAGE,
    Code.NOTIFICATION,
    Code.POLLING_INFO,
)
"""What the fast port does not take."""


@dataclass(frozen=True)
class Handlers:
    """One handler for each kind of request."""

    send: SendHandler
    back: SendBackHandler
    transactions: TransactionHandler
    reply: ReplyHandler
    pull: PullHandler
    pop: PopHandler
    acks: AckHandler
    assignment: AssignmentHandler
    offsets: OffsetHandler
    clients: ClientHandler
    query: QueryHandler
    topics: TopicHandler
    groups: GroupHandler
    progress: ProgressHandler
    entries: QueueEntryHandler
    cleaning: CleaningHandler
    resets: ResetHandler
    relays: RelayHandler
    timers: TimerHandler
    publishing: PublishHandler
    stats: StatsHandler
    copies: CopyHandler
    raft_group: RaftGroupHandler
    admin: AdminHandler
    access: AccessHandler
    users: UserHandler


def broker_routes(to: Handlers, guard: AccessGuard[Any, Any] | None = None) -> HandlerTable:
    """The table of handlers: hot codes are plain functions, slow ones are coroutines."""
    refused: dict[int, Hot] = dict.fromkeys(REFUSED, _refuse)
    slow = {**_of_messages(to), **_of_tools(to)}
    sends = to.send if guard is None else GuardedSends(to.send, guard)
    return HandlerTable(_hot(to) | refused, slow, guard, sends)


def _refuse(connection: Connection, command: Command) -> None:
    """Say why this broker has nothing that the request could be about."""
    raise Refused(REFUSED[Code(command.code)])


def _hot(to: Handlers) -> dict[int, Hot]:
    return {
        Code.SEND_MESSAGE: to.send.v1,
        Code.SEND_MESSAGE_V2: to.send.v2,
        Code.SEND_BATCH_MESSAGE: to.send.v2,
        Code.END_TRANSACTION: to.transactions.end,
        Code.PULL_MESSAGE: to.pull.pull,
        Code.LITE_PULL_MESSAGE: to.pull.pull,
        Code.POP_MESSAGE: to.pop.pop,
        Code.NOTIFICATION: to.pop.notify,
        Code.POLLING_INFO: to.pop.polling,
        Code.ACK_MESSAGE: to.acks.ack,
        Code.BATCH_ACK_MESSAGE: to.acks.ack_many,
        Code.CHANGE_MESSAGE_INVISIBLETIME: to.acks.change,
        Code.QUERY_CONSUMER_OFFSET: to.offsets.query,
        Code.UPDATE_CONSUMER_OFFSET: to.offsets.update,
        Code.GET_MAX_OFFSET: to.offsets.maximum,
        Code.GET_MIN_OFFSET: to.offsets.minimum,
        Code.HEART_BEAT: to.clients.heartbeat,
        Code.UNREGISTER_CLIENT: to.clients.unregister,
        Code.GET_CONSUMER_LIST_BY_GROUP: to.clients.ids,
        Code.LOCK_BATCH_MQ: to.clients.lock,
        Code.UNLOCK_BATCH_MQ: to.clients.unlock,
        Code.CHECK_CLIENT_CONFIG: to.clients.check,
        Code.GET_CONSUMER_CONNECTION_LIST: to.clients.consumers,
        Code.GET_PRODUCER_CONNECTION_LIST: to.clients.producers,
    }


def _of_messages(to: Handlers) -> dict[int, Slow]:
    """Slow requests about messages, offsets and epochs."""
    return {
        Code.CONSUMER_SEND_MSG_BACK: to.back.back,
        Code.RESUME_CHECK_HALF_MESSAGE: to.transactions.resume,
        Code.CHECK_HALF_MESSAGE: to.transactions.check,
        Code.SEND_REPLY_MESSAGE: to.reply.v1,
        Code.SEND_REPLY_MESSAGE_V2: to.reply.v2,
        Code.PEEK_MESSAGE: to.pop.peek,
        Code.QUERY_ASSIGNMENT: to.assignment.query,
        Code.SET_MESSAGE_REQUEST_MODE: to.assignment.set_mode,
        Code.GET_ALL_MESSAGE_REQUEST_MODE: to.assignment.all_modes,
        Code.SEARCH_OFFSET_BY_TIMESTAMP: to.offsets.by_time,
        Code.GET_EARLIEST_MSG_STORETIME: to.offsets.earliest,
        Code.VIEW_MESSAGE_BY_ID: to.query.view,
        Code.QUERY_MESSAGE: to.query.by_key,
        Code.RECALL_MESSAGE: to.timers.recall,
        Code.GET_WAITING_MESSAGES: to.timers.waiting,
        Code.GET_WRITER_STATE: to.publishing.state,
        Code.PREPARE_EPOCH: to.publishing.prepare,
        Code.DECIDE_EPOCH: to.publishing.decide,
        Code.PUBLISH_EPOCH: to.publishing.publish,
    }


def _of_tools(to: Handlers) -> dict[int, Slow]:
    """Slow requests of operators' tools about topics, groups and the broker."""
    return {
        Code.UPDATE_AND_CREATE_TOPIC: to.topics.create,
        Code.UPDATE_AND_CREATE_TOPIC_LIST: to.topics.create_many,
        Code.DELETE_TOPIC_IN_BROKER: to.topics.delete,
        Code.GET_ALL_TOPIC_CONFIG: to.topics.all,
        Code.GET_TOPIC_CONFIG: to.topics.one,
        Code.GET_SYSTEM_TOPIC_LIST_FROM_BROKER: to.topics.system,
        Code.GET_TOPIC_STATS_INFO: to.topics.stats,
        Code.QUERY_TOPIC_CONSUME_BY_WHO: to.topics.consumed_by,
        Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: to.groups.update,
        Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: to.groups.update_many,
        Code.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: to.groups.all,
        Code.GET_SUBSCRIPTIONGROUP_CONFIG: to.groups.one,
        Code.DELETE_SUBSCRIPTIONGROUP: to.groups.delete,
        Code.UPDATE_AND_GET_GROUP_FORBIDDEN: to.groups.forbidden,
        Code.GET_CONSUME_STATS: to.progress.of_group,
        Code.GET_BROKER_CONSUME_STATS: to.progress.of_all_groups,
        Code.QUERY_CONSUME_TIME_SPAN: to.progress.time_spans,
        Code.QUERY_CORRECTION_OFFSET: to.progress.corrections,
        Code.CLONE_GROUP_OFFSET: to.progress.clone,
        Code.QUERY_TOPICS_BY_CONSUMER: to.progress.topics_of,
        Code.QUERY_SUBSCRIPTION_BY_CONSUMER: to.progress.subscription,
        Code.QUERY_CONSUME_QUEUE: to.entries.query,
        Code.CLEAN_EXPIRED_CONSUMEQUEUE: to.cleaning.expired_queues,
        Code.CLEAN_UNUSED_TOPIC: to.cleaning.unused_topics,
        Code.DELETE_EXPIRED_COMMITLOG: to.cleaning.expired_files,
        Code.INVOKE_BROKER_TO_RESET_OFFSET: to.resets.reset,
        Code.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: to.resets.status,
        Code.GET_CONSUMER_RUNNING_INFO: to.relays.running_info,
        Code.CONSUME_MESSAGE_DIRECTLY: to.relays.consume_directly,
        Code.GET_BROKER_CONFIG: to.admin.get_config,
        Code.UPDATE_BROKER_CONFIG: to.admin.update_config,
        Code.GET_BROKER_RUNTIME_INFO: to.admin.runtime,
        Code.UPDATE_AND_CREATE_ACL_CONFIG: to.access.put,
        Code.DELETE_ACL_CONFIG: to.access.delete,
        Code.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG: to.access.put_white_addresses,
        Code.GET_BROKER_CLUSTER_ACL_INFO: to.access.versions,
        Code.GET_BROKER_CLUSTER_ACL_CONFIG: to.access.all,
        Code.AUTH_CREATE_USER: to.users.create_user,
        Code.AUTH_UPDATE_USER: to.users.update_user,
        Code.AUTH_DELETE_USER: to.users.delete_user,
        Code.AUTH_GET_USER: to.users.get_user,
        Code.AUTH_LIST_USER: to.users.list_users,
        Code.AUTH_CREATE_ACL: to.users.put_acl,
        Code.AUTH_UPDATE_ACL: to.users.put_acl,
        Code.AUTH_DELETE_ACL: to.users.delete_acl,
        Code.AUTH_GET_ACL: to.users.get_acl,
        Code.AUTH_LIST_ACL: to.users.list_acls,
        Code.VIEW_BROKER_STATS_DATA: to.stats.view,
        Code.INTRODUCE_SLAVE: to.copies.introduce,
        Code.GET_RAFT_STATUS: to.raft_group.status,
        Code.TRANSFER_RAFT_LEADERSHIP: to.raft_group.transfer,
        Code.COMPARE_LOG: to.copies.compare,
        Code.GET_ALL_CONSUMER_OFFSET: to.copies.offsets,
        Code.GET_ALL_DELAY_OFFSET: to.copies.delay_offsets,
        Code.GET_TIMER_CHECK_POINT: to.copies.timer_check,
        Code.GET_TIMER_METRICS: to.timers.metrics,
        Code.GET_BROKER_HA_STATUS: to.copies.status,
        Code.EXCHANGE_BROKER_HA_INFO: to.copies.ha_info,
        Code.GET_BROKER_EPOCH_CACHE: to.raft_group.epochs,
        Code.GET_ALL_PRODUCER_INFO: to.stats.producers,
    }
