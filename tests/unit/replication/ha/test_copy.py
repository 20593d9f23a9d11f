"""A master's log copied to a slave: two stores, a network in memory, virtual time."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from gantrymq.base.offload import InlineOffload
from gantrymq.protocol.ids import encode_host
from gantrymq.replication.ha.in_sync import InSyncSlaves
from gantrymq.replication.ha.master import PROMISED_HEARTBEAT_SECONDS, HaMaster, SlaveIdentity
from gantrymq.replication.ha.slave import REPORT_SECONDS, HaSlave
from gantrymq.replication.ha.sync_copies import SyncCopies
from gantrymq.replication.ha.wire import REPORT
from gantrymq.store.append import Append, PutStatus
from gantrymq.store.config import StoreConfig
from gantrymq.store.engine import Store
from gantrymq.store.log.syncer import InlineSyncer
from gantrymq.store.shared import StorePorts
from gantrymq.testing.clock import LoopClock
from gantrymq.testing.disk import MemoryDisk
from gantrymq.testing.loop import VirtualLoop
from gantrymq.testing.network import MemoryNetwork

HOST, PORT = "127.0.0.1", 10_912
FILE = 8192


class Pair:
    """A master and a slave, each with a store on a disk of its own."""

    def __init__(self, *, sync: bool = True, behind_max: int = 1 << 20, **settings: Any) -> None:
        self.sync, self.behind_max, self.settings = sync, behind_max, settings
        self.network = MemoryNetwork(random.Random(1))
        self.disks = {"master": MemoryDisk(), "slave": MemoryDisk()}
        self.introduces = True
        self.wants_all = False
        self.silences = asyncio.Event()
        self.following: asyncio.Task[None] | None = None

    async def open(self, role: str, **changes: Any) -> Store:
        """Open one of the two stores."""
        config = StoreConfig(
            directory=role,
            segment_bytes=FILE,
            queue_file_entries=64,
            index_slots=16,
            index_entries=64,
            judge_by_free_bytes=True,
            is_copy=role == "slave",
        )
        return await Store.open(
            msgspec.structs.replace(config, **{**self.settings, **changes}),
            StorePorts(
                self.disks[role],
                LoopClock(asyncio.get_running_loop()),  # type: ignore[arg-type]
                InlineOffload(),
                InlineSyncer(),
            ),
            store_host=encode_host(HOST, 10_911),
        )

    async def start_master(self) -> None:
        """Open the master's store and its HA port."""
        self.master = await self.open("master")
        self.slaves = InSyncSlaves(self.behind_max)
        self.copies = SyncCopies(self.slaves, self.master.log_bytes.end, 3_000)
        if self.sync:
            self.master.wait_for(self.copies)
        self.ha = HaMaster(self.master.log_bytes, self.slaves, self.copies.slaves_changed)
        await self.ha.start(self.network, HOST, PORT)

    async def start_slave(self, **changes: Any) -> None:
        """Open the slave's store and follow the master; it has connected when this returns."""
        self.slave = await self.open("slave", **changes)
        self.follower = HaSlave(
            self.slave.log_copy,
            self.network,
            lambda: f"{HOST}:{PORT}",
            self._introduce,
            self.silences.set,
        )
        self.following = asyncio.create_task(self.follower.run())
        await asyncio.sleep(0.1)

    async def _introduce(self, address: tuple[str, int]) -> float:
        if not self.introduces:
            return 0.0
        self.ha.introduce(address, SlaveIdentity(1, self.wants_all, REPORT_SECONDS))
        return PROMISED_HEARTBEAT_SECONDS

    async def stop_slave(self) -> None:
        if self.following is not None:
            self.following.cancel()
            await asyncio.wait([self.following])
            self.following = None
            await self.slave.close()

    async def stop_master(self) -> None:
        await self.ha.stop()
        await self.master.close()

    async def put(self, count: int = 1, size: int = 100, **fields: Any) -> list[Append]:
        """Send messages to the master, each in a turn of its own; returns them answered."""
        sent = []
        for _ in range(count):
            answered = asyncio.Event()
            append = Append("orders", 0, bytes(size), **fields)
            append.reply = lambda _, done=answered: done.set()  # type: ignore[misc]
            self.master.put(append)
            await answered.wait()
            sent.append(append)
        return sent

    async def same(self) -> None:
        """Wait until the slave has everything."""
        async with asyncio.timeout(60):
            while self.slave.log_max != self.master.log_max:
                await asyncio.sleep(0.01)

    def log_of(self, role: str) -> dict[str, bytes]:
        """The log files of one of the two."""
        disk = self.disks[role]
        folder = f"{role}/commitlog"
        files = {}
        for name in disk.list(folder):
            file = disk.open_read(f"{folder}/{name}")
            files[name] = file.pread(file.size(), 0)
        return files


