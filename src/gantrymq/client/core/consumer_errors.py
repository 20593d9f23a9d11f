"""Errors of consumers and of delivered messages."""

from gantrymq.base.errors import GantryError


class AlreadyFinished(GantryError):
    """The message was finished before, by ack, retry or dead."""

    def __init__(self, msg_id: str, how: str) -> None:
        super().__init__(f"message {msg_id} was finished already ({how}); a verb counts once")


class ConsumerMisused(GantryError):
    """The call does not fit the settings of the consumer; the text says why."""


class QueueNotAssigned(GantryError):
    """This consumer does not hold the queue, or no longer."""


class HandlerRefused(GantryError):
    """A handler cannot run as declared, or not beside another; the text says what to change."""
