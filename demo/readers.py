"""Two groups that read the orders: one in order, one as they come."""

import asyncio
from contextlib import AsyncExitStack
from typing import Self

from demo.claims import Claim
from demo.shop import TOPIC, split_id
from gantrymq import Consumer, ConsumerOptions, Delivery

MEMBERS = 2
FROM_FIRST = ConsumerOptions(
    consume_from_where="CONSUME_FROM_FIRST_OFFSET",
    pull_batch_size=256,
    rebalance_interval_ms=5_000,
)


class InOrder:
    """Holds every customer's events against their numbers.

    A message may come twice, that is at-least-once; but nothing may come before what was sent
    before it.
    """

    def __init__(self) -> None:
        self._last: dict[str, int] = {}
        self.seen = self.repeats = self.skips = 0

    def take(self, message: Delivery) -> None:
        customer, number = split_id(message.keys[0])
        last = self._last.get(customer, 0)
        if number <= last:
            self.repeats += 1
            return
        self.skips += number - last - 1
        self.seen += 1
        self._last[customer] = number


class AsTheyCome:
    """Counts messages, each once."""

    def __init__(self) -> None:
        self.ids: set[str] = set()
        self.repeats = 0

    @property
    def seen(self) -> int:
        return len(self.ids)

    def take(self, message: Delivery) -> None:
        if message.keys[0] in self.ids:
            self.repeats += 1
        self.ids.add(message.keys[0])


class Readers:
    """The consumers of both groups, running while the block lasts."""

    def __init__(self, namesrv: str, total: int) -> None:
        self._namesrv, self._total = namesrv, total
        self.ordered, self.plain = InOrder(), AsTheyCome()
        self.done = asyncio.Event()
        """Set when both groups have seen everything."""
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        for _ in range(MEMBERS):
            await self._join("shipping", self.ordered, ordered=True)
            await self._join("analytics", self.plain, ordered=False)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def _join(self, group: str, reader: InOrder | AsTheyCome, *, ordered: bool) -> None:
        consumer = Consumer(self._namesrv, group=group, ordered=ordered, options=FROM_FIRST)

        @consumer.handler
        def take(message: Delivery) -> None:
            reader.take(message)
            if self.ordered.seen >= self._total and self.plain.seen >= self._total:
                self.done.set()

        await self._stack.enter_async_context(consumer)
        consumer.subscribe(TOPIC)

    def claims(self) -> list[Claim]:
        ordered, plain = self.ordered, self.plain
        return [
            Claim(
                "ordered consumers read all of it in order",
                f"{ordered.seen:,} read, {ordered.skips:,} skipped, {ordered.repeats:,} repeated",
                ordered.seen == self._total and ordered.skips == 0,
            ),
            Claim(
                "plain consumers read all of it",
                f"{plain.seen:,} read, {plain.repeats:,} repeated",
                plain.seen == self._total,
            ),
        ]
