"""What brokers keep of topics, groups and subscriptions."""

from typing import Annotated, Any

import msgspec

from gantrymq.base.javatypes import Int32, java_enum
from gantrymq.model.routes import READ, WRITE

TOPIC_FILTER_TYPES = ("SINGLE_TAG", "MULTI_TAG")
TopicFilterType = Annotated[str, java_enum(*TOPIC_FILTER_TYPES)]


class TopicConfig(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=False):
    """What a broker knows about a topic; the JSON shape of topics.json and of registration."""

    attributes: dict[str, str] = {}
    order: bool = False
    perm: Int32 = READ | WRITE
    read_queue_nums: Int32 = 8
    topic_filter_type: TopicFilterType = "SINGLE_TAG"
    topic_name: str = ""
    topic_sys_flag: Int32 = 0
    write_queue_nums: Int32 = 8


class GroupConfig(msgspec.Struct, kw_only=True, rename="camel"):
    """A subscription group's settings (subscriptionGroup.json), 5.x's members included."""

    attributes: dict[str, str] = {}
    broker_id: int = 0
    consume_broadcast_enable: bool = True
    consume_enable: bool = True
    consume_from_min_enable: bool = True
    consume_message_orderly: bool = False
    consume_timeout_minute: Int32 = 15
    group_name: str
    group_retry_policy: dict[str, Any] = msgspec.field(
        default_factory=lambda: {"type": "CUSTOMIZED"}
    )
    group_sys_flag: Int32 = 0
    notify_consumer_ids_changed_enable: bool = True
    retry_max_times: Int32 = 16
    retry_queue_nums: Int32 = 1
    which_broker_when_consume_slowly: int = 1


class DataVersion(msgspec.Struct, kw_only=True, rename="camel"):
    """Says whether two copies of a table are the same: equal on all three."""

    counter: int = 0
    state_version: int = 0
    timestamp: int = 0

    def next(self, now_ms: int) -> "DataVersion":
        return DataVersion(
            counter=self.counter + 1, state_version=self.state_version, timestamp=now_ms
        )


class Subscription(msgspec.Struct, kw_only=True, rename="camel"):
    """What a consumer wants from a topic, as heartbeats carry it."""

    class_filter_mode: bool = False
    code_set: list[Int32] = []
    expression_type: str = "TAG"
    sub_string: str = "*"
    sub_version: int = 0
    tags_set: list[str] = []
    topic: str
