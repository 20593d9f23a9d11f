"""A link that stalls holds bytes back and delivers them later, in order, as TCP does."""

import asyncio
import random

import pytest

from gantrymq.base.network import ConnectFailed
from gantrymq.testing.loop import simulate
from gantrymq.testing.network import RESUME_SECONDS_MAX, MemoryNetwork

ONE, OTHER, PORT = "10.0.0.1", "10.0.0.2", 9_000


class Ear(asyncio.Protocol):
    """Notes what it hears."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self.lost = False
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.heard.append(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True


async def connected(network: MemoryNetwork) -> tuple[Ear, list[Ear]]:
    """A connection, and all that the listener has accepted."""
    accepted: list[Ear] = []

    def accept() -> Ear:
        accepted.append(Ear())
        return accepted[-1]

    await network.listen(OTHER, PORT, accept)
    return await network.at(ONE).connect(OTHER, PORT, Ear, 1), accepted


def test_bytes_come_later_and_in_order() -> None:
    """The other direction is open meanwhile."""

    async def story() -> None:
        network = MemoryNetwork(random.Random(1))
        near, (far,) = await connected(network)
        network.stall(ONE, OTHER)
        for number in range(3):
            near.transport.write(b"%d" % number)
        far.transport.write(b"back")
        await asyncio.sleep(5)
        assert ([], [b"back"]) == (far.heard, near.heard)
        network.resume(ONE, OTHER)
        near.transport.write(b"3")
        await asyncio.sleep(RESUME_SECONDS_MAX + 1)
        assert [b"0", b"1", b"2", b"3"] == far.heard

    simulate(story)


def test_an_old_connection_may_deliver_when_a_new_one_is_made() -> None:
    """Its end reaches the other side behind all that was written before."""

    async def story() -> None:
        network = MemoryNetwork(random.Random(1))
        near, accepted = await connected(network)
        network.stall(ONE, OTHER)
        near.transport.write(b"old")
        network.cut_all()
        await asyncio.sleep(1)
        assert near.lost
        assert not accepted[0].lost
        network.resume(ONE, OTHER)
        newer = await network.at(ONE).connect(OTHER, PORT, Ear, 1)
        newer.transport.write(b"new")
        await asyncio.sleep(0.01)
        assert ([], [b"new"]) == (accepted[0].heard, accepted[1].heard)
        await asyncio.sleep(RESUME_SECONDS_MAX + 1)
        assert [b"old"] == accepted[0].heard
        assert accepted[0].lost

    simulate(story)


def test_no_connection_is_made_over_a_stalled_link() -> None:
    """It takes as long as its time-out."""

    async def story() -> None:
        network = MemoryNetwork(random.Random(1))
        await connected(network)
        network.stall(OTHER, ONE)
        began = asyncio.get_running_loop().time()
        with pytest.raises(ConnectFailed, match="took over 3 s"):
            await network.at(ONE).connect(OTHER, PORT, Ear, 3)
        assert asyncio.get_running_loop().time() - began >= 3

    simulate(story)
