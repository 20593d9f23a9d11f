"""What the tests of our own client share: a scene to play in, and stories that have an end."""

import asyncio
import functools
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, ParamSpec, TypeVar

import msgspec
import pytest
from clients import JAVA_CLIENTS, Client, GoClient, JavaClient, Line, Lines, NodeClient, Running
from clusters import AGAINST, OURS, REAL

from gantrymq import (
    Admin,
    ClientOptions,
    Consumer,
    ConsumerOptions,
    Delivery,
    LitePullConsumer,
    Message,
    Producer,
    ProducerOptions,
    PullConsumer,
    Queue,
    Received,
    SimpleConsumer,
)
from gantrymq.model import retry_topic

STORY_SECONDS_MAX = 60
LONG_STORY_SECONDS_MAX = 150
LOOK_AGAIN_SECONDS = 0.05
SILENCE_SECONDS = 1.5
SECOND_LATER = 1
"""The delay level of one second."""

OLD_JAVA, NEW_JAVA = JAVA_CLIENTS

on_real_servers = pytest.mark.parametrize("where", REAL)
"""Our client on RocketMQ's servers only: on ours it has a suite of its own."""

on_servers_of_5 = pytest.mark.parametrize("where", [OURS, "5.3.3"])
"""Servers that have what came with RocketMQ 5."""

at_home = pytest.mark.parametrize("where", [AGAINST])
"""Where our client is only the other end of a foreign one that is being tried."""

GO, NODE = GoClient(), NodeClient()
JAVA_PARTNERS = [
    pytest.param(where, java, id=f"{where}-{java}")
    for where, java in [
        (OURS, OLD_JAVA),
        (OURS, NEW_JAVA),
        ("4.9.7", OLD_JAVA),
        ("5.3.3", NEW_JAVA),
    ]
]
with_java = pytest.mark.parametrize("where, java", JAVA_PARTNERS)
"""Java's clients beside ours: both on our servers, and each on those of its release."""

with_partners = pytest.mark.parametrize(
    "where, partner", [*JAVA_PARTNERS, pytest.param(OURS, GO, id=f"{OURS}-{GO}")]
)
"""The same, and Go's on our servers."""

FIRST = ConsumerOptions(consume_from_where="CONSUME_FROM_FIRST_OFFSET")
# A JVM that has just started is slow on its first requests.
PATIENT = ProducerOptions(send_timeout_ms=10_000)
PATIENT_CLIENT = ClientOptions(call_timeout_ms=10_000)

P = ParamSpec("P")
T = TypeVar("T")


