"""Ordered members of different kinds in one group."""

import asyncio
from contextlib import AsyncExitStack

import pytest
from clients import Client
from expect import by_shard
from our_client import GO, PATIENT, Scene, story, with_partners

from gantrymq import Consumer, Delivery

pytestmark = pytest.mark.timeout(240)

SHARDS = range(4)
WAVE = 10


async def send_wave(scene: Scene, wave: int) -> None:
    """The next messages of every shard, each shard in a queue of its own."""
    async with scene.producer(PATIENT) as producer:
        for n in range(wave * WAVE, (wave + 1) * WAVE):
            for shard in SHARDS:
                await producer.send(scene.message(f"m-{shard}-{n}"), queue=scene.queue(shard))


async def halved(consumer: Consumer) -> None:
    """Until our member has half of the queues."""
    while len(consumer.assignment) != len(SHARDS) // 2:
        await asyncio.sleep(0.05)


@with_partners
@story
async def test_members_of_two_kinds_keep_the_order(scene: Scene, partner: Client) -> None:
    """Each works on its own queues, in order; who leaves hands them over, and the other goes on.

    The first wave is shared out, the second all ours: in no shard is anything lost or overtaken.
    """
    await scene.create_topic(queues=len(SHARDS))
    half = WAVE * len(SHARDS) // 2
    ours: list[Delivery] = []
    # It lingers, because it counts a message before the client has noted it as consumed.
    member = scene.beside(partner, "consume-orderly", expected=half, timeout=55, lingerMs=1000)
    consumer = scene.consumer(ordered=True)

    @consumer.handler
    async def note(message: Delivery) -> None:
        ours.append(message)

    async with AsyncExitStack() as stack:
        if partner is GO:
            # It gives no lock back before it leaves, so it has to come second.
            await stack.enter_async_context(consumer)
            consumer.subscribe(scene.topic)
            await consumer.wait_assigned(len(SHARDS))
        other = await stack.enter_async_context(member)
        await other.until("ready")
        if partner is not GO:
            await stack.enter_async_context(consumer)
            consumer.subscribe(scene.topic)
        await halved(consumer)
        await send_wave(scene, 0)
        theirs = (await other.finish()).messages
        await consumer.wait_assigned(len(SHARDS))
        await send_wave(scene, 1)
        while len(ours) < half + WAVE * len(SHARDS):
            await asyncio.sleep(0.05)

    lines = [{"body": message.body.decode()} for message in ours]
    assert by_shard([*theirs, *lines]) == {str(shard): list(range(2 * WAVE)) for shard in SHARDS}
    assert len({line["queueId"] for line in theirs}) == 2


@with_partners
@story
async def test_a_foreign_failure_holds_its_queue_and_no_other(
    scene: Scene, partner: Client
) -> None:
    """The message is tried again in place, before anything behind it."""
    await scene.create_topic(queues=2)
    async with scene.producer(PATIENT) as producer:
        for n in range(3):
            for shard in range(2):
                await producer.send(scene.message(f"m-{shard}-{n}"), queue=scene.queue(shard))
    got = await scene.java(partner, "consume-orderly", expected=6, failures=1)

    assert by_shard(got.messages) == {"0": [0, 1, 2], "1": [0, 1, 2]}
    assert by_shard(got.of("failed")) == {"0": [0, 1, 2], "1": [0, 1, 2]}
