"""Sends at a steady rate, whatever the answers do, and says how long they took.

    python -m bench.pace NAMESRV RATE SECONDS

A message's time begins when it should have left: a client that fell behind must not hide it.
"""

import asyncio
import json
import sys
import time
from functools import partial

from gantrymq import Message, Producer
from gantrymq.cli.load import figures, run_fast
from gantrymq.model import BENCHMARK_TOPIC

TICK_SECONDS = 0.002


async def pace(namesrv: str, rate: int, seconds: float) -> dict[str, object]:
    latencies_ms: list[float] = []
    failures = 0

    def done(due: float, future: "asyncio.Future[object]") -> None:
        nonlocal failures
        latencies_ms.append((time.perf_counter() - due) * 1000)
        failures += future.exception() is not None

    async with Producer(namesrv, group="bench") as producer:
        await producer.send(Message(BENCHMARK_TOPIC, b"x" * 1024))
        began, number = time.perf_counter(), 0
        while number < rate * seconds:
            upto = min(rate * seconds, (time.perf_counter() - began) * rate)
            while number < upto:
                await producer.room()
                future = producer.submit(Message(BENCHMARK_TOPIC, b"x" * 1024))
                future.add_done_callback(partial(done, began + number / rate))
                number += 1
            await asyncio.sleep(TICK_SECONDS)
        await producer.flush()
        await asyncio.sleep(0)
        elapsed = time.perf_counter() - began
    return figures(number - failures, elapsed, latencies_ms, failures)


if __name__ == "__main__":
    print(json.dumps(run_fast(pace(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))))
