"""The interface of the trace writer for other parts of a client; the writer is `client.tracing`."""

from collections.abc import Sequence
from typing import Protocol

from gantrymq.client.messages.delivery import Delivery
from gantrymq.client.messages.received import Received
from gantrymq.client.sending.send_request import PreparedMessage
from gantrymq.model import Message, SendResult
from gantrymq.protocol.command import Command


class HandOutSink(Protocol):
    """Takes the deliveries that handlers get."""

    def handed_out(self, messages: Sequence[Delivery]) -> None:
        """A handler got messages; sets the `attempt` of each that is traced."""


class TraceSink(HandOutSink, Protocol):
    """Takes events to trace. A part whose sink is None does not trace."""

    def sent(
        self, prepared: PreparedMessage, address: str, result: SendResult, answer: Command
    ) -> None:
        """A broker stored a message."""

    def transaction_ended(
        self,
        message: Message | Received,
        msg_id: str,
        transaction_id: str,
        broker: str,
        decision: str,
        *,
        from_check: bool,
    ) -> None:
        """A producer decided: commit, rollback or unknown."""

    def recalled(self, topic: str, msg_id: str, *, ok: bool) -> None:
        """A producer recalled a delayed message, or failed to (`ok` False)."""
