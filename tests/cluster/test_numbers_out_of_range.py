"""A number that fits no field harms only the message that has it."""

import asyncio
from typing import Any

import pytest
from peer import Peer, bodies

from gantrymq.protocol.codes import ResponseCode
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.loop import simulate

HUGE = 1 << 40


@pytest.mark.parametrize("field", ["h", "f", "j", "g"])
def test_sends_beside_a_misfit_are_stored_in_order(field: str) -> None:
    """
    A send with a number that does not fit is refused alone; those of the same write are stored
    in order.
    """
    value = HUGE if field != "g" else 1 << 70

    async def work() -> None:
        async with Cluster(memory=True) as cluster:
            await cluster.create_topic("t", queues=1)
            peer = await Peer.to(cluster)

            def send(body: bytes, **more: Any) -> Any:
                ext = {"a": "p", "b": "t", "c": "TBW102", "d": 4, "e": 0, "f": 0, "g": 1, "h": 0}
                return peer.call(310, body, **(ext | more))

            # All in one turn of the broker's loop, so one write would carry them.
            answers = await asyncio.gather(send(b"a"), send(b"b", **{field: value}), send(b"c"))

            assert [answer.code == ResponseCode.SUCCESS for answer in answers] == [
                True,
                False,
                True,
            ]
            assert [answers[at].ext["queueOffset"] for at in (0, 2)] == ["0", "1"]
            assert bodies(await peer.pull("t", 0)) == [b"a", b"c"]

    simulate(work)
