"""Producers and consumers for blocking tests: send some messages, read some, run members."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from gantrymq import Consumer, Message, Producer, SendResult
from gantrymq.client.messages.delivery import Delivery

SECONDS_MAX = 20.0


def send(namesrv: str, topic: str, count: int) -> None:
    """Send so many messages."""

    async def run() -> None:
        async with Producer(namesrv, group="test-producer") as producer:
            for number in range(count):
                await producer.send(Message(topic, b"%d" % number))

    asyncio.run(run())


def send_these(namesrv: str, *messages: Message) -> list[SendResult]:
    """Send messages, one after the other."""

    async def run() -> list[SendResult]:
        async with Producer(namesrv, group="test-producer") as producer:
            return [await producer.send(each) for each in messages]

    return asyncio.run(run())


def read(namesrv: str, topic: str, group: str, count: int) -> None:
    """Let a member of a group read so many messages, from the first one on."""

    async def run() -> None:
        seen = asyncio.Semaphore(0)
        consumer = Consumer(namesrv, group=group, start="first")
        consumer.subscribe(topic)

        @consumer.handler
        async def handle(message: object) -> None:
            seen.release()

        async with consumer, asyncio.timeout(SECONDS_MAX):
            for _ in range(count):
                await seen.acquire()

    asyncio.run(run())


@contextmanager
def member(
    namesrv: str,
    group: str,
    topic: str,
    *,
    tag: str = "*",
    handle: Callable[[Delivery], None] = lambda _: None,
) -> Iterator[None]:
    """A member of a group that runs as long as the block; `handle` gets each message."""
    ready, stop = threading.Event(), threading.Event()

    async def run() -> None:
        consumer = Consumer(namesrv, group=group, start="first")
        consumer.subscribe(topic, tag)

        @consumer.handler
        async def handle_one(message: Delivery) -> None:
            handle(message)

        async with consumer:
            ready.set()
            await asyncio.to_thread(stop.wait)

    thread = threading.Thread(target=lambda: asyncio.run(run()), daemon=True)
    thread.start()
    assert ready.wait(SECONDS_MAX), f"the member of {group} did not start in time"
    try:
        yield
    finally:
        stop.set()
        thread.join(SECONDS_MAX)
