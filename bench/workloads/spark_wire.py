"""Spark reads topics over the wire: how fast, and how soon a small micro-batch is done."""

import asyncio
import statistics
import tempfile
import time
from typing import Any

from bench.rows import Row
from bench.servers import Ours
from bench.stores import SERVED, make_store
from bench.stores import TOPIC as STORED_TOPIC
from bench.workloads import Run
from gantrymq import Admin, Message, Producer
from gantrymq.spark.runtime.session import local_session

COUNT = 1_000_000
QUICK = 200_000
BODY = "queueId,queueOffset,storeTimestamp,body"
SCANS = 3
TRIGGERS, WARM_TRIGGERS = 20, 5
TRIGGER_SECONDS_MAX = 120.0
ROWS = 500
TOPIC = "spark-trigger"


def session() -> Any:
    """Spark on both cores, as `local_session` starts it for everybody."""
    return local_session("bench", master="local[2]", settings={"spark.driver.memory": "1g"})


def scan(run: Run) -> list[Row]:
    """1 KiB messages of a broker on this machine, bodies and all, into nothing."""
    count = QUICK if run.quick else COUNT
    cluster = Ours(profile=run.profile, settings=SERVED)
    make_store(cluster.store, count)
    with cluster:
        spark = session()
        try:
            body = _rate(spark, cluster.namesrv, count, columns=BODY)
            everything = _rate(spark, cluster.namesrv, count)
        finally:
            spark.stop()
    return [
        Row("spark-broker", "rows with their body", body, "1/s", 150_000),
        Row("spark-broker", "rows with all columns", everything, "1/s"),
    ]


def _rate(spark: Any, namesrv: str, count: int, **options: str) -> float:
    """Rows a second of the best scan; the first one also starts Spark's workers."""
    best = 0.0
    for _ in range(SCANS):
        table = spark.read.format("rocketmq")
        table = table.options(nameServer=namesrv, topic=STORED_TOPIC, **options).load()
        began = time.perf_counter()
        found = table.count()
        best = max(best, found / (time.perf_counter() - began))
        if found != count:
            raise AssertionError(f"{found} rows of {count}")
    return best


def trigger(run: Run) -> list[Row]:
    """A micro-batch of two partitions into nothing, against Spark's own source in the same run.

    Both have 500 rows every half second; ours come from a backlog, so that no producer is beside.
    """
    triggers = TRIGGERS // 2 if run.quick else TRIGGERS
    with Ours(profile=run.profile) as cluster:
        asyncio.run(_fill(cluster.namesrv, (triggers + 2 * WARM_TRIGGERS) * ROWS))
        spark = session()
        try:
            rate = spark.readStream.format("rate").options(
                rowsPerSecond=str(2 * ROWS), numPartitions="2"
            )
            ours = spark.readStream.format("rocketmq").options(
                nameServer=cluster.namesrv,
                topic=TOPIC,
                startingOffsets="earliest",
                maxOffsetsPerTrigger=str(ROWS),
            )
            for table in (rate, ours):  # the JVM gets quicker for a while
                _median_ms(table.load(), WARM_TRIGGERS)
            peer = _median_ms(rate.load(), triggers)
            mine = _median_ms(ours.load(), triggers)
        finally:
            spark.stop()
    return [
        Row("spark-trigger", "Spark's rate source", peer, "ms"),
        Row("spark-trigger", "a topic of two queues", mine, "ms"),
        Row("spark-trigger", "against the rate source", mine / peer, "x", 1.5, at_most=True),
    ]


def _median_ms(table: Any, count: int) -> float:
    """The median time of a trigger that had rows, after the first few."""
    times: dict[int, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        query = table.writeStream.format("noop").option("checkpointLocation", folder)
        query = query.trigger(processingTime="500 milliseconds").start()
        try:
            end = time.monotonic() + TRIGGER_SECONDS_MAX
            while len(times) < count + WARM_TRIGGERS and time.monotonic() < end:
                time.sleep(0.5)
                for progress in query.recentProgress:
                    if progress["numInputRows"]:
                        times[progress["batchId"]] = progress["durationMs"]["triggerExecution"]
        finally:
            query.stop()
    return statistics.median(list(times.values())[WARM_TRIGGERS:])


async def _fill(namesrv: str, count: int) -> None:
    async with Admin(namesrv) as admin:
        await admin.create_topic(TOPIC, queues=2)
    async with Producer(namesrv, group="bench") as producer:
        for _ in range(count // ROWS):
            futures = [producer.submit(Message(TOPIC, b"x" * 100)) for _ in range(ROWS)]
            await asyncio.gather(*futures)
