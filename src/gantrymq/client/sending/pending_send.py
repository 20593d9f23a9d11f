"""One pending send, and where it goes."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from gantrymq.base.errors import GantryError
from gantrymq.client.core.connections import BrokerConnection
from gantrymq.client.sending.send_request import PreparedMessage, SendFrames
from gantrymq.model import Queue, SendResult
from gantrymq.protocol.command import Command

Selector = Callable[[Sequence[Queue]], Queue]
"""Chooses one of a topic's queues."""


class SendTarget:
    """One queue, the address of its broker, and the frames of its requests."""

    __slots__ = ("address", "connection", "frames", "queue")

    def __init__(self, queue: Queue, address: str, frames: SendFrames) -> None:
        self.queue, self.address, self.frames = queue, address, frames
        self.connection: BrokerConnection | None = None
        """The last one used; it may be closed by now."""

    @property
    def has_plain_way(self) -> bool:
        """Whether the kernel makes its frames, and they could leave at once."""
        connection = self.connection
        return self.frames.parts is not None and connection is not None and connection.open


class Settler(Protocol):
    """The owner of pending sends, which handles their answers."""

    def settle(self, pending: "PendingSend", answer: Command | GantryError) -> None:
        """Handle the answer to a send, or the error in place of it."""

    def stored(self, connection: BrokerConnection, count: int, size: int) -> None:
        """Note that a broker has stored so many messages of so many bytes."""


class PendingSend(msgspec.Struct, gc=False):
    """One pending send. All references to it are dropped when it is settled: no cycle remains."""

    sends: Settler
    prepared: PreparedMessage
    future: asyncio.Future[SendResult]
    deadline: float
    tries_left: int
    queue: Queue | None = None
    selector: Selector | None = None
    sharding_key: str | None = None
    retry_codes: frozenset[int] = frozenset()
    when_stored_less: bool = False
    target: SendTarget | None = None
    request: Command | None = None
    """The request as hooks saw it; they get it again with the answer."""
    started: float = 0.0
    tried: tuple[str, ...] = ()
    """The brokers that were tried without full success, in order."""
    stored: SendResult | None = None
    """The result of a try that stored it less safely than asked; holds if no try does better."""

    @property
    def fixed(self) -> bool:
        """Whether the caller chose the queue, so that a retry must not choose another."""
        return self.queue is not None or self.selector is not None or self.sharding_key is not None

    def settle(self, answer: Command | GantryError) -> None:
        """Pass the answer on; a connection calls this."""
        self.sends.settle(self, answer)
