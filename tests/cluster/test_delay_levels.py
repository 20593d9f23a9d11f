"""Delay levels over restarts, clocks, changed tables and full disks, in virtual time."""

import asyncio
import errno
from typing import Any

import pytest
from clocks import ShiftedClock
from peer import Peer, Run, bodies, messages

from gantrymq.model import SCHEDULE_TOPIC
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.disk import MemoryDisk
from gantrymq.testing.loop import simulate

LEVEL_1, LEVEL_2, LEVEL_3 = "DELAY\x011\x02", "DELAY\x012\x02", "DELAY\x013\x02"


async def delivered(cluster: Cluster, topic: str = "orders") -> list[bytes]:
    """Everything that lies in the topic's first queue now."""
    peer = await Peer.to(cluster)
    found: list[bytes] = []
    while more := bodies(await peer.pull(topic, len(found), count=1000)):
        found += more
    peer.close()
    return found


def progress(cluster: Cluster) -> dict[int, int]:
    return cluster.broker().registry.delays.table


class TestProgress:
    def test_after_a_restart_exactly_the_rest_is_delivered(self) -> None:
        """
        Two of five were delivered before the stop: afterwards three more come, none twice.
        """

        async def story() -> tuple[list[bytes], list[bytes]]:
            async with Cluster(memory=True) as cluster:
                peer = await Peer.to(cluster)
                for number in range(2):
                    await peer.send("orders", b"early %d" % number, props=LEVEL_2)
                await asyncio.sleep(4)
                for number in range(3):
                    await peer.send("orders", b"late %d" % number, props=LEVEL_2)
                await asyncio.sleep(2)
                before = await delivered(cluster)
                await cluster.stop_broker()
                await cluster.start_broker()
                await asyncio.sleep(10)
                return before, await delivered(cluster)

        before, after = simulate(story)

        assert [b"early 0", b"early 1"] == before
        assert [b"early 0", b"early 1", b"late 0", b"late 1", b"late 2"] == after

    def test_a_message_that_became_due_while_the_broker_was_down_comes_at_once(self) -> None:
        """
        The delay counts from when it was stored, not from the start.
        """

        async def story() -> tuple[int, list[bytes]]:
            async with Cluster(memory=True) as cluster:
                peer = await Peer.to(cluster)
                await peer.send("orders", b"due", props=LEVEL_1)
                await cluster.stop_broker()
                await asyncio.sleep(60)
                await cluster.start_broker()
                before = cluster.clock.now_ms()
                peer = await Peer.to(cluster)
                found = bodies(await peer.pull("orders", 0, hold=5_000))
                return cluster.clock.now_ms() - before, found

        took, found = simulate(story)

        assert [b"due"] == found
        assert took < 100

    @pytest.mark.parametrize("seed", range(10))
    def test_a_power_cut_loses_no_delayed_message(self, seed: int) -> None:
        """
        Progress on disk never runs ahead of the copies on disk: twice is allowed, never is not.
        """

        async def story() -> set[bytes]:
            async with Cluster(memory=True, seed=seed) as cluster:
                peer = await Peer.to(cluster)
                for number in range(40):
                    await peer.send("orders", b"%d" % number, props=LEVEL_1)
                    await asyncio.sleep(0.05)
                await cluster.broker().store.sync()  # what was accepted is safe; copies may not be
                await asyncio.sleep(seed * 0.1)
                await cluster.kill_broker(power_cut=True)
                await cluster.start_broker()
                await asyncio.sleep(5)
                return set(await delivered(cluster))

        assert {b"%d" % number for number in range(40)} == simulate(story)

    @pytest.mark.parametrize("wrong", [-3, 999])
    def test_progress_outside_the_queue_is_clamped_both_ways(self, wrong: int) -> None:
        """
        Too high would skip the next messages, too low would stand still: neither happens.
        """

        async def story() -> list[bytes]:
            async with Cluster(memory=True) as cluster:
                peer = await Peer.to(cluster)
                await peer.send("orders", b"first", props=LEVEL_1)
                await asyncio.sleep(2)
                progress(cluster)[1] = wrong
                await cluster.stop_broker()
                await cluster.start_broker()
                peer = await Peer.to(cluster)
                await peer.send("orders", b"second", props=LEVEL_1)
                await peer.send("orders", b"third", props=LEVEL_1)
                await asyncio.sleep(3)
                return await delivered(cluster)

        again = [b"first"] if wrong < 0 else []
        assert [b"first", *again, b"second", b"third"] == simulate(story)


