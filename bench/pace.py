"""Sends at a steady rate, whatever the answers do, and says how long they took.

    python -m bench.pace NAMESRV RATE SECONDS
    python -m bench.pace NAMESRV RATE

A message's time begins when it should have left: a client that fell behind must not hide it.
Without SECONDS it sends until stdin ends, and a line on stdin asks for the figures since the last
question.
"""

import asyncio
import json
import sys
import time
from collections.abc import Callable
from functools import partial

from gantrymq import Message, Producer
from gantrymq.cli.common.output import Row
from gantrymq.cli.load import figures, run_fast
from gantrymq.model import BENCHMARK_TOPIC

TICK_SECONDS = 0.002
BODY = b"x" * 1024

Body = Callable[[float], bytes]
"""The body of a message that should leave at this moment of `time.perf_counter`."""


def _same_body(due: float) -> bytes:
    return BODY


class Pace:
    """Sends of one producer at one rate, and how long each took."""

    def __init__(
        self, producer: Producer, rate: int, topic: str = BENCHMARK_TOPIC, body: Body = _same_body
    ) -> None:
        self._producer, self._rate = producer, rate
        self._topic, self._body = topic, body
        self._latencies_ms: list[float] = []
        self._failures = 0
        self._since = time.perf_counter()

    async def send(self, seconds: float = float("inf")) -> None:
        began, number = time.perf_counter(), 0
        while number < self._rate * seconds:
            upto = min(self._rate * seconds, (time.perf_counter() - began) * self._rate)
            while number < upto:
                await self._producer.room()
                due = began + number / self._rate
                future = self._producer.submit(Message(self._topic, self._body(due)))
                future.add_done_callback(partial(self._done, due))
                number += 1
            await asyncio.sleep(TICK_SECONDS)

    def _done(self, due: float, future: "asyncio.Future[object]") -> None:
        self._latencies_ms.append((time.perf_counter() - due) * 1000)
        self._failures += future.exception() is not None

    async def figures(self) -> Row:
        """What was answered since the last call, once nothing is under way."""
        await self._producer.flush()
        await asyncio.sleep(0)
        latencies_ms, self._latencies_ms = self._latencies_ms, []
        failures, self._failures = self._failures, 0
        since, self._since = self._since, time.perf_counter()
        return figures(len(latencies_ms) - failures, self._since - since, latencies_ms, failures)


async def pace(namesrv: str, rate: int, seconds: float | None) -> None:
    async with Producer(namesrv, group="bench") as producer:
        await producer.send(Message(BENCHMARK_TOPIC, BODY))
        sends = Pace(producer, rate)
        if seconds is not None:
            await sends.send(seconds)
            print(json.dumps(await sends.figures()))
            return
        sending = asyncio.create_task(sends.send())
        while await asyncio.to_thread(sys.stdin.readline):
            print(json.dumps(await sends.figures()), flush=True)
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)


if __name__ == "__main__":
    limit = float(sys.argv[3]) if len(sys.argv) > 3 else None
    run_fast(pace(sys.argv[1], int(sys.argv[2]), limit))