@pytest.fixture
def pair() -> Callable[..., None]:
    """`pair(work, **settings)` runs `async def work(pair)` in virtual time."""

    def run(work: Callable[[Pair], Awaitable[None]], **settings: Any) -> None:
        async def story() -> None:
            both = Pair(**settings)
            await both.start_master()
            try:
                await work(both)
            finally:
                await both.stop_slave()
                await both.stop_master()

        loop = VirtualLoop()
        try:
            loop.run_until_complete(asyncio.wait_for(story(), 3_600))
        finally:
            loop.close()

    return run


def test_the_slaves_log_is_the_masters_byte_for_byte(pair: Callable[..., None]) -> None:
    """Records, the blanks at file ends and the queues of both are the same."""

    async def work(both: Pair) -> None:
        await both.start_slave()
        await both.put(200, size=300)
        await both.same()
        master, slave = both.log_of("master"), both.log_of("slave")
        assert len([name for name in master if any(master[name])]) > 5
        written = {name: data for name, data in master.items() if any(data)}
        assert written == {name: data for name, data in slave.items() if any(data)}
        assert both.slave.queues.max_offset("orders", 0) == 200

    pair(work)


def test_sync_master_answers_when_the_slave_has_it(pair: Callable[..., None]) -> None:
    """PUT_OK means that the slave has acknowledged the record."""

    async def work(both: Pair) -> None:
        await both.start_slave()
        await both.put(3)
        await both.same()
        (sent,) = await both.put()
        assert sent.status is PutStatus.PUT_OK
        assert both.slaves.copied >= sent.physical_offset + sent.size

    pair(work)


def test_without_a_slave_the_answer_says_so(pair: Callable[..., None]) -> None:
    """SLAVE_NOT_AVAILABLE comes at once, and the message is stored and visible."""

    async def work(both: Pair) -> None:
        (sent,) = await both.put()
        assert sent.status is PutStatus.SLAVE_NOT_AVAILABLE
        assert both.master.queues.max_offset("orders", 0) == 1

    pair(work)


def test_a_slave_that_stops_acknowledging_costs_a_timeout(pair: Callable[..., None]) -> None:
    """FLUSH_SLAVE_TIMEOUT after slaveTimeout; nobody sees the record before the slave is given
    up, 15 seconds after it was last heard."""

    async def work(both: Pair) -> None:
        await both.start_slave()
        await both.put(2)
        await both.same()
        both.network.deafen(PORT)
        began = asyncio.get_running_loop().time()
        (sent,) = await both.put()
        assert sent.status is PutStatus.FLUSH_SLAVE_TIMEOUT
        assert asyncio.get_running_loop().time() - began == pytest.approx(3.0, abs=0.1)
        assert both.master.queues.max_offset("orders", 0) == 2
        await asyncio.sleep(14)
        assert both.master.queues.max_offset("orders", 0) == 3
        (later,) = await both.put()
        assert later.status is PutStatus.SLAVE_NOT_AVAILABLE
        both.network.hear(PORT)

    pair(work)


def test_a_cut_link_is_made_anew_at_once(pair: Callable[..., None]) -> None:
    """After a cut of four seconds the slave follows within a second, whatever TCP waits for."""

    async def work(both: Pair) -> None:
        await both.start_slave()
        await both.put(2)
        await both.same()
        both.network.part(HOST, HOST)
        waiting = asyncio.create_task(both.put())
        await asyncio.sleep(4)
        assert both.silences.is_set()
        both.network.join(HOST, HOST)
        await asyncio.sleep(1.5)
        await waiting
        assert both.slave.log_max == both.master.log_max
        (sent,) = await both.put()
        assert sent.status is PutStatus.PUT_OK

    pair(work)


def test_an_idle_link_stays(pair: Callable[..., None]) -> None:
    """Heartbeats and reports keep a connection on which nothing else is sent."""

    async def work(both: Pair) -> None:
        await both.start_slave()
        await both.put(2)
        connection = both.follower.connection
        await asyncio.sleep(600)
        assert connection is not None
        assert both.follower.connection is connection

    pair(work)


