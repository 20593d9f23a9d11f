"""Calls that wait for their response, and what they get in place of one."""

import asyncio
from typing import Protocol

from gantrymq.base.errors import GantryError
from gantrymq.protocol.command import Command


class ConnectionLost(GantryError):
    """The connection closed before the peer answered."""


class CallTimeout(GantryError):
    """The peer did not answer in time."""


class PendingCall(Protocol):
    """A call that waits for its response."""

    deadline: float
    """In the loop's time."""

    def settle(self, answer: Command | GantryError) -> None:
        """Called exactly once: with the response, or with CallTimeout or ConnectionLost."""


class FutureCall:
    """A call whose caller awaits a future: it gets the response, or the error in its place."""

    __slots__ = ("deadline", "future")

    def __init__(self, future: asyncio.Future[Command], deadline: float) -> None:
        self.future, self.deadline = future, deadline

    def settle(self, answer: Command | GantryError) -> None:
        if self.future.done():
            return
        if isinstance(answer, Command):
            self.future.set_result(answer)
        else:
            self.future.set_exception(answer)
