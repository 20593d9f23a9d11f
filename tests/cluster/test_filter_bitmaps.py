"""Conditions asked while messages are stored: bits rule messages out, and none is lost."""

import asyncio
import random
from typing import Any

from peer import Peer, Run, bodies

from gantrymq.filter.bloom import Bloom, mask_of
from gantrymq.kernel import ENTRY
from gantrymq.protocol import fastjson
from gantrymq.protocol.command import Command
from gantrymq.protocol.subscription import subscription
from gantrymq.store.queues.queueext import Mark
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.loop import simulate

BITMAPS: dict[str, Any] = {"enable_consume_queue_ext": True, "enable_calc_filter_bit_map": True}
SAVED_SECONDS = 11


async def announce(peer: Peer, sql: str, version: int = 1, group: str = "g") -> None:
    wanted = subscription("orders", sql, "SQL92", version)
    consumer = {"groupName": group, "subscriptionDataSet": [wanted]}
    body = {"clientID": group, "consumerDataSet": [consumer], "producerDataSet": []}
    assert (await peer.call(34, fastjson.dumps(body))).code == 0


async def pull(peer: Peer, offset: int = 0, group: str = "g") -> Command:
    return await peer.call(
        11, consumerGroup=group, topic="orders", queueId=0, queueOffset=offset, maxMsgNums=32,
        sysFlag=0, commitOffset=0, suspendTimeoutMillis=0, subscription="", subVersion=0,
    )  # fmt: skip


async def read_all(peer: Peer, group: str = "g") -> list[int]:
    found: list[int] = []
    offset = 0
    while True:
        answer = await pull(peer, offset, group)
        if answer.code not in (0, 20):
            return found
        found += [int(body) for body in bodies(answer)] if answer.code == 0 else []
        offset = int(answer.ext["nextBeginOffset"])


async def send(peer: Peer, *prices: int) -> None:
    for price in prices:
        await peer.send(
            "orders", b"%d" % price, props=f"price\x01{price}\x02TAGS\x01t{price % 2}\x02"
        )


def test_what_matches_arrives(run: Run) -> None:
    """
    Messages from before the condition, from before it was saved, and by tag as well.
    """

    async def work(cluster: Cluster) -> None:
        peer = await Peer.to(cluster)
        await send(peer, 1, 20)
        await announce(peer, "price > 10")
        await send(peer, 3, 40)

        assert [20, 40] == await read_all(peer)
        by_tag = await peer.pull("orders", 0, tags="t1", group="other")
        assert [b"1", b"3"] == bodies(by_tag)

    run(work, **BITMAPS)


def test_bits_are_set_once_the_condition_is_on_disk() -> None:
    """
    They rule out what does not match; two groups do not disturb each other, a restart neither.
    """

    async def main() -> None:
        async with Cluster(memory=True, **BITMAPS) as cluster:
            peer = await Peer.to(cluster)
            await announce(peer, "price > 10")
            await announce(peer, "price < 3", group="low")
            await asyncio.sleep(SAVED_SECONDS)
            await send(peer, 1, 20, 3, 40)
            queue = cluster.broker().store.queues.get("orders", 0)
            assert queue is not None
            assert queue.ext is not None
            mark = Mark(mask_of(Bloom(20, 32).positions("g#orders")), 14, 0, 0)
            entries = queue.ext.marked(queue.read(0, 4), mark)
            assert [0, 1, 0, 1] == [code for _, _, code in ENTRY.iter_unpack(entries)]
            assert [[20, 40], [1]] == [await read_all(peer), await read_all(peer, "low")]
            peer.close()
            await cluster.stop_broker()
            await cluster.start_broker()
            peer = await Peer.to(cluster)
            await announce(peer, "price > 10", 2)
            await announce(peer, "price < 3", 2, group="low")
            await send(peer, 2, 50)

            assert [[20, 40, 50], [1, 2]] == [await read_all(peer), await read_all(peer, "low")]

    simulate(main)


def test_changing_conditions_and_crashes_lose_nothing() -> None:
    """
    Whatever happens in between, a group always gets exactly what its condition of now matches.
    """

    async def life(seed: int) -> None:
        rng = random.Random(seed)
        async with Cluster(
            memory=True, seed=seed, flush_disk_type="SYNC_FLUSH", **BITMAPS
        ) as cluster:
            sent: list[int] = []
            for version in range(1, 9):
                peer = await Peer.to(cluster)
                limit = rng.choice([10, 20, 30])
                await announce(peer, f"price > {limit}", version)
                for _ in range(rng.randint(1, 12)):
                    price = rng.randint(0, 40)
                    await send(peer, price)
                    sent.append(price)
                    await asyncio.sleep(rng.choice([0, 0, 1, 12]))

                assert [price for price in sent if price > limit] == await read_all(peer)
                end = rng.random()
                if end < 0.6:
                    await cluster.kill_broker(power_cut=end < 0.3)
                    await cluster.start_broker()
                peer.close()

    for seed in range(5):
        simulate(lambda seed=seed: life(seed))  # type: ignore[misc]
