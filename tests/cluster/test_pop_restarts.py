"""Popping through stops, kills and power cuts, in every state a message can be in."""

import asyncio
import errno
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from peer import Peer
from popper import Lent, Popper

from gantrymq.protocol import fastjson
from gantrymq.protocol.record import decode_records
from gantrymq.store.append import ReadResult
from gantrymq.store.log.syncer import InlineSyncer
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.disk import MemoryDisk
from gantrymq.testing.loop import simulate

FLUSHED_SECONDS = 12
"""By then everything that was written is on disk, and the tables say so."""
CLOSE_SECONDS = 0.1
QUIET_WAITS = 2
"""Of 35 s each: longer than any loan here."""

End = Callable[[Cluster], Awaitable[None]]


async def stop(cluster: Cluster) -> None:
    await cluster.stop_broker()
    await cluster.start_broker()


async def kill(cluster: Cluster) -> None:
    await cluster.kill_broker()
    await cluster.start_broker()


async def cut(cluster: Cluster) -> None:
    await cluster.kill_broker(power_cut=True)
    await cluster.start_broker()


async def cut_late(cluster: Cluster) -> None:
    await asyncio.sleep(FLUSHED_SECONDS)
    await cut(cluster)


ENDS = pytest.mark.parametrize("end", [stop, kill, cut, cut_late])


def story(work: Callable[[Cluster], Awaitable[Any]], **settings: Any) -> Any:
    async def main() -> Any:
        async with Cluster(memory=True, **settings) as cluster:
            await cluster.create_topic("orders", queues=2)
            return await work(cluster)

    return simulate(main)


async def member(cluster: Cluster, sent: int = 0) -> Popper:
    peer = await Peer.to(cluster)
    for number in range(sent):
        await peer.send("orders", b"%d" % number, number % 2)
    return Popper(peer)


async def drained(cluster: Cluster) -> list[bytes]:
    """Everything that is still delivered, acknowledged on the way."""
    popper, found = await member(cluster), []
    quiet = 0
    while quiet < QUIET_WAITS:
        lent = await popper.pop(wait=35_000, invisible=10_000)
        quiet = 0 if lent else quiet + 1
        for one in lent:
            assert 0 == (await popper.ack(one)).code
            found.append(one.body)
    return sorted(found)


def test_a_restart_changes_nothing_about_what_is_lent() -> None:
    """
    Invisible until its time is over, whoever was popping; then delivered again, once.
    """

    async def work(cluster: Cluster) -> tuple[list[Lent], list[bytes], list[bytes]]:
        popper = await member(cluster, 6)
        lent = await popper.pop(invisible=30_000)
        await stop(cluster)
        early = await (await member(cluster)).pop(wait=15_000)
        return early, sorted(one.body for one in lent), await drained(cluster)

    early, lent, again = story(work)

    assert [] == early
    assert lent == again


@ENDS
def test_a_handle_is_good_after_a_restart(end: End) -> None:
    """
    What was flushed, or survived because only the process ended, is settled by its old handle.
    """

    async def work(cluster: Cluster) -> list[bytes]:
        popper = await member(cluster, 6)
        lent = await popper.pop(invisible=60_000)
        await asyncio.sleep(FLUSHED_SECONDS)
        await end(cluster)
        popper = await member(cluster)
        answers = [(await popper.ack(one)).code for one in lent[:2]]
        answers.append((await popper.ack_many(lent[2:5])).code)
        assert [0, 0, 0] == answers
        left = lent[5].body
        return [left, *await drained(cluster)]

    left, *again = story(work)

    assert [left] == again


@ENDS
def test_what_was_acknowledged_stays_so(end: End) -> None:
    """
    An acknowledgement that is on disk holds through everything.
    """

    async def work(cluster: Cluster) -> list[bytes]:
        popper = await member(cluster, 4)
        for one in await popper.pop(invisible=10_000):
            await popper.ack(one)
        await asyncio.sleep(FLUSHED_SECONDS)
        await end(cluster)
        return await drained(cluster)

    assert [] == story(work)


