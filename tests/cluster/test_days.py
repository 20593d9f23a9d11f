"""Totals of today and yesterday, pulls that wait for the disk, and what tools see of both."""

import asyncio
import time
from typing import Any

from peer import Peer, bodies

from gantrymq.base.offload import Offload
from gantrymq.protocol import fastjson
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.disk import MemoryDisk
from gantrymq.testing.loop import simulate

RUNTIME, VIEW = 28, 315
DAY = 86_400.0


async def totals(cluster: Cluster) -> tuple[int, int, int]:
    """Messages put until yesterday's midnight, until today's, and until now."""
    answer = await (await Peer.to(cluster)).call(RUNTIME)
    table = fastjson.loads(answer.body)["table"]
    names = ("YesterdayMorning", "TodayMorning", "TodayNow")
    before, morning, now = (int(table[f"msgPutTotal{name}"]) for name in names)
    return before, morning, now


def to_midnight(cluster: Cluster) -> float:
    now_ms = cluster.clock.now_ms()
    today = time.localtime(now_ms / 1000)
    passed = today.tm_hour * 3600 + today.tm_min * 60 + today.tm_sec + now_ms % 1000 / 1000
    return DAY - passed


def test_a_day_begins_at_local_midnight() -> None:
    """
    What is stored in the last second belongs to yesterday, what comes a second later to today.
    """

    async def main() -> None:
        async with Cluster(memory=True) as cluster:
            await cluster.create_topic("orders", queues=1)

            async def send(count: int) -> None:
                peer = await Peer.to(cluster)
                for _ in range(count):
                    await peer.send("orders", b"book")

            await send(3)
            await asyncio.sleep(to_midnight(cluster) - 0.5)
            await send(2)
            await asyncio.sleep(1)
            await send(4)
            assert (0, 5, 9) == await totals(cluster)
            await asyncio.sleep(DAY)
            assert (5, 9, 9) == await totals(cluster)

    simulate(main)


class SlowOffload(Offload):
    """A worker that needs 40 ms for everything."""

    async def run(self, work: Any, *args: Any) -> Any:
        await asyncio.sleep(0.0405)
        return work(*args)


def test_a_pull_that_waits_for_the_disk_counts_its_milliseconds() -> None:
    """
    By queue, topic and group; pulls from memory count nothing, and a deleted group leaves nothing.
    """

    async def main() -> None:
        disk = MemoryDisk()
        async with Cluster(memory=True, disk=disk, offload=SlowOffload()) as cluster:
            await cluster.create_topic("orders", queues=1)
            peer = await Peer.to(cluster)
            await peer.send("orders", b"book")
            await peer.pull("orders", 0, group="quick")
            disk.is_cold = lambda path, at: "commitlog" in path
            assert [b"book"] == bodies(await peer.pull("orders", 0, group="late"))
            await asyncio.sleep(15)

            async def latency(group: str) -> dict[str, Any]:
                answer = await peer.call(
                    VIEW, statsName="GROUP_GET_LATENCY", statsKey=f"0@orders@{group}"
                )
                assert 0 == answer.code, answer.remark
                found: dict[str, Any] = fastjson.loads(answer.body)["statsMinute"]
                return found

            assert {"avgpt": 40.0, "sum": 40, "tps": 4.0} == await latency("late")
            assert 0 == (await latency("quick"))["sum"]
            await peer.call(207, groupName="late")
            gone = await peer.call(VIEW, statsName="GROUP_GET_LATENCY", statsKey="0@orders@late")
            assert 1 == gone.code

    simulate(main)
