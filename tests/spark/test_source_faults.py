"""A stream's planning under stress: queues that come, go and are cut, brokers that are away.

The readers are called as Spark would call them; workers have pickled copies.
"""

import asyncio
import json
import pickle
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable
from sparkkit import BROKER, Processes, numbered

from gantrymq import Admin, Message, Producer, Queue
from gantrymq.base.errors import ConfigError, GantryError
from gantrymq.model.offset_ranges import OffsetRange
from gantrymq.protocol.record import decode_records
from gantrymq.spark.datasource import ReadTask, StreamReader
from gantrymq.spark.options.source_parser import parse_source_options
from gantrymq.spark.records.fetch import DataLost, Pull, QueueCut, Reader
from gantrymq.spark.source.rows import open_rows
from gantrymq.testing.plugin import GantryCluster

ALL = ReadAllAvailable()
AWAY_SECONDS = 1.0


@contextmanager
def stream(cluster: Any, **options: str) -> Iterator[StreamReader]:
    given = {
        "nameServer": cluster.namesrv,
        "startingOffsets": "earliest",
        "metadataMaxAge": "0",
        "columns": "body",
    } | options
    reader = StreamReader(parse_source_options(given, streaming=True))
    yield reader
    reader.stop()


def bodies(reader: StreamReader, slices: list[ReadTask]) -> list[str]:
    copy = pickle.loads(pickle.dumps(reader))
    batches = [batch for each in slices for batch in copy.read(each)]
    return sorted(value.decode() for batch in batches for value in batch["body"].to_pylist())


def admin(cluster: Processes, work: Any) -> None:
    async def run() -> None:
        async with Admin(cluster.namesrv) as admin:
            await work(admin)

    asyncio.run(run())


# where a query begins


def test_a_kept_beginning_survives_a_crash_before_the_first_batch(
    cluster: Processes, topic: str, tmp_path: Path
) -> None:
    """With a folder for it the beginning is fixed from the first answer on: G2."""
    cluster.create_topic(topic, queues=2)
    cluster.fill(topic, [3, 1])
    options = {"topic": topic, "startingOffsets": "latest", "startStatePath": str(tmp_path)}
    with stream(cluster, **options) as reader:
        begin = reader.initialOffset()
    cluster.fill(topic, [2, 2], first=3)
    with stream(cluster, **options) as restarted:
        assert begin == restarted.initialOffset()
        end = restarted.latestOffset(begin, ALL)
        found = bodies(restarted, restarted.partitions(begin, end))

    assert numbered([2, 2], first=3) == found


def test_a_kept_beginning_of_another_topic_is_refused(
    cluster: Processes, topic: str, tmp_path: Path
) -> None:
    """The folder belongs to one query."""
    for name in (topic, f"{topic}-2"):
        cluster.create_topic(name, queues=1)
    with stream(cluster, topic=topic, startStatePath=str(tmp_path)) as reader:
        reader.initialOffset()
    with (
        stream(cluster, topic=f"{topic}-2", startStatePath=str(tmp_path)) as other,
        pytest.raises(ConfigError, match=f"is of {topic}, but the options name {topic}-2"),
    ):
        other.initialOffset()


def test_a_checkpoint_of_another_topic_is_refused(cluster: Processes, topic: str) -> None:
    """Its offsets mean nothing here; to read from 0 or not at all would both be wrong."""
    cluster.create_topic(topic, queues=1)
    old = {"yesterday": {BROKER: {"0": 5}}}
    with stream(cluster, topic=topic) as reader:
        with pytest.raises(ConfigError, match="the checkpoint is of yesterday"):
            reader.latestOffset(old, ALL)
        with pytest.raises(ConfigError, match="use another folder"):
            reader.partitions(old, old)


def test_progress_that_may_move_begins_with_an_empty_batch(cluster: Processes, topic: str) -> None:
    """Anybody may move a group's progress until the checkpoint has it."""
    cluster.create_topic(topic, queues=1)
    cluster.fill(topic, [4])
    with stream(cluster, topic=topic, group=topic, startingOffsets="committed") as reader:
        begin = reader.initialOffset()
        assert begin == reader.latestOffset(begin, ALL)
        assert begin != reader.latestOffset(begin, ALL)


