"""One story about a raft group: members have accidents, and two senders and three readers go on.

What was acknowledged has to be read by the end by each group, once or more, or be a dead letter.
After each delivery `sim_watch` looks at the members; at the end all of them hold the same log and
show the same messages.
"""

import asyncio
import os
import random
import traceback
from contextlib import AsyncExitStack
from dataclasses import dataclass

from sim_accidents import Accidents
from sim_bodies import SMALL_FILES, bodies_of
from sim_ledger import Ledger
from sim_members import RETRIES_MAX, Member, OrderedPusher, Popper, Pusher
from sim_senders import KEYED, PAID, PLAIN, Senders
from sim_watch import GroupWatch

from gantrymq import GroupConfig
from gantrymq.model import dead_topic
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.invariants import acknowledged_is_kept, members_agree, nothing_from_nowhere
from gantrymq.testing.loop import simulate
from gantrymq.testing.network import MemoryNetwork

EVENTS = int(os.environ.get("GANTRY_EVENTS", "4000"))
"""About how much happens in a story: how often bytes arrive somewhere."""
SCALE = EVENTS / 4000
QUEUES = 2
GROUPS: dict[str, tuple[tuple[str, ...], type[Member]]] = {
    "workers": ((PLAIN, PAID), Pusher),
    "ledger": ((KEYED,), OrderedPusher),
    "borrowers": ((PLAIN, PAID), Popper),
}
"""Group to its topics and how its member reads."""
TROUBLE_SECONDS = 17.0 * SCALE
QUIET_SECONDS_MAX = 300.0
"""How long a group may take to agree again when nothing happens to it any more."""
STORY_SECONDS_MAX = 10 * TROUBLE_SECONDS + 2 * QUIET_SECONDS_MAX
SETTINGS = {
    **SMALL_FILES,
    "message_delay_level": "1s 2s 3s 4s 5s 6s 7s 8s 9s 10s",
    "transaction_time_out": 2_000,
    "transaction_check_interval": 3_000,
    "transaction_check_max": 1_000,
    "flush_consumer_offset_interval": 1_000,
    "flush_delay_offset_interval": 1_000,
}


