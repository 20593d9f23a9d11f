"""What the tests of our own client share: stories with an end, and questions asked until true."""

import asyncio
import functools
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import Any, ParamSpec, TypeVar

from clients import JavaClient, Lines

from gantrymq import (
    Admin,
    Consumer,
    ConsumerOptions,
    Delivery,
    Message,
    Producer,
    ProducerOptions,
    PullConsumer,
    Queue,
    Received,
)

STORY_SECONDS_MAX = 90
LOOK_AGAIN_SECONDS = 0.05
SILENCE_SECONDS = 1.5
PULL_COUNT_MAX = 32

FIRST = ConsumerOptions(consume_from_where="CONSUME_FROM_FIRST_OFFSET")
# A JVM that has just started is slow on its first requests.
PATIENT = ProducerOptions(send_timeout_ms=10_000)

P = ParamSpec("P")
T = TypeVar("T")


def story(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """An asynchronous test, run to its end on a loop of its own and bounded in time."""

    async def bounded(*args: P.args, **kwargs: P.kwargs) -> None:
        async with asyncio.timeout(STORY_SECONDS_MAX):
            await test(*args, **kwargs)

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(bounded(*args, **kwargs))

    return run


async def java_run(java: JavaClient, verb: str, **arguments: Any) -> Lines:
    """A verb of a real client while our own clients go on beside it."""
    return await asyncio.to_thread(java.run, verb, **arguments)


async def eventually(ask: Callable[[], Awaitable[T]], wanted: Callable[[T], bool]) -> T:
    """Ask a server again until the answer is as wanted; the story's end bounds the wait."""
    while not wanted(answer := await ask()):
        await asyncio.sleep(LOOK_AGAIN_SECONDS)
    return answer


async def create_topic(namesrv: str, topic: str, queues: int = 4) -> None:
    async with Admin(namesrv) as admin:
        await admin.create_topic(topic, queues=queues)


async def send(namesrv: str, *messages: Message) -> None:
    """One after the other, so that each queue has them in this order."""
    async with Producer(namesrv, group="our_producer", options=PATIENT) as producer:
        for message in messages:
            await producer.send(message)


async def send_bodies(namesrv: str, topic: str, *bodies: str) -> None:
    await send(namesrv, *(Message(topic, body) for body in bodies))


async def take(consumer: Consumer, count: int) -> list[Delivery]:
    """So many messages, not finished yet."""
    return [await anext(consumer) for _ in range(count)]


async def take_and_ack(consumer: Consumer, count: int) -> list[Delivery]:
    messages = await take(consumer, count)
    for message in messages:
        await message.ack()
    return messages


async def nothing_more(consumer: Consumer, seconds: float = SILENCE_SECONDS) -> bool:
    """Whether no further message comes for a while."""
    try:
        async with asyncio.timeout(seconds):
            await anext(consumer)
    except TimeoutError:
        return True
    return False


async def read_queue(consumer: PullConsumer, queue: Queue) -> list[Received]:
    """Everything a queue holds, by pulling from its first offset to its last."""
    found: list[Received] = []
    offset, end = await consumer.min_offset(queue), await consumer.max_offset(queue)
    while offset < end:
        pulled = await consumer.pull(queue, offset, max_count=PULL_COUNT_MAX)
        found += pulled.messages
        offset = pulled.next_offset
    return found


async def read_topic(namesrv: str, topic: str) -> list[Received]:
    """Everything a topic holds, queue by queue."""
    async with PullConsumer(namesrv, group="our_reader") as consumer:
        queues = await consumer.queues(topic)
        return [message for queue in queues for message in await read_queue(consumer, queue)]


def texts(messages: Iterable[Received]) -> list[str]:
    return [message.body.decode() for message in messages]


def by_key(messages: Iterable[Received]) -> dict[str, list[str]]:
    """Bodies as they came, for each key."""
    found: dict[str, list[str]] = defaultdict(list)
    for message in messages:
        found[message.keys[0]].append(message.body.decode())
    return dict(found)


def offsets_by_queue(messages: Sequence[Received]) -> dict[Queue, list[int]]:
    found: dict[Queue, list[int]] = defaultdict(list)
    for message in messages:
        found[message.queue].append(message.offset)
    return dict(found)