def test_what_a_copy_learns_the_driver_does_not_know(cluster: Processes, topic: str) -> None:
    """G4: workers read with copies; what is planned depends on none of them."""
    cluster.create_topic(topic, queues=1)
    cluster.fill(topic, [4])
    with stream(cluster, topic=topic) as reader:
        begin = reader.initialOffset()
        end = reader.latestOffset(begin, ALL)
        copy = pickle.loads(pickle.dumps(reader))
        cluster.fill(topic, [1], first=4)
        assert copy.latestOffset(end, ALL) != end
        copy.stop()

        assert numbered([4]) == bodies(reader, reader.partitions(begin, end))


# queues that come and go


def test_topics_that_fit_the_pattern_join_when_they_appear(cluster: Processes, topic: str) -> None:
    """A query may begin before its first topic exists."""
    with stream(cluster, subscribePattern=f"{topic}-.*") as reader:
        at = reader.initialOffset()
        assert {} == at == reader.latestOffset(at, ALL)
        cluster.create_topic(f"{topic}-1", queues=1)
        cluster.fill(f"{topic}-1", [3])
        end = reader.latestOffset(at, ALL)

        assert numbered([3]) == bodies(reader, reader.partitions(at, end))


def test_a_new_queue_may_begin_at_its_end(cluster: Processes, topic: str) -> None:
    """newQueueStart=latest: what it had when it was first seen is left out, once and for all."""
    cluster.create_topic(topic, queues=1)
    cluster.fill(topic, [2])
    with stream(cluster, topic=topic, newQueueStart="latest") as reader:
        at = reader.latestOffset(reader.initialOffset(), ALL)
        cluster.create_topic(topic, queues=2)
        cluster.fill(topic, [0, 5])
        seen = reader.latestOffset(at, ALL)
        cluster.fill(topic, [0, 3], first=5)
        end = reader.latestOffset(seen, ALL)

        assert [] == bodies(reader, reader.partitions(at, seen))
        assert ["1:5", "1:6", "1:7"] == bodies(reader, reader.partitions(seen, end))


def test_a_queue_that_vanishes_waits_where_it_was(cluster: Processes, topic: str) -> None:
    """Nothing of it is skipped: when it is back it goes on."""
    cluster.create_topic(topic, queues=2)
    cluster.fill(topic, [2, 2])
    with stream(cluster, topic=topic) as reader:
        at = reader.latestOffset(reader.initialOffset(), ALL)
        cluster.fill(topic, [1, 1], first=2)
        cluster.create_topic(topic, queues=1)
        less = reader.latestOffset(at, ALL)
        cluster.create_topic(topic, queues=2)
        whole = reader.latestOffset(less, ALL)

        assert {topic: {BROKER: {"0": 3, "1": 2}}} == less
        assert ["1:2"] == bodies(reader, reader.partitions(less, whole))


def test_a_topic_made_anew_is_an_error_unless_allowed(
    cluster: Processes, topic: str, tmp_path: Path
) -> None:
    """Its offsets begin again, so that the old ones would wait for ever."""
    cluster.create_topic(topic, queues=1)
    cluster.fill(topic, [9])
    with stream(cluster, topic=topic) as reader:
        at = reader.latestOffset(reader.initialOffset(), ALL)
    admin(cluster, lambda admin: admin.delete_topic(topic))
    cluster.create_topic(topic, queues=1)
    cluster.fill(topic, [2])
    with (
        stream(cluster, topic=topic) as strict,
        pytest.raises(QueueCut, match=r"ends at 2, but was read up to 9.*failOnDataLoss=false"),
    ):
        strict.latestOffset(at, ALL)
    options = {"failOnDataLoss": "report", "startStatePath": str(tmp_path)}
    with stream(cluster, topic=topic, **options) as reader:
        again = reader.latestOffset(at, ALL)
        end = reader.latestOffset(again, ALL)
        assert [] == bodies(reader, reader.partitions(at, again))
        assert numbered([2]) == bodies(reader, reader.partitions(again, end))
    (loss,) = (tmp_path / "losses").iterdir()

    assert (2, 9) == tuple(json.loads(loss.read_text())[name] for name in ("start", "end"))


