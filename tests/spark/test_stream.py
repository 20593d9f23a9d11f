"""Streams through a real Spark from a real broker: restarts, crashes, quiet times."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sparkkit import Processes, bodies_of, numbered

from gantrymq import Message

pytestmark = pytest.mark.timeout(240)

END_SECONDS_MAX = 120


class Crash(Exception):
    """What the tests let a sink die of."""


class Pipeline:
    """A topic into Parquet, run after run with one checkpoint."""

    def __init__(self, spark: Any, cluster: Processes, topic: str, folder: Path) -> None:
        self.spark, self.cluster, self.topic = spark, cluster, topic
        self.path, self.checkpoint = str(folder / "out"), str(folder / "checkpoint")

    def table(self, **options: str) -> Any:
        return (
            self.spark.readStream.format("rocketmq")
            .options(nameServer=self.cluster.namesrv, topic=self.topic, **options)
            .load()
        )

    def start(self, **options: str) -> Any:
        return (
            self.table(**options)
            .writeStream.format("parquet")
            .options(path=self.path, checkpointLocation=self.checkpoint)
        )

    def run(self, **options: str) -> list[int]:
        """All there is now; returns how many rows each batch had."""
        return finish(self.start(**options).trigger(availableNow=True).start())

    def run_each(self, work: Callable[[Any, int], None], **options: str) -> list[int]:
        writer = self.table(**options).writeStream.foreachBatch(work)
        writer = writer.option("checkpointLocation", self.checkpoint)
        return finish(writer.trigger(availableNow=True).start())

    def bodies(self) -> list[str]:
        return bodies_of(self.spark.read.parquet(self.path).collect())


def finish(query: Any) -> list[int]:
    assert query.awaitTermination(END_SECONDS_MAX)
    return [progress["numInputRows"] for progress in query.recentProgress]


@pytest.fixture
def pipeline(spark: Any, cluster: Processes, topic: str, tmp_path: Path) -> Pipeline:
    return Pipeline(spark, cluster, topic, tmp_path)


def test_runs_go_on_where_the_last_one_ended(pipeline: Pipeline) -> None:
    """Run after run: no message twice, none missing, an idle queue is no obstacle."""
    pipeline.cluster.create_topic(pipeline.topic, queues=3)
    pipeline.cluster.fill(pipeline.topic, [5, 0, 3])
    first = pipeline.run(startingOffsets="earliest")
    again = pipeline.run(startingOffsets="earliest")
    pipeline.cluster.fill(pipeline.topic, [4, 0, 0], first=5)
    second = pipeline.run(startingOffsets="earliest")

    assert (sum(first), sum(again), sum(second)) == (8, 0, 4)
    assert pipeline.bodies() == sorted(numbered([5, 0, 3]) + numbered([4], first=5))


def test_batches_have_the_size_that_was_asked_for(pipeline: Pipeline) -> None:
    """A backlog larger than a pull and larger than a batch is read in portions."""
    pipeline.cluster.create_topic(pipeline.topic, queues=2)
    pipeline.cluster.fill(pipeline.topic, [3_000, 1_000])

    sizes = pipeline.run(
        startingOffsets="earliest", maxOffsetsPerTrigger="2000", pullBatchSize="300"
    )

    assert [size for size in sizes if size] == [2_000, 2_000]
    assert pipeline.bodies() == numbered([3_000, 1_000])


def test_a_quiet_topic_makes_no_batches_and_news_are_read(pipeline: Pipeline) -> None:
    """A stream left alone does nothing; when messages come it reads exactly them."""
    pipeline.cluster.create_topic(pipeline.topic, queues=2)
    pipeline.cluster.fill(pipeline.topic, [2, 2])
    query = pipeline.start(startingOffsets="earliest").trigger(processingTime="100 milliseconds")
    query = query.start()
    try:
        query.processAllAvailable()
        before = query.lastProgress["batchId"]
        query.processAllAvailable()
        assert query.lastProgress["batchId"] == before
        pipeline.cluster.fill(pipeline.topic, [0, 3], first=2)
        query.processAllAvailable()
        assert pipeline.bodies() == sorted([*numbered([2, 2]), "1:2", "1:3", "1:4"])
    finally:
        query.stop()


def test_a_crash_in_the_first_batch_from_latest_loses_nothing(pipeline: Pipeline) -> None:
    """The beginning is in the checkpoint before there is a row to lose."""
    pipeline.cluster.create_topic(pipeline.topic, queues=2)
    pipeline.cluster.fill(pipeline.topic, [5, 5])
    seen: list[str] = []

    def crash(_: Any, number: int) -> None:
        raise Crash(f"batch {number}")

    def keep(table: Any, _: int) -> None:
        seen.extend(bodies_of(table.collect()))

    with pytest.raises(Exception, match="batch 0"):
        pipeline.run_each(crash, startingOffsets="latest")
    pipeline.cluster.fill(pipeline.topic, [4, 4], first=5)
    pipeline.run_each(keep, startingOffsets="latest")

    assert sorted(seen) == numbered([4, 4], first=5)


def test_a_batch_that_crashed_is_read_again_the_same(pipeline: Pipeline) -> None:
    """Same batch, same rows, although more has arrived: a sink may rely on the batch's number."""
    pipeline.cluster.create_topic(pipeline.topic, queues=2)
    pipeline.cluster.fill(pipeline.topic, [6, 1])
    seen: dict[int, list[list[str]]] = {}

    def work(table: Any, number: int) -> None:
        rows = bodies_of(table.collect())
        seen.setdefault(number, []).append(rows)
        if len(seen[number]) == 1 and number == 0:
            raise Crash("behind the write, in front of the commit")

    with pytest.raises(Exception, match="in front of the commit"):
        pipeline.run_each(work, startingOffsets="earliest")
    pipeline.cluster.fill(pipeline.topic, [2, 2], first=6)
    pipeline.run_each(work, startingOffsets="earliest")

    assert seen[0] == [numbered([6, 1])] * 2
    assert seen[1] == [numbered([2, 2], first=6)]