def story(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """An asynchronous test, run to its end on a loop of its own and bounded in time."""
    return bounded(test, STORY_SECONDS_MAX)


def long_story(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """The same for a test that waits for the slow turns of foreign clients."""
    return bounded(test, LONG_STORY_SECONDS_MAX)


def bounded(test: Callable[P, Coroutine[Any, Any, None]], seconds: float) -> Callable[P, None]:
    async def in_time(*args: P.args, **kwargs: P.kwargs) -> None:
        async with asyncio.timeout(seconds):
            await test(*args, **kwargs)

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(in_time(*args, **kwargs))

    return run


async def eventually(ask: Callable[[], Awaitable[T]], wanted: Callable[[T], bool]) -> T:
    """Ask a server again until the answer is as wanted; the story's end bounds the wait."""
    while not wanted(answer := await ask()):
        await asyncio.sleep(LOOK_AGAIN_SECONDS)
    return answer


@dataclass(frozen=True)
class Scene:
    """A running cluster with a topic and a group of our own, and clients that know all three."""

    namesrv: str
    broker: str
    topic: str
    group: str
    client: ClientOptions = PATIENT_CLIENT

    # clients

    def admin(self) -> Admin:
        return Admin(self.namesrv, client=self.client)

    @property
    def producer_group(self) -> str:
        return f"{self.group}_producer"

    def producer(self, options: ProducerOptions = PATIENT, **how: Any) -> Producer:
        return Producer(
            self.namesrv, group=self.producer_group, options=options, client=self.client, **how
        )

    def consumer(self, *, offset_dir: str | None = None, **how: Any) -> Consumer:
        options = msgspec.structs.replace(FIRST, offset_dir=offset_dir)
        return Consumer(self.namesrv, group=self.group, options=options, client=self.client, **how)

    def reader(self) -> PullConsumer:
        return PullConsumer(self.namesrv, group=self.group, client=self.client)

    def lite(self) -> LitePullConsumer:
        return LitePullConsumer(self.namesrv, group=self.group, client=self.client)

    def borrower(self, invisible: float = 60.0) -> SimpleConsumer:
        return SimpleConsumer(
            self.namesrv,
            group=self.group,
            invisible=invisible,
            from_first=True,
            client=self.client,
        )

    async def java(self, client: Client, verb: str, **more: Any) -> Lines:
        """A verb of a real client, while our own clients go on beside it."""
        return await asyncio.to_thread(client.run, verb, **self._arguments(more))

    @asynccontextmanager
    async def beside(self, client: Client, verb: str, **more: Any) -> AsyncIterator["Beside"]:
        """A verb under way in a process of its own, as a member of a group would be."""
        running = client.start(verb, **self._arguments(more))
        try:
            yield Beside(running)
        except BaseException as error:
            await asyncio.to_thread(running.__exit__, type(error), error, None)
            raise
        await asyncio.to_thread(running.__exit__, None, None, None)

    async def mqadmin(self, client: JavaClient, *words: str) -> str:
        """What RocketMQ's own command line prints."""
        printed = (await self.java(client, "mqadmin", words=words)).value
        assert "Exception" not in printed, printed
        return str(printed)

    def _arguments(self, more: dict[str, Any]) -> dict[str, Any]:
        return {
            "namesrv": self.namesrv,
            "topic": self.topic,
            "group": self.group,
            "producer": self.producer_group,
            **more,
        }

    # deeds

    def queue(self, queue_id: int) -> Queue:
        return Queue(self.topic, "broker-a", queue_id)

    def message(self, body: str, tags: str | None = None, **more: Any) -> Message:
        return Message(self.topic, body, tags, **more)

    async def create_topic(self, queues: int = 4) -> None:
        async with self.admin() as admin:
            await admin.create_topic(self.topic, queues=queues)

    async def introduce_group(self) -> None:
        """Let the broker make what a new group needs.

        Foreign members that come first look for their retry topic again only 20 s later.
        """
        async with self.admin() as admin, self.consumer() as consumer:
            consumer.subscribe(self.topic)
            retries = retry_topic(self.group)
            await eventually(admin.topics, lambda topics: retries in topics)

    async def all_read(self, group: str | None = None) -> None:
        """Until the broker knows that a group has read everything."""
        async with self.admin() as admin:
            await eventually(
                lambda: admin.consume_stats(group or self.group, self.topic),
                lambda stats: bool(stats.queues) and stats.lag == 0,
            )

    async def send(self, *messages: Message | str) -> None:
        """One after the other, so that each queue has them in this order."""
        async with self.producer() as producer:
            for message in messages:
                await producer.send(self.message(message) if isinstance(message, str) else message)

    async def stored(self, count: int, topic: str | None = None) -> list[Received]:
        """All messages of a topic, queue by queue, once there are so many.

        A broker lists a topic that it made by itself, and a message that it stored, a moment later.
        """
        topic = topic or self.topic
        onlooker = replace(self, group=f"{self.group}_onlooker")
        async with self.admin() as admin, onlooker.reader() as reader:
            await eventually(admin.topics, lambda topics: topic in topics)
            queues = await reader.queues(topic)

            async def read_all() -> list[Received]:
                return [message for q in queues for message in await read_queue(reader, q)]

            return await eventually(read_all, lambda messages: len(messages) >= count)


class Beside:
    """A running verb of a foreign client, waited for without holding up our own."""

    def __init__(self, running: Running) -> None:
        self._running = running

    async def until(self, event: str) -> Line:
        """Its next line of this kind."""
        return await asyncio.to_thread(self._running.until, event)

    async def finish(self) -> Lines:
        """All its lines, once it has ended by itself."""
        return await asyncio.to_thread(self._running.finish)


async def read_queue(reader: PullConsumer, queue: Queue, **chosen: str) -> list[Received]:
    """All of a queue, or what is chosen, by pulling from its first offset to its last."""
    found: list[Received] = []
    offset, end = await reader.min_offset(queue), await reader.max_offset(queue)
    while offset < end:
        pulled = await reader.pull(queue, offset, **chosen)
        found += pulled.messages
        offset = pulled.next_offset
    return found


async def take(consumer: Consumer, count: int) -> list[Delivery]:
    """So many messages, not finished yet."""
    return [await anext(consumer) for _ in range(count)]


async def take_and_ack(consumer: Consumer, count: int) -> list[Delivery]:
    messages = await take(consumer, count)
    for message in messages:
        await message.ack()
    return messages


async def nothing_more(consumer: Consumer) -> bool:
    """Whether no further message comes for a while."""
    try:
        async with asyncio.timeout(SILENCE_SECONDS):
            await anext(consumer)
    except TimeoutError:
        return True
    return False


def texts(messages: Iterable[Received]) -> list[str]:
    return [message.body.decode() for message in messages]


def by_key(messages: Iterable[Received]) -> dict[str, list[str]]:
    """Bodies as they came, for each key."""
    found: dict[str, list[str]] = defaultdict(list)
    for message in messages:
        found[message.keys[0]].append(message.body.decode())
    return dict(found)


def offsets_by_queue(messages: Iterable[Received]) -> dict[Queue, list[int]]:
    found: dict[Queue, list[int]] = defaultdict(list)
    for message in messages:
        found[message.queue].append(message.offset)
    return dict(found)
