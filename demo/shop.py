"""Customers who order. Everything one customer does is sent in order, until it is stored."""

import asyncio
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gantrymq import GantryError, Message, Producer, ProducerOptions

TOPIC = "orders"
STEPS = ("created", "paid", "shipped")
PRODUCERS = 3
RETRY_SECONDS = 0.2
SEND_TIMEOUT_MS = 3_000


@dataclass(frozen=True, slots=True)
class Event:
    """One step of one order. A customer's events are numbered from 1."""

    customer: str
    number: int
    order: int
    step: str

    @property
    def id(self) -> str:
        return f"{self.customer}/{self.number}"

    def message(self) -> Message:
        body = {"customer": self.customer, "order": self.order, "step": self.step}
        return Message(
            TOPIC, json.dumps(body), tags=self.step, keys=[self.id], sharding_key=self.customer
        )


def split_id(event_id: str) -> tuple[str, int]:
    """Customer and number of an event."""
    customer, _, number = event_id.partition("/")
    return customer, int(number)


def events_of(customer: str, orders: int) -> Iterator[Event]:
    """A customer's life: every order is created, paid and shipped."""
    numbers = ((order, step) for order in range(orders) for step in STEPS)
    for number, (order, step) in enumerate(numbers, 1):
        yield Event(customer, number, order, step)


class Shop:
    """All customers, and what the broker has acknowledged to them."""

    def __init__(self, namesrv: str, customers: int, orders: int) -> None:
        self._namesrv, self._orders = namesrv, orders // customers
        self._customers = [f"c{number}" for number in range(customers)]
        self.total = customers * self._orders * len(STEPS)
        self.acknowledged: list[str] = []
        self.retries = 0
        self.half = asyncio.Event()
        """Set when half of everything is acknowledged."""

    async def run(self) -> None:
        """Send everything, over several producers."""
        shares = [self._customers[start::PRODUCERS] for start in range(PRODUCERS)]
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
        for event in events_of(customer, self._orders):
            await self._send(producer, event)

    async def _send(self, producer: Producer, event: Event) -> None:
        """Send until it is stored. Whoever gets no answer cannot know, so it may be there twice."""
        while True:
            try:
                await producer.send(event.message())
                break
            except GantryError:
                self.retries += 1
                await asyncio.sleep(RETRY_SECONDS)
        self.acknowledged.append(event.id)
        if 2 * len(self.acknowledged) >= self.total:
            self.half.set()
