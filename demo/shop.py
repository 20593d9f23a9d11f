"""Customers who order. Everything one customer does is sent in order, until it is stored."""

import asyncio
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from demo.books import Books
from demo.claims import Claim
from gantrymq import Message, Producer, ProducerOptions

TOPIC = "orders"
STEPS = ("created", "paid", "shipped")
PRODUCERS = 3
SEND_TIMEOUT_MS = 3_000
NO_ADDRESS_EVERY, NO_WEIGHT_EVERY = 500, 400
"""Some customers leave something out."""


@dataclass(frozen=True, slots=True)
class Event:
    """One step of one order. A customer's events are numbered from 1, orders through the shop."""

    customer: str
    number: int
    order: int
    step: str

    @property
    def id(self) -> str:
        return f"{self.customer}/{self.number}"

    def message(self) -> Message:
        body = {"customer": self.customer, "order": self.order, "step": self.step}
        if self.order % NO_ADDRESS_EVERY:
            body["address"] = f"{self.order} Quay Street"
        if self.order % NO_WEIGHT_EVERY != 1:
            body["weight"] = "1.5"
        return Message(
            TOPIC, json.dumps(body), tags=self.step, keys=[self.id], sharding_key=self.customer
        )


def split_id(event_id: str) -> tuple[str, int]:
    """Customer and number of an event."""
    customer, _, number = event_id.partition("/")
    return customer, int(number)


def events_of(customer: str, orders: Iterable[int]) -> Iterator[Event]:
    """A customer's life: every order is created, paid and shipped."""
    numbers = ((order, step) for order in orders for step in STEPS)
    for number, (order, step) in enumerate(numbers, 1):
        yield Event(customer, number, order, step)


class Shop:
    """All customers, and what the broker has acknowledged to them."""

    def __init__(self, namesrv: str, customers: int, orders: int) -> None:
        self._namesrv = namesrv
        each = orders // customers
        self._orders = {
            f"c{number}": range(number * each, (number + 1) * each) for number in range(customers)
        }
        self.total = customers * each * len(STEPS)
        self.books = Books()
        self.half = asyncio.Event()
        """Set when half of everything is acknowledged."""

    def events(self) -> Iterator[Event]:
        """Everything that is going to happen."""
        for customer, orders in self._orders.items():
            yield from events_of(customer, orders)

    def share(self) -> float:
        """How much of the trade is done."""
        return len(self.books.expected) / self.total

    async def run(self) -> None:
        """Send everything, over several producers."""
        customers = list(self._orders)
        shares = [customers[start::PRODUCERS] for start in range(PRODUCERS)]
        async with asyncio.TaskGroup() as group:
            for number, share in enumerate(shares):
                group.create_task(self._produce(f"shop-{number}", share))

    async def _produce(self, name: str, customers: Iterable[str]) -> None:
        options = ProducerOptions(send_timeout_ms=SEND_TIMEOUT_MS)
        async with (
            Producer(self._namesrv, group=name, options=options) as producer,
            asyncio.TaskGroup() as group,
        ):
            for customer in customers:
                group.create_task(self._live(producer, customer))

    async def _live(self, producer: Producer, customer: str) -> None:
        for event in events_of(customer, self._orders[customer]):
            send = partial(producer.send, event.message())
            await self.books.until_stored(event.id, send)
            if self.share() >= 0.5:
                self.half.set()

    def claims(self) -> list[Claim]:
        acknowledged = len(self.books.expected)
        return [
            Claim(
                "every event was acknowledged in the end",
                f"{acknowledged:,} of {self.total:,}, {self.books.failures:,} tries failed",
                acknowledged == self.total,
            )
        ]
