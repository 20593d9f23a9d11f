"""Sends all the time and says, whenever it is asked, how long nothing was acknowledged.

    python -m bench.pauses NAMESRV

A line on stdin asks: the answer is the longest time between two acknowledgements since the last
question, in seconds, how many there were, and how many sends failed. It ends with stdin.
"""

import asyncio
import json
import sys
import time

from gantrymq import Message, Producer, ProducerOptions
from gantrymq.base.errors import GantryError
from gantrymq.cli.load import run_fast
from gantrymq.model import BENCHMARK_TOPIC

SENDERS = 8
PATIENT = ProducerOptions(send_timeout_ms=60_000)


class Acknowledged:
    """When sends were acknowledged."""

    def __init__(self) -> None:
        self._last = time.perf_counter()
        self._longest = 0.0
        self._count = self.failed = 0

    def note(self) -> None:
        now = time.perf_counter()
        self._longest = max(self._longest, now - self._last)
        self._last = now
        self._count += 1

    def answer(self) -> dict[str, float]:
        """The figures since the last answer."""
        said = {"pause": self._longest, "count": self._count, "failed": self.failed}
        self._longest, self._count, self.failed = 0.0, 0, 0
        return said


async def _send(producer: Producer, acknowledged: Acknowledged) -> None:
    while True:
        try:
            await producer.send(Message(BENCHMARK_TOPIC, b"x" * 1024))
            acknowledged.note()
        except GantryError:
            acknowledged.failed += 1


async def pauses(namesrv: str) -> None:
    acknowledged = Acknowledged()
    async with Producer(namesrv, group="bench", options=PATIENT) as producer:
        tasks = [asyncio.create_task(_send(producer, acknowledged)) for _ in range(SENDERS)]
        while await asyncio.to_thread(sys.stdin.readline):
            print(json.dumps(acknowledged.answer()), flush=True)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


if __name__ == "__main__":
    run_fast(pauses(sys.argv[1]))
