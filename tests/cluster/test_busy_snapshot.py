"""`gantry store snapshot` of a broker at work, and a broker on what it made."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from sparkkit import BROKER, Processes

from gantrymq import Admin, Consumer, Message, Producer

GANTRY = Path(sys.executable).with_name("gantry")
TOPIC, GROUP = "snapped", "readers"
BEFORE, READ, IN_FLIGHT = 300, 50, 32


def gantry(*words: Any) -> Any:
    done = subprocess.run(
        [GANTRY, "store", *map(str, words), "-o", "json"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert 0 == done.returncode, done.stderr
    return json.loads(done.stdout)


async def snapshot_under_load(namesrv: str, store: Path, target: Path) -> set[str]:
    """Send all the time and take a snapshot; returns what was acknowledged before it began."""
    acked: set[str] = set()
    enough, stop = asyncio.Event(), asyncio.Event()

    async def send(producer: Producer, name: int) -> None:
        number = 0
        while not stop.is_set():
            body = f"{name}:{number}" + "." * 2000
            await producer.send(Message(TOPIC, body, keys=[f"k{name}-{number}"]))
            acked.add(body)
            number += 1
            if len(acked) >= BEFORE:
                enough.set()

    async with Producer(namesrv, group="p") as producer, asyncio.TaskGroup() as tasks:
        for name in range(IN_FLIGHT):
            tasks.create_task(send(producer, name))
        await enough.wait()
        await read_some(namesrv)
        before = set(acked)
        await asyncio.to_thread(gantry, "snapshot", store, target)
        stop.set()
    assert acked > before
    return before


async def read_some(namesrv: str) -> None:
    """Let a group read a part of it, and save how far it is."""
    async with Consumer(namesrv, group=GROUP, start="first") as consumer:
        consumer.subscribe(TOPIC)
        count = 0
        async for each in consumer:
            await each.ack()
            count += 1
            if count == READ:
                break


async def read_all(namesrv: str, count_min: int) -> set[str]:
    found: set[str] = set()
    async with Consumer(namesrv, group="all", start="first") as consumer:
        consumer.subscribe(TOPIC)
        async with asyncio.timeout(30):
            async for each in consumer:
                found.add(each.body.decode())
                await each.ack()
                if len(found) >= count_min:
                    break
    return found


async def check_progress(namesrv: str) -> int:
    """No group is beyond the end of a queue; returns how many messages the topic has."""
    async with Admin(namesrv) as admin:
        stats = await admin.topic_stats(TOPIC)
        read = (await admin.consume_stats(GROUP, TOPIC)).queues.values()
    assert all(0 <= row.consumer_offset <= row.broker_offset for row in read)
    return sum(each.max_offset - each.min_offset for each in stats.values())


def test_a_snapshot_of_a_busy_broker_has_all_that_was_acknowledged(tmp_path: Path) -> None:
    """Another broker starts on it, with every message, and no group is ahead of its queues."""
    source = Processes(tmp_path / "a")
    try:
        source.create_topic(TOPIC, 4)
        before = asyncio.run(snapshot_under_load(source.namesrv, source.store, tmp_path / "taken"))
    finally:
        source.close()
    restored = tmp_path / "b" / BROKER / "store"
    gantry("restore", tmp_path / "taken", restored)
    other = Processes(tmp_path / "b")
    try:
        count = asyncio.run(check_progress(other.namesrv))
        found = asyncio.run(read_all(other.namesrv, count))
    finally:
        other.close()

    assert len(before) >= BEFORE
    assert before <= found
    assert (
        []
        == json.loads(
            subprocess.run(
                [GANTRY, "store", "verify", restored, "-o", "json"], capture_output=True, check=True
            ).stdout
        )["findings"]
    )
