"""Back-tracking: moving a group's progress, and asking its members where they are."""

from gantrymq.protocol.headers.base import Header


class ResetRequest(Header, frozen=True, kw_only=True):
    """INVOKE_BROKER_TO_RESET_OFFSET."""

    group: str
    topic: str
    timestamp: int
    """Below 0: to the end."""
    is_force: bool = False
    queue_id: int = -1
    """Since 5.x; below 0: every queue."""
    offset: int = -1
    """Since 5.x; below 0: by time."""


class ConsumerStatusRequest(Header, frozen=True, kw_only=True):
    """INVOKE_BROKER_TO_GET_CONSUMER_STATUS and GET_CONSUMER_STATUS_FROM_CLIENT."""

    topic: str
    group: str
    client_addr: str | None = None
    """A client id, in spite of its name."""