@ENDS
def test_nothing_that_was_handed_out_is_forgotten(end: End) -> None:
    """
    Popped, not acknowledged, and the broker ends at once: every message is delivered again.
    """

    async def work(cluster: Cluster) -> set[bytes]:
        popper = await member(cluster, 10)
        await asyncio.sleep(FLUSHED_SECONDS)
        await popper.pop(invisible=20_000)
        await cluster.broker().registry.offsets.save()
        await end(cluster)
        return set(await drained(cluster))

    assert {b"%d" % number for number in range(10)} == story(work)


@ENDS
def test_a_changed_time_survives(end: End) -> None:
    """
    Whichever of the two loans is on disk, the message is delivered again.
    """

    async def work(cluster: Cluster) -> set[bytes]:
        popper = await member(cluster, 2)
        lent = await popper.pop(invisible=20_000)
        await asyncio.sleep(FLUSHED_SECONDS)
        for one in lent:
            assert 0 == (await popper.change(one, 40_000)).code
        await cluster.broker().registry.offsets.save()
        await end(cluster)
        return set(await drained(cluster))

    assert {b"0", b"1"} == story(work)


@ENDS
def test_what_is_being_retried_survives(end: End) -> None:
    """
    Its copy is in the retry topic, in memory only, when the broker ends.
    """

    async def work(cluster: Cluster) -> tuple[set[bytes], int]:
        popper = await member(cluster, 4)
        await popper.pop(invisible=20_000)
        await asyncio.sleep(21)
        assert cluster.broker().store.queues.max_offset("%RETRY%g_orders", 0) == 4
        await asyncio.sleep(1.5)  # the revive log's progress has moved
        await cluster.broker().registry.offsets.save()
        await end(cluster)
        found = await drained(cluster)
        return set(found), len(found)

    bodies, count = story(work)

    assert {b"0", b"1", b"2", b"3"} == bodies
    if end in (stop, kill, cut_late):
        assert 4 == count


@pytest.mark.parametrize("seed", range(12))
def test_progress_is_never_saved_before_what_makes_it_safe(seed: int) -> None:
    """
    The table is saved again and again while pops go on; the power goes at any moment.
    """

    async def work(cluster: Cluster) -> tuple[set[bytes], set[bytes]]:
        popper = await member(cluster, 40)
        await asyncio.sleep(FLUSHED_SECONDS)
        for _ in range(seed + 1):
            await popper.pop(3, 15_000)
            await cluster.broker().registry.offsets.save()
            await asyncio.sleep(0.3)
        await cut(cluster)
        return set(await stored(cluster)), set(await drained(cluster))

    there, delivered = story(work, seed=seed)

    assert 40 == len(there)
    assert there == delivered


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("changed", [False, True], ids=["retried", "extended"])
def test_a_slow_disk_makes_nothing_unsafe(seed: int, changed: bool) -> None:
    """
    Copies, or new loans, are in the log and the revive log has moved on; none of it is on disk
    yet, but the tables are, when the power goes.
    """
    syncer = InlineSyncer()

    async def work(cluster: Cluster) -> set[bytes]:
        popper = await member(cluster, 6)
        lent = await popper.pop(invisible=20_000)
        await asyncio.sleep(FLUSHED_SECONDS)
        syncer.delay = 60.0
        if changed:
            for one in lent:
                await popper.change(one, 5_000)
        await asyncio.sleep(1.5 if changed else 10)
        await cluster.broker().registry.offsets.save()
        await cluster.kill_broker(power_cut=True)
        syncer.delay = 0.0
        await cluster.start_broker()
        return set(await drained(cluster))

    assert {b"%d" % n for n in range(6)} == story(work, seed=seed, syncer=syncer)


def test_a_clean_stop_saves_all_progress() -> None:
    """
    Nothing is delivered twice because of an orderly restart, however fresh the pops were.
    """

    async def work(cluster: Cluster) -> list[bytes]:
        popper = await member(cluster, 8)
        for one in await popper.pop(4):
            await popper.ack(one)
        await stop(cluster)
        return await drained(cluster)

    assert 4 == len(story(work))