def test_progress_tells_how_far_behind_a_query_is(pipeline: Pipeline) -> None:
    """Spark's progress has the end of the queues beside the end of the batch."""
    pipeline.cluster.create_topic(pipeline.topic, queues=1)
    pipeline.cluster.fill(pipeline.topic, [10])
    query = pipeline.start(startingOffsets="earliest", maxOffsetsPerTrigger="4")
    query = query.trigger(availableNow=True).start()
    finish(query)
    source = query.recentProgress[0]["sources"][0]

    assert '"0": 4' in str(source["endOffset"]).replace("'", '"')
    assert '"0": 10' in str(source["latestOffset"]).replace("'", '"')


def test_options_of_the_other_kind_are_refused(pipeline: Pipeline) -> None:
    """A stream has no end; the error says where the option belongs."""
    pipeline.cluster.create_topic(pipeline.topic, queues=1)
    with pytest.raises(Exception, match="endingOffsets is an option of read"):
        pipeline.run(endingOffsets="latest")


def test_a_stream_of_chosen_messages_of_topics_that_appear(
    pipeline: Pipeline, spark: Any, tmp_path: Path
) -> None:
    """Pattern, tags and a limit of bytes together; run after run every message once."""

    def run(number: int) -> list[str]:
        name = f"{pipeline.topic}-{number}"
        pipeline.cluster.create_topic(name, queues=2)
        pipeline.cluster.send(
            Message(name, f"{number}:{each}", tags="odd" if each % 2 else "even")
            for each in range(20)
        )
        stream = spark.readStream.format("rocketmq").options(
            nameServer=pipeline.cluster.namesrv, subscribePattern=f"{pipeline.topic}-.*",
            startingOffsets="earliest", tags="odd", maxBytesPerTrigger="2k",
        )  # fmt: skip
        writer = stream.load().writeStream.format("parquet")
        writer = writer.options(path=pipeline.path, checkpointLocation=pipeline.checkpoint)
        finish(writer.trigger(availableNow=True).start())
        return pipeline.bodies()

    odd = [f"1:{each}" for each in range(1, 20, 2)]
    assert sorted(odd) == run(1)
    assert sorted(odd + [f"2:{each}" for each in range(1, 20, 2)]) == run(2)


def test_a_checkpoint_of_another_topic_is_an_error_that_says_so(pipeline: Pipeline) -> None:
    """Two queries with one checkpoint by mistake: neither gap nor mixture."""
    for name in (pipeline.topic, f"{pipeline.topic}-2"):
        pipeline.cluster.create_topic(name, queues=1)
        pipeline.cluster.fill(name, [3])
    pipeline.run(startingOffsets="earliest")
    pipeline.topic += "-2"
    with pytest.raises(Exception, match=r"the checkpoint is of .*use another folder"):
        pipeline.run(startingOffsets="earliest")
