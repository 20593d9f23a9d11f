"""One story about copies: a SYNC_MASTER and its slaves have accidents, then the master is lost.

The machine of the master goes with its disk. The slave with the longest log becomes the master, as
an operator would do it. What was answered with SEND_OK has to be there, once or more, and nothing
that was never sent; what was answered otherwise may be missing.

Somebody whom nobody knows is connected to the master's HA port, and acknowledges what it is sent:
that makes no message safer. A group reads all the time, may have read what is lost with the master,
and goes on with the new one: it gets what is sent from then on.

A master may lose what it has not flushed, in a power cut. Then its slaves are ahead and refuse to
follow; the operator of the story does what their logs say, and cuts them. Every SEND_OK that this
takes away has to be in a folder that the cut has saved.
"""

import asyncio
import logging
import random
import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import cast

from sim_bodies import SMALL_FILES, bodies_of

from gantrymq import ConsumerOptions, GantryError, Message, Producer
from gantrymq.base.disk import Disk
from gantrymq.base.offload import InlineOffload
from gantrymq.kernel import walk_records
from gantrymq.protocol.record import decode_records
from gantrymq.replication.ha.wire import REPORT, TransferReader
from gantrymq.store.recovery.log_cut import order_cut
from gantrymq.testing.cluster import HOST, Cluster
from gantrymq.testing.invariants import (
    acknowledged_is_kept,
    nothing_from_nowhere,
    progress_is_not_ahead,
)
from gantrymq.testing.loop import simulate
from gantrymq.testing.network import MemoryNetwork
from gantrymq.testing.timeline import Timeline

TOPIC, QUEUES, SENDERS, MESSAGES = "copied", 2, 2, 40
LATE_MESSAGES = 8
"""What is sent to the new master."""
FROM_FIRST = ConsumerOptions(consume_from_where="CONSUME_FROM_FIRST_OFFSET")
STRANGER = "10.9.9.9"
TROUBLE_SECONDS = 40.0


