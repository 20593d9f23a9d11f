"""A broker that cannot keep up says so at once, and says why."""

import asyncio
import time

import pytest
from peer import Peer

from gantrymq import Message, SendFailed
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.disk import MemoryDisk

SYSTEM_BUSY = 2
BURST = 2000
"""More than a broker takes from one connection in many turns."""


def slow_once(disk: MemoryDisk, seconds: float) -> None:
    """The next write to the log really takes that long, as on a disk that hangs."""

    def fault(operation: str, path: str) -> None:
        if operation == "pwrite" and "commitlog" in path:
            disk.fault = None
            time.sleep(seconds)

    disk.fault = fault


def test_sends_behind_a_slow_write_are_refused_with_the_reason() -> None:
    """
    "broker busy" names the write, how long it took and the setting that calls it too long. Nothing
    is sent again behind the caller's back, and the next send is stored.
    """

    async def story() -> tuple[list[str], list[str], str]:
        disk = MemoryDisk()
        async with (
            asyncio.timeout(30),
            Cluster(disk=disk) as cluster,
            cluster.producer() as producer,
        ):
            await producer.send(Message("orders", b"warm"))
            slow_once(disk, 1.1)
            sends = [producer.submit(Message("orders", b"x")) for _ in range(BURST)]
            stored, refused = [], []
            for send in sends:
                try:
                    stored.append((await send).status)
                except SendFailed as error:
                    refused.append(str(error))
            await asyncio.sleep(0.1)
            return stored, refused, (await producer.send(Message("orders", b"fine"))).status

    stored, refused, after = asyncio.run(story())

    assert BURST == len(stored) + len(refused)
    assert "answered code 2" in refused[0]
    assert "osPageCacheBusyTimeOutMills is 1000" in refused[0]
    assert "SEND_OK" == after


@pytest.mark.parametrize("limit", [4])
def test_a_full_queue_names_itself_and_its_limit(limit: int) -> None:
    """
    More sends waiting for the disk than sendThreadPoolQueueCapacity are refused, with both numbers.
    """

    async def story() -> list[tuple[int, str]]:
        async with asyncio.timeout(30), Cluster(send_thread_pool_queue_capacity=limit) as cluster:
            peer = await Peer.to(cluster)
            await peer.send("orders", b"warm")
            sends = [asyncio.ensure_future(peer.send("orders", b"x")) for _ in range(limit * 3)]
            answers = [await send for send in sends]
            return [(answer.code, answer.remark or "") for answer in answers]

    answers = asyncio.run(story())
    busy = [remark for code, remark in answers if code == SYSTEM_BUSY]

    assert {0, SYSTEM_BUSY} == {code for code, _ in answers}
    assert f"sendThreadPoolQueueCapacity is {limit}" in busy[0]
