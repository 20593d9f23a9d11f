"""One library at one work, in a process of its own so that its processor time can be told.

python -m bench.python_clients.driver LIBRARY WORK ADDRESS TOPIC COUNT [--warm-up N] [--option K=V]

It connects and warms up, says so on the first line that it reads, and works on the second one.
Sends warm up with messages of the same topic; a consumer finds the messages that it sent before.
"""

import argparse
import importlib
import json
import sys

from bench.python_clients.library import Library, Stopwatch, Target
from gantrymq.cli.load import run_fast

LIBRARIES = {
    "gantrymq": ("with_gantrymq", "GantryMQ"),
    "confluent-kafka": ("with_confluent_kafka", "ConfluentKafka"),
    "aiokafka": ("with_aiokafka", "Aiokafka"),
    "nats-py": ("with_nats", "NatsPy"),
    "redis-py": ("with_redis", "RedisPy"),
    "redis.asyncio": ("with_redis_asyncio", "RedisAsyncio"),
}
PIPELINED, TASKS, CONSUME = "pipelined", "tasks", "consume"


def library(name: str, target: Target, options: dict[str, str]) -> Library:
    """The library by its name; no other one is imported."""
    module, kind = LIBRARIES[name]
    found: type[Library] = getattr(importlib.import_module(f"bench.python_clients.{module}"), kind)
    return found(target, options)


async def work(used: Library, what: str, count: int, warm_up: int) -> dict[str, float]:
    """Prepare, wait to be told, and do it."""
    watch = Stopwatch()
    await used.open()
    if what == CONSUME:
        await used.send_pipelined(count)
    else:
        send = used.send_pipelined if what == PIPELINED else used.send_from_tasks
        await send(warm_up)
    sys.stdin.readline()
    print(json.dumps({"ready": True}), flush=True)
    sys.stdin.readline()
    if what == CONSUME:
        await used.consume(count, watch)
    else:
        watch.start()
        await send(count)
        watch.stop()
    await used.close()
    return {"count": count, "seconds": watch.seconds, "cpu_seconds": watch.cpu_seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", choices=LIBRARIES)
    parser.add_argument("work", choices=[PIPELINED, TASKS, CONSUME])
    parser.add_argument("address")
    parser.add_argument("topic")
    parser.add_argument("count", type=int)
    parser.add_argument("--warm-up", type=int, default=10_000)
    parser.add_argument("--option", action="append", default=[], metavar="KEY=VALUE")
    given = parser.parse_args()
    options = dict(each.split("=", 1) for each in given.option)
    used = library(given.library, Target(given.address, given.topic), options)
    figures = run_fast(work(used, given.work, given.count, given.warm_up))
    print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main()
