"""POP: receive messages of any queue, acknowledge them or change their invisible time."""

from gantrymq.protocol.headers.base import Header

INIT_MIN, INIT_MAX = 0, 1
"""Where a group without progress begins: at the first message, or with the newest."""


class PopRequest(Header, frozen=True, kw_only=True):
    """POP_MESSAGE."""

    consumer_group: str
    topic: str
    queue_id: int
    """-1 is any queue."""
    max_msg_nums: int
    invisible_time: int
    poll_time: int
    born_time: int = 0
    init_mode: int
    exp_type: str | None = None
    exp: str | None = None
    order: bool | None = None
    attempt_id: str | None = None


class PopResponse(Header, frozen=True, kw_only=True):
    """POP_MESSAGE and PEEK_MESSAGE."""

    pop_time: int = 0
    invisible_time: int = 0
    revive_qid: int = 0
    rest_num: int = 0
    start_offset_info: str | None = None
    msg_offset_info: str | None = None
    order_count_info: str | None = None


class AckRequest(Header, frozen=True, kw_only=True):
    """ACK_MESSAGE; the topic is the one that holds the message, such as a retry topic."""

    consumer_group: str
    topic: str
    queue_id: int
    extra_info: str
    offset: int


class ChangeInvisibleRequest(Header, frozen=True, kw_only=True):
    """CHANGE_MESSAGE_INVISIBLETIME."""

    consumer_group: str
    topic: str
    queue_id: int
    extra_info: str
    offset: int
    invisible_time: int


class ChangeInvisibleResponse(Header, frozen=True, kw_only=True):
    """The values for the message's next handle."""

    pop_time: int = 0
    invisible_time: int = 0
    revive_qid: int = 0


class PeekRequest(Header, frozen=True, kw_only=True):
    """PEEK_MESSAGE."""

    consumer_group: str
    topic: str
    queue_id: int
    max_msg_nums: int


class NotificationRequest(Header, frozen=True, kw_only=True):
    """NOTIFICATION: asks for an answer as soon as a pop would find a message."""

    consumer_group: str
    topic: str
    queue_id: int
    poll_time: int
    born_time: int = 0
    order: bool | None = None
    attempt_id: str | None = None


class NotificationResponse(Header, frozen=True, kw_only=True):
    has_msg: bool = False
    polling_full: bool = False


class PollingInfoRequest(Header, frozen=True, kw_only=True):
    """POLLING_INFO: how many pops wait."""

    consumer_group: str
    topic: str
    queue_id: int


class PollingInfoResponse(Header, frozen=True, kw_only=True):
    polling_num: int = 0
