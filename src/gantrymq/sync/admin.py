"""The blocking administration."""

from functools import partial
from typing import Any, overload

from gantrymq.client.admin.admin import Admin as AsyncAdmin
from gantrymq.sync.portal import BlockingClient, Portal, arguments_of, blocking


class Admin(BlockingClient[AsyncAdmin]):
    """Administers a cluster."""

    @overload
    @arguments_of(AsyncAdmin)
    def __init__(self) -> None: ...

    @overload
    def __init__(self, *given: Any, portal: Portal | None, **named: Any) -> None: ...

    def __init__(self, *given: Any, portal: Portal | None = None, **named: Any) -> None:
        super().__init__(partial(AsyncAdmin, *given, **named), portal)

    cluster = blocking(AsyncAdmin.cluster)
    masters = blocking(AsyncAdmin.masters)
    members = blocking(AsyncAdmin.members)
    broker_runtime = blocking(AsyncAdmin.broker_runtime)
    ha_status = blocking(AsyncAdmin.ha_status)
    broker_config = blocking(AsyncAdmin.broker_config)
    update_broker_config = blocking(AsyncAdmin.update_broker_config)
    create_topic = blocking(AsyncAdmin.create_topic)
    delete_topic = blocking(AsyncAdmin.delete_topic)
    topics = blocking(AsyncAdmin.topics)
    topic_configs = blocking(AsyncAdmin.topic_configs)
    topic_route = blocking(AsyncAdmin.topic_route)
    topic_stats = blocking(AsyncAdmin.topic_stats)
    topic_groups = blocking(AsyncAdmin.topic_groups)
    groups = blocking(AsyncAdmin.groups)
    waiting = blocking(AsyncAdmin.waiting)
    update_group = blocking(AsyncAdmin.update_group)
    delete_group = blocking(AsyncAdmin.delete_group)
    consume_stats = blocking(AsyncAdmin.consume_stats)
    consumers = blocking(AsyncAdmin.consumers)
    subscription_conflicts = blocking(AsyncAdmin.subscription_conflicts)
    producers = blocking(AsyncAdmin.producers)
    preview_reset = blocking(AsyncAdmin.preview_reset)
    reset = blocking(AsyncAdmin.reset)
    consumer_status = blocking(AsyncAdmin.consumer_status)
    min_offset = blocking(AsyncAdmin.min_offset)
    max_offset = blocking(AsyncAdmin.max_offset)
    search_offset = blocking(AsyncAdmin.search_offset)
    message = blocking(AsyncAdmin.message)
    query = blocking(AsyncAdmin.query)
