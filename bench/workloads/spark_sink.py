"""Spark writes into a topic of ours: exactly once, and at least once."""

import asyncio
import time
from typing import Any

from bench.rows import Row
from bench.servers import Ours
from bench.workloads import Run
from bench.workloads.spark_wire import session
from gantrymq import Admin

COUNT = 400_000
QUICK = 100_000
BODY_BYTES = 1_024
WRITES = 3
TOPIC = "spark-sink"
TARGETS = {"at-least-once": 30_000, "exactly-once": 20_000}


def write(run: Run) -> list[Row]:
    """Rows of 1 KiB that Spark makes itself, into eight queues of a broker on this machine."""
    count = QUICK if run.quick else COUNT
    with Ours(profile=run.profile) as cluster:
        asyncio.run(_create(cluster.namesrv))
        spark = session()
        try:
            rates = {how: _rate(spark, cluster.namesrv, count, how) for how in TARGETS}
            plain = _plain_rate(spark, count)
        finally:
            spark.stop()
    rows = [
        Row("spark-sink", f"rows {how}", rates[how], "1/s", target)
        for how, target in TARGETS.items()
    ]
    return [*rows, Row("spark-sink", "the same rows into nothing", plain, "1/s")]


def _table(spark: Any, count: int) -> Any:
    padding = "x" * (BODY_BYTES - 12)
    return spark.range(0, count, 1, 2).selectExpr(
        f"concat(lpad(cast(id as string), 12, '0'), '{padding}') as body", "'t' as tags"
    )


def _rate(spark: Any, namesrv: str, count: int, delivery: str) -> float:
    """Rows a second of the best write; the first one also starts Spark's workers."""
    best = 0.0
    for _ in range(WRITES):
        writer = _table(spark, count).write.format("rocketmq").mode("append")
        writer = writer.options(nameServer=namesrv, topic=TOPIC, delivery=delivery)
        began = time.perf_counter()
        writer.save()
        best = max(best, count / (time.perf_counter() - began))
    return best


def _plain_rate(spark: Any, count: int) -> float:
    """What Spark's own part of it takes."""
    began = time.perf_counter()
    _table(spark, count).write.format("noop").mode("overwrite").save()
    return count / (time.perf_counter() - began)


async def _create(namesrv: str) -> None:
    async with Admin(namesrv) as admin:
        await admin.create_topic(TOPIC, queues=8)