def test_an_ordered_batch_stays_closed_through_a_restart() -> None:
    """
    The table of ordered batches is saved: the acknowledgement opens the queue afterwards.
    """

    async def work(cluster: Cluster) -> list[list[bytes]]:
        popper = await member(cluster)
        for number in range(4):
            await popper.peer.send("orders", b"%d" % number, 0)
        lent = await popper.pop(2, queue=0, order="true", attemptId="a")
        await stop(cluster)
        popper = await member(cluster)
        closed = await popper.pop(2, queue=0, order="true", attemptId="b")
        for one in lent:
            await popper.ack(one)
        opened = await popper.pop(2, queue=0, order="true", attemptId="c")
        return [[one.body for one in found] for found in (lent, closed, opened)]

    assert [[b"0", b"1"], [], [b"2", b"3"]] == story(work)


@ENDS
def test_ordered_messages_are_not_lost_either(end: End) -> None:
    """
    Progress moves with acknowledgements only: whatever else is forgotten comes again, in order.
    """

    async def work(cluster: Cluster) -> list[bytes]:
        popper = await member(cluster)
        for number in range(4):
            await popper.peer.send("orders", b"%d" % number, 0)
        await asyncio.sleep(FLUSHED_SECONDS)
        lent = await popper.pop(3, 20_000, queue=0, order="true", attemptId="a")
        await popper.ack(lent[0])
        await cluster.broker().registry.offsets.save()
        await end(cluster)
        popper, found = await member(cluster), []
        while lent := await popper.pop(
            1, 20_000, queue=0, order="true", attemptId=f"{len(found)}", wait=30_000
        ):
            await popper.ack(lent[0])
            found.append(lent[0].body)
        return found

    assert [b"1", b"2", b"3"] == story(work)


def test_modes_survive_a_restart() -> None:
    """
    messageRequestMode.json is on disk before the answer.
    """

    async def work(cluster: Cluster) -> Any:
        peer = await Peer.to(cluster)
        mode = {"topic": "orders", "consumerGroup": "g", "mode": "POP", "popShareQueueNum": 2}
        await peer.call(401, fastjson.dumps(mode))
        await cut(cluster)
        answer = await (await Peer.to(cluster)).call(402)
        return fastjson.loads(answer.body)["messageRequestModeMap"]["orders"]["g"]

    assert ("POP", 2) == (lambda row: (row["mode"], row["popShareQueueNum"]))(story(work))


def test_a_full_disk_lends_nothing_and_loses_nothing() -> None:
    """
    Without a checkpoint nothing is handed out; once there is room again all of it comes.
    """

    async def work(cluster: Cluster) -> tuple[int, str, int, list[bytes]]:
        popper = await member(cluster, 4)
        lent = await popper.pop(2)
        disk = cluster._disks["broker-a"]
        assert isinstance(disk, MemoryDisk)

        def full(operation: str, path: str) -> OSError | None:
            writes = operation in ("pwrite", "write") and "commitlog" in path
            return OSError(errno.ENOSPC, "no space left") if writes else None

        disk.fault = full
        refused, not_acked = await popper.ask(), await popper.ack(lent[0])
        disk.fault = None
        return refused.code, refused.remark or "", not_acked.code, await drained(cluster)

    code, remark, not_acked, found = story(work)

    assert (1, 1) == (code, not_acked)
    assert "nothing can be popped" in remark
    assert {b"0", b"1", b"2", b"3"} == set(found)


# everything at random


async def stored(cluster: Cluster) -> list[bytes]:
    """The messages that the log really has."""
    store, found = cluster.broker().store, []
    for queue in range(2):
        at = store.queues.min_offset("orders", queue)
        while at < store.queues.max_offset("orders", queue):
            outcome = store.reads.pull("orders", queue, at, 1_000, 1 << 22)
            pulled = outcome if isinstance(outcome, ReadResult) else await outcome
            found += [record.body for record in decode_records(pulled.body)]
            at = pulled.next_offset
    return found


