"""Sends at a steady rate while an administrator looks at a thousand topics and groups."""

import asyncio
import time

from bench import programs
from bench.rows import Row
from bench.servers import Ours
from bench.workloads import Run
from gantrymq import Admin
from gantrymq.cli.load import run_fast
from gantrymq.model import GroupConfig
from gantrymq.protocol import calls, fastjson
from gantrymq.protocol.headers.base import Nothing
from gantrymq.protocol.headers.clients import ConsumeStatsRequest
from gantrymq.protocol.headers.messages import UpdateConsumerOffsetRequest
from gantrymq.protocol.headers.topics import CreateTopicRequest

TOPICS = GROUPS = 1_000
QUEUES = 8
RATE = 5_000


def crowd(run: Run) -> list[Row]:
    seconds = 3 if run.quick else 15
    with Ours(profile=run.profile) as cluster:
        return run_fast(_crowd(cluster.namesrv, cluster.broker, seconds))


async def _crowd(namesrv: str, broker: str, seconds: int) -> list[Row]:
    async with Admin(namesrv) as admin:
        await _populate(admin, broker)
        await _pace(namesrv, 2)  # makes the files of 1,024 queues, which is not the question
        sending = asyncio.create_task(_pace(namesrv, seconds))
        looks = 0
        began = time.perf_counter()
        while not sending.done():
            await _look(admin, broker)
            looks += 1
        figures = await sending
    rounds = looks / (time.perf_counter() - began)
    return [
        Row("crowd", "sends", figures["tps"], "1/s", RATE * 0.95),
        Row("crowd", "send p99", figures["p99_ms"], "ms", 20, at_most=True),
        Row("crowd", "send p50", figures["p50_ms"], "ms"),
        Row("crowd", "all topics and groups looked at", rounds, "1/s"),
    ]


async def _pace(namesrv: str, seconds: int) -> programs.Figures:
    return await asyncio.to_thread(programs.pace, namesrv, RATE, seconds)


async def _populate(admin: Admin, broker: str) -> None:
    for number in range(TOPICS):
        topic = CreateTopicRequest(
            topic=f"topic-{number}", read_queue_nums=QUEUES, write_queue_nums=QUEUES
        )
        await admin.instance.call(broker, calls.UPDATE_AND_CREATE_TOPIC, topic)
    for number in range(GROUPS):
        group = fastjson.dumps(GroupConfig(group_name=f"group-{number}"))
        create = calls.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP
        await admin.instance.call(broker, create, Nothing(), group)
        for queue in range(QUEUES):
            offset = UpdateConsumerOffsetRequest(
                consumer_group=f"group-{number}", topic=f"topic-{number}", queue_id=queue,
                commit_offset=0,
            )  # fmt: skip
            await admin.instance.call(broker, calls.UPDATE_CONSUMER_OFFSET, offset)


async def _look(admin: Admin, broker: str) -> None:
    """What a console does when somebody opens its overview."""
    assert len(await admin.topic_configs(broker)) >= TOPICS
    assert len(await admin.groups()) >= GROUPS
    for number in range(GROUPS):
        stats = ConsumeStatsRequest(consumer_group=f"group-{number}", topic=None)
        await admin.instance.call(broker, calls.GET_CONSUME_STATS, stats)
