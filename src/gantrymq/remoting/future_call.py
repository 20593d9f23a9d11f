"""A call whose caller awaits a future."""

import asyncio

from gantrymq.base.errors import GantryError
from gantrymq.protocol.command import Command


class FutureCall:
    """The future gets the response, or the error in place of one."""

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
