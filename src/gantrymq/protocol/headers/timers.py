"""Delayed messages: recalling one, and listing those that wait."""

from gantrymq.protocol.headers.base import Header


class RecallRequest(Header, frozen=True, kw_only=True):
    topic: str
    recall_handle: str = ""
    producer_group: str | None = None


class RecallResponse(Header, frozen=True, kw_only=True):
    msg_id: str


class WaitingRequest(Header, frozen=True, kw_only=True):
    """Lists delayed messages, of one topic or of all; also how many to name."""

    topic: str | None = None
    count: int = 0
    from_ms: int = 0
    """Name only messages that are due from then on."""
