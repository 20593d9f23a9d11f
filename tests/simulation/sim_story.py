"""One story: senders, members and accidents for a while, then peace until everything is settled."""

import asyncio
import hashlib
import random
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from sim_ledger import Entry, Ledger
from sim_members import RETRIES_MAX, Member, OrderedPusher, Popper, Pusher
from sim_network import Uplink

from gantrymq import ClientOptions, GantryError, GroupConfig, Message, Producer, Queue, Received
from gantrymq.client.produce.transactions import Decision
from gantrymq.model import dead_topic
from gantrymq.protocol.record import decode_records
from gantrymq.store.append import ReadResult
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.loop import simulate
from gantrymq.testing.network import MemoryNetwork

PLAIN, KEYED, PAID = "plain", "keyed", "paid"
GROUPS: dict[str, tuple[tuple[str, ...], type[Member]]] = {
    "workers": ((PLAIN, PAID), Pusher),
    "ledger": ((KEYED,), OrderedPusher),
    "borrowers": ((PLAIN, PAID), Popper),
}
"""Group to its topics and how its members read."""
TROUBLE_SECONDS = 40.0
SETTLE_SECONDS_MAX = 900.0
SETTINGS = {
    "mapped_file_size_commit_log": 256 * 1024,
    "mapped_file_size_consume_queue": 20 * 1000,
    "max_hash_slot_num": 500,
    "max_index_num": 2_000,
    "message_delay_level": "1s 2s 3s 4s 5s 6s 7s 8s 9s 10s",
    "transaction_time_out": 3_000,
    "transaction_check_interval": 10_000,
    "flush_consumer_offset_interval": 1_000,
    "flush_delay_offset_interval": 1_000,
}