@dataclass
class GroupStory:
    """The state of one run. Everything random comes from one seed."""

    cluster: Cluster
    rng: random.Random
    members: list[str]
    ledger: Ledger
    watch: GroupWatch
    readers: list[Member]

    @property
    def faults(self) -> list[str]:
        return self.ledger.faults

    @property
    def counts(self) -> dict[str, int]:
        return self.watch.counts + self.ledger.counts

    def note_error(self, loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        """An error that nobody handled."""
        text = f"{context['message']}: {context.get('exception')!r}"
        self.ledger.timeline.accuse([f"no error is left to nobody: {text}"])

    async def look_now_and_then(self) -> None:
        while True:
            self.watch.look_at_progress()
            await asyncio.sleep(0.5)

    async def join(self, group: str) -> None:
        topics, kind = GROUPS[group]
        name = f"m{len(self.readers) + 1}"
        member = kind(name, group, topics, self.cluster, self.ledger, self.rng, 0.1)
        self.readers.append(member)
        await member.join()

    async def leave(self) -> None:
        for reader in self.readers:
            await reader.leave()

    # the end

    async def settle(self) -> None:
        """Everybody has got everything, and all members hold the same log and show all of it."""
        self.accidents_are_over()
        loop = asyncio.get_running_loop()
        end = loop.time() + QUIET_SECONDS_MAX
        while loop.time() < end:
            await asyncio.sleep(0.5)
            leader = await self.cluster.wait_for_leader()
            await self.look_at_the_dead(leader)
            if not any(self.ledger.owed(group, topics) for group, (topics, _) in GROUPS.items()):
                break
        while loop.time() < end and len({self._shown(name) for name in self.members}) > 1:
            await asyncio.sleep(0.1)
        await self.judge(await self.cluster.wait_for_leader())

    def accidents_are_over(self) -> None:
        network = self.cluster.network
        self.ledger.say("network", "is well")
        network.set_delay(0.0001, 0.0005)  # type: ignore[attr-defined]
        for reader in self.readers:
            reader.failing = 0.0

    async def look_at_the_dead(self, leader: str) -> None:
        store = self.cluster.broker(leader).store
        for group in GROUPS:
            self.ledger.dead[group] |= await bodies_of(store, dead_topic(group), 1)

    def _shown(self, name: str) -> tuple[int, int]:
        store = self.cluster.broker(name).store
        return store.log_max, store.dispatched.value

    async def judge(self, leader: str) -> None:
        accuse = self.ledger.timeline.accuse
        for group, (topics, _) in GROUPS.items():
            self.ledger.judge(group, topics)
            self.ledger.counts["dead letters"] += len(self.ledger.dead[group])
        accuse(members_agree.broken({name: self.bytes_of(name) for name in self.members}))
        shown = {name: await self.bodies_on(name) for name in self.members}
        kept = [e.name for e in self.ledger.entries.values() if e.fate in ("stored", "committed")]
        accuse(acknowledged_is_kept.broken(kept, shown[leader]))
        accuse(nothing_from_nowhere.broken(sorted(shown[leader]), self.ledger.entries))
        accuse(members_agree.broken({name: sorted(bodies) for name, bodies in shown.items()}))

    async def bodies_on(self, name: str) -> set[str]:
        store = self.cluster.broker(name).store
        return {
            body for topic in (PLAIN, KEYED, PAID) for body in await bodies_of(store, topic, QUEUES)
        }

    def bytes_of(self, name: str) -> bytes:
        """The log of a member, from where all of them have it."""
        first = max(self.cluster.broker(each).store.log_min for each in self.members)
        log = self.cluster.broker(name).store.group_log
        return log.read(first, log.end - first)


async def tell(seed: int) -> GroupStory:
    """Run one story to its end."""
    rng = random.Random(seed)
    count, flush = rng.choice((3, 3, 5)), rng.choice(("ASYNC_FLUSH", "SYNC_FLUSH"))
    cluster = Cluster(
        memory=True,
        seed=seed,
        members=count,
        flush_disk_type=flush,
        raft_append_bytes_max=rng.choice((200, 200, 4_096, 1 << 20)),
        **SETTINGS,
    )
    members, ledger = [f"n{number}" for number in range(count)], Ledger()
    watch = GroupWatch(cluster, members, ledger, flush == "SYNC_FLUSH")
    story = GroupStory(cluster, rng, members, ledger, watch, [])
    ledger.say("story", f"{count} members, {flush}, seed {seed}")
    asyncio.get_running_loop().set_exception_handler(story.note_error)
    try:
        async with asyncio.timeout(STORY_SECONDS_MAX), cluster:
            await live(story)
    except Exception as error:
        ledger.timeline.accuse([f"a story comes to its end: {cause_of(error)}"])
    return story


async def live(story: GroupStory) -> None:
    """Send, read and have accidents; then let everything settle."""
    cluster, rng, ledger, watch = story.cluster, story.rng, story.ledger, story.watch
    network = cluster.network
    assert isinstance(network, MemoryNetwork)
    for name in story.members:
        cluster.syncer_of(name).delay = rng.choice((0.0, 0.001, 0.05))
    network.after_each = watch.look
    senders = Senders(cluster, rng, ledger, TROUBLE_SECONDS)
    pause = rng.choice((1.0, 2.0, 4.0))
    await prepare(story)
    async with AsyncExitStack() as stack:
        looking = asyncio.create_task(story.look_now_and_then())
        stack.callback(looking.cancel)
        ann, bob = [await stack.enter_async_context(senders.producer(n)) for n in ("ann", "bob")]
        accidents = Accidents(
            cluster, rng, story.members, watch, pause, lambda: senders.send_burst(bob)
        )
        for group in GROUPS:
            await story.join(group)
        stack.push_async_callback(story.leave)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(accidents.happen(TROUBLE_SECONDS))
            tasks.create_task(senders.send_all(ann, bob, SCALE))
        await story.settle()
        network.after_each = None
    watch.counts["leader changes"] = len(watch.leaders) - 1
    watch.counts["events"] = network.deliveries


def cause_of(error: BaseException) -> str:
    """The error that a group of tasks ended with, in words."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    way = traceback.extract_tb(error.__traceback__)[-6:]
    return f"{type(error).__name__} {error} in {' > '.join(f'{at.name}:{at.lineno}' for at in way)}"


async def prepare(story: GroupStory) -> None:
    """Topics, and a group whose messages die soon."""
    await story.cluster.wait_for_leader()
    for topic in (PLAIN, KEYED, PAID):
        await story.cluster.create_topic(topic, queues=QUEUES)
    async with story.cluster.admin() as admin:
        config = GroupConfig(group_name="borrowers", retry_max_times=RETRIES_MAX)
        await admin.update_group(config)


def run(seed: int) -> GroupStory:
    """A story in virtual time."""
    return simulate(lambda: tell(seed))
