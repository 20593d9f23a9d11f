"""What the tests of our own client share: a scene to play in, and stories that have an end.

A plugin of the test modules that name it, so that they share one real cluster a release; they
import it first, and it has nothing for pytest to rewrite (PYTEST_DONT_REWRITE).
"""

import asyncio
import functools
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

import msgspec
import pytest
import toolchain
from clients import JAVA_CLIENTS, JavaClient, Lines
from real import RealCluster

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
)

STORY_SECONDS_MAX = 60
LOOK_AGAIN_SECONDS = 0.05
SILENCE_SECONDS = 1.5
SECOND_LATER = 1
"""The delay level of one second."""

OLD_JAVA = JAVA_CLIENTS[0]

FIRST = ConsumerOptions(consume_from_where="CONSUME_FROM_FIRST_OFFSET")
# A JVM that has just started is slow on its first requests.
PATIENT = ProducerOptions(send_timeout_ms=10_000)
PATIENT_CLIENT = ClientOptions(call_timeout_ms=10_000)

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

    def producer(self, options: ProducerOptions = PATIENT) -> Producer:
        group = f"{self.group}_producer"
        return Producer(self.namesrv, group=group, options=options, client=self.client)

    def consumer(self, *, offset_dir: str | None = None, **how: Any) -> Consumer:
        options = msgspec.structs.replace(FIRST, offset_dir=offset_dir)
        return Consumer(self.namesrv, group=self.group, options=options, client=self.client, **how)

    def reader(self) -> PullConsumer:
        return PullConsumer(self.namesrv, group=self.group, client=self.client)

    def lite(self) -> LitePullConsumer:
        return LitePullConsumer(self.namesrv, group=self.group, client=self.client)

    async def java(self, client: JavaClient, verb: str, **more: Any) -> Lines:
        """A verb of a real client, while our own clients go on beside it."""
        arguments = {"namesrv": self.namesrv, "topic": self.topic, "group": self.group, **more}
        return await asyncio.to_thread(client.run, verb, **arguments)

    # deeds

    def queue(self, queue_id: int) -> Queue:
        return Queue(self.topic, "broker-a", queue_id)

    def message(self, body: str, tags: str | None = None, **more: Any) -> Message:
        return Message(self.topic, body, tags, **more)

    async def create_topic(self, queues: int = 4) -> None:
        async with self.admin() as admin:
            await admin.create_topic(self.topic, queues=queues)

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
        async with self.admin() as admin, self.reader() as reader:
            await eventually(admin.topics, lambda topics: topic in topics)
            queues = await reader.queues(topic)

            async def read_all() -> list[Received]:
                return [message for q in queues for message in await read_queue(reader, q)]

            return await eventually(read_all, lambda messages: len(messages) >= count)


@pytest.fixture(scope="session", params=list(toolchain.JAVA_SERVERS))
def real_cluster(programs: None, request: pytest.FixtureRequest) -> Iterator[RealCluster]:
    """One real cluster a release."""
    # RocketMQ 5.3.3 cannot delete topics without its timer.
    with RealCluster(request.param, settings={"timerWheelEnable": "true"}) as servers:
        yield servers


@pytest.fixture
def scene(real_cluster: RealCluster, topic: str, group: str) -> Scene:
    """The cluster, and names that no other test uses."""
    return Scene(real_cluster.namesrv, real_cluster.broker_addr, topic, group)


async def read_queue(reader: PullConsumer, queue: Queue) -> list[Received]:
    """Everything a queue holds, by pulling from its first offset to its last."""
    found: list[Received] = []
    offset, end = await reader.min_offset(queue), await reader.max_offset(queue)
    while offset < end:
        pulled = await reader.pull(queue, offset)
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