class Model:
    """Two members that do anything at any time, and what must be true of it."""

    def __init__(self, cluster: Cluster, rng: random.Random) -> None:
        self.cluster, self.rng = cluster, rng
        self.sent = 0
        self.lent: list[tuple[Lent, float]] = []
        self.acked: set[bytes] = set()
        self.maybe_acked: set[bytes] = set()
        """So close to the end of its time that only the broker knows which came first."""
        self.doubles: list[bytes] = []
        """Delivered although acknowledged in time before."""
        self.members: list[Popper] = []

    async def connect(self) -> None:
        self.members = [Popper(await Peer.to(self.cluster)) for _ in range(2)]

    async def step(self, ends: list[End]) -> None:
        actions = [self.send, self.pop, self.pop, self.ack, self.ack, self.change, self.wait]
        if ends and self.rng.random() < 0.06:
            await self.rng.choice(ends)(self.cluster)
            await self.connect()
        else:
            await self.rng.choice(actions)()

    @property
    def anyone(self) -> Popper:
        return self.rng.choice(self.members)

    async def send(self) -> None:
        for _ in range(self.rng.randrange(1, 8)):
            self.sent += 1
            await self.anyone.peer.send("orders", b"%d" % self.sent, self.rng.randrange(2))

    async def pop(self) -> None:
        seconds = self.rng.choice([1, 5, 20])
        due = asyncio.get_running_loop().time() + seconds
        found = await self.anyone.pop(self.rng.randrange(1, 12), seconds * 1_000)
        self.lent += [(one, due) for one in found]
        self.doubles += [one.body for one in found if one.body in self.acked]

    async def ack(self) -> None:
        if not self.lent:
            return
        chosen = self.rng.sample(self.lent, self.rng.randrange(1, len(self.lent) + 1))
        asked = asyncio.get_running_loop().time()
        if self.rng.random() < 0.5:
            codes = [(await self.anyone.ack_many([one for one, _ in chosen])).code] * len(chosen)
        else:
            codes = [(await self.anyone.ack(one)).code for one, _ in chosen]
        for (one, due), code in zip(chosen, codes, strict=True):
            if code == 0 and asyncio.get_running_loop().time() < due:
                self.acked.add(one.body)
            elif code == 0 and asked < due + CLOSE_SECONDS:
                self.maybe_acked.add(one.body)
        self.lent = [pair for pair in self.lent if pair not in chosen]

    async def change(self) -> None:
        if self.lent:
            one, due = self.rng.choice(self.lent)
            self.lent.remove((one, due))
            seconds = self.rng.choice([0, 3, 30])
            now = asyncio.get_running_loop().time()
            if (await self.anyone.change(one, seconds * 1_000)).code == 0:
                self.lent.append((one, now + seconds))

    async def wait(self) -> None:
        await asyncio.sleep(self.rng.choice([0.01, 0.5, 3, 25]))


async def played(cluster: Cluster, seed: int, ends: list[End]) -> tuple[set[bytes], Model]:
    """The messages that are neither acknowledged nor delivered in the end, and what happened."""
    model = Model(cluster, random.Random(seed))
    await model.connect()
    for _ in range(90):
        await model.step(ends)
    there = set(await stored(cluster))
    rest = await drained(cluster)
    model.doubles += [body for body in rest if body in model.acked]
    return there - model.acked - model.maybe_acked - set(rest), model


@pytest.mark.parametrize("seed", range(25))
def test_whatever_happens_nothing_is_lost(seed: int) -> None:
    """
    Sends, pops, acks, changed times, stops, kills and power cuts in any order: every message the
    log has is acknowledged or delivered again.
    """

    async def work(cluster: Cluster) -> tuple[set[bytes], Model]:
        return await played(cluster, seed, [stop, kill, cut])

    flush = "SYNC_FLUSH" if seed % 3 == 0 else "ASYNC_FLUSH"
    lost, model = story(work, seed=seed, flush_disk_type=flush)

    assert set() == lost
    assert model.sent > 5


@pytest.mark.parametrize("seed", range(12))
def test_without_accidents_what_was_acknowledged_in_time_is_done(seed: int) -> None:
    """
    Orderly restarts included: not one delivery after an acknowledgement.
    """

    async def work(cluster: Cluster) -> tuple[set[bytes], Model]:
        return await played(cluster, seed, [stop])

    lost, model = story(work, seed=seed)

    assert set() == lost
    assert [] == model.doubles
    assert len(model.acked) > 3
