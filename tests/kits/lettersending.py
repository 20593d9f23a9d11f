"""Dead letters for tests: a consumer that lets messages die of causes that their bodies name."""

import asyncio

from gantrymq import Consumer, ConsumerOptions, DeadLetters, Delivery, Message, Producer
from gantrymq.testing.threaded import GantryCluster

FIRST = ConsumerOptions(consume_from_where="CONSUME_FROM_FIRST_OFFSET")


def let_die(gantry: GantryCluster, *messages: Message, group: str = "g") -> None:
    """Send messages, and consume them: a body with `ok` in it goes well, others die."""
    asyncio.run(_let_die(gantry.namesrv, messages, group))


async def _let_die(namesrv: str, messages: tuple[Message, ...], group: str) -> None:
    async with Producer(namesrv, group="test-producer") as producer:
        for each in messages:
            await producer.send(each)
    seen = asyncio.Semaphore(0)
    consumer = Consumer(namesrv, group=group, options=FIRST, max_retries=0)

    @consumer.handler
    async def handle(message: Delivery) -> None:
        seen.release()
        body = message.body
        if b"ok" in body:
            return
        if b"reason" in body:
            await message.dead(reason="nobody wants it")
        elif b"key" in body:
            raise KeyError(body.decode("utf-8", "replace"))
        else:
            raise ValueError(f"bad value: {body.decode('utf-8', 'replace')}")

    for topic in {each.topic for each in messages}:
        consumer.subscribe(topic)
    dead = sum(b"ok" not in each.body for each in messages)
    async with DeadLetters(namesrv, group=group) as letters, asyncio.timeout(30):
        before = len([each async for each in letters.all()])
        async with consumer:
            for _ in messages:
                await seen.acquire()
            while len([each async for each in letters.all()]) < before + dead:
                await asyncio.sleep(0.05)
