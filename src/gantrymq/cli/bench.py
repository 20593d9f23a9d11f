"""`gantry bench`: how fast a cluster takes messages in and gives them out.

It speaks to any RocketMQ cluster, ours or not, so two can be compared by one program. The result is
one JSON line.
"""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Coroutine
from typing import Any, TypeVar

import click

from gantrymq.base.errors import GantryError
from gantrymq.cli.common.output import Row, fail, namesrv_option, print_line
from gantrymq.client.consume.push.consumer import Consumer
from gantrymq.client.core.errors import NoRoute
from gantrymq.client.core.options import ConsumerOptions
from gantrymq.client.messages.delivery import Delivery
from gantrymq.client.produce.producer import Producer
from gantrymq.model import BENCHMARK_TOPIC, Message, SendResult

SAMPLE_EVERY = 8
"""Of pipelined sends only every eighth is timed: a clock call and a callback are not free."""

T = TypeVar("T")


@click.group("bench")
def bench() -> None:
    """Measure sending or consuming; prints one JSON line."""


def _common(function: Any) -> Any:
    for option in (
        namesrv_option,
        click.option("--topic", default=BENCHMARK_TOPIC, show_default=True),
        click.option("--size", default=128, show_default=True, type=click.IntRange(1)),
        click.option("--count", default=100_000, show_default=True, type=click.IntRange(1)),
        click.option("--threads", default=64, show_default=True, type=click.IntRange(1)),
        click.option("--batch", default=1, show_default=True, type=click.IntRange(1)),
    ):
        function = option(function)
    return function


@bench.command("producer")
@_common
@click.option("--group", default="benchmark_producer", show_default=True)
@click.option("--async", "pipelined", is_flag=True, help="Send without waiting for answers.")
def producer(
    namesrv: str | None,
    topic: str,
    group: str,
    size: int,
    count: int,
    threads: int,
    batch: int,
    pipelined: bool,
) -> None:
    """Send COUNT messages of SIZE bytes, THREADS of them (or with --async thousands) at once."""
    run = Sending(namesrv, topic, group, size, count, threads, batch)
    _report(run.pipelined() if pipelined else run.waiting())


@bench.command("consumer")
@_common
@click.option("--group", default="benchmark_consumer", show_default=True)
@click.option("--async", "pipelined", is_flag=True, help="Accepted: consuming always is.")
@click.option("--idle", default=10.0, show_default=True, help="Seconds without a message to stop.")
def consumer(
    namesrv: str | None,
    topic: str,
    group: str,
    size: int,
    count: int,
    threads: int,
    batch: int,
    pipelined: bool,
    idle: float,
) -> None:
    """Consume COUNT messages, from the first one on if the group is new. SIZE has no effect."""
    _report(consume(namesrv, topic, group, count, threads, batch, idle))


def _report(work: Coroutine[Any, Any, Row]) -> None:
    try:
        row = run_fast(work)
    except GantryError as error:
        fail(error)
    print_line(row)
    if row["failed"]:
        raise SystemExit(1)


def run_fast(work: Coroutine[Any, Any, T]) -> T:
    """Run on uvloop where there is one, as the servers do."""
    factory = None
    with contextlib.suppress(ImportError):
        import uvloop

        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(work)


def figures(count: int, seconds: float, latencies_ms: list[float], failed: int) -> Row:
    """The result as it is printed."""
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


class Sending:
    """One run of a producer."""

    def __init__(
        self,
        namesrv: str | None,
        topic: str,
        group: str,
        size: int,
        count: int,
        threads: int,
        batch: int,
    ) -> None:
        self._namesrv, self._topic, self._group = namesrv, topic, group
        self._count, self._threads, self._batch = count, threads, batch
        self._body = (b"0123456789abcdef" * (size // 16 + 1))[:size]
        self._left = count
        self._stored = self._failed = 0
        self._latencies_ms: list[float] = []

    async def _ready(self, producer: Producer) -> None:
        """Find the route first: that is no part of what is measured."""
        with contextlib.suppress(NoRoute):  # the first send makes the topic
            await producer.queues(self._topic)

    def _take(self) -> int:
        """How many messages the next request carries; 0 when all are on their way."""
        taken = min(self._batch, self._left)
        self._left -= taken
        return taken

    async def waiting(self) -> Row:
        """Every sender waits for its answer before it sends again."""
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
        """As many under way as the producer's window allows."""
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


async def consume(
    namesrv: str | None, topic: str, group: str, count: int, threads: int, batch: int, idle: float
) -> Row:
    """Take messages with a handler that does nothing; latency is from birth to handler."""
    options = ConsumerOptions(
        consume_from_where="CONSUME_FROM_FIRST_OFFSET",
        consume_thread_max=threads,
        consume_batch_max=batch,
        pull_batch_size=max(32, batch),
    )
    arrived, done = asyncio.Event(), asyncio.Event()
    latencies_ms: list[float] = []
    times: list[float] = []
    seen = 0

    def take(messages: list[Delivery]) -> None:
        nonlocal seen
        now_ms = time.time() * 1000
        seen += len(messages)
        latencies_ms.extend(now_ms - message.born_ms for message in messages)
        times[1:] = [time.perf_counter()]
        if len(times) == 1:
            times.append(times[0])
        arrived.set()
        if seen >= count:
            done.set()

    async with Consumer(namesrv, group=group, options=options) as consumer:
        consumer.subscribe(topic)
        times.append(time.perf_counter())
        consumer.handler(batch=batch)(take)
        await _until(done, arrived, idle)
    return figures(seen, times[-1] - times[0], latencies_ms, max(0, count - seen))


async def _until(done: asyncio.Event, arrived: asyncio.Event, idle: float) -> None:
    """Wait for the end, or for a pause that is too long."""
    while not done.is_set():
        arrived.clear()
        try:
            async with asyncio.timeout(idle):
                await arrived.wait()
        except TimeoutError:
            return
