"""The readers against a real broker, called as Spark would call them, without Spark itself."""

import json
import pickle
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from sparkkit import BROKER, Processes, numbered

from gantrymq.broker.settings.config import OTHER_PORTS, BrokerConfig
from gantrymq.client.core.errors import BrokerUnknown, NoNameServer, NoRoute
from gantrymq.model import Message, Queue
from gantrymq.model.offset_ranges import OffsetRange
from gantrymq.protocol.record import decode_records
from gantrymq.spark.datasource import BatchReader, ReadTask, StreamReader
from gantrymq.spark.options.source_parser import parse_source_options
from gantrymq.spark.records.fetch import DataLost, Pull, Reader, gather_records, skip
from gantrymq.spark.records.survey import bounds
from gantrymq.testing.plugin import GantryCluster

ALL = ReadAllAvailable()


@contextmanager
def stream(
    cluster: Processes | GantryCluster, topic: str, **options: str
) -> Iterator[StreamReader]:
    given = {
        "nameServer": cluster.namesrv,
        "topic": topic,
        "metadataMaxAge": "0",
        "columns": "queueId,queueOffset,body",
    } | options
    reader = StreamReader(parse_source_options(given, streaming=True))
    yield reader
    reader.stop()


def bodies(reader: BatchReader | StreamReader, slices: list[ReadTask]) -> list[str]:
    """What workers would read; each has a pickled copy of the reader."""
    copy = pickle.loads(pickle.dumps(reader))
    batches = [batch for each in slices for batch in copy.read(each)]
    return sorted(value.decode() for batch in batches for value in batch["body"].to_pylist())


def test_a_beginning_at_latest_stays_while_messages_arrive(cluster: Processes, topic: str) -> None:
    """Spark asks twice where a query begins; two answers would lose what lies between them."""
    cluster.create_topic(topic, queues=2)
    cluster.fill(topic, [5, 5])
    with stream(cluster, topic, startingOffsets="latest") as reader:
        first = reader.initialOffset()
        cluster.fill(topic, [3, 3], first=5)

        assert first == {topic: {BROKER: {"0": 5, "1": 5}}}
        assert reader.initialOffset() == first


def test_the_first_batch_from_latest_is_empty_and_the_next_has_all(
    cluster: Processes, topic: str
) -> None:
    """The empty batch brings the beginning into the checkpoint before any row depends on it."""
    cluster.create_topic(topic, queues=1)
    with stream(cluster, topic, startingOffsets="latest") as reader:
        begin = reader.initialOffset()
        cluster.fill(topic, [4])

        assert reader.latestOffset(begin, ALL) == begin
        assert reader.partitions(begin, begin) == []
        end = reader.latestOffset(begin, ALL)
        assert bodies(reader, reader.partitions(begin, end)) == numbered([4])


def test_without_news_the_offsets_are_the_same_text(cluster: Processes, topic: str) -> None:
    """Spark compares text; a stream without news must not look like one with."""
    cluster.create_topic(topic, queues=12)
    cluster.fill(topic, [1] * 12)
    with stream(cluster, topic, startingOffsets="earliest") as reader:
        end = reader.latestOffset(reader.initialOffset(), ALL)
        checkpoint = json.dumps(end)

        assert json.dumps(reader.latestOffset(json.loads(checkpoint), ALL)) == checkpoint


def test_planning_a_batch_again_reads_the_same(cluster: Processes, topic: str) -> None:
    """After a crash the same two offsets mean the same rows, whatever arrived since."""
    cluster.create_topic(topic, queues=3)
    cluster.fill(topic, [4, 0, 2])
    with stream(cluster, topic, startingOffsets="earliest") as reader:
        begin = reader.initialOffset()
        end = reader.latestOffset(begin, ALL)
        before = bodies(reader, reader.partitions(begin, end))
    cluster.fill(topic, [1, 1, 1], first=10)
    with stream(cluster, topic, startingOffsets="earliest") as restarted:
        assert bodies(restarted, restarted.partitions(begin, end)) == before == numbered([4, 0, 2])


