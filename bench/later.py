"""Messages that are all due at the same moment: sends them, or watches them being delivered.

python -m bench.later send HOST:PORT --count 100000 --at MS
python -m bench.later watch HOST:PORT --count 100000 --at MS
"""

import argparse
import asyncio
import json
import time

from gantrymq.client.admin.admin import Admin
from gantrymq.client.produce.producer import Producer
from gantrymq.model import Message

TOPIC = "BenchLater"
LOOK_SECONDS = 0.05
WAIT_SECONDS_MAX = 120.0


async def send(namesrv: str, count: int, at_ms: int) -> dict[str, float]:
    """Ordinary messages of 1 KiB, as a client sends them."""
    async with Admin(namesrv) as admin, Producer(namesrv, group="bench") as producer:
        await admin.create_topic(TOPIC, queues=1)
        began = time.perf_counter()
        body = bytes(1024)
        results = await producer.send_many(
            Message(TOPIC, body, deliver_at=at_ms) for _ in range(count)
        )
        seconds = time.perf_counter() - began
        failed = sum(isinstance(result, Exception) for result in results)
        return {"sent_a_second": count / seconds, "failed": failed}


async def watch(namesrv: str, count: int, at_ms: int) -> dict[str, float]:
    """How long the burst takes, and how long live sends take meanwhile."""
    async with Admin(namesrv) as admin, Producer(namesrv, group="live") as producer:
        await producer.send(Message("BenchLive", b"warm"))
        (queue,) = await producer.queues(TOPIC)
        await asyncio.sleep(max(0.0, at_ms / 1000 - time.time()))
        took: list[float] = []
        end = time.monotonic() + WAIT_SECONDS_MAX
        done_at = asked_at = 0.0
        while not done_at and time.monotonic() < end:
            began = time.perf_counter()
            await producer.send(Message("BenchLive", b"live"))
            took.append(time.perf_counter() - began)
            if began - asked_at > LOOK_SECONDS:
                asked_at = began
                done_at = time.time() if await admin.max_offset(queue) >= count else 0.0
        (table,) = (await admin.waiting(count=0)).values()
        late_ms = max(room.max_late_ms for room in table.rooms if room.room == "timer")
        took.sort()
        return {
            "seconds": done_at - at_ms / 1000, "late_max_ms": late_ms, "live": len(took),
            "live_p99_ms": 1000 * took[int(len(took) * 0.99)], "failed": not done_at,
        }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["send", "watch"])
    parser.add_argument("namesrv")
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--at", type=int, required=True)
    asked = parser.parse_args()
    work = send if asked.what == "send" else watch
    print(json.dumps(asyncio.run(work(asked.namesrv, asked.count, asked.at))))


if __name__ == "__main__":
    main()