class TestClockAndTable:
    def test_a_clock_that_goes_back_holds_nobody_longer_than_the_delay(self) -> None:
        """
        An hour back: a message of ten seconds still comes within about ten seconds.
        """

        async def story() -> list[bytes]:
            clock = ShiftedClock()
            async with Cluster(memory=True, clock=clock) as cluster:
                peer = await Peer.to(cluster)
                await peer.send("orders", b"patient", props=LEVEL_3)
                clock.shift_ms = -3_600_000
                await asyncio.sleep(10.1)
                return await delivered(cluster)

        assert [b"patient"] == simulate(story)

    def test_a_clock_that_jumps_ahead_is_noticed(self) -> None:
        """
        A machine that slept, or a calendar set right: what is due by the clock comes soon.
        """

        async def story() -> list[bytes]:
            clock = ShiftedClock()
            async with Cluster(memory=True, clock=clock) as cluster:
                peer = await Peer.to(cluster)
                await peer.send("orders", b"two hours", props="DELAY\x0118\x02")
                clock.shift_ms = 7_200_000
                await asyncio.sleep(11)
                return await delivered(cluster)

        assert [b"two hours"] == simulate(story)

    @pytest.mark.parametrize("table, seconds", [("1s 5s", 6), ("1s 5s 20s", 21), ("2s", 3)])
    def test_a_changed_table_still_delivers_what_waits(self, table: str, seconds: int) -> None:
        """
        Levels mean what the table says now; a level that is gone counts as the last one.
        """

        async def story() -> list[bytes]:
            disk = MemoryDisk()
            async with Cluster(memory=True, disk=disk) as cluster:
                peer = await Peer.to(cluster)
                await peer.send("orders", b"level 3", props=LEVEL_3)
            async with Cluster(memory=True, disk=disk, message_delay_level=table) as cluster:
                await asyncio.sleep(seconds)
                return await delivered(cluster)

        assert [b"level 3"] == simulate(story)

    def test_a_level_beyond_the_last_is_the_last(self) -> None:
        """
        And no number at all is no delay.
        """

        async def story() -> tuple[list[int], list[bytes]]:
            async with Cluster(memory=True, message_delay_level="1s 3s") as cluster:
                peer = await Peer.to(cluster)
                await peer.send("orders", b"far", props="DELAY\x0199\x02")
                for word in ("0", "-1", "soon"):
                    await peer.send("orders", word.encode(), props=f"DELAY\x01{word}\x02")
                at_once = await delivered(cluster)
                await asyncio.sleep(3.1)
                assert [b"0", b"-1", b"soon", b"far"] == await delivered(cluster)
                return cluster.broker().store.queues.ids(SCHEDULE_TOPIC), at_once

        assert ([1], [b"0", b"-1", b"soon"]) == simulate(story)