def test_a_master_that_promises_no_heartbeats_gets_twenty_seconds(
    pair: Callable[..., None],
) -> None:
    """RocketMQ's masters send one every five seconds: their slaves wait for several of them."""

    async def work(both: Pair) -> None:
        both.introduces = False
        both.ha.set_known_hosts([HOST])
        await both.start_slave()
        await both.put(2)
        connection = both.follower.connection
        await asyncio.sleep(60)
        assert both.follower.connection is connection is not None
        both.network.part(HOST, HOST)
        await asyncio.sleep(14)
        assert both.follower.connection is connection
        await asyncio.sleep(8)
        assert both.follower.connection is not connection
        both.network.join(HOST, HOST)

    pair(work)


def test_a_slave_that_stood_still_keeps_its_link(pair: Callable[..., None]) -> None:
    """A process that was suspended has not listened: that is no silence of its master."""

    async def work(both: Pair) -> None:
        await both.start_slave()
        await both.put(2)
        connection = both.follower.connection
        assert connection is not None
        now = asyncio.get_running_loop().time()
        connection.look(now + 60)
        await asyncio.sleep(1)
        assert both.follower.connection is connection

    pair(work)


def test_a_new_connection_of_a_silent_slave_replaces_the_old_one(pair: Callable[..., None]) -> None:
    """Nobody is told SLAVE_NOT_AVAILABLE meanwhile: the old one counts until the new one does."""

    async def work(both: Pair) -> None:
        await both.put(2, wait=False)
        old = await both.network.connect(HOST, PORT, Stranger, 1.0)
        both.ha.introduce(old.here, SlaveIdentity(1, False, REPORT_SECONDS))
        old.say(both.master.log_max)
        await asyncio.sleep(1)
        new = await both.network.connect(HOST, PORT, Stranger, 1.0)
        assert both.ha.rival_of(new.here, 1) == old.here
        assert both.ha.rival_of(new.here, 2) is None
        await asyncio.sleep(2)
        assert both.ha.rival_of(new.here, 1) is None
        waiting = asyncio.create_task(both.put())
        both.ha.introduce(new.here, SlaveIdentity(1, False, REPORT_SECONDS))
        await asyncio.sleep(0.1)
        assert not old.lost
        new.say(both.master.log_max - waiting_bytes(both))
        await asyncio.sleep(0.1)
        new.say(both.master.log_max)
        (sent,) = await waiting
        assert sent.status is PutStatus.PUT_OK
        assert old.lost

    pair(work)


def waiting_bytes(both: Pair) -> int:
    """How many bytes of the log no slave has acknowledged yet."""
    return both.master.log_max - both.copies.mark.value


def test_a_slave_that_goes_frees_those_who_wait(pair: Callable[..., None]) -> None:
    """Sends that waited for it are answered with SLAVE_NOT_AVAILABLE, not with success."""

    async def work(both: Pair) -> None:
        await both.start_slave()
        await both.put(2)
        both.network.part(HOST, HOST)
        waiting = asyncio.create_task(both.put())
        await asyncio.sleep(0.1)
        both.network.cut_port(PORT)
        (sent,) = await waiting
        assert sent.status is PutStatus.SLAVE_NOT_AVAILABLE
        both.network.join(HOST, HOST)
        await both.same()
        await both.put()
        (sent,) = await both.put()
        assert sent.status is PutStatus.PUT_OK

    pair(work)


def test_messages_that_do_not_wait_are_answered_at_once(pair: Callable[..., None]) -> None:
    """WAIT=false is PUT_OK without a slave."""

    async def work(both: Pair) -> None:
        (sent,) = await both.put(wait=False)
        assert sent.status is PutStatus.PUT_OK

    pair(work)


def test_async_master_waits_for_nobody(pair: Callable[..., None]) -> None:
    """ASYNC_MASTER answers PUT_OK with and without a slave, and copies all the same."""

    async def work(both: Pair) -> None:
        (sent,) = await both.put()
        assert sent.status is PutStatus.PUT_OK
        await both.start_slave()
        await both.put(50, size=500)
        await both.same()

    pair(work, sync=False)


def test_a_slave_goes_on_where_it_stopped(pair: Callable[..., None]) -> None:
    """Restarts of both ends, at any byte, leave the same log."""

    async def work(both: Pair) -> None:
        rng = random.Random(7)
        await both.start_slave()
        for round_number in range(12):
            await both.put(rng.randint(1, 30), size=rng.randint(1, 900))
            if round_number % 3 == 0:
                both.network.cut_all()
            elif round_number % 3 == 1:
                await both.stop_slave()
                await both.put(5)
                await both.start_slave()
            else:
                await both.stop_master()
                await both.start_master()
        await both.same()
        assert both.slave.queues.max_offset("orders", 0) == both.master.queues.max_offset(
            "orders", 0
        )

    pair(work, sync=False)


