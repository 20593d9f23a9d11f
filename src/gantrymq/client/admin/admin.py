"""Administration of a cluster: the one class that programs of operators use."""

from gantrymq.client.admin.access_admin import AccessAdmin
from gantrymq.client.admin.group_admin import GroupAdmin
from gantrymq.client.admin.message_admin import MessageAdmin
from gantrymq.client.admin.name_server_admin import NameServerAdmin
from gantrymq.client.admin.topic_admin import TopicAdmin


class Admin(TopicAdmin, GroupAdmin, MessageAdmin, NameServerAdmin, AccessAdmin):
    """An administrator's view of one cluster or several behind the same name servers.

    Its methods stand in the class of their subject: brokers and topics, groups, messages, name
    servers, and access files.
    """
