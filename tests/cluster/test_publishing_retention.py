"""Drivers that stay away for long: retention leaves what is decided and not yet published."""

import asyncio
import contextlib
from typing import Any

from clocks import ShiftedClock
from epochs import TOPIC, publisher, visible, write
from peer import Peer

from gantrymq.base.errors import GantryError
from gantrymq.broker.publishing.ledger import DAY_MS, HOLD_DAYS_MAX
from gantrymq.protocol.codes import RequestCode
from gantrymq.protocol.command import Command
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.disk import MemoryDisk
from gantrymq.testing.loop import simulate

FIRST = ["a1", "b1", "c1", "d1"]
SECOND = ["a2", "b2", "c2", "d2"]


class Died(GantryError):
    """What the tests let a driver die of."""


class DiesBeforeTheLast:
    """A driver that ends when one broker has published its share and the coordinator has not."""

    def __init__(self) -> None:
        self._published = 0

    def before_request(self, address: str, command: Command) -> None:
        self._published += command.code == RequestCode.PUBLISH_EPOCH
        if self._published == 2:
            raise Died("here ends a driver")

    def after_response(self, address: str, command: Command, response: Command) -> None:
        """What the answer was does not matter."""


class Filling(MemoryDisk):
    """A disk that says how full it is, and takes everything."""

    ratio = 0.0

    def used_ratio(self, root: str) -> float:
        return self.ratio


async def leave_half(cluster: Cluster) -> str:
    """An epoch that is decided, and published by one of two brokers; says who else should."""
    await cluster.create_topic(TOPIC, 1)
    with contextlib.suppress(Died):
        await write(cluster, 0, FIRST, hooks=[DiesBeforeTheLast()])
    async with publisher(cluster) as one:
        (keeper,) = {state.coordinator for state in (await one.states()).values() if state}
    assert 0 < len(visible(cluster)) < len(FIRST)
    return keeper


async def expire(cluster: Cluster, broker: str) -> int:
    """Let a broker's log grow until its old files may go; how many went."""
    running = cluster.broker(broker)
    for _ in range(2):
        peer = await Peer.to(cluster, running.config.listen_port)
        for _ in range(6):
            await peer.send("others", bytes(20_000))
        await asyncio.sleep(1)
    await running.store.upkeep.checkpoint()
    return await running.store.upkeep.delete_expired()


def small_files(
    clock: ShiftedClock | None = None, disk: MemoryDisk | None = None, **settings: Any
) -> Cluster:
    return Cluster(
        memory=True, brokers=2, clock=clock, disk=disk,
        mapped_file_size_commit_log=64 * 1024, file_reserved_time=0, **settings,
    )  # fmt: skip


def test_a_decided_epoch_is_whole_when_its_driver_comes_back_after_retention() -> None:
    """
    Retention waits for the share, restarts of the broker included, and goes on behind it.
    """

    async def story() -> tuple[list[int], bool, list[str]]:
        async with small_files() as cluster:
            keeper = await leave_half(cluster)
            gone = [await expire(cluster, keeper)]
            await cluster.stop_broker(keeper)
            await cluster.start_broker(keeper)
            gone.append(await expire(cluster, keeper))
            again = await write(cluster, 0, SECOND)
            seen = visible(cluster)
            gone.append(await expire(cluster, keeper))
            return gone, again.is_repeat, seen

    gone, is_repeat, seen = simulate(story)
    assert [0, 0] == gone[:2]
    assert gone[2]
    assert is_repeat
    assert FIRST == seen


def test_an_epoch_that_waited_too_long_is_given_up_in_plain_words() -> None:
    """
    After some days the files go; whoever comes then is told what happened and what to do.
    """

    async def story() -> tuple[int, str, bool]:
        clock = ShiftedClock()
        async with small_files(clock) as cluster:
            keeper = await leave_half(cluster)
            clock.shift_ms = (HOLD_DAYS_MAX + 1) * DAY_MS
            gone, said = await expire(cluster, keeper), ""
            try:
                await write(cluster, 0, FIRST)
            except GantryError as error:
                said = str(error)
            other = await write(cluster, 0, FIRST, writer="another")
            return gone, said, other.is_repeat

    gone, said, is_repeat = simulate(story)
    assert gone
    assert "epoch 0 of the-writer was decided, and its staged messages are gone since" in said
    assert "go on with a new writer id" in said
    assert not is_repeat


def test_a_full_disk_does_not_wait_for_drivers() -> None:
    """
    Where retention takes young files to make room, an epoch nobody finishes is no exception.
    """

    async def story() -> list[int]:
        disk = Filling()
        profile = {"store_profile": "rocketmq", "max_hash_slot_num": 50, "max_index_num": 200}
        async with small_files(disk=disk, **profile) as cluster:
            keeper = await leave_half(cluster)
            gone = [await expire(cluster, keeper)]
            store = cluster.broker(keeper).store
            disk.ratio = store.config.disk_force_ratio
            gone.append(await store.upkeep.delete_expired())
            return gone

    gone = simulate(story)
    assert 0 == gone[0]
    assert gone[1]
