"""Everything a broker answers, on one screen."""

from gantrymq.broker.handlers.admin import AdminHandler
from gantrymq.broker.handlers.clients import ClientHandler
from gantrymq.broker.handlers.groups import GroupHandler
from gantrymq.broker.handlers.offsets import OffsetHandler
from gantrymq.broker.handlers.pull import PullHandler
from gantrymq.broker.handlers.query import QueryHandler
from gantrymq.broker.handlers.send import SendHandler
from gantrymq.broker.handlers.sendback import SendBackHandler
from gantrymq.broker.handlers.topics import TopicHandler
from gantrymq.protocol.codes import RequestCode as Code
from gantrymq.remoting.server import Routes

PULL_CODES = (Code.PULL_MESSAGE, Code.LITE_PULL_MESSAGE)
"""What the fast port does not take."""


def broker_routes(
    send: SendHandler,
    back: SendBackHandler,
    pull: PullHandler,
    offsets: OffsetHandler,
    clients: ClientHandler,
    query: QueryHandler,
    topics: TopicHandler,
    groups: GroupHandler,
    admin: AdminHandler,
) -> Routes:
    """Hot codes are plain functions; the slow ones are coroutines."""
    return Routes(
        hot={
            Code.SEND_MESSAGE: send.v1,
            Code.SEND_MESSAGE_V2: send.v2,
            Code.SEND_BATCH_MESSAGE: send.v2,
            Code.PULL_MESSAGE: pull.pull,
            Code.LITE_PULL_MESSAGE: pull.pull,
            Code.QUERY_CONSUMER_OFFSET: offsets.query,
            Code.UPDATE_CONSUMER_OFFSET: offsets.update,
            Code.GET_MAX_OFFSET: offsets.maximum,
            Code.GET_MIN_OFFSET: offsets.minimum,
            Code.HEART_BEAT: clients.heartbeat,
            Code.UNREGISTER_CLIENT: clients.unregister,
            Code.GET_CONSUMER_LIST_BY_GROUP: clients.ids,
            Code.LOCK_BATCH_MQ: clients.lock,
            Code.UNLOCK_BATCH_MQ: clients.unlock,
            Code.CHECK_CLIENT_CONFIG: clients.check,
            Code.GET_CONSUMER_CONNECTION_LIST: clients.consumers,
            Code.GET_PRODUCER_CONNECTION_LIST: clients.producers,
        },
        slow={
            Code.CONSUMER_SEND_MSG_BACK: back.back,
            Code.SEARCH_OFFSET_BY_TIMESTAMP: offsets.by_time,
            Code.GET_EARLIEST_MSG_STORETIME: offsets.earliest,
            Code.VIEW_MESSAGE_BY_ID: query.view,
            Code.QUERY_MESSAGE: query.by_key,
            Code.UPDATE_AND_CREATE_TOPIC: topics.create,
            Code.DELETE_TOPIC_IN_BROKER: topics.delete,
            Code.GET_ALL_TOPIC_CONFIG: topics.all,
            Code.GET_TOPIC_CONFIG: topics.one,
            Code.GET_SYSTEM_TOPIC_LIST_FROM_BROKER: topics.system,
            Code.GET_TOPIC_STATS_INFO: topics.stats,
            Code.QUERY_TOPIC_CONSUME_BY_WHO: topics.consumed_by,
            Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: groups.update,
            Code.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: groups.all,
            Code.GET_SUBSCRIPTIONGROUP_CONFIG: groups.one,
            Code.DELETE_SUBSCRIPTIONGROUP: groups.delete,
            Code.GET_CONSUME_STATS: groups.progress,
            Code.GET_BROKER_CONFIG: admin.get_config,
            Code.UPDATE_BROKER_CONFIG: admin.update_config,
            Code.GET_BROKER_RUNTIME_INFO: admin.runtime,
        },
    )
