"""One story about a raft group: members have accidents, and two senders and two readers go on.

What was answered with SEND_OK has to be read by the end, once or more, and nothing that was never
sent. All members end with the same log, no term had two leaders, and no member ever showed a record
that another one shows at the same place with other bytes.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

from sim_bodies import SMALL_FILES, bodies_of

from gantrymq import GantryError, Message, Producer
from gantrymq.store.engine import Store
from gantrymq.store.errors import StoreError
from gantrymq.store.log.syncer import InlineSyncer
from gantrymq.testing.cluster import HOST, Cluster
from gantrymq.testing.loop import simulate
from gantrymq.testing.network import MemoryNetwork

TOPIC, QUEUES, SENDERS, MESSAGES = "agreed", 2, 2, 40
KINDS = ("plain", "plain", "level", "timer", "transaction", "ordered")
TROUBLE_SECONDS = 40.0
STORY_SECONDS_MAX = 400.0
QUIET_SECONDS_MAX = 120.0
"""How long a group may take to agree again when nothing happens to it any more."""
SETTINGS = {
    **SMALL_FILES,
    "transaction_time_out": 2_000,
    "transaction_check_interval": 3_000,
    "transaction_check_max": 1_000,
}


@dataclass
class GroupStory:
    """The state of one run. Everything random comes from one seed."""

    cluster: Cluster
    rng: random.Random
    members: list[str]
    acknowledged: set[str] = field(default_factory=set)
    consumed: set[str] = field(default_factory=set)
    tried: set[str] = field(default_factory=set)
    counts: Counter[str] = field(default_factory=Counter)
    """How often each accident and each answer happened."""
    faults: list[str] = field(default_factory=list)
    restarting: set[str] = field(default_factory=set)
    """Members that an accident has stopped and will start again."""
    leaders: dict[int, str] = field(default_factory=dict)
    """Who led in each term."""

    @property
    def network(self) -> MemoryNetwork:
        assert isinstance(self.cluster.network, MemoryNetwork)
        return self.cluster.network

    def note_error(self, loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        """An error that nobody handled."""
        self.faults.append(f"{context['message']}: {context.get('exception')!r}")

    # the work

    async def send(self, producer: Producer, sender: int) -> None:
        """Send messages of all kinds and sizes; note what each answer promises."""
        for number in range(MESSAGES):
            name = f"{sender}-{number}"
            self.tried.add(name)
            body = name.ljust(self.rng.choice((10, 200, 3_000)))
            kind = self.rng.choice(KINDS)
            try:
                status = await self._send(producer, kind, body.encode())
            except GantryError as error:
                self.counts[type(error).__name__] += 1
            else:
                self.counts[status] += 1
                self.counts[kind] += 1
                if status == "SEND_OK":
                    self.acknowledged.add(name)
            await asyncio.sleep(self.rng.uniform(0, 2 * TROUBLE_SECONDS / MESSAGES))

    async def _send(self, producer: Producer, kind: str, body: bytes) -> str:
        if kind == "transaction":
            async with producer.transaction(Message(TOPIC, body)) as transaction:
                if self.rng.random() < 0.3:
                    transaction.unknown()
            return "SEND_OK"
        wait = {"level": {"delay_level": 2}, "timer": {"delay": 7.5}}.get(kind, {})
        key = {"sharding_key": "one"} if kind == "ordered" else {}
        return (await producer.send(Message(TOPIC, body, **wait, **key))).status  # type: ignore[arg-type]

    async def consume(self) -> None:
        """One of two members of a group; messages may come twice."""
        async with self.cluster.consumer("readers") as consumer:
            consumer.subscribe(TOPIC)
            async for message in consumer:
                self.consumed.add(message.body.decode().strip())
                with suppress(GantryError):
                    await message.ack()

    async def watch(self) -> None:
        """No term has two leaders."""
        cuts: dict[int, int] = {}
        while True:
            for name in self.cluster.running:
                node = self.cluster.broker(name).node
                assert node is not None
                self.counts["cuts"] += node.core.cuts - cuts.get(id(node.core), 0)
                cuts[id(node.core)] = node.core.cuts
                if node.core.leadership is not None:
                    other = self.leaders.setdefault(node.core.term, name)
                    if other != name:
                        self.faults.append(f"{name} and {other} lead in term {node.core.term}")
            await asyncio.sleep(0.02)

    # the accidents

    async def trouble(self) -> None:
        """Something happens every few seconds."""
        loop = asyncio.get_running_loop()
        end = loop.time() + TROUBLE_SECONDS
        async with asyncio.TaskGroup() as beside:
            while loop.time() < end:
                await asyncio.sleep(self.rng.uniform(0.1, 4))
                accident = self.accident()
                if self.rng.random() < 0.3:
                    beside.create_task(accident())
                else:
                    await accident()

    def accident(self) -> Callable[[], Awaitable[None]]:
        """The next one."""
        chosen: Callable[[], Awaitable[None]] = self.rng.choice(
            (self.leader_dies, self.member_dies, self.member_restarts, self.two_die,
             self.network_breaks, self.network_is_slow, self.leader_is_cut_off,
             self.member_is_cut_off, self.one_way, self.leadership_moves, self.disk_is_lost,
             self.disk_is_full, self.syncs_fail)
        )  # fmt: skip
        self.counts[chosen.__name__] += 1
        return chosen

    def someone(self) -> str:
        return self.rng.choice(self.members)

    async def leader_dies(self) -> None:
        await self.die(self.cluster.leader or self.someone())

    async def member_dies(self) -> None:
        await self.die(self.someone())

    async def two_die(self) -> None:
        """More than a group of three can lose: it stops, and goes on when they are back."""
        async with asyncio.TaskGroup() as tasks:
            for name in self.rng.sample(self.members, 2):
                tasks.create_task(self.die(name, power_cut=False))

    async def die(self, name: str, *, power_cut: bool | None = None) -> None:
        """kill -9 or a power cut."""
        if name not in self.cluster.running or name in self.restarting:
            return
        self.restarting.add(name)
        if power_cut is None:
            power_cut = self.rng.random() < 0.5 and self.all_vote()
        self.counts["power_cut" if power_cut else "kill"] += 1
        self.counts["recoveries"] += 1
        await self.cluster.kill_broker(name, power_cut=power_cut)
        await asyncio.sleep(self.rng.uniform(0.1, 6))
        await self.start(name)

    async def start(self, name: str) -> None:
        """Start a member again; one whose disk is full does not start before there is room."""
        while name not in self.cluster.running:
            try:
                await self.cluster.start_broker(name)
            except (OSError, StoreError):
                self.counts["starts refused"] += 1
                await asyncio.sleep(1)
        self.restarting.discard(name)

    def all_vote(self) -> bool:
        """Whether the group can lose what one member has not synced, or its disk."""
        nodes = [self.cluster.broker(name).node for name in self.cluster.running]
        return len(nodes) == len(self.members) and all(
            node is not None and node.core.stored.may_vote for node in nodes
        )

    async def disk_is_lost(self) -> None:
        """A member comes back empty, and gets everything from the others."""
        name = self.someone()
        if not self.all_vote() or name in self.restarting:
            return
        self.restarting.add(name)
        await self.cluster.kill_broker(name)
        self.cluster.empty_disk(name)
        await self.start(name)

    async def disk_is_full(self) -> None:
        """The leader cannot make its next file, and hands leadership on."""
        name = self.cluster.leader or self.someone()
        self.cluster.disk_of(name).capacity = 1
        await asyncio.sleep(self.rng.uniform(0.1, 8))
        self.cluster.disk_of(name).capacity = None  # perhaps after a restart

    async def syncs_fail(self) -> None:
        """The disk of a member takes no syncs: it is out until it is started again."""
        name = self.cluster.leader or self.someone()
        if name not in self.cluster.running or not self.all_vote():
            return
        disk = self.cluster.disk_of(name)
        disk.fault = lambda operation, path: (
            OSError("no sync") if operation == "sync" and "commitlog" in path else None
        )
        await asyncio.sleep(self.rng.uniform(0.1, 4))
        await self.die(name, power_cut=False)
        self.cluster.disk_of(name).fault = None  # it may have been down already

    async def member_restarts(self) -> None:
        name = self.someone()
        if name in self.cluster.running and name not in self.restarting:
            self.restarting.add(name)
            with suppress(OSError):  # its disk may be full
                await self.cluster.stop_broker(name)
            await asyncio.sleep(self.rng.uniform(0, 3))
            await self.start(name)

    async def network_breaks(self) -> None:
        self.network.cut_all()

    async def network_is_slow(self) -> None:
        self.network.set_delay(0.0001, self.rng.choice((0.0005, 0.01, 0.05)))

    async def leader_is_cut_off(self) -> None:
        await self.cut_off(self.cluster.leader or self.someone())

    async def member_is_cut_off(self) -> None:
        await self.cut_off(self.someone())

    async def cut_off(self, name: str) -> None:
        """Members do not hear it, nor it them; clients may."""
        here = self.cluster.host_of(name)
        others = [self.cluster.host_of(other) for other in self.members if other != name]
        if self.rng.random() < 0.5:
            others.append(HOST)
        for other in others:
            self.network.part(here, other)
        await asyncio.sleep(self.rng.uniform(0.1, 8))
        for other in others:
            self.network.join(here, other)
        if self.rng.random() < 0.5:
            self.network.cut_all()

    async def one_way(self) -> None:
        """One hears another, and is not heard by it."""
        one, other = (self.cluster.host_of(name) for name in self.rng.sample(self.members, 2))
        self.network.part_one_way(one, other)
        await asyncio.sleep(self.rng.uniform(0.1, 8))
        self.network.join(one, other)

    async def leadership_moves(self) -> None:
        name = self.cluster.leader
        node = self.cluster.broker(name).node if name is not None else None
        if node is not None:
            await node.hand_over()

    # the end

    async def settle(self) -> None:
        """All members hold the same log, and show all of it."""
        self.network.set_delay(0.0001, 0.0005)
        async with asyncio.timeout(QUIET_SECONDS_MAX):
            while self.acknowledged - self.consumed:
                await asyncio.sleep(0.1)
            leader = await self.cluster.wait_for_leader()
            while len({self._shown(name) for name in self.members}) > 1:
                await asyncio.sleep(0.1)
                leader = await self.cluster.wait_for_leader()
        await self.judge(self.cluster.broker(leader).store)

    def _shown(self, name: str) -> tuple[int, int]:
        store = self.cluster.broker(name).store
        return store.log_max, store.dispatched.value

    async def judge(self, store: Store) -> None:
        logs = {self.bytes_of(name) for name in self.members}
        if len(logs) > 1:
            self.faults.append("the logs of the members differ")
        found = await bodies_of(store, TOPIC, QUEUES)
        if lost := self.acknowledged - found:
            self.faults.append(f"acknowledged and lost: {sorted(lost)}")
        if phantoms := found - self.tried:
            self.faults.append(f"never sent and found: {sorted(phantoms)}")
        for name in self.members:
            if await bodies_of(self.cluster.broker(name).store, TOPIC, QUEUES) != found:
                self.faults.append(f"{name} shows other messages than its leader")

    def bytes_of(self, name: str) -> bytes:
        """The log of a member, from where all of them have it."""
        first = max(self.cluster.broker(each).store.log_min for each in self.members)
        log = self.cluster.broker(name).store.group_log
        return log.read(first, log.end - first)


async def tell(seed: int) -> GroupStory:
    """Run one story to its end."""
    rng = random.Random(seed)
    count = rng.choice((3, 3, 5))
    flush = rng.choice(("ASYNC_FLUSH", "SYNC_FLUSH"))
    cluster = Cluster(
        memory=True,
        seed=seed,
        members=count,
        flush_disk_type=flush,
        syncer=InlineSyncer(rng.choice((0.0, 0.001, 0.05))),
        **SETTINGS,
    )
    async with cluster:
        members = [f"n{number}" for number in range(count)]
        story = GroupStory(cluster, rng, members)
        asyncio.get_running_loop().set_exception_handler(story.note_error)
        await cluster.wait_for_leader()
        await cluster.create_topic(TOPIC, queues=QUEUES)
        others = [asyncio.create_task(story.watch())]
        others += [asyncio.create_task(story.consume()) for _ in range(2)]
        async with cluster.producer("senders") as producer:
            producer.check(lambda message: "commit")
            async with asyncio.timeout(STORY_SECONDS_MAX), asyncio.TaskGroup() as tasks:
                tasks.create_task(story.trouble())
                for sender in range(SENDERS):
                    tasks.create_task(story.send(producer, sender))
            await story.settle()
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        story.counts["leader changes"] = len(story.leaders) - 1
        story.counts["events"] = story.network.deliveries
    return story


def run(seed: int) -> GroupStory:
    """A story in virtual time."""
    return simulate(lambda: tell(seed))