def test_a_limit_is_kept_and_everything_comes_in_the_end(cluster: Processes, topic: str) -> None:
    """Batches of a limited size follow each other until all is read."""
    cluster.create_topic(topic, queues=2)
    cluster.fill(topic, [30, 6])
    found: list[str] = []
    sizes = []
    with stream(cluster, topic, startingOffsets="earliest", maxOffsetsPerTrigger="12") as reader:
        limit = reader.getDefaultReadLimit()
        at = reader.initialOffset()
        while (end := reader.latestOffset(at, limit)) != at:
            rows = bodies(reader, reader.partitions(at, end))
            found, at = found + rows, end
            sizes.append(len(rows))

    assert limit == ReadMaxRows(12)
    assert sizes == [12, 12, 12]
    assert sorted(found) == numbered([30, 6])


def test_available_now_means_now(cluster: Processes, topic: str) -> None:
    """What arrives after the trigger began is left for the next run, also in new queues."""
    cluster.create_topic(topic, queues=1)
    cluster.fill(topic, [3])
    with stream(cluster, topic, startingOffsets="earliest") as reader:
        reader.prepareForTriggerAvailableNow()
        begin = reader.initialOffset()
        cluster.fill(topic, [3], first=3)
        cluster.create_topic(topic, queues=2)
        cluster.fill(topic, [0, 3])
        end = reader.latestOffset(begin, ALL)

        assert bodies(reader, reader.partitions(begin, end)) == numbered([3])
        assert reader.latestOffset(end, ALL) == end
        report = reader.reportLatestOffset() or {}
        assert report[topic] == {BROKER: {"0": 6, "1": 3}}


def test_a_queue_that_appears_is_read_from_its_first_message(
    cluster: Processes, topic: str
) -> None:
    """A topic may grow while a query runs."""
    cluster.create_topic(topic, queues=1)
    cluster.fill(topic, [2])
    with stream(cluster, topic, startingOffsets="earliest") as reader:
        at = reader.latestOffset(reader.initialOffset(), ALL)
        cluster.create_topic(topic, queues=2)
        cluster.fill(topic, [0, 5])
        end = reader.latestOffset(at, ALL)

        assert bodies(reader, reader.partitions(at, end)) == numbered([0, 5])


def test_small_queues_share_a_task(cluster: Processes, topic: str) -> None:
    """A task costs more than the few messages of a queue."""
    cluster.create_topic(topic, queues=8)
    cluster.fill(topic, [1] * 8)
    with stream(cluster, topic, startingOffsets="earliest", maxPartitions="2") as reader:
        begin = reader.initialOffset()
        tasks = reader.partitions(begin, reader.latestOffset(begin, ALL))

        assert [len(task.ranges) for task in tasks] == [4, 4]
        assert bodies(reader, tasks) == numbered([1] * 8)


