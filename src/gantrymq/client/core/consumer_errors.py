"""What can go wrong with a message that was delivered, and with a consumer that was set up."""

from gantrymq.base.errors import GantryError


class AlreadyFinished(GantryError):
    """A message is finished by one verb, once."""

    def __init__(self, msg_id: str, how: str) -> None:
        super().__init__(f"message {msg_id} was finished already ({how}); a verb counts once")


class ConsumerMisused(GantryError):
    """The consumer was asked for something its settings rule out; the text says what."""


class QueueNotAssigned(GantryError):
    """The queue is not, or no longer, this consumer's."""


class HandlerRefused(GantryError):
    """A handler cannot run as declared, or not beside another; the text says what to change."""