@dataclass
class CopyStory:
    """The state of one run. Everything random comes from one seed."""

    cluster: Cluster
    rng: random.Random
    slaves: list[str]
    orders: "Orders"
    acknowledged: set[str] = field(default_factory=set)
    saved: set[str] = field(default_factory=set)
    """What cuts have taken away and saved."""
    one_hand: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by whoever stops and starts a slave."""
    tried: set[str] = field(default_factory=set)
    counts: Counter[str] = field(default_factory=Counter)
    """How often each accident and each answer happened."""
    timeline: Timeline = field(default_factory=Timeline)
    consumed: set[str] = field(default_factory=set)

    @property
    def faults(self) -> list[str]:
        return self.timeline.faults

    def say(self, who: str, what: str) -> None:
        self.timeline.say(who, what)

    async def consume(self) -> None:
        """A member of a group; messages may come twice."""
        async with self.cluster.consumer("readers", options=FROM_FIRST) as consumer:
            consumer.subscribe(TOPIC)
            async for message in consumer:
                name = message.body.decode().strip()
                self.say("readers", f"get {name}")
                self.consumed.add(name)
                with suppress(GantryError):
                    await message.ack()

    async def listen_in(self) -> None:
        """A stranger follows the log."""
        network = self.network.at(STRANGER)
        while True:
            await asyncio.sleep(self.rng.uniform(0, 5))
            if "broker-a" not in self.cluster.running:
                continue
            port = self.cluster.broker().config.ha_listen_port
            with suppress(GantryError):
                stranger = await network.connect(HOST, port, Stranger, 3)
                self.say("a stranger", "is connected to the HA port")
                self.counts["stranger"] += 1
                await stranger.gone.wait()

    async def send(self, producer: Producer, sender: int) -> None:
        """Send messages of different sizes; note what each answer promises."""
        for number in range(MESSAGES):
            name = f"{sender}-{number}"
            self.tried.add(name)
            body = name.ljust(self.rng.choice((10, 200, 3_000)))
            try:
                sent = await producer.send(Message(TOPIC, body.encode()))
            except GantryError as error:
                self.counts[type(error).__name__] += 1
                self.say(name, f"not sent: {type(error).__name__}")
            else:
                self.counts[sent.status] += 1
                self.say(name, f"is answered with {sent.status}")
                if sent.status == "SEND_OK":
                    self.acknowledged.add(name)
            await asyncio.sleep(self.rng.uniform(0, 2 * TROUBLE_SECONDS / MESSAGES))

    async def trouble(self) -> None:
        """Something happens every few seconds."""
        loop = asyncio.get_running_loop()
        end = loop.time() + TROUBLE_SECONDS
        while loop.time() < end:
            await asyncio.sleep(self.rng.uniform(0.5, 5))
            accident = self.rng.choice(
                (self.slave_dies, self.slave_restarts, self.master_dies, self.network_breaks,
                 self.network_is_slow, self.network_parts, self.master_is_deaf,
                 self.master_loses_power)
            )  # fmt: skip
            self.counts[accident.__name__] += 1
            self.say("trouble", accident.__name__.replace("_", " "))
            await accident()

    async def slave_dies(self) -> None:
        async with self.one_hand:
            await self.die(self.rng.choice(self.slaves))

    async def master_loses_power(self) -> None:
        """What it has not flushed is gone; its slaves may be ahead of it then."""
        await self.cluster.kill_broker("broker-a", power_cut=True)
        await asyncio.sleep(self.rng.uniform(0.1, 6))
        await self.cluster.start_broker("broker-a")

    async def operate(self) -> None:
        """Do what the logs of refused slaves say."""
        while True:
            name, folder, at = await self.orders.get()
            async with self.one_hand:
                if at is None:
                    await self.empty(name, folder)
                else:
                    await self.cut(name, folder, at)

    async def empty(self, name: str, folder: str) -> None:
        """The master lost its whole log: put the slave's aside."""
        if self.cluster.broker(name).store.log_max == 0:
            return  # an earlier order did it
        await self.cluster.stop_broker(name)
        self.say("operator", f"puts the log of {name} aside")
        self.saved |= _bodies_in(self.cluster._disks[name], f"{folder}/commitlog")
        self.counts["emptied"] += 1
        self.cluster.empty_disk(name)
        await self.cluster.start_broker(name)

    async def cut(self, name: str, folder: str, at: int) -> None:
        if self.cluster.broker(name).store.log_max <= at:
            return  # an earlier order did it
        await self.cluster.stop_broker(name)
        self.say("operator", f"cuts the log of {name} at {at}")
        disk = self.cluster._disks[name]
        cut = await order_cut(folder, at, disk=disk, offload=InlineOffload())
        self.saved |= _bodies_in(disk, f"{cut.saved}/commitlog")
        self.counts["cut"] += 1
        self.counts["messages cut off"] += cut.messages
        # Somebody may look into it later; here the next cut may be at the same place.
        disk.rename(cut.saved, f"{cut.saved}.{self.counts['cut']}")
        await self.cluster.start_broker(name)

    async def followed(self) -> None:
        """Wait until all slaves follow the master."""
        async with asyncio.timeout(600):
            while len(self.cluster.running) <= len(self.slaves) or any(
                self.cluster.broker(name).store.log_max
                != self.cluster.broker("broker-a").store.log_max
                for name in self.slaves
            ):
                await asyncio.sleep(1)

    async def master_dies(self) -> None:
        await self.die("broker-a")

    async def die(self, name: str) -> None:
        """kill -9; where every byte is synced before it is acknowledged, a power cut as well."""
        if name not in self.cluster.running:
            return
        synced = self.cluster.broker(name).config.flush_disk_type == "SYNC_FLUSH"
        await self.cluster.kill_broker(name, power_cut=synced and self.rng.random() < 0.5)
        await asyncio.sleep(self.rng.uniform(0.1, 6))
        await self.cluster.start_broker(name)

    async def slave_restarts(self) -> None:
        async with self.one_hand:
            name = self.rng.choice(self.slaves)
            await self.cluster.stop_broker(name)
            await asyncio.sleep(self.rng.uniform(0, 3))
            await self.cluster.start_broker(name)

    @property
    def network(self) -> MemoryNetwork:
        assert isinstance(self.cluster.network, MemoryNetwork)
        return self.cluster.network

    async def network_breaks(self) -> None:
        self.network.cut_all()

    async def network_is_slow(self) -> None:
        self.network.set_delay(0.0001, self.rng.choice((0.0005, 0.05, 0.5)))

    async def network_parts(self) -> None:
        """Nobody hears anybody for a while: bytes are lost, connections stay."""
        self.network.part(HOST, HOST)
        await asyncio.sleep(self.rng.uniform(0.1, 8))
        self.network.join(HOST, HOST)
        self.network.cut_all()

    async def master_is_deaf(self) -> None:
        """Acknowledgements are lost on their way; what the master sends arrives."""
        port = self.cluster.broker().config.ha_listen_port
        self.network.deafen(port)
        await asyncio.sleep(self.rng.uniform(1, 25))
        self.network.hear(port)
        self.network.cut_port(port)

    async def lose_the_master(self) -> str:
        """The machine is gone; the slave with the longest log becomes the master."""
        await self.cluster.kill_broker("broker-a")
        heir = max(self.slaves, key=lambda name: self.cluster.broker(name).store.log_max)
        self.say("operator", f"makes {heir} the master")
        await self.cluster.stop_broker(heir)
        self.cluster.reconfigure(heir, broker_role="SYNC_MASTER", broker_id=0)
        await self.cluster.start_broker(heir)
        return heir

    async def send_late(self, producer: Producer) -> None:
        """The new master takes messages, and readers get them."""
        for number in range(LATE_MESSAGES):
            name = f"late-{number}"
            self.tried.add(name)
            while True:
                with suppress(GantryError):
                    await producer.send(Message(TOPIC, name))
                    self.acknowledged.add(name)
                    break
                await asyncio.sleep(1)

    async def judge(self, heir: str) -> None:
        """The new master has everything, and readers get all that it has."""
        accuse, broker = self.timeline.accuse, self.cluster.broker(heir)
        found = await bodies_of(broker.store, TOPIC, QUEUES)
        accuse(acknowledged_is_kept.broken(sorted(self.acknowledged), found | self.saved))
        accuse(nothing_from_nowhere.broken(sorted(found), self.tried))
        late = [f"late-{number}" for number in range(LATE_MESSAGES)]
        reader, loop = asyncio.create_task(self.consume()), asyncio.get_running_loop()
        end = loop.time() + 120
        while not self.consumed.issuperset(late) and loop.time() < end:
            await asyncio.sleep(1)
        reader.cancel()
        await asyncio.wait([reader])
        accuse(f"readers: {text}" for text in acknowledged_is_kept.broken(late, self.consumed))

    def look_at_progress(self, heir: str) -> None:
        """Before the new master takes a message, no group is ahead of it."""
        broker = self.cluster.broker(heir)
        progress, ends = {}, {}
        for key, queues in broker.registry.offsets.table.items():
            for queue_id, offset in queues.items():
                progress[f"{key}/{queue_id}"] = offset
                end = broker.store.queues.max_offset(key.rpartition("@")[0], queue_id)
                ends[f"{key}/{queue_id}"] = end
        self.timeline.accuse(progress_is_not_ahead.broken(progress, ends))


