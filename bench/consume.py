"""Consumes a backlog of 64 keys through `Consumer`, one message a handler call, in order or not.

python -m bench.consume HOST:PORT --topic T --count 100000 [--ordered]
"""

import argparse
import asyncio
import json
import time

from gantrymq.cli.load import run_fast
from gantrymq.client.consume.push.consumer import Consumer
from gantrymq.client.core.options import ConsumerOptions
from gantrymq.client.messages.delivery import Delivery
from gantrymq.client.produce.producer import Producer
from gantrymq.model import Message

KEYS = 64
SIZE = 1024
IDLE_SECONDS_MAX = 20.0


async def fill(namesrv: str, topic: str, count: int) -> None:
    """Messages of 64 keys in turn; a body begins with its key and its number in it."""
    padding = b" " * SIZE
    async with Producer(namesrv, group="bench-fill") as producer:
        await producer.send_many(
            Message(topic, (b"%d %d" % (at % KEYS, at // KEYS) + padding)[:SIZE],
                    sharding_key=f"key-{at % KEYS}")
            for at in range(count)
        )  # fmt: skip


async def consume(namesrv: str, topic: str, count: int, ordered: bool) -> dict[str, float]:
    """How fast a new group gets through the backlog, and how often a key was out of order."""
    seen = disordered = 0
    last = [-1] * KEYS
    done = asyncio.Event()

    async def take(message: Delivery) -> None:
        nonlocal seen, disordered
        key, number = map(int, message.body[:24].split()[:2])
        disordered += number < last[key]
        last[key] = number
        seen += 1
        if seen == count:
            done.set()

    options = ConsumerOptions(consume_from_where="CONSUME_FROM_FIRST_OFFSET", pull_batch_size=256)
    group = f"bench-{'ordered' if ordered else 'concurrent'}-{time.time_ns()}"
    consumer = Consumer(namesrv, group=group, ordered=ordered, options=options)
    consumer.subscribe(topic)
    consumer.handler(take)
    async with consumer:
        began = time.perf_counter()
        async with asyncio.timeout(IDLE_SECONDS_MAX + count / 1000):
            await done.wait()
        seconds = time.perf_counter() - began
    failed = disordered if ordered else 0
    return {"tps": count / seconds, "count": count, "failed": failed, "disordered": disordered}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("namesrv")
    parser.add_argument("--topic", required=True)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--fill", action="store_true")
    parser.add_argument("--ordered", action="store_true")
    given = parser.parse_args()
    if given.fill:
        run_fast(fill(given.namesrv, given.topic, given.count))
        print(json.dumps({"count": given.count}))
    else:
        work = consume(given.namesrv, given.topic, given.count, given.ordered)
        print(json.dumps(run_fast(work)))


if __name__ == "__main__":
    main()