@dataclass
class Story:
    """The state of one run. Everything random comes from one seed."""

    seed: int
    cluster: Cluster
    rng: random.Random
    ledger: Ledger = field(default_factory=Ledger)
    members: list[Member] = field(default_factory=list)
    book: dict[str, Decision] = field(default_factory=dict)
    joined: int = 0

    # senders

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
                self.ledger.say(f"{entry.name} not sent: {type(error).__name__}")
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
                async with producer.transaction(Message(PAID, entry.name)) as transaction:
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
                self.ledger.say(f"{entry.name} not begun: {type(error).__name__}")
                self.ledger.fate(entry, "rolled back")
            await asyncio.sleep(self.rng.uniform(0, 2 * TROUBLE_SECONDS / count))

    def checked(self, message: Received) -> Decision:
        """What the producer answers when a broker asks."""
        name = message.body.decode()
        self.ledger.say(f"asked about {name}")
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
                result = await producer.send(Message(PLAIN, entry.name, delay=seconds), queue=queue)
                self.ledger.fate(entry, "stored")
            except GantryError:
                self.ledger.fate(entry, "maybe")
            else:
                if seconds > 6 and self.rng.random() < 0.5 and result.recall_handle:
                    await self.take_back(producer, entry, result.recall_handle)
            await asyncio.sleep(self.rng.uniform(0, 2 * TROUBLE_SECONDS / count))

    async def take_back(self, producer: Producer, entry: Entry, handle: str) -> None:
        try:
            recalled = await producer.recall(PLAIN, handle)
            gone = recalled.state == "NOT_WAITING"
            self.ledger.fate(entry, "maybe" if gone else "rolled back")
        except GantryError as error:
            self.ledger.say(f"{entry.name} not recalled: {type(error).__name__}")
            self.ledger.fate(entry, "maybe")

    async def send_plain(self, producer: Producer, count: int) -> None:
        """Plain and delayed messages; a failed send is not repeated."""
        loop = asyncio.get_running_loop()
        for number in range(count):
            level = self.rng.choice((0, 0, 0, 1, 3))
            entry = self.ledger.expect(
                Entry(f"p{number}", PLAIN, not_before=loop.time() + level, poison=self.is_poison())
            )
            try:
                await producer.send(Message(PLAIN, entry.name, delay_level=level))
                self.ledger.fate(entry, "stored")
            except GantryError:
                self.ledger.fate(entry, "maybe")
            await asyncio.sleep(self.rng.uniform(0, 2 * TROUBLE_SECONDS / count))

    async def send_keyed(self, producer: Producer, key: str, queue: Queue, count: int) -> None:
        """A key's messages, one after the other, each until it is stored."""
        for number in range(count):
            entry = self.ledger.expect(
                Entry(f"{key}-{number}", KEYED, key, number, poison=self.is_poison())
            )
            message = Message(KEYED, entry.name)
            await self.until_stored(entry, lambda m=message: producer.send(m, queue=queue))
            await asyncio.sleep(self.rng.uniform(0, 2 * TROUBLE_SECONDS / count))

    def is_poison(self) -> bool:
        return self.rng.random() < 0.04

    # members

    async def join(self, group: str) -> None:
        topics, kind = GROUPS[group]
        self.joined += 1
        member = kind(f"m{self.joined}", group, topics, self.cluster, self.ledger, self.rng, 0.1)
        self.members.append(member)
        try:
            await member.join()
        except GantryError as error:
            self.ledger.say(f"{group}/{member.name} cannot join: {type(error).__name__}")
            self.members.remove(member)

    # accidents

    async def trouble(self) -> None:
        """Something happens every few seconds."""
        loop = asyncio.get_running_loop()
        end = loop.time() + TROUBLE_SECONDS
        while loop.time() < end:
            await asyncio.sleep(self.rng.uniform(0.5, 6))
            accident = self.rng.choice(
                (self.someone_joins, self.someone_leaves, self.someone_crashes, self.broker_dies,
                 self.broker_restarts, self.network_breaks, self.network_is_slow)
            )  # fmt: skip
            await accident()

    async def someone_joins(self) -> None:
        if len(self.members) < 8:
            await self.join(self.rng.choice(list(GROUPS)))

    async def someone_leaves(self) -> None:
        if self.members:
            await self.members.pop(self.rng.randrange(len(self.members))).leave()

    async def someone_crashes(self) -> None:
        if self.members:
            await self.members.pop(self.rng.randrange(len(self.members))).crash()

    async def broker_dies(self) -> None:
        """kill -9; where every message is synced before its answer, a power cut as well."""
        name = self.rng.choice(self.cluster.running)
        synced = self.cluster.broker(name).config.flush_disk_type == "SYNC_FLUSH"
        power = synced and self.rng.random() < 0.5
        self.ledger.say(f"{name} {'loses power' if power else 'is killed'}")
        await self.cluster.kill_broker(name, power_cut=power)
        await asyncio.sleep(self.rng.uniform(0.1, 8))
        await self.cluster.start_broker(name)
        self.ledger.locks_lost_at = asyncio.get_running_loop().time()
        self.ledger.say(f"{name} is back")

    async def broker_restarts(self) -> None:
        name = self.rng.choice(self.cluster.running)
        self.ledger.say(f"{name} restarts")
        await self.cluster.stop_broker(name)
        await asyncio.sleep(self.rng.uniform(0, 3))
        await self.cluster.start_broker(name)
        self.ledger.locks_lost_at = asyncio.get_running_loop().time()

    async def network_breaks(self) -> None:
        assert isinstance(self.cluster.network, MemoryNetwork)
        self.ledger.say(f"{self.cluster.network.cut_all()} connections break")

    async def network_is_slow(self) -> None:
        assert isinstance(self.cluster.network, MemoryNetwork)
        self.cluster.network.set_delay(0.0001, self.rng.choice((0.0005, 0.05, 0.3)))

    # the end

    async def settle(self) -> None:
        """Peace: healthy members for every group, until nobody is owed anything."""
        assert isinstance(self.cluster.network, MemoryNetwork)
        self.cluster.network.set_delay(0.0001, 0.0005)
        for group in GROUPS:
            await self.join(group)
        for member in self.members:
            member.failing = 0.0
        loop = asyncio.get_running_loop()
        end = loop.time() + SETTLE_SECONDS_MAX
        while loop.time() < end:
            await self.look_at_the_dead()
            if not any(self.owed().values()):
                break
            await asyncio.sleep(5)
        for group, names in self.owed().items():
            if names:
                self.ledger.accuse(f"{group} never got {names}")
            self.ledger.judge_order(group)
        for member in self.members:
            await member.leave()

    def owed(self) -> dict[str, list[str]]:
        return {group: self.ledger.open(group, topics) for group, (topics, _) in GROUPS.items()}

    async def look_at_the_dead(self) -> None:
        for name in self.cluster.running:
            store = self.cluster.broker(name).store
            for group in GROUPS:
                offset, end = 0, store.queues.max_offset(dead_topic(group), 0)
                while offset < end:
                    pulled = store.reads.pull(dead_topic(group), 0, offset, 1000, 1 << 24)
                    if not isinstance(pulled, ReadResult):
                        pulled = await pulled
                    bodies = [record.body.decode() for record in decode_records(pulled.body)]
                    self.ledger.dead[group].update(bodies)
                    offset = max(pulled.next_offset, offset + 1)


async def tell(seed: int) -> Ledger:
    """Run one story to its end."""
    rng = random.Random(seed)
    flush = rng.choice(("ASYNC_FLUSH", "SYNC_FLUSH"))
    cluster = Cluster(
        memory=True, seed=seed, brokers=rng.choice((1, 1, 2)), flush_disk_type=flush, **SETTINGS
    )
    async with cluster, AsyncExitStack() as stack:
        story = Story(seed, cluster, rng)
        for topic in (PLAIN, KEYED, PAID):
            await cluster.create_topic(topic, queues=2)
        async with cluster.admin() as admin:
            await admin.update_group(
                GroupConfig(group_name="borrowers", retry_max_times=RETRIES_MAX)
            )
        producers = [
            await stack.enter_async_context(story.producer(name)) for name in ("ann", "bob")
        ]
        producers[0].check(story.checked)
        for group in GROUPS:
            await story.join(group)
        queues = await producers[0].queues(KEYED)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(story.trouble())
            tasks.create_task(story.send_plain(producers[0], 20))
            tasks.create_task(story.send_paid(producers[0], 12))
            tasks.create_task(story.send_timed(producers[1], 10))
            for number, key in enumerate(("k1", "k2", "k3")):
                queue = queues[number % len(queues)]
                tasks.create_task(story.send_keyed(producers[1], key, queue, 8))
        await story.settle()
    return story.ledger


def run(seed: int) -> Ledger:
    """A story in virtual time."""
    return simulate(lambda: tell(seed))


def digest(seed: int) -> str:
    """A fingerprint of everything that happened, and when."""
    return hashlib.sha256("\n".join(run(seed).history).encode()).hexdigest()