def test_a_killed_slave_cuts_its_last_record_and_goes_on(pair: Callable[..., None]) -> None:
    """What a slave was killed in the middle of is copied again."""

    async def work(both: Pair) -> None:
        await both.start_slave()
        await both.put(20, size=500)
        await both.same()
        both.disks["slave"] = both.disks["slave"].after_kill()
        await both.stop_slave()
        await both.start_slave()
        await both.put(20, size=500)
        await both.same()
        assert both.slave.queues.max_offset("orders", 0) == 40

    pair(work)


def test_a_slave_may_stop_where_a_file_ends(pair: Callable[..., None]) -> None:
    """The log of a slave can end with its last file; it opens again, and the copy goes on."""

    async def work(both: Pair) -> None:
        await both.put(100, size=500)
        first = both.log_of("master")["00000000000000000000"]
        slave = await both.open("slave")
        await slave.log_copy.make_room(0)
        assert slave.log_copy.append(0, first) == FILE
        await slave.close()
        await both.start_slave()
        await both.same()
        assert both.slave.queues.max_offset("orders", 0) == 100

    pair(work, sync=False)


def test_the_tail_of_a_copy_is_never_empty(pair: Callable[..., None]) -> None:
    """Also where the last file has been made and has no byte yet, a master can compare."""

    async def work(both: Pair) -> None:
        await both.put(100, size=500)
        first = both.log_of("master")["00000000000000000000"]
        slave = await both.open("slave")
        assert slave.log_copy.tail(100) == b""
        await slave.log_copy.make_room(0)
        slave.log_copy.append(0, first)
        assert slave.log_copy.tail(100) == first[-100:]
        await slave.log_copy.make_room(FILE)
        assert slave.log_copy.end == FILE
        assert slave.log_copy.tail(100) == first[-100:]
        await slave.close()

    pair(work, sync=False)


def test_an_empty_slave_begins_with_the_last_file(pair: Callable[..., None]) -> None:
    """As in RocketMQ a new slave does not get old files."""

    async def work(both: Pair) -> None:
        await both.put(100, size=500)
        await both.start_slave()
        await both.same()
        assert both.slave.log_min == both.master.log_bytes.last_file > 0
        await both.put(100, size=500)
        await both.same()
        assert both.slave.queues.max_offset("orders", 0) == 200
        assert 0 < both.slave.queues.min_offset("orders", 0) < 100

    pair(work, sync=False)


def test_an_empty_slave_can_ask_for_the_whole_log(pair: Callable[..., None]) -> None:
    """The option brings everything that retention has left."""

    async def work(both: Pair) -> None:
        await both.put(100, size=500)
        both.wants_all = True
        await both.start_slave()
        await both.same()
        assert both.slave.queues.min_offset("orders", 0) == 0
        assert both.slave.queues.max_offset("orders", 0) == 100

    pair(work, sync=False)


