"""A delivery: a message that a handler finishes by ack, retry or dead."""

from typing import Final, Protocol

from gantrymq import message_fields
from gantrymq.client.core.consumer_errors import AlreadyFinished
from gantrymq.client.messages.failures import Failure, because
from gantrymq.client.messages.received import Received
from gantrymq.model import Queue
from gantrymq.protocol.record import RecordHead

DEAD_LEVEL: Final = -1
"""The delay level that means: no retry, to the dead letters."""
BROKER_LEVEL: Final = 0
"""The delay level that means: the broker counts, 10 s first and longer each time."""


class DeliveryOwner(Protocol):
    """The process queue that handed a message out."""

    def acked(self, message: "Delivery") -> None:
        """The message was acked."""

    async def sent_back(self, message: "Delivery", delay_level: int) -> None:
        """The message failed: send it back with this delay level, or to the dead letters."""


class TracedAttempt(Protocol):
    """The trace of one consumption, from the hand-out to ack, retry or dead."""

    def ended(self, message: "Delivery") -> None:
        """The message is finished; `message.finished` says how."""


class Delivery(Received):
    """One delivery of a message. Finish it once: `ack`, `retry` or `dead`."""

    __slots__ = ("_owner", "_tries", "attempt", "failure", "finished", "started")

    def __init__(
        self, data: bytes, body_at: int, head: RecordHead, queue: Queue, owner: DeliveryOwner
    ) -> None:
        # As in Received, without a call of its own for each message that is pulled.
        self._data, self._body_at, self._head, self.queue = data, body_at, head, queue
        self._body = self._properties = None
        self.offset, self.size = head.queue_offset, head.total_size
        self._owner = owner
        self._tries = 0
        self.finished: str | None = None
        """The verb that finished this delivery; None while it is open."""
        self.failure: Failure | None = None
        """Why this delivery failed; it travels with the message."""
        self.attempt: TracedAttempt | None = None
        """Writes down how it ends, where consumption is traced."""
        self.started: float | None = None
        """When it was handed out, on the event loop's clock."""

    @property
    def reconsume_times(self) -> int:
        """How many times it was delivered before: after a send-back, or in place."""
        return self._head.reconsume_times + self._tries

    async def ack(self) -> None:
        """The work is done: do not deliver it again."""
        if self.finished is not None:
            raise AlreadyFinished(self.msg_id, self.finished)
        self.finished = "ack"
        if self.attempt is not None:
            self.attempt.ended(self)
        self._owner.acked(self)

    async def retry(self, delay_level: int = BROKER_LEVEL, *, reason: str | None = None) -> None:
        """Deliver it again later, after 10 s, 30 s, 1 min ... or the given delay level.

        An ordered queue retries in place, after its pause, because no message may overtake it.
        The reason is stored with the message and shown with the dead letters.
        """
        delay_level = message_fields.delay_level(delay_level)
        self._finish("retry")
        self.failure = because(reason) or self.failure
        await self._owner.sent_back(self, delay_level)

    async def dead(self, *, reason: str | None = None) -> None:
        """Send it to the group's dead letters; it is not delivered again."""
        self._finish("dead")
        self.failure = because(reason) or self.failure
        await self._owner.sent_back(self, DEAD_LEVEL)

    def _finish(self, verb: str) -> None:
        if self.finished is not None:
            raise AlreadyFinished(self.msg_id, self.finished)
        self.finished = verb
        if self.attempt is not None:
            self.attempt.ended(self)

    def expire(self) -> None:
        """Finish it because its time is over; a later ack, retry or dead raises."""
        self.finished = "its time was over"
        if self.attempt is not None:
            self.attempt.ended(self)

    def again(self) -> "Delivery":
        """A new delivery of the same message, for a retry in place."""
        copy = Delivery(self._data, self._body_at, self._head, self.queue, self._owner)
        copy._tries = self._tries + 1
        copy._body, copy._properties = self._body, self._properties
        return copy
