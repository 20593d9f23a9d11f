"""A delivered message and the three verbs that finish it: ack, retry, dead."""

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
    """Who handed a message out and wants it back."""

    def acked(self, message: "Delivery") -> None:
        """The work is done."""

    async def sent_back(self, message: "Delivery", delay_level: int) -> None:
        """The work failed; again later, or never."""


class TracedAttempt(Protocol):
    """The trace of one consumption, from hand-out to its verb."""

    def ended(self, message: "Delivery") -> None:
        """The consumer is done with the message; `message.finished` says how."""


class Delivery(Received):
    """One delivery of a message. Finish it once: `ack`, `retry` or `dead`."""

    __slots__ = ("_keeper", "_tries", "attempt", "failure", "finished", "started")

    def __init__(
        self, data: bytes, body_at: int, head: RecordHead, queue: Queue, keeper: DeliveryOwner
    ) -> None:
        super().__init__(data, body_at, head, queue)
        self._keeper = keeper
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
        """How often it was delivered before: sent back, or tried again in place."""
        return self._head.reconsume_times + self._tries

    async def ack(self) -> None:
        """The work is done: do not deliver it again."""
        if self.finished is not None:
            raise AlreadyFinished(self.msg_id, self.finished)
        self.finished = "ack"
        if self.attempt is not None:
            self.attempt.ended(self)
        self._keeper.acked(self)

    async def retry(self, delay_level: int = BROKER_LEVEL, *, reason: str | None = None) -> None:
        """Deliver it again later, after 10 s, 30 s, 1 min ... or the given delay level.

        An ordered queue tries again in place, after its pause, because nothing may overtake it.
        The reason is kept with the message, for whoever looks at the dead letters.
        """
        delay_level = message_fields.delay_level(delay_level)
        self._finish("retry")
        self.failure = because(reason) or self.failure
        await self._keeper.sent_back(self, delay_level)

    async def dead(self, *, reason: str | None = None) -> None:
        """Never deliver it again: to the group's dead letters."""
        self._finish("dead")
        self.failure = because(reason) or self.failure
        await self._keeper.sent_back(self, DEAD_LEVEL)

    def _finish(self, verb: str) -> None:
        if self.finished is not None:
            raise AlreadyFinished(self.msg_id, self.finished)
        self.finished = verb
        if self.attempt is not None:
            self.attempt.ended(self)

    def expire(self) -> None:
        """Take it back from a holder who never finished it; a later verb will raise."""
        self.finished = "its time was over"
        if self.attempt is not None:
            self.attempt.ended(self)

    def again(self) -> "Delivery":
        """The same message for one more try in place."""
        copy = Delivery(self._data, self._body_at, self._head, self.queue, self._keeper)
        copy._tries = self._tries + 1
        copy._body, copy._properties = self._body, self._properties
        return copy
