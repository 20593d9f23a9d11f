"""A stream's progress, as the broker and a file beside the checkpoint tell it."""

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sparkkit import BROKER, Processes

from gantrymq import Admin
from gantrymq.model import Queue
from gantrymq.spark.options.source_options import ClusterAccess, ProgressReports
from gantrymq.spark.records.fetch import Reader
from gantrymq.spark.records.survey import committed
from gantrymq.spark.source.progress import StreamProgress

pytestmark = pytest.mark.timeout(240)

END_SECONDS_MAX, REPORT_SECONDS_MAX = 120, 10.0


def stored(cluster: Processes, group: str, topic: str, queues: int) -> dict[int, int]:
    """What the broker has of a group, by queue."""
    wanted = [Queue(topic, BROKER, number) for number in range(queues)]
    with Reader(cluster.namesrv, "tests") as reader:
        found = reader.ask(lambda instance: committed(instance, group, wanted))
    return {queue.queue_id: offset for queue, offset in found.items()}


def eventually(expected: object, look: Callable[[], object]) -> None:
    """The listener hears of a batch a moment after it ended."""
    end = time.monotonic() + REPORT_SECONDS_MAX
    while (found := look()) != expected and time.monotonic() < end:
        time.sleep(0.05)
    assert expected == found


def run(spark: Any, cluster: Processes, topic: str, folder: Path, **options: str) -> None:
    """A run over all that is there."""
    table = (
        spark.readStream.format("rocketmq")
        .options(nameServer=cluster.namesrv, topic=topic, startingOffsets="earliest", **options)
        .load()
    )
    query = table.writeStream.format("noop").option("checkpointLocation", str(folder / "c"))
    assert query.trigger(availableNow=True).start().awaitTermination(END_SECONDS_MAX)


def test_every_batch_is_reported_to_the_broker_the_last_one_too(
    spark: Any, cluster: Processes, topic: str, tmp_path: Path
) -> None:
    """A group that never was appears, with its progress; the tools' figures fit."""
    cluster.create_topic(topic, queues=2)
    cluster.fill(topic, [7, 5])
    run(spark, cluster, topic, tmp_path, group=topic, startStatePath=str(tmp_path / "state"))
    eventually({0: 7, 1: 5}, lambda: stored(cluster, topic, topic, 2))
    cluster.fill(topic, [3, 0], first=7)

    async def lag() -> int:
        async with Admin(cluster.namesrv) as admin:
            rows = (await admin.consume_stats(topic)).queues
        return sum(row.broker_offset - row.consumer_offset for row in rows.values())

    assert 3 == asyncio.run(lag())
    path = tmp_path / "state" / "progress.json"
    eventually(True, path.exists)
    progress = json.loads(path.read_text())
    assert (12, 0, 0) == (progress["rows"], progress["lagRows"], progress["lagSeconds"])
    assert {topic: {BROKER: {"0": 7, "1": 5}}} == progress["endOffset"]


def test_without_a_group_nothing_is_left_on_the_broker(
    spark: Any, cluster: Processes, topic: str, tmp_path: Path
) -> None:
    """Reading is no consuming unless somebody wants it to be seen."""
    cluster.create_topic(topic, queues=1)
    cluster.fill(topic, [3])
    run(spark, cluster, topic, tmp_path)

    async def groups() -> list[str]:
        async with Admin(cluster.namesrv) as admin:
            return await admin.topic_groups(topic)

    assert [] == asyncio.run(groups())


def test_progress_goes_back_only_when_asked(cluster: Processes, topic: str) -> None:
    """A query that reads again from an old checkpoint does not move what tools show."""
    cluster.create_topic(topic, queues=1)
    cluster.fill(topic, [9])
    queue = Queue(topic, BROKER, 0)

    def told(offset: int, *, rewinds: bool) -> dict[int, int]:
        access = ClusterAccess(namesrv=cluster.namesrv, group=topic)
        progress = StreamProgress(access, ProgressReports(commits=True, rewinds=rewinds))
        progress.report({queue: offset})
        progress.close()
        return stored(cluster, topic, topic, 1)

    assert {0: 6} == told(6, rewinds=False)
    assert {0: 6} == told(2, rewinds=False)
    assert {0: 8} == told(8, rewinds=False)
    assert {0: 2} == told(2, rewinds=True)


def test_a_cluster_that_is_away_does_not_stop_a_query() -> None:
    """A report that fails is made up for by the next one, and not tried at every batch."""
    access = ClusterAccess(namesrv="127.0.0.1:1", group="nobody")
    progress = StreamProgress(access, ProgressReports(commits=True))
    began = time.monotonic()
    progress.report({Queue("t", BROKER, 0): 1})
    first = time.monotonic() - began
    progress.report({Queue("t", BROKER, 0): 2})
    second = time.monotonic() - began - first

    assert first < 5
    assert second < 0.1
