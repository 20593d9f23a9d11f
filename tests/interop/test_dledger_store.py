"""A raft group of RocketMQ ends, and a broker of ours goes on with what its leader had."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from raft_group import GROUP, RaftGroup
from real import OurServers

from gantrymq import Admin, Consumer, Message, Producer
from gantrymq.base.network import free_port
from gantrymq.broker.settings.config import OTHER_PORTS
from gantrymq.cli.main import main

pytestmark = pytest.mark.timeout(300)
TOPIC, READERS, COUNT, READ = "Taken", "readers", 200, 40


@pytest.fixture
def group() -> Iterator[RaftGroup]:
    """A group of the newest release."""
    with RaftGroup("5.3.3") as running:
        yield running


async def write(namesrv: str) -> None:
    async with Admin(namesrv) as admin:
        await admin.create_topic(TOPIC, queues=4)
    async with Producer(namesrv, group="p") as producer:
        for number in range(COUNT):
            await producer.send(Message(TOPIC, f"{number}", keys=[f"k{number}"]))


async def read(namesrv: str, group: str, count: int) -> set[str]:
    found: set[str] = set()
    async with Consumer(namesrv, group=group, start="first") as consumer:
        consumer.subscribe(TOPIC)
        async with asyncio.timeout(60):
            async for each in consumer:
                found.add(each.body.decode())
                await each.ack()
                if len(found) >= count:
                    return found
    raise AssertionError("the consumer ended")


def test_a_java_raft_groups_store_becomes_one_of_ours(group: RaftGroup, tmp_path: Path) -> None:
    """All messages are there, and what a group had read is not lost."""
    asyncio.run(write(group.namesrv))
    asyncio.run(read(group.namesrv, READERS, READ))
    leader = group.leader
    assert leader is not None
    for member in ("n0", "n1", "n2"):
        group.kill(member)
    target = tmp_path / "store"

    source = group.store(leader)
    for words in (["verify", source], ["migrate", source, target, "--all"], ["verify", target]):
        done = CliRunner().invoke(main, ["store", *map(str, words), "-o", "json"])
        assert 0 == done.exit_code, done.output
    assert [] == json.loads(done.stdout)["findings"]
    port = free_port("127.0.0.1", OTHER_PORTS)
    with OurServers(store=target, broker_port=port, settings={"brokerName": GROUP}) as ours:
        found = asyncio.run(read(ours.namesrv, "others", COUNT))
        left = asyncio.run(read(ours.namesrv, READERS, COUNT - READ))

    assert {f"{number}" for number in range(COUNT)} == found >= left