def test_lost_messages_can_be_written_down(cluster: Processes, topic: str, tmp_path: Path) -> None:
    """failOnDataLoss=report: what is left is read, and a file says what was not."""
    cluster.create_topic(topic, queues=1)
    cluster.fill(topic, [5])
    options = parse_source_options(
        {
            "nameServer": cluster.namesrv, "topic": topic, "failOnDataLoss": "report",
            "startStatePath": f"file://{tmp_path}",
        },
        streaming=False,
    )  # fmt: skip
    for _ in range(2):  # a task that is run again tells the same
        with open_rows(options) as rows:
            found = list(rows.batches(OffsetRange(Queue(topic, BROKER, 0), 3, 8), ("queueOffset",)))
    (loss,) = (tmp_path / "losses").iterdir()

    assert [3, 4] == [offset for batch in found for offset in batch["queueOffset"].to_pylist()]
    assert {"topic": topic, "brokerName": BROKER, "queueId": 0, "start": 5, "end": 8} == json.loads(
        loss.read_text()
    )


# how much a batch takes


def test_a_batch_waits_for_enough_rows_but_not_for_ever(cluster: Processes, topic: str) -> None:
    """The first batch begins at once; later ones when there is enough, or after the delay."""
    cluster.create_topic(topic, queues=1)
    cluster.fill(topic, [2])
    options = {"minOffsetsPerTrigger": "5", "maxTriggerDelay": "700ms"}
    with stream(cluster, topic=topic, **options) as reader:
        at = reader.initialOffset()
        first = reader.latestOffset(at, ALL)
        cluster.fill(topic, [3], first=2)
        assert at != first == reader.latestOffset(first, ALL)
        cluster.fill(topic, [2], first=5)
        second = reader.latestOffset(first, ALL)
        assert {topic: {BROKER: {"0": 7}}} == second
        cluster.fill(topic, [1], first=7)
        assert second == reader.latestOffset(second, ALL)
        time.sleep(0.75)
        assert {topic: {BROKER: {"0": 8}}} == reader.latestOffset(second, ALL)


def test_a_run_over_what_is_there_does_not_wait_for_more(cluster: Processes, topic: str) -> None:
    """availableNow ends although there is less than minOffsetsPerTrigger."""
    cluster.create_topic(topic, queues=1)
    cluster.fill(topic, [2])
    with stream(cluster, topic=topic, minOffsetsPerTrigger="100") as reader:
        reader.prepareForTriggerAvailableNow()
        at = reader.latestOffset(reader.initialOffset(), ALL)
    with stream(cluster, topic=topic, minOffsetsPerTrigger="100") as reader:
        cluster.fill(topic, [1], first=2)
        reader.prepareForTriggerAvailableNow()

        assert {topic: {BROKER: {"0": 3}}} == reader.latestOffset(at, ALL)


def test_a_batch_can_be_limited_by_bytes(cluster: Processes, topic: str) -> None:
    """By the size that the next messages have."""
    cluster.create_topic(topic, queues=1)
    cluster.send([Message(topic, b"x" * 900) for _ in range(100)])
    with stream(cluster, topic=topic, maxBytesPerTrigger="20k") as reader:
        end = reader.latestOffset(reader.initialOffset(), ALL)[topic][BROKER]["0"]

    assert 15 <= end <= 22


