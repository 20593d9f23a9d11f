"""Sending, pulling, offsets and finding messages."""

from msgspec import field

from gantrymq.protocol.headers.base import Header
from gantrymq.protocol.properties import FAILURE

PULL_COMMITS, PULL_SUSPENDS, PULL_SUBSCRIBES, PULL_BY_CLASS, PULL_LITE = 1, 2, 4, 8, 16
"""Bits of a pull's sysFlag: its commit offset counts, it may be held, it brings its expression,
it is filtered by a Java class."""


class SendRequest(Header, frozen=True, kw_only=True):
    """SEND_MESSAGE with long names, as Go sends it."""

    producer_group: str
    topic: str
    default_topic: str = "TBW102"
    default_topic_queue_nums: int = 4
    queue_id: int
    sys_flag: int = 0
    born_timestamp: int
    flag: int = 0
    properties: str | None = None
    reconsume_times: int | None = None
    unit_mode: bool | None = None
    max_reconsume_times: int | None = None
    batch: bool | None = None
    bname: str | None = None


class SendRequestV2(Header, frozen=True, kw_only=True):
    """SEND_MESSAGE_V2 and SEND_BATCH_MESSAGE: the same fields under letters."""

    producer_group: str = field(name="a")
    topic: str = field(name="b")
    default_topic: str = field(name="c", default="TBW102")
    default_topic_queue_nums: int = field(name="d", default=4)
    queue_id: int = field(name="e")
    sys_flag: int = field(name="f", default=0)
    born_timestamp: int = field(name="g")
    flag: int = field(name="h", default=0)
    properties: str | None = field(name="i", default=None)
    reconsume_times: int | None = field(name="j", default=None)
    unit_mode: bool | None = field(name="k", default=None)
    max_reconsume_times: int | None = field(name="l", default=None)
    batch: bool | None = field(name="m", default=None)
    bname: str | None = field(name="n", default=None)


class PushReplyRequest(Header, frozen=True, kw_only=True):
    """PUSH_REPLY_MESSAGE_TO_CLIENT: a reply on its way to the client that asked."""

    producer_group: str
    topic: str
    default_topic: str = "TBW102"
    default_topic_queue_nums: int = 4
    queue_id: int
    sys_flag: int = 0
    born_timestamp: int
    flag: int = 0
    properties: str | None = None
    reconsume_times: int | None = None
    unit_mode: bool | None = None
    born_host: str
    store_host: str
    store_timestamp: int


class SendResponse(Header, frozen=True, kw_only=True):
    msg_id: str
    queue_id: int
    queue_offset: int
    transaction_id: str | None = None


class PullRequest(Header, frozen=True, kw_only=True):
    consumer_group: str
    topic: str
    queue_id: int
    queue_offset: int
    max_msg_nums: int = 32
    sys_flag: int = 0
    commit_offset: int = 0
    suspend_timeout_millis: int = 0
    subscription: str | None = None
    sub_version: int = 0
    expression_type: str | None = None
    max_msg_bytes: int | None = None


class PullResponse(Header, frozen=True, kw_only=True):
    suggest_which_broker_id: int = 0
    next_begin_offset: int
    min_offset: int
    max_offset: int


class QueryConsumerOffsetRequest(Header, frozen=True, kw_only=True):
    consumer_group: str
    topic: str
    queue_id: int
    set_zero_if_not_found: bool | None = None


class UpdateConsumerOffsetRequest(Header, frozen=True, kw_only=True):
    consumer_group: str
    topic: str
    queue_id: int
    commit_offset: int


class QueueRequest(Header, frozen=True, kw_only=True):
    """GET_MAX_OFFSET, GET_MIN_OFFSET, GET_EARLIEST_MSG_STORETIME."""

    topic: str
    queue_id: int


class SearchOffsetRequest(Header, frozen=True, kw_only=True):
    topic: str
    queue_id: int
    timestamp: int
    boundary_type: str | None = None


class OffsetResponse(Header, frozen=True, kw_only=True):
    offset: int


class TimestampResponse(Header, frozen=True, kw_only=True):
    timestamp: int


class ViewMessageRequest(Header, frozen=True, kw_only=True):
    offset: int
    topic: str | None = None


class QueryMessageRequest(Header, frozen=True, kw_only=True):
    topic: str
    key: str
    max_num: int
    begin_timestamp: int
    end_timestamp: int
    unique_key_query: bool = field(name="_UNIQUE_KEY_QUERY", default=False)


class QueryMessageResponse(Header, frozen=True, kw_only=True):
    index_last_update_timestamp: int
    index_last_update_phyoffset: int


class SendBackRequest(Header, frozen=True, kw_only=True):
    """CONSUMER_SEND_MSG_BACK. The last four fields are GantryMQ's; RocketMQ ignores them."""

    offset: int
    group: str
    delay_level: int = 0
    origin_msg_id: str | None = None
    origin_topic: str | None = None
    unit_mode: bool | None = None
    max_reconsume_times: int | None = None
    error: str | None = field(name=FAILURE[0], default=None)
    error_text: str | None = field(name=FAILURE[1], default=None)
    fingerprint: str | None = field(name=FAILURE[2], default=None)
    reason: str | None = field(name=FAILURE[3], default=None)

    @property
    def failure(self) -> dict[str, str]:
        """Why the message was sent back, as properties."""
        values = (self.error, self.error_text, self.fingerprint, self.reason)
        return {name: value for name, value in zip(FAILURE, values, strict=True) if value}
