"""Delayed messages of a broker: the answer to GET_WAITING_MESSAGES, a GantryMQ extension."""

import msgspec


class WaitingMessage(msgspec.Struct, kw_only=True, rename="camel"):
    """One delayed message."""

    msg_id: str
    topic: str
    keys: list[str] = []
    tags: str | None = None
    due_ms: int
    room: str
    """`timer`, or `level 3`."""


class WaitingTopic(msgspec.Struct, kw_only=True, rename="camel"):
    """How many messages of one topic wait in one delay level or in the timer."""

    topic: str
    room: str
    count: int = 0
    next_due_ms: int = 0


class WaitingRoom(msgspec.Struct, kw_only=True, rename="camel"):
    """One delay level, or the timer: what waits, what is late, and how late deliveries were."""

    room: str
    count: int = 0
    next_due_ms: int = 0
    """When the next message is due; 0 if none waits."""
    overdue_ms: int = 0
    """For how long the next one should have been delivered already."""
    delivered: int = 0
    last_late_ms: int = 0
    max_late_ms: int = 0
    uncounted: int = 0
    """Waiting messages beyond those whose topics were counted."""


class WaitingTable(msgspec.Struct, kw_only=True, rename="camel"):
    rooms: list[WaitingRoom] = []
    topics: list[WaitingTopic] = []
    messages: list[WaitingMessage] = []
