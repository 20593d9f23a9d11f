"""Pulls whole queues and checks every record, without a consumer around it.

python -m bench.drain HOST:PORT --queues 8 --count 100000
"""

import argparse
import asyncio
import json
import time

from gantrymq.base.network import TcpNetwork, split_address
from gantrymq.cli.load import run_fast
from gantrymq.kernel import cut_records
from gantrymq.model import BENCHMARK_TOPIC
from gantrymq.protocol.codes import RequestCode
from gantrymq.protocol.command import Command
from gantrymq.protocol.headers.messages import PULL_SUBSCRIBES, PullRequest, PullResponse
from gantrymq.remoting.connection import Connection

PULL_MESSAGES = 1024
TIMEOUT_SECONDS = 30.0


async def drain_queue(connection: Connection, topic: str, queue_id: int) -> tuple[int, int]:
    """Read a queue to its end; how many records it had, and their bytes."""
    offset = count = size = 0
    while True:
        header = PullRequest(
            consumer_group="bench", topic=topic, queue_id=queue_id, queue_offset=offset,
            max_msg_nums=PULL_MESSAGES, sys_flag=PULL_SUBSCRIBES, subscription="*",
        )  # fmt: skip
        command = Command(code=RequestCode.PULL_MESSAGE, ext=header.to_ext())
        answer = await connection.call(command, TIMEOUT_SECONDS)
        if answer.code != 0:
            return count, size
        found, bad = cut_records(answer.body, True)
        if bad is not None:
            raise bad
        if [head.queue_offset for _, _, head in found] != list(range(offset, offset + len(found))):
            raise AssertionError(f"queue {queue_id}: records are missing behind {offset}")
        count += len(found)
        size += len(answer.body)
        offset = PullResponse.parse(answer.ext).next_begin_offset


async def drain(address: str, topic: str, queues: int, count: int) -> dict[str, float]:
    connection = await TcpNetwork().connect(*split_address(address), Connection, 5.0)
    began = time.perf_counter()
    parts = await asyncio.gather(
        *(drain_queue(connection, topic, queue) for queue in range(queues))
    )
    seconds = time.perf_counter() - began
    connection.close()
    found = sum(part[0] for part in parts)
    size = sum(part[1] for part in parts)
    return {
        "tps": found / seconds, "mb_per_second": size / seconds / 1e6, "count": found,
        "failed": max(0, count - found),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address")
    parser.add_argument("--topic", default=BENCHMARK_TOPIC)
    parser.add_argument("--queues", type=int, default=8)
    parser.add_argument("--count", type=int, required=True)
    given = parser.parse_args()
    print(json.dumps(run_fast(drain(given.address, given.topic, given.queues, given.count))))


if __name__ == "__main__":
    main()