class TestDelivery:
    def test_levels_wait_each_for_itself_and_keep_their_order(self) -> None:
        """
        A long wait in one level holds no other level up; within a level first in is first out.
        """

        async def story() -> list[bytes]:
            async with Cluster(memory=True) as cluster:
                peer = await Peer.to(cluster)
                for number in range(3):
                    await peer.send("orders", b"slow %d" % number, props=LEVEL_2)
                    await peer.send("orders", b"fast %d" % number, props=LEVEL_1)
                await asyncio.sleep(6)
                return await delivered(cluster)

        slow, fast = ([b"%s %d" % (kind, at) for at in range(3)] for kind in (b"slow", b"fast"))
        assert fast + slow == simulate(story)

    def test_a_full_store_is_waited_for_and_nothing_is_lost_or_doubled(self) -> None:
        """
        One try a second while the store refuses, in order once it takes messages again.
        """

        async def story() -> tuple[int, list[bytes]]:
            disk = MemoryDisk()
            async with Cluster(memory=True, disk=disk) as cluster:
                peer = await Peer.to(cluster)
                for number in range(5):
                    await peer.send("orders", b"%d" % number, props=LEVEL_1)
                tries = 0

                def fault(name: str, path: str) -> OSError | None:
                    nonlocal tries
                    if name == "pwrite" and "commitlog" in path:
                        tries += 1
                        return OSError(errno.ENOSPC, "injected", path)
                    return None

                disk.fault = fault
                await asyncio.sleep(30)
                disk.fault = None
                await asyncio.sleep(3)
                return tries, await delivered(cluster)

        tries, found = simulate(story)

        assert [b"%d" % number for number in range(5)] == found
        assert 20 <= tries <= 40

    def test_a_message_for_a_queue_that_is_gone_goes_to_one_that_is_there(self) -> None:
        """
        The topic shrank while the message waited: nobody would ever read its queue.
        """

        async def story() -> list[bytes]:
            async with Cluster(memory=True) as cluster:
                await cluster.create_topic("orders", queues=4)
                peer = await Peer.to(cluster)
                await peer.send("orders", b"for the fourth", queue=3, props=LEVEL_1)
                await cluster.create_topic("orders", queues=1)
                await asyncio.sleep(2)
                return await delivered(cluster)

        assert [b"for the fourth"] == simulate(story)

    def test_a_batch_asked_to_wait_is_refused(self, run: Run) -> None:
        """
        Delays are a message's own: a batch that silently came at once would break a promise.
        """

        async def work(cluster: Cluster) -> None:
            peer = await Peer.to(cluster)
            ext: dict[str, Any] = {"a": "p", "b": "orders", "c": "TBW102", "d": 4, "e": 0, "f": 0}
            ext |= {"g": 1, "h": 0, "m": "true"}
            body = bytes.fromhex("0000001700000000000000000000000000000001") + b"x\0\0"
            for word in (LEVEL_1, "TIMER_DELAY_MS\x015000\x02"):
                answer = await peer.call(320, body, i=word, **ext)
                assert (13, True) == (answer.code, "batch" in (answer.remark or ""))
            assert 0 == (await peer.call(320, body, i="", **ext)).code

        run(work)

    def test_lateness_is_measured(self) -> None:
        """
        In time is a few milliseconds; after an outage of the store it tells how long that was.
        """

        async def story() -> tuple[int, int]:
            disk = MemoryDisk()
            async with Cluster(memory=True, disk=disk) as cluster:
                delays = cluster.broker().delays
                peer = await Peer.to(cluster)
                await peer.send("orders", b"in time", props=LEVEL_1)
                await asyncio.sleep(2)
                usual = delays.lateness[1].max_ms
                await peer.send("orders", b"late", props=LEVEL_1)
                disk.fault = lambda name, path: (
                    OSError(errno.EIO, "injected", path)
                    if name == "pwrite" and "commitlog" in path
                    else None
                )
                await asyncio.sleep(9)
                disk.fault = None
                await asyncio.sleep(3)
                return usual, delays.lateness[1].last_ms

        usual, after = simulate(story)

        assert usual <= 5
        assert 7_000 <= after <= 12_000

    def test_a_thousand_due_together_are_delivered_in_batches(self) -> None:
        """
        Not one round trip through the store a message: all are there a moment after they are due.
        """

        async def story() -> tuple[int, list[int]]:
            async with Cluster(memory=True) as cluster:
                peer = await Peer.to(cluster)
                sends = (peer.send("orders", b"%d" % at, props=LEVEL_1) for at in range(1000))
                await asyncio.gather(*sends)
                await asyncio.sleep(1.5)
                (first, *rest) = messages(await peer.pull("orders", 0, count=1000))
                stamps = sorted({message.store_ms for message in (first, *rest)})
                return len(rest) + 1, stamps

        count, stamps = simulate(story)

        assert 1000 == count
        assert stamps[-1] - stamps[0] <= 10


class TestRetention:
    def test_a_delay_outlives_the_log_file_it_lies_in(self) -> None:
        """
        A level of two hours and files kept for one: what waits moves to the timer and is in time,
        once, also over a restart.
        """

        async def story() -> tuple[int, int, list[tuple[bytes, int]]]:
            clock = ShiftedClock()
            hours = ";".join(f"{hour:02d}" for hour in range(24))
            small = {"mapped_file_size_commit_log": 64 * 1024, "delete_when": hours}
            async with Cluster(memory=True, clock=clock, file_reserved_time=1, **small) as cluster:
                peer = await Peer.to(cluster)
                start = clock.now_ms()
                for number in range(5):
                    await peer.send("orders", b"%d" % number, props="DELAY\x0118\x02")
                for _ in range(20):
                    await peer.send("filler", bytes(10_000))
                await peer.send("orders", b"later", props="DELAY\x0118\x02")
                await cluster.broker().store.upkeep.checkpoint()
                clock.shift_ms = 5_400_000
                await asyncio.sleep(25)
                begin = cluster.broker().store.log_min
                moved = progress(cluster)[18]
                await cluster.stop_broker()
                await cluster.start_broker()
                await asyncio.sleep(1_800)
                peer = await Peer.to(cluster)
                found = messages(await peer.pull("orders", 0))
                found += messages(await peer.pull("orders", len(found)))
                return begin, moved, [(m.body, m.store_ms - start - 7_200_000) for m in found]

        begin, moved, found = simulate(story)

        assert begin > 0
        assert 5 == moved
        assert [b"0", b"1", b"2", b"3", b"4", b"later"] == [body for body, _ in found]
        assert all(0 <= late < 1_000 for _, late in found)
