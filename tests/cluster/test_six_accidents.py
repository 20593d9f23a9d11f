"""Every cell of the first table of `docs/reliability.md`, as a story that ends with its accident.

A message counts as acknowledged if its send was answered with SEND_OK. The words of a cell say
what has to be found afterwards, and where.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from peer import Peer, bodies
from test_slaves import SLAVE, copied

from gantrymq.testing.cluster import Cluster
from gantrymq.testing.loop import simulate

PAGE = (Path(__file__).parents[2] / "docs" / "reliability.md").read_text()
TABLE = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.partition("\n\n| claim |")[0].splitlines()
    if line.startswith("| ")
]
CELLS = [
    pytest.param(accident, mode, words, id=f"{accident}, {mode}")
    for accident, *cells in TABLE[1:]
    for mode, words in zip(TABLE[0][1:], cells, strict=True)
]
MODES: dict[str, dict[str, Any]] = {
    "ASYNC_FLUSH": {},
    "SYNC_FLUSH": {"flush_disk_type": "SYNC_FLUSH"},
    "ASYNC_MASTER and a slave": {"slaves": 1},
    "SYNC_MASTER and a slave in sync": {"slaves": 1, "broker_role": "SYNC_MASTER"},
    "raft group of three": {"members": 3},
}
COUNT, PAUSE_SECONDS = 300, 0.1
UNFLUSHED_SECONDS_MAX = 10.5
"""flushCommitLogThoroughInterval, and a round of the loop that looks at it."""
SEEDS = range(4)


class Outcome(NamedTuple):
    """What a story ended with."""

    acknowledged: dict[str, float]
    """When each was answered, in seconds before the accident."""
    found: list[str]


async def clean_stop(cluster: Cluster, name: str) -> None:
    await cluster.stop_broker(name)
    await cluster.start_broker(name)


async def process_crash(cluster: Cluster, name: str) -> None:
    await cluster.kill_broker(name)
    await cluster.start_broker(name)


async def power_cut(cluster: Cluster, name: str) -> None:
    """The same for a crash of the operating system: what was not synced is lost."""
    await cluster.kill_broker(name, power_cut=True)
    await cluster.start_broker(name)


async def machine_lost(cluster: Cluster, name: str) -> None:
    await cluster.kill_broker(name)
    cluster.empty_disk(name)


async def disk_lost(cluster: Cluster, name: str) -> None:
    """The machine comes back with an empty disk; its slave does not follow it into that."""
    await machine_lost(cluster, name)
    await cluster.start_broker(name)
    await asyncio.sleep(60)


ACCIDENTS: dict[str, Callable[[Cluster, str], Awaitable[None]]] = {
    "clean stop": clean_stop,
    "process crash (`kill -9`)": process_crash,
    "crash of the operating system": power_cut,
    "power cut": power_cut,
    "the machine is lost": machine_lost,
    "the disk is lost": disk_lost,
}


def happens(accident: str, mode: str, seed: int, *, on_slave: bool) -> Outcome:
    """Send for half a minute, let the accident happen, and read what is left."""

    async def story() -> Outcome:
        async with Cluster(memory=True, seed=seed, **MODES[mode]) as cluster:
            loop = asyncio.get_running_loop()
            master = await cluster.wait_for_leader() if "members" in MODES[mode] else "broker-a"
            await cluster.create_topic("orders", queues=1)
            peer = await Peer.at(cluster, master)
            await peer.send("orders", b"first")
            if "slaves" in MODES[mode]:
                await copied(cluster)
                await asyncio.sleep(10)
            answered: dict[str, float] = {}
            for number in range(COUNT):
                if (await peer.send("orders", str(number).encode())).code == 0:
                    answered[str(number)] = loop.time()
                await asyncio.sleep(PAUSE_SECONDS if number < COUNT - 1 else 0)
            end = loop.time()
            await ACCIDENTS[accident](cluster, master)
            acknowledged = {body: end - at for body, at in answered.items()}
            reader = SLAVE if on_slave else master
            if "members" in MODES[mode]:
                reader = await cluster.wait_for_leader()
            return Outcome(acknowledged, await stored(cluster, reader))

    return simulate(story)


async def stored(cluster: Cluster, name: str) -> list[str]:
    """The bodies that a broker has; nothing if it is gone."""
    if name not in cluster.running:
        return []
    reader = await Peer.at(cluster, name)
    found: list[bytes] = []
    while (answer := await reader.pull("orders", len(found), count=COUNT)).code == 0:
        found += bodies(answer)
    return [body.decode() for body in found if body != b"first"]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("accident", "mode", "words"), CELLS)
def test_the_table_says_what_is_kept(accident: str, mode: str, words: str, seed: int) -> None:
    """What the page promises for this accident in this mode is found, and nothing else is."""
    acknowledged, found = happens(accident, mode, seed, on_slave="slave" in words)
    missing = acknowledged.keys() - set(found)

    assert len(acknowledged) == COUNT
    assert found == sorted(set(found), key=int)
    if words in ("all", "all, on the slave"):
        assert missing == set()
    elif words == "all but the unflushed tail":
        assert all(acknowledged[body] < UNFLUSHED_SECONDS_MAX for body in missing)
    elif words == "all but the last moment, on the slave":
        assert len(missing) < 0.01 * COUNT
    else:
        assert words == "nothing"
        assert found == []


def test_a_power_cut_really_takes_something() -> None:
    """Otherwise the table would say too little of ASYNC_FLUSH, and the test above nothing."""
    losses = [
        COUNT - len(happens("power cut", "ASYNC_FLUSH", seed, on_slave=False).found)
        for seed in SEEDS
    ]

    assert max(losses) > 0


def test_the_table_has_six_accidents_and_every_mode() -> None:
    """None was left out."""
    assert list(ACCIDENTS) == [row[0] for row in TABLE[1:]]
    assert list(MODES) == TABLE[0][1:]
