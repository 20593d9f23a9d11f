"""Plain sends and then transactions, as many under way of one as of the other.

    python -m bench.transact NAMESRV COUNT

A transaction counts when its message is in its topic: half message, commit and decision included.
"""

import asyncio
import json
import sys
import time

from gantrymq import Admin, Message, Producer, Transaction
from gantrymq.cli.load import run_fast

BODY = b"0123456789abcdef" * 64
QUEUES = 8
WARM_UP = 5_000


def commit(_: Transaction) -> str:
    return "commit"


async def stored(admin: Admin, topic: str) -> int:
    stats = await admin.topic_stats(topic)
    return sum(offsets.max_offset for offsets in stats.values())


async def plain(producer: Producer, topic: str, count: int) -> None:
    for _ in range(count):
        await producer.room()
        producer.submit(Message(topic, BODY))


async def transactions(producer: Producer, topic: str, count: int) -> None:
    for _ in range(count):
        await producer.room()
        producer.submit_transaction(Message(topic, BODY), commit)


async def measure(namesrv: str, count: int) -> dict[str, float]:
    rates: dict[str, float] = {}
    async with Admin(namesrv) as admin, Producer(namesrv, group="bench") as producer:
        for name, work in (("plain", plain), ("transactions", transactions)):
            topic = f"bench-{name}"
            await admin.create_topic(topic, queues=QUEUES)
            await work(producer, topic, WARM_UP)
            await settled(admin, producer, topic, WARM_UP)
            began = time.perf_counter()
            await work(producer, topic, count)
            await settled(admin, producer, topic, WARM_UP + count)
            rates[name] = count / (time.perf_counter() - began)
    return rates


async def settled(admin: Admin, producer: Producer, topic: str, count: int) -> None:
    """Wait until everything can be read."""
    await producer.flush()
    while True:
        if await stored(admin, topic) >= count:
            return
        await asyncio.sleep(0.002)


if __name__ == "__main__":
    print(json.dumps(run_fast(measure(sys.argv[1], int(sys.argv[2])))))
