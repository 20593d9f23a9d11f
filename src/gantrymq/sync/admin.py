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
    put_account = blocking(AsyncAdmin.put_account)
    delete_account = blocking(AsyncAdmin.delete_account)
    put_white_addresses = blocking(AsyncAdmin.put_white_addresses)
    access_versions = blocking(AsyncAdmin.access_versions)
    access_config = blocking(AsyncAdmin.access_config)
    create_user = blocking(AsyncAdmin.create_user)
    update_user = blocking(AsyncAdmin.update_user)
    delete_user = blocking(AsyncAdmin.delete_user)
    get_user = blocking(AsyncAdmin.get_user)
    list_users = blocking(AsyncAdmin.list_users)
    create_acl = blocking(AsyncAdmin.create_acl)
    update_acl = blocking(AsyncAdmin.update_acl)
    delete_acl = blocking(AsyncAdmin.delete_acl)
    get_acl = blocking(AsyncAdmin.get_acl)
    list_acls = blocking(AsyncAdmin.list_acls)
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
    kv = blocking(AsyncAdmin.kv)
    kv_list = blocking(AsyncAdmin.kv_list)
    put_kv = blocking(AsyncAdmin.put_kv)
    delete_kv = blocking(AsyncAdmin.delete_kv)
    name_server_configs = blocking(AsyncAdmin.name_server_configs)
    update_name_server_config = blocking(AsyncAdmin.update_name_server_config)
    wipe_write_permission = blocking(AsyncAdmin.wipe_write_permission)
    add_write_permission = blocking(AsyncAdmin.add_write_permission)
    broker_stats = blocking(AsyncAdmin.broker_stats)
    broker_consume_stats = blocking(AsyncAdmin.broker_consume_stats)
    broker_producers = blocking(AsyncAdmin.broker_producers)
    broker_epochs = blocking(AsyncAdmin.broker_epochs)
    queue_entries = blocking(AsyncAdmin.queue_entries)
    clean_expired_queues = blocking(AsyncAdmin.clean_expired_queues)
    clean_unused_topics = blocking(AsyncAdmin.clean_unused_topics)
    delete_expired_log = blocking(AsyncAdmin.delete_expired_log)
    put_topic = blocking(AsyncAdmin.put_topic)
    put_topics = blocking(AsyncAdmin.put_topics)
    topic_put_rate = blocking(AsyncAdmin.topic_put_rate)
    put_group = blocking(AsyncAdmin.put_group)
    put_groups = blocking(AsyncAdmin.put_groups)
    group_configs = blocking(AsyncAdmin.group_configs)
    clone_offsets = blocking(AsyncAdmin.clone_offsets)
    set_request_mode = blocking(AsyncAdmin.set_request_mode)
    running_info = blocking(AsyncAdmin.running_info)
    consume_directly = blocking(AsyncAdmin.consume_directly)
    broker_name_at = blocking(AsyncAdmin.broker_name_at)
    raft_status = blocking(AsyncAdmin.raft_status)
    transfer_raft_leadership = blocking(AsyncAdmin.transfer_raft_leadership)
    reset_master_flush_offset = blocking(AsyncAdmin.reset_master_flush_offset)
