"""Requests of operators to a single consumer, through a broker."""

from gantrymq.protocol.headers.base import Header


class RunningInfoRequest(Header, frozen=True, kw_only=True):
    """GET_CONSUMER_RUNNING_INFO."""

    consumer_group: str
    client_id: str | None = None
    jstack_enable: bool = False


class ConsumeDirectlyRequest(Header, frozen=True, kw_only=True):
    """CONSUME_MESSAGE_DIRECTLY."""

    consumer_group: str
    client_id: str | None = None
    msg_id: str | None = None
    """The broker's id, which says where the record lies."""
    broker_name: str | None = None
