"""Pulls whole queues and checks every record, without a consumer around it.

python -m bench.drain HOST:PORT --queues 8 --count 100000
"""

import argparse
import asyncio
import json
import time
from typing import NamedTuple

from gantrymq.base.network import TcpNetwork, split_address
from gantrymq.cli.load import run_fast
from gantrymq.kernel import cut_records
from gantrymq.model import BENCHMARK_TOPIC
from gantrymq.protocol.codes import RequestCode, ResponseCode
from gantrymq.protocol.command import Command
from gantrymq.protocol.headers.messages import PULL_SUBSCRIBES, PullRequest, PullResponse
from gantrymq.remoting.connection import Connection

PULL_MESSAGES = 1024
TIMEOUT_SECONDS = 30.0
EVERYTHING = "*"
GOES_ON = (ResponseCode.SUCCESS, ResponseCode.PULL_RETRY_IMMEDIATELY)


class Wanted(NamedTuple):
    """What is read: all messages of a topic, or those that a filter selects."""

    topic: str
    expression: str = EVERYTHING
    kind: str = "TAG"
    """TAG or SQL92."""


async def drain_queue(connection: Connection, wanted: Wanted, queue_id: int) -> tuple[int, int]:
    """Read a queue to its end; how many records were selected, and their bytes."""
    offset = count = size = 0
    while True:
        header = PullRequest(
            consumer_group="bench", topic=wanted.topic, queue_id=queue_id, queue_offset=offset,
            max_msg_nums=PULL_MESSAGES, sys_flag=PULL_SUBSCRIBES, subscription=wanted.expression,
            expression_type=wanted.kind,
        )  # fmt: skip
        command = Command(code=RequestCode.PULL_MESSAGE, ext=header.to_ext())
        answer = await connection.call(command, TIMEOUT_SECONDS)
        if answer.code not in GOES_ON:
            return count, size
        following = PullResponse.parse(answer.ext).next_begin_offset
        found, bad = cut_records(answer.body, True)
        if bad is not None:
            raise bad
        offsets = [head.queue_offset for _, _, head in found]
        passed = range(offset, following)
        if wanted.expression == EVERYTHING and offsets != list(passed):
            raise AssertionError(f"queue {queue_id}: records are missing behind {offset}")
        if any(one not in passed for one in offsets) or not passed:
            raise AssertionError(f"queue {queue_id}: not from {offset} on: {offsets}, {following}")
        count += len(found)
        size += len(answer.body)
        offset = following


async def drain(address: str, wanted: Wanted, queues: int, count: int) -> dict[str, float]:
    connection = await TcpNetwork().connect(*split_address(address), Connection, 5.0)
    began = time.perf_counter()
    parts = await asyncio.gather(
        *(drain_queue(connection, wanted, queue) for queue in range(queues))
    )
    seconds = time.perf_counter() - began
    connection.close()
    found = sum(part[0] for part in parts)
    size = sum(part[1] for part in parts)
    return {
        "tps": found / seconds, "mb_per_second": size / seconds / 1e6, "count": found,
        "seconds": seconds, "failed": max(0, count - found),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address")
    parser.add_argument("--topic", default=BENCHMARK_TOPIC)
    parser.add_argument("--queues", type=int, default=8)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--expression", default=EVERYTHING)
    parser.add_argument("--kind", choices=("TAG", "SQL92"), default="TAG")
    given = parser.parse_args()
    wanted = Wanted(given.topic, given.expression, given.kind)
    print(json.dumps(run_fast(drain(given.address, wanted, given.queues, given.count))))


if __name__ == "__main__":
    main()