class Stranger(asyncio.Protocol):
    """Asks for the log and acknowledges what it gets, without being anybody's slave."""

    def __init__(self) -> None:
        self._reader, self.gone = TransferReader(), asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(REPORT.pack(0))

    def data_received(self, data: bytes) -> None:
        for at, piece in self._reader.feed(data):
            self._transport.write(REPORT.pack(at + len(piece)))

    def connection_lost(self, exc: Exception | None) -> None:
        self.gone.set()


def _bodies_in(disk: Disk, folder: str) -> set[str]:
    """The bodies in the log files of a folder."""
    found: set[str] = set()
    for name in disk.list(folder):
        data = disk.open_read(f"{folder}/{name}").pread(1 << 20, 0)
        _, end, _ = walk_records(data, int(name), len(data), True)
        records = decode_records(data[: end - int(name)])
        found |= {each.body.decode().strip() for each in records if each.topic == TOPIC}
    return found


class Orders(logging.Handler):
    """The cuts that slaves name in their logs."""

    ORDERS = (
        re.compile(r"run `gantry store cut (\S+/(\S+)) --at (\d+)`"),
        re.compile(r"no record in common. .*move its store (\S+/(\S+)) away()"),
    )

    def __init__(self) -> None:
        super().__init__()
        self._queue: asyncio.Queue[tuple[str, str, int | None]] = asyncio.Queue()

    def emit(self, record: logging.LogRecord) -> None:
        for order in self.ORDERS:
            if found := order.search(record.getMessage()):
                at = int(found[3]) if found[3] else None
                self._queue.put_nowait((found[2], found[1], at))

    async def get(self) -> tuple[str, str, int | None]:
        """The name of a slave, its folder and the offset; None if nothing is common."""
        return await self._queue.get()


async def tell(seed: int) -> CopyStory:
    """Run one story to its end."""
    rng = random.Random(seed)
    count = rng.choice((1, 2))
    cluster = Cluster(
        memory=True,
        seed=seed,
        slaves=count,
        broker_role="SYNC_MASTER",
        flush_disk_type=rng.choice(("ASYNC_FLUSH", "SYNC_FLUSH")),
        ha_copy_whole_log=True,
        slave_timeout=1_000,
        **SMALL_FILES,
    )
    async with cluster:
        orders, logger = Orders(), logging.getLogger("gantrymq.replication.ha.slave")
        story = CopyStory(cluster, rng, [f"broker-a-s{n}" for n in range(1, count + 1)], orders)
        logger.addHandler(orders)
        operator = asyncio.create_task(story.operate())
        others = [asyncio.create_task(story.listen_in())]
        try:
            await cluster.create_topic(TOPIC, queues=QUEUES)
            others.append(asyncio.create_task(story.consume()))
            async with cluster.producer("senders") as producer:
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(story.trouble())
                    for sender in range(SENDERS):
                        tasks.create_task(story.send(producer, sender))
                if story.counts["master_loses_power"]:
                    await story.followed()
                for task in (operator, *others):
                    task.cancel()
                await asyncio.wait([operator, *others])
                heir = await story.lose_the_master()
                story.look_at_progress(heir)
                await story.send_late(producer)
            await story.judge(heir)
        finally:
            logger.removeHandler(orders)
            for task in (operator, *others):
                task.cancel()
            await asyncio.wait([operator, *others])
        if not operator.cancelled():
            operator.result()
    return story


def run(seed: int) -> CopyStory:
    """A story in virtual time."""
    return simulate(lambda: tell(seed))