@pytest.mark.parametrize("count", [1, 7, 4096])
def test_a_range_may_need_many_pulls(cluster: Processes, topic: str, count: int) -> None:
    """However many messages a pull may bring, the range is whole and exact."""
    cluster.create_topic(topic, queues=1)
    cluster.fill(topic, [100])
    wanted = OffsetRange(Queue(topic, BROKER, 0), 10, 95)
    with Reader(cluster.namesrv, "tests") as reader:
        replies = list(reader.replies(wanted, Pull(count=count)))

    assert len(replies) == -(-wanted.rows // count)
    assert len(list(gather_records(iter(replies), size=1 << 20))) == 1
    assert b"".join(gather_records(iter(replies), size=500)) == b"".join(replies)


def test_messages_that_are_gone_are_an_error_unless_allowed(cluster: Processes, topic: str) -> None:
    """A range beyond the queue's end was cut off: never an empty success."""
    cluster.create_topic(topic, queues=1)
    cluster.fill(topic, [10])
    wanted = OffsetRange(Queue(topic, BROKER, 0), 5, 30)
    with Reader(cluster.namesrv, "tests") as reader:
        with pytest.raises(DataLost, match=r"messages 10 to 29.*failOnDataLoss"):
            list(reader.replies(wanted))
        assert len(list(reader.replies(wanted, lost=skip))) == 1


class SlaveConfig(BrokerConfig, kw_only=True, rename="camel"):
    """Settings of a slave, which no broker of ours is meant to be; Java's are."""

    def __post_init__(self) -> None:
        """The number of a slave is not refused."""


def test_only_a_master_can_tell_that_messages_are_gone(gantry: GantryCluster, topic: str) -> None:
    """A slave may lag behind: what it does not have yet is waited for, never left out."""
    gantry.create_topic(topic, queues=1)
    queue = Queue(topic, BROKER, 0)

    cluster = gantry.cluster

    async def send(*bodies: str) -> None:
        async with cluster.producer() as producer:
            for body in bodies:
                await producer.send(Message(topic, body), queue=queue)

    async def fall_behind() -> None:
        """A slave has the store as it was; then its master gets two more messages and stops."""
        await send("a", "b", "c")
        await cluster.stop_broker(BROKER)
        config = cluster._configs[BROKER]
        copy = f"{config.store_path_root_dir}-slave"
        shutil.copytree(config.store_path_root_dir, copy)
        await cluster.start_broker(BROKER)
        port = cluster.network.free_port("127.0.0.1", OTHER_PORTS)
        cluster._disks["slave"] = cluster.disk
        same = {name: getattr(config, name) for name in config.__struct_fields__}
        new = {"broker_id": 1, "store_path_root_dir": copy, "listen_port": port}
        cluster._configs["slave"] = SlaveConfig(**same | new)
        await cluster.start_broker("slave")
        await send("d", "e")
        await cluster.stop_broker(BROKER)

    gantry.call(fall_behind())
    lost: list[tuple[int, int]] = []
    with Reader(gantry.namesrv, "tests", patience=0.5) as reader:
        assert len(list(reader.replies(OffsetRange(queue, 0, 3)))) == 1
        with pytest.raises(BrokerUnknown, match=r"no master now.*no message 3 of"):
            list(reader.replies(OffsetRange(queue, 0, 5), lost=lambda _, *gap: lost.append(gap)))
        at = {topic: {BROKER: {"0": 5}}}
        for allowed in ("true", "false"):
            with stream(gantry, topic, failOnDataLoss=allowed) as follower:
                assert at == follower.latestOffset(at, ALL)
        gantry.call(cluster.start_broker(BROKER))
    with Reader(gantry.namesrv, "tests") as reader:
        found = b"".join(reader.replies(OffsetRange(queue, 0, 5)))
    assert [b"a", b"b", b"c", b"d", b"e"] == [each.body for each in decode_records(found)]
    assert [] == lost


def test_a_topic_that_does_not_exist_is_said_at_once(cluster: Processes, topic: str) -> None:
    """A misspelt topic is not waited for."""
    with Reader(cluster.namesrv, "tests") as reader, pytest.raises(NoRoute):
        reader.ask(lambda instance: bounds(instance, [topic]))


def test_a_cluster_that_is_away_is_waited_for_but_not_for_ever(topic: str) -> None:
    """Nobody listens there: an error, not an empty table."""
    with Reader("127.0.0.1:1", "tests", patience=0.2) as reader, pytest.raises(NoNameServer):
        reader.ask(lambda instance: bounds(instance, [topic]))


def test_a_wrong_name_server_is_told_within_five_seconds(topic: str) -> None:
    """Whoever has never answered is not waited for as a broker is that restarts."""
    began = time.monotonic()
    with Reader("127.0.0.1:1", "tests") as reader, pytest.raises(NoNameServer):
        reader.ask(lambda instance: bounds(instance, [topic]))

    assert time.monotonic() - began < 5
