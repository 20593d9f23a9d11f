"""Load on a cluster, and how fast the cluster takes it: what `gantry bench` measures."""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from gantrymq.base.errors import GantryError
from gantrymq.cli.common.output import Row
from gantrymq.client.consume.push.consumer import Consumer
from gantrymq.client.core.errors import NoRoute
from gantrymq.client.core.options import ConsumerOptions
from gantrymq.client.messages.delivery import Delivery
from gantrymq.client.produce.producer import Producer
from gantrymq.model import Message, SendResult

SAMPLE_EVERY = 8
"""Of pipelined sends only every eighth is timed: a clock call and a callback are not free."""

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Load:
    """How much is sent or consumed."""

    namesrv: str | None
    topic: str
    group: str
    count: int
    size: int = 128
    """Bytes of a body."""
    threads: int = 64
    """Senders or handlers at once."""
    batch: int = 1
    """Messages of one request, or of one call of the handler."""


def run_fast(work: Coroutine[Any, Any, T]) -> T:
    """Run on uvloop if it is installed, as the servers do."""
    factory = None
    with contextlib.suppress(ImportError):
        import uvloop

        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(work)


def figures(count: int, seconds: float, latencies_ms: list[float], failed: int) -> Row:
    """The measurement as the commands print it."""
    ordered = sorted(latencies_ms)

    def percentile(share: float) -> float | None:
        return round(ordered[int(share * (len(ordered) - 1))], 3) if ordered else None

    return {
        "tps": round(count / seconds, 1) if seconds > 0 else 0.0,
        "p50_ms": percentile(0.5),
        "p99_ms": percentile(0.99),
        "p999_ms": percentile(0.999),
        "failed": failed,
        "count": count,
        "seconds": round(seconds, 3),
    }


class SendLoad:
    """Sends the messages of one run and measures how long each takes."""

    def __init__(self, load: Load) -> None:
        self._namesrv, self._topic, self._group = load.namesrv, load.topic, load.group
        self._count, self._threads, self._batch = load.count, load.threads, load.batch
        self._body = (b"0123456789abcdef" * (load.size // 16 + 1))[: load.size]
        self._left = load.count
        self._stored = self._failed = 0
        self._latencies_ms: list[float] = []

    async def _ready(self, producer: Producer) -> None:
        """Look the route up before the clock starts: it is not part of the measurement."""
        with contextlib.suppress(NoRoute):  # the first send makes the topic
            await producer.queues(self._topic)

    def _take(self) -> int:
        """Count out the messages of the next request; 0 when all have been sent."""
        taken = min(self._batch, self._left)
        self._left -= taken
        return taken

    async def waiting(self) -> Row:
        """Send with `threads` senders; each waits for its answer before it sends again."""
        async with Producer(self._namesrv, group=self._group) as producer:
            await self._ready(producer)
            began = time.perf_counter()
            await asyncio.gather(*(self._sender(producer) for _ in range(self._threads)))
            return self._row(time.perf_counter() - began)

    async def _sender(self, producer: Producer) -> None:
        while taken := self._take():
            began = time.perf_counter()
            try:
                if self._batch > 1:
                    await producer.send_batch([self._message() for _ in range(taken)])
                else:
                    await producer.send(self._message())
            except GantryError:
                self._failed += taken
            else:
                self._stored += taken
            self._latencies_ms.append((time.perf_counter() - began) * 1000)

    def _message(self) -> Message:
        return Message(self._topic, self._body)

    async def pipelined(self) -> Row:
        """Send without waiting for answers, as many at once as the producer's window allows."""
        async with Producer(self._namesrv, group=self._group) as producer:
            await self._ready(producer)
            began = time.perf_counter()
            if self._batch > 1:
                await asyncio.gather(*(self._sender(producer) for _ in range(self._threads)))
            else:
                await self._submit_all(producer)
            return self._row(time.perf_counter() - began)

    async def _submit_all(self, producer: Producer) -> None:
        under_way: deque[asyncio.Future[SendResult]] = deque()
        for number in range(self._count):
            await producer.room()
            future = producer.submit(self._message())
            if number % SAMPLE_EVERY == 0:
                self._time(future)
            under_way.append(future)
            while under_way and under_way[0].done():
                self._settle(under_way.popleft())
        await producer.flush()
        for future in under_way:
            self._settle(future)

    def _time(self, future: asyncio.Future[SendResult]) -> None:
        began, take = time.perf_counter(), self._latencies_ms.append
        future.add_done_callback(lambda _: take((time.perf_counter() - began) * 1000))

    def _settle(self, future: asyncio.Future[SendResult]) -> None:
        if future.exception() is None:
            self._stored += 1
        else:
            self._failed += 1

    def _row(self, seconds: float) -> Row:
        return figures(self._stored, seconds, self._latencies_ms, self._failed)


async def consume(load: Load, idle: float) -> Row:
    """Consume with a handler that does nothing; latency is from born time to handler."""
    options = ConsumerOptions(
        consume_from_where="CONSUME_FROM_FIRST_OFFSET",
        consume_thread_max=load.threads,
        consume_batch_max=load.batch,
        pull_batch_size=max(32, load.batch),
    )
    arrived, done = asyncio.Event(), asyncio.Event()
    latencies_ms: list[float] = []
    times: list[float] = []
    seen = 0

    def take(messages: list[Delivery]) -> None:
        nonlocal seen
        if done.is_set():  # what is handled until the consumer has closed
            return
        now_ms = time.time() * 1000
        seen += len(messages)
        latencies_ms.extend(now_ms - message.born_ms for message in messages)
        times[1:] = [time.perf_counter()]
        if len(times) == 1:
            times.append(times[0])
        arrived.set()
        if seen >= load.count:
            done.set()

    async with Consumer(load.namesrv, group=load.group, options=options) as consumer:
        consumer.subscribe(load.topic)
        times.append(time.perf_counter())
        consumer.handler(batch=load.batch)(take)
        await _until(done, arrived, idle)
    return figures(seen, times[-1] - times[0], latencies_ms, max(0, load.count - seen))


async def _until(done: asyncio.Event, arrived: asyncio.Event, idle: float) -> None:
    """Wait until all messages came, or none for `idle` seconds."""
    while not done.is_set():
        arrived.clear()
        try:
            async with asyncio.timeout(idle):
                await arrived.wait()
        except TimeoutError:
            return
