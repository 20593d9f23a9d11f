"""The senders of a story: plain, delayed, timed, ordered messages and transactions."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from sim_ledger import Entry, Ledger
from sim_network import Uplink

from gantrymq import ClientOptions, GantryError, Message, Producer, Queue, Received
from gantrymq.client.produce.transactions import Decision
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.network import MemoryNetwork

PLAIN, KEYED, PAID = "plain", "keyed", "paid"
KEYS = ("k1", "k2", "k3")
BODY_BYTES = (10, 200, 3_000)


@dataclass
class Senders:
    """Two producers; each message is an entry of the ledger, whose name is its body."""

    cluster: Cluster
    rng: random.Random
    ledger: Ledger
    seconds: float
    """How long they send."""
    book: dict[str, Decision] = field(default_factory=dict)
    bursts: int = 0

    async def send_all(self, one: Producer, other: Producer, scale: float = 1.0) -> None:
        """Send messages of all kinds; `scale` times the usual number."""
        one.check(self.checked)
        queues = await one.queues(KEYED)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.send_plain(one, round(20 * scale)))
            tasks.create_task(self.send_paid(one, round(12 * scale)))
            tasks.create_task(self.send_timed(other, round(10 * scale)))
            for number, key in enumerate(KEYS):
                queue = queues[number % len(queues)]
                tasks.create_task(self.send_keyed(other, key, queue, round(8 * scale)))

    async def send_burst(self, producer: Producer, count: int = 4) -> None:
        """Some plain messages at once."""
        self.bursts += 1
        async with asyncio.TaskGroup() as tasks:
            for number in range(count):
                entry = self.ledger.expect(Entry(f"b{self.bursts}-{number}", PLAIN))
                tasks.create_task(self.send_once(producer, entry))

    async def send_once(self, producer: Producer, entry: Entry, **more: Any) -> None:
        """Send; what fails may be stored all the same."""
        try:
            await producer.send(Message(PLAIN, self.body(entry), **more))
            self.ledger.fate(entry, "stored")
        except GantryError:
            self.ledger.fate(entry, "maybe")

    def pause(self, count: int) -> float:
        """Until the next of so many messages."""
        return self.rng.uniform(0, 2 * self.seconds / count)

    def body(self, entry: Entry) -> bytes:
        """The name, and room."""
        return entry.name.ljust(self.rng.choice(BODY_BYTES)).encode()

    def producer(self, name: str) -> Producer:
        assert isinstance(self.cluster.network, MemoryNetwork)
        return Producer(
            self.cluster.namesrv, group=f"senders-{name}",
            client=ClientOptions(client_ip="127.0.0.1", instance_name=name),
            network=Uplink(self.cluster.network), clock=self.cluster.clock,
            rng=random.Random(self.rng.random()),
        )  # fmt: skip

    async def until_stored(self, entry: Entry, send: Callable[[], Awaitable[object]]) -> None:
        """Send, and send again when nobody knows what became of it."""
        while True:
            try:
                await send()
            except GantryError as error:
                self.ledger.say(entry.name, f"not sent: {type(error).__name__}")
                await asyncio.sleep(self.rng.uniform(0.1, 1))
            else:
                self.ledger.fate(entry, "stored")
                return

    async def send_paid(self, producer: Producer, count: int) -> None:
        """Transactions. Their decisions stand in a book that the check-back looks into.

        What the book does not say was never decided: half a message whose sender did not hear of
        its storing is rolled back.
        """
        for number in range(count):
            entry = self.ledger.expect(Entry(f"t{number}", PAID))
            self.book[entry.name] = Decision.ROLLBACK
            try:
                async with producer.transaction(Message(PAID, self.body(entry))) as transaction:
                    decision = self.rng.choice(
                        (Decision.COMMIT, Decision.COMMIT, Decision.ROLLBACK)
                    )
                    self.book[entry.name] = decision
                    committed = decision is Decision.COMMIT
                    self.ledger.fate(entry, "committed" if committed else "rolled back")
                    if self.rng.random() < 0.3:
                        transaction.unknown()
                    elif not committed:
                        transaction.rollback()
            except GantryError as error:
                self.ledger.say(entry.name, f"not begun: {type(error).__name__}")
                self.ledger.fate(entry, "rolled back")
            await asyncio.sleep(self.pause(count))

    def checked(self, message: Received) -> Decision:
        """What the producer answers when a broker asks."""
        name = message.body.decode().strip()
        self.ledger.say("producer", f"is asked about {name}")
        return self.book.get(name, Decision.ROLLBACK)

    async def send_timed(self, producer: Producer, count: int) -> None:
        """Messages with a time of their own; some are taken back before it comes.

        A queue is named, so that each is sent once: a second copy would have its own handle.
        """
        loop = asyncio.get_running_loop()
        queues = await producer.queues(PLAIN)
        for number in range(count):
            seconds = self.rng.uniform(0.5, 12)
            entry = self.ledger.expect(Entry(f"d{number}", PLAIN, not_before=loop.time() + seconds))
            try:
                queue = self.rng.choice(queues)
                result = await producer.send(
                    Message(PLAIN, self.body(entry), delay=seconds), queue=queue
                )
                self.ledger.fate(entry, "stored")
            except GantryError:
                self.ledger.fate(entry, "maybe")
            else:
                if seconds > 6 and self.rng.random() < 0.5 and result.recall_handle:
                    await self.take_back(producer, entry, result.recall_handle)
            await asyncio.sleep(self.pause(count))

    async def take_back(self, producer: Producer, entry: Entry, handle: str) -> None:
        try:
            recalled = await producer.recall(PLAIN, handle)
            gone = recalled.state == "NOT_WAITING"
            self.ledger.fate(entry, "maybe" if gone else "rolled back")
        except GantryError as error:
            self.ledger.say(entry.name, f"not recalled: {type(error).__name__}")
            self.ledger.fate(entry, "maybe")

    async def send_plain(self, producer: Producer, count: int) -> None:
        """Plain and delayed messages; a failed send is not repeated."""
        loop = asyncio.get_running_loop()
        for number in range(count):
            level = self.rng.choice((0, 0, 0, 1, 3))
            entry = self.ledger.expect(
                Entry(f"p{number}", PLAIN, not_before=loop.time() + level, poison=self.is_poison())
            )
            await self.send_once(producer, entry, delay_level=level)
            await asyncio.sleep(self.pause(count))

    async def send_keyed(self, producer: Producer, key: str, queue: Queue, count: int) -> None:
        """A key's messages, one after the other, each until it is stored."""
        for number in range(count):
            entry = self.ledger.expect(
                Entry(f"{key}-{number}", KEYED, key, number, poison=self.is_poison())
            )
            message = Message(KEYED, self.body(entry))
            await self.until_stored(entry, lambda m=message: producer.send(m, queue=queue))
            await asyncio.sleep(self.pause(count))

    def is_poison(self) -> bool:
        return self.rng.random() < 0.04
