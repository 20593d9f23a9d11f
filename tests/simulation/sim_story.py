"""One story: senders, members and accidents for a while, then peace until everything is settled."""

import asyncio
import hashlib
import random
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from sim_bodies import bodies_of
from sim_ledger import Ledger
from sim_members import RETRIES_MAX, Member, OrderedPusher, Popper, Pusher
from sim_senders import KEYED, PAID, PLAIN, Senders

from gantrymq import GantryError, GroupConfig
from gantrymq.model import dead_topic
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.loop import simulate
from gantrymq.testing.network import MemoryNetwork

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
    joined: int = 0

    # members

    async def join(self, group: str) -> None:
        topics, kind = GROUPS[group]
        self.joined += 1
        member = kind(f"m{self.joined}", group, topics, self.cluster, self.ledger, self.rng, 0.1)
        self.members.append(member)
        try:
            await member.join()
        except GantryError as error:
            self.ledger.say(f"{group}/{member.name}", f"cannot join: {type(error).__name__}")
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
        self.ledger.say(name, "loses power" if power else "is killed")
        await self.cluster.kill_broker(name, power_cut=power)
        await asyncio.sleep(self.rng.uniform(0.1, 8))
        await self.cluster.start_broker(name)
        self.ledger.locks_lost_at = asyncio.get_running_loop().time()
        self.ledger.say(name, "is back")

    async def broker_restarts(self) -> None:
        name = self.rng.choice(self.cluster.running)
        self.ledger.say(name, "restarts")
        await self.cluster.stop_broker(name)
        await asyncio.sleep(self.rng.uniform(0, 3))
        await self.cluster.start_broker(name)
        self.ledger.locks_lost_at = asyncio.get_running_loop().time()

    async def network_breaks(self) -> None:
        assert isinstance(self.cluster.network, MemoryNetwork)
        self.ledger.say("network", f"{self.cluster.network.cut_all()} connections break")

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
        for group, (topics, _) in GROUPS.items():
            self.ledger.judge(group, topics)
        for member in self.members:
            await member.leave()

    def owed(self) -> dict[str, list[str]]:
        return {group: self.ledger.owed(group, topics) for group, (topics, _) in GROUPS.items()}

    async def look_at_the_dead(self) -> None:
        for name in self.cluster.running:
            store = self.cluster.broker(name).store
            for group in GROUPS:
                self.ledger.dead[group] |= await bodies_of(store, dead_topic(group), 1)


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
        senders = Senders(cluster, rng, story.ledger, TROUBLE_SECONDS)
        ann, bob = [
            await stack.enter_async_context(senders.producer(name)) for name in ("ann", "bob")
        ]
        for group in GROUPS:
            await story.join(group)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(story.trouble())
            tasks.create_task(senders.send_all(ann, bob))
        await story.settle()
    return story.ledger


def run(seed: int) -> Ledger:
    """A story in virtual time."""
    return simulate(lambda: tell(seed))


def digest(seed: int) -> str:
    """A fingerprint of everything that happened, and when."""
    return hashlib.sha256("\n".join(run(seed).timeline.lines).encode()).hexdigest()
