"""Errors that users of a client see; each text says what to do."""

from collections.abc import Sequence

from gantrymq.base.errors import GantryError
from gantrymq.base.network import ConnectFailed
from gantrymq.base.plurals import counted
from gantrymq.remoting.pending_call import CallTimeout, ConnectionLost

TRANSPORT_ERRORS = (ConnectFailed, ConnectionLost, CallTimeout)
"""The network's own failures: nobody knows what the peer did with the request."""


class ClientError(GantryError):
    """The base of the client's errors."""


class NoNameServer(ClientError):
    """No name server address is set, or no name server answers."""


class NoRoute(ClientError):
    """The name server knows no broker for a topic."""

    def __init__(self, topic: str, why: str = "") -> None:
        super().__init__(
            f"no route for topic {topic!r}{': ' + why if why else ''}; create the topic first "
            "(Admin.create_topic, mqadmin updateTopic) or let the brokers create it on first send "
            "(autoCreateTopicEnable)"
        )
        self.topic = topic


class NoMaster(NoRoute):
    """Brokers have writable queues of a topic, but each of them is without its master."""

    def __init__(self, topic: str) -> None:
        super().__init__(topic, "it has queues to write to, but no broker with a master")


class BrokerUnknown(ClientError):
    """No route names this broker, or no longer."""


class NotStarted(ClientError):
    """The client was used before `async with` or `start()`."""


class Closed(ClientError):
    """The client was used after it was closed."""


class ForkedError(ClientError):
    """An asynchronous client was used in a forked child; its sockets belong to the parent."""


class HookFailed(ClientError):
    """A hook raised before a request, so the request was not sent."""


class BrokerRefused(ClientError):
    """A broker or name server answered with an error code."""

    code: int  # type: ignore[misc]  # the peer's own code takes the place of the class's

    def __init__(self, code: int, remark: str | None, address: str = "") -> None:
        where = f"{address} answered" if address else "answer"
        super().__init__(f"{where} code {code}: {remark or 'no remark'}")
        self.code, self.remark, self.address = code, remark or "", address


class MessageRefused(ClientError):
    """The client refuses this message; it sent nothing to a broker."""


class WindowFull(ClientError):
    """The window of pending sends is full: wait with `room()` first."""


class SendFailed(ClientError):
    """All tries failed, or the error is one that another try would not change."""

    def __init__(self, topic: str, tries: Sequence[str], cause: Exception) -> None:
        count = counted(len(tries), "try", "tries")
        path = ", ".join(tries) or "no broker"
        super().__init__(f"message to {topic!r} not sent after {count} ({path}): {cause}")
        self.topic, self.tries = topic, tuple(tries)
        self.refused_code = cause.code if isinstance(cause, BrokerRefused) else None
        """The broker's code when a broker refused; None for failures of the network."""


class SendsFailed(ClientError):
    """Messages of a bulk send were not sent."""

    def __init__(self, failures: Sequence[tuple[int, GantryError]], count: int) -> None:
        place, first = failures[0]
        super().__init__(
            f"{len(failures):,} of {counted(count, 'message')} not sent, the first is number "
            f"{place}: {first}"
        )
        self.failures = list(failures)
        """The place of each of them, and why."""