def test_a_slave_ahead_of_its_master_is_refused(
    pair: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    """A master that lost its tail does not let a longer slave merge; the log says what to do."""

    async def work(both: Pair) -> None:
        await both.start_slave()
        await both.put(10)
        await both.same()
        before = both.log_of("slave")
        await both.stop_master()
        both.disks["master"] = MemoryDisk()
        await both.start_master()
        await both.put(3)
        await asyncio.sleep(30)
        assert both.log_of("slave") == before
        assert both.slaves.copied == 0
        assert "start it empty, or make the slave the master" in caplog.text

    pair(work)


def test_a_slave_with_other_file_sizes_is_refused(
    pair: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    """The slave writes nothing, and says which size to set."""

    async def work(both: Pair) -> None:
        await both.put(30, size=500)
        await both.start_slave(segment_bytes=4096 * 5)
        await asyncio.sleep(20)
        assert both.slave.queues.max_offset("orders", 0) == 0
        assert "mappedFileSizeCommitLog" in caplog.text

    pair(work, sync=False)


def test_a_stranger_cannot_raise_the_mark(pair: Callable[..., None]) -> None:
    """Somebody who connects and acknowledges is sent the log, but no send counts as copied."""

    async def work(both: Pair) -> None:
        stranger = await both.network.connect(HOST, PORT, Stranger, 1.0)
        await both.put(2, wait=False)
        stranger.say(both.master.log_max)
        await asyncio.sleep(1)
        (sent,) = await both.put()
        assert sent.status is PutStatus.SLAVE_NOT_AVAILABLE
        stranger.say(both.master.log_max)
        await asyncio.sleep(1)
        assert both.slaves.copied == 0

    pair(work)


def test_nobody_acknowledges_more_than_was_sent(
    pair: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    """A known slave that claims bytes it never got is disconnected, and nothing is copied."""

    async def work(both: Pair) -> None:
        both.ha.set_known_hosts([HOST])
        await both.put(2, wait=False)
        peer = await both.network.connect(HOST, PORT, Stranger, 1.0)
        peer.say(both.master.log_max)
        await asyncio.sleep(1)
        peer.say(both.master.log_max + 1_000_000)
        await asyncio.sleep(1)
        assert both.slaves.copied <= both.master.log_max
        assert not both.ha.connections
        assert "was sent" in caplog.text

    pair(work)


def test_garbage_on_the_ha_port_does_no_harm(pair: Callable[..., None]) -> None:
    """Any bytes are at worst a refused report."""

    async def work(both: Pair) -> None:
        rng = random.Random(3)
        for _ in range(50):
            peer = await both.network.connect(HOST, PORT, Stranger, 1.0)
            peer.send(rng.randbytes(rng.randint(1, 40)))
            await asyncio.sleep(0.01)
        await both.start_slave()
        await both.put(10)
        await both.same()

    pair(work)


def test_a_peer_that_does_not_read_costs_little_memory(pair: Callable[..., None]) -> None:
    """What waits for a slow peer stays below a few MiB, and others are served."""

    async def work(both: Pair) -> None:
        await both.put(1, wait=False)
        peer = await both.network.connect(HOST, PORT, Stranger, 1.0)
        peer.say(both.master.log_max)
        peer.transport.pause_reading()
        await both.start_slave()
        await both.put(3_000, size=4_000, wait=False)
        await both.same()
        slow = next(c for c in both.ha.connections if c.peer == peer.here)
        assert slow.progress is not None
        assert both.master.log_max - slow.progress.sent > 4_000_000

    pair(work, sync=False)


def test_a_silent_slave_is_disconnected(pair: Callable[..., None]) -> None:
    """Twenty seconds without a report end a connection; a slave that reports stays."""

    async def work(both: Pair) -> None:
        peer = await both.network.connect(HOST, PORT, Stranger, 1.0)
        peer.say(0)
        await both.start_slave()
        await asyncio.sleep(120)
        assert peer.lost
        assert both.follower.connection is not None
        assert len(both.ha.connections) == 1

    pair(work, sync=False)


def test_sync_flush_ships_only_what_is_flushed(pair: Callable[..., None]) -> None:
    """With SYNC_FLUSH on both ends PUT_OK means two disks."""

    async def work(both: Pair) -> None:
        await both.start_slave()
        await both.put(2)
        await both.same()
        for sent in await both.put(20):
            assert sent.status is PutStatus.PUT_OK
            end = sent.physical_offset + sent.size
            assert both.master.flushed.value >= end
            assert both.slave.flushed.value >= end

    pair(work, flush="SYNC_FLUSH")


def test_a_full_disk_of_the_slave_stops_the_copy(
    pair: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    """The slave disconnects instead of acknowledging, and goes on when there is room."""

    async def work(both: Pair) -> None:
        await both.start_slave()
        await both.put(5)
        await both.same()
        disk = both.disks["slave"]
        disk.fault = lambda operation, path: (
            OSError(28, "No space left on device")
            if operation == "pwrite" and "commitlog" in path
            else None
        )
        (sent,) = await both.put()
        assert sent.status is not PutStatus.PUT_OK
        await asyncio.sleep(12)
        assert "No space left on device" in caplog.text
        disk.fault = None
        await both.same()
        await both.put(2)
        await both.same()
        assert both.slave.queues.max_offset("orders", 0) == both.master.queues.max_offset(
            "orders", 0
        )

    pair(work)


class Stranger(asyncio.Protocol):
    """A peer of the HA port that says what a test tells it."""

    def __init__(self) -> None:
        self.lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.here = transport.get_extra_info("sockname")

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True

    def send(self, data: bytes) -> None:
        self.transport.write(data)

    def say(self, offset: int) -> None:
        self.send(REPORT.pack(offset))
