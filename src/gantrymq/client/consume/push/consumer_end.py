"""The end of a consumer: it is closed, or an error ends it."""

import asyncio

from gantrymq.base.errors import GantryError


class ConsumerEnd:
    """Whether a consumer ended, and by which error; callers that wait for messages get it."""

    def __init__(self) -> None:
        self._reached = asyncio.Event()
        self._error: GantryError | None = None

    def reach(self, error: GantryError | None = None) -> None:
        """The consumer is closed, or `error` ends it."""
        if error is not None:
            self._error = error
        self._reached.set()

    def check(self) -> None:
        """Raise the error that ended the consumer, if one did."""
        if self._error is not None:
            raise self._error

    async def wait(self) -> None:
        """Wait for the end; raises the error if one ended the consumer."""
        await self._reached.wait()
        self.check()
