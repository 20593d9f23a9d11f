"""Sends at a steady rate, consumes what is sent, and says how long messages were under way.

    python -m bench.delivery NAMESRV RATE SECONDS

A message's time begins when it should have left, and ends when the handler has it. Producer and
consumer share a process, so that one clock tells both.
"""

import asyncio
import json
import struct
import sys
import time

from bench.pace import BODY, Pace
from gantrymq import Admin, Consumer, Message, Producer
from gantrymq.cli.common.output import Row
from gantrymq.cli.load import figures, run_fast
from gantrymq.client.core.options import ConsumerOptions
from gantrymq.client.messages.delivery import Delivery

QUEUES = 8
DUE = struct.Struct(">d")
PADDING = BODY[DUE.size :]
DELIVERED_SECONDS_MAX = 30.0


class Deliveries:
    """How long each message was under way."""

    def __init__(self) -> None:
        self._times_ms: list[float] = []
        self._awaited = 0
        self._have_come = asyncio.Event()

    async def take(self, message: Delivery) -> None:
        (due,) = DUE.unpack_from(message.body)
        self._times_ms.append((time.perf_counter() - due) * 1000)
        if len(self._times_ms) == self._awaited:
            self._have_come.set()

    async def all_of(self, count: int) -> list[float]:
        """Wait until so many have come."""
        if len(self._times_ms) < count:
            self._awaited = count
            self._have_come.clear()
            async with asyncio.timeout(DELIVERED_SECONDS_MAX):
                await self._have_come.wait()
        times_ms, self._times_ms = self._times_ms, []
        return times_ms


def _body(due: float) -> bytes:
    return DUE.pack(due) + PADDING


async def deliver(namesrv: str, rate: int, seconds: float) -> Row:
    topic = f"bench-delivery-{time.time_ns()}"
    async with Admin(namesrv) as admin:
        await admin.create_topic(topic, queues=QUEUES)
    deliveries = Deliveries()
    options = ConsumerOptions(consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    consumer = Consumer(namesrv, group=topic, options=options)
    consumer.subscribe(topic)
    consumer.handler(deliveries.take)
    async with Producer(namesrv, group="bench") as producer, consumer:
        # One through every queue: all of them have a pull that waits before the clock runs.
        await producer.send_many(Message(topic, _body(0.0)) for _ in range(QUEUES))
        await deliveries.all_of(QUEUES)
        sends = Pace(producer, rate, topic, _body)
        began = time.perf_counter()
        await sends.send(seconds)
        sent = await sends.figures()
        times_ms = await deliveries.all_of(sent["count"])
        return figures(len(times_ms), time.perf_counter() - began, times_ms, sent["failed"])


if __name__ == "__main__":
    found = deliver(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
    print(json.dumps(run_fast(found)))
