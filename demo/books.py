"""What must be in a topic in the end, kept by whoever sends to it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from gantrymq import GantryError

RETRY_SECONDS = 0.2
LOOK_SECONDS = 0.02

T = TypeVar("T")


@dataclass
class Books:
    """Ids that were promised to somebody, and those that may be there more than once."""

    expected: set[str] = field(default_factory=set)
    """Acknowledged or decided: the topic has all of these and no others."""
    doubtful: set[str] = field(default_factory=set)
    """An answer was missing, so nobody could know: stored twice is allowed."""
    failures: int = 0

    async def until_stored(self, message_id: str, send: Callable[[], Awaitable[T]]) -> T:
        """Send until it is answered. Whoever gets no answer cannot know, so it may be there twice.

        Whoever calls this sets the limit.
        """
        while True:
            try:
                result = await send()
                break
            except GantryError:
                self.failures += 1
                self.doubtful.add(message_id)
                await asyncio.sleep(RETRY_SECONDS)
        self.expected.add(message_id)
        return result


async def paced(count: int, share: Callable[[], float]) -> AsyncIterator[int]:
    """The numbers below a count, each when that share of the trade is done."""
    for number in range(count):
        await until(partial(_has_come, number / count, share))
        yield number


def _has_come(turn: float, share: Callable[[], float]) -> bool:
    return share() > turn


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that nobody announces; whoever calls this sets the limit."""
    while True:
        if condition():
            return
        await asyncio.sleep(LOOK_SECONDS)
