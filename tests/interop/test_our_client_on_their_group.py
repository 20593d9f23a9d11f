"""Our producer and consumer on a DLedger group of RocketMQ's brokers."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress

import msgspec
import pytest
from our_client import FIRST, PATIENT, PATIENT_CLIENT, eventually, story
from raft_group import MEMBERS, RaftGroup

from gantrymq import Admin, Consumer, Message, Producer
from gantrymq.client.admin.topic_admin import NotAnnounced

pytestmark = pytest.mark.timeout(200)

TOPIC, GROUP = "TheirGroupTopic", "their-group-consumer"
COUNT, BEFORE = 200, 50
PAUSE_SECONDS = 0.05
SEND_TIMEOUT_MS = 40_000
"""RocketMQ's members take about ten seconds to elect and to tell."""


@pytest.fixture(scope="module")
def group() -> Iterator[RaftGroup]:
    with RaftGroup("5.3.3") as running:
        yield running


@story
async def test_our_client_goes_on_without_their_leader(group: RaftGroup) -> None:
    """
    The leader is killed while we send and consume: no send fails, and all that was acknowledged
    is consumed, at least once.
    """
    leader = group.leader
    assert leader is not None
    await _make_topic(group)
    patient = msgspec.structs.replace(PATIENT, send_timeout_ms=SEND_TIMEOUT_MS)
    acknowledged: list[str] = []
    found: set[str] = set()

    async def send_all() -> None:
        async with Producer(group.namesrv, group="p", options=patient) as producer:
            for number in range(COUNT):
                await producer.send(Message(TOPIC, f"body-{number}"))
                acknowledged.append(f"body-{number}")
                await asyncio.sleep(PAUSE_SECONDS)

    async with Consumer(group.namesrv, group=GROUP, options=FIRST) as consumer:
        consumer.subscribe(TOPIC)
        sending = asyncio.create_task(send_all())
        while len(found) < COUNT:
            delivery = await anext(consumer)
            found.add(delivery.body.decode())
            await delivery.ack()
            if len(found) == BEFORE and leader is not None:
                group.kill(leader)
                leader = None
        await sending

    assert set(acknowledged) == found


async def _make_topic(group: RaftGroup) -> None:
    """A topic that all members have: theirs copy their tables every few seconds only."""
    async with Admin(group.namesrv, client=PATIENT_CLIENT) as admin:
        with suppress(NotAnnounced):  # on a busy machine they register it later
            await admin.create_topic(TOPIC, queues=4)
        for member in MEMBERS:
            address = group.address(member)
            await eventually(lambda at=address: admin.topic_configs(at), lambda all_: TOPIC in all_)