def test_the_lag_is_told_in_rows_bytes_and_seconds(cluster: Processes, topic: str) -> None:
    """Beside the offsets, where Spark's progress has them."""
    cluster.create_topic(topic, queues=1)
    cluster.send([Message(topic, b"x" * 900) for _ in range(10)])
    time.sleep(0.1)
    with stream(cluster, topic=topic, maxOffsetsPerTrigger="4") as reader:
        reader.latestOffset(reader.initialOffset(), reader.getDefaultReadLimit())
        report = reader.reportLatestOffset() or {}

    about = report["@progress"]
    assert {BROKER: {"0": 10}} == report[topic]
    assert 6 == about["lagRows"]
    assert 6 * 900 <= about["lagBytes"] <= 6 * 1200
    assert 0.1 <= about["lagSeconds"] <= 60


# brokers that are away


@pytest.fixture
def own() -> Iterator[GantryCluster]:
    """A cluster whose broker can be stopped."""
    cluster = GantryCluster()
    yield cluster
    cluster.close()


def fill(own: GantryCluster, topic: str, first: int, count: int) -> None:
    async def send() -> None:
        async with Producer(own.namesrv, group="tests") as producer:
            for number in range(first, first + count):
                await producer.send(Message(topic, f"0:{number}"), queue=Queue(topic, BROKER, 0))

    own.call(send())


def away(own: GantryCluster, seconds: float) -> threading.Timer:
    """Stop the broker now, and start it again in a while."""
    own.call(own.cluster.stop_broker())
    back = threading.Timer(seconds, lambda: own.call(own.cluster.start_broker()))
    back.start()
    return back


def test_a_broker_that_restarts_in_the_middle_of_a_batch_is_waited_for(own: GantryCluster) -> None:
    """The task goes on with the record after the last one it got: no gap, no repeat."""
    own.create_topic("restarts", queues=1)
    fill(own, "restarts", 0, 50)
    offsets: list[int] = []
    with Reader(own.namesrv, "tests") as reader:
        replies = reader.replies(OffsetRange(Queue("restarts", BROKER, 0), 0, 50), Pull(count=10))
        for reply in replies:
            offsets += [record.queue_offset for record in decode_records(reply)]
            if len(offsets) == 20:
                back = away(own, AWAY_SECONDS)
        back.join()

    assert list(range(50)) == offsets


def test_planning_waits_for_a_broker_that_is_away(own: GantryCluster) -> None:
    """A stream outlives its broker's restart, and loses nothing."""
    own.create_topic("planned", queues=1)
    fill(own, "planned", 0, 5)
    with stream(own, topic="planned") as reader:
        at = reader.latestOffset(reader.initialOffset(), ALL)
        fill(own, "planned", 5, 5)
        back = away(own, AWAY_SECONDS)
        end = reader.latestOffset(at, ALL)
        back.join()

        assert [f"0:{number}" for number in range(5, 10)] == bodies(
            reader, reader.partitions(at, end)
        )


def test_patience_ends_with_an_error_and_not_with_an_empty_batch(own: GantryCluster) -> None:
    """A broker that stays away fails the query; the checkpoint stays where it was."""
    own.create_topic("patient", queues=1)
    fill(own, "patient", 0, 5)
    with stream(own, topic="patient", patience="300ms") as reader:
        begin = reader.initialOffset()
        end = reader.latestOffset(begin, ALL)
        slices = reader.partitions(begin, end)
        own.call(own.cluster.stop_broker())
        with pytest.raises(GantryError):
            reader.latestOffset(end, ALL)
        with pytest.raises(GantryError) as failed:
            bodies(reader, slices)
        own.call(own.cluster.start_broker())

    assert not isinstance(failed.value, DataLost)


def test_a_query_that_restarts_while_its_broker_is_away_waits_for_it(own: GantryCluster) -> None:
    """The checkpoint says that the topic exists; no route only means that its broker is gone."""
    own.create_topic("known", queues=1)
    fill(own, "known", 0, 5)
    with stream(own, topic="known") as reader:
        begin = reader.initialOffset()
    back = away(own, AWAY_SECONDS)
    with stream(own, topic="known") as restarted:
        restarted.prepareForTriggerAvailableNow()
        end = restarted.latestOffset(begin, ALL)
        back.join()

        assert [f"0:{number}" for number in range(5)] == bodies(
            restarted, restarted.partitions(begin, end)
        )
