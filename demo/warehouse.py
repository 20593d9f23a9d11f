"""A consumer that fails on some orders: some work out later, some become dead letters."""

import asyncio
import json
from collections.abc import Iterable
from contextlib import AsyncExitStack
from typing import Any, Self

from demo.books import Books, until
from demo.claims import Claim
from demo.readers import FROM_FIRST
from demo.shop import NO_ADDRESS_EVERY, NO_WEIGHT_EVERY, TOPIC, Event
from gantrymq import Consumer, DeadLetters, Delivery
from gantrymq.client.admin.letters.dead_letters import Cause, DeadLetterFilter, Letter

GROUP = "warehouse"
STEP = "paid"
OUT_OF_STOCK_EVERY = 100
ONE_SECOND = 1
"""The delay level of what is out of stock."""
RETRIES_MAX = 1
LOOK_SECONDS = 0.5


class NoAddress(Exception):
    """Nobody knows where to."""


class Warehouse:
    """Packs what is paid, and what became of that."""

    def __init__(self, namesrv: str, events: Iterable[Event]) -> None:
        self._namesrv = namesrv
        paid = [event for event in events if event.step == STEP]
        self.orders = {event.id for event in paid}
        no_address = {event.id for event in paid if event.order % NO_ADDRESS_EVERY == 0}
        no_weight = {event.id for event in paid if event.order % NO_WEIGHT_EVERY == 1}
        self.flawed = {f"{__name__}.NoAddress": no_address, "KeyError": no_weight}
        """What must die, and of which error."""
        self.out_of_stock = {
            event.id for event in paid if event.order % OUT_OF_STOCK_EVERY == OUT_OF_STOCK_EVERY - 1
        }
        # A crash may come between a letter and the note that it was posted: twice is allowed.
        self.books = Books(no_address | no_weight, no_address | no_weight)
        self.packed: set[str] = set()
        self.came_again: set[str] = set()
        self.causes: list[tuple[Cause, set[str]]] = []
        """Of what the letters died, and the orders in them."""
        self.resent = self.resent_again = 0
        self._mended = False
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        consumer = Consumer(self._namesrv, group=GROUP, options=FROM_FIRST, max_retries=RETRIES_MAX)
        consumer.handler(self.take)
        await self._stack.enter_async_context(consumer)
        consumer.subscribe(TOPIC, tags=STEP)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def take(self, message: Delivery) -> None:
        """Pack one order, or fail."""
        (order_id,) = message.keys
        if message.reconsume_times:
            self.came_again.add(order_id)
        elif order_id in self.out_of_stock:
            await message.retry(ONE_SECOND, reason="out of stock")
            return
        order = json.loads(message.body)
        if not self._mended:
            _label(order)
        self.packed.add(order_id)

    async def finish(self) -> None:
        """Wait for the letters, look at them, mend the defect, send them again."""
        async with DeadLetters(self._namesrv, group=GROUP) as letters:
            dead = await self._all_dead(letters)
            for cause in await letters.statistics():
                wanted = DeadLetterFilter(fingerprint=cause.fingerprint)
                self.causes.append((cause, _orders([each async for each in letters.all(wanted)])))
            self._mended = True
            self.resent = await _resend(letters, dead)
        await until(lambda: self.orders <= self.packed)
        async with DeadLetters(self._namesrv, group=GROUP) as letters:
            self.resent_again = await _resend(letters, dead)  # by somebody who only has the broker

    async def _all_dead(self, letters: DeadLetters) -> list[Letter]:
        """The letters, when every flawed order is among them."""
        while True:
            dead = [letter async for letter in letters.all()]
            if self.books.expected <= _orders(dead):
                return dead
            await asyncio.sleep(LOOK_SECONDS)

    def claims(self) -> list[Claim]:
        flawed = self.books.expected
        stock = self.out_of_stock
        found = {cause.error: ids for cause, ids in self.causes}
        sizes = ", ".join(
            f"{len(ids):,} {cause.error.rpartition('.')[2]} ({cause.fingerprint})"
            for cause, ids in self.causes
        )
        return [
            Claim(
                "what was out of stock was tried again",
                f"{len(stock & self.came_again & self.packed):,} of {len(stock):,} packed later",
                bool(stock) and stock <= self.came_again and stock <= self.packed,
            ),
            Claim(
                "dead letters are the flawed orders, by cause",
                sizes or "none",
                len(self.causes) == len(found) and found == self.flawed,
            ),
            Claim(
                "after mending they were resent, once",
                f"{self.resent:,} resent, then {self.resent_again:,}",
                self.resent >= len(flawed) > 0 and self.resent_again == 0,
            ),
            Claim(
                "in the end every order was packed",
                f"{len(self.packed):,} of {len(self.orders):,}",
                self.packed == self.orders,
            ),
        ]


def _label(order: dict[str, Any]) -> str:
    if "address" not in order:
        raise NoAddress(f"order {order['order']} of {order['customer']}")
    return f"{_weight(order)} kg to {order['address']}"


def _weight(order: dict[str, Any]) -> float:
    return float(order["weight"])


def _orders(letters: Iterable[Letter]) -> set[str]:
    return {letter.message.keys[0] for letter in letters}


async def _resend(letters: DeadLetters, dead: Iterable[Letter]) -> int:
    """Send letters again; how many had not been sent before."""
    return sum([await letters.resend(letter) is not None for letter in dead])
