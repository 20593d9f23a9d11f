"""What is read: topics, queues, tags, keys, conditions and times, against a real broker."""

import json
import time
from typing import Any

import pytest
from sparkkit import BROKER, Processes

from gantrymq import Message
from gantrymq.base.errors import ConfigError
from gantrymq.model import Queue
from gantrymq.model.offset_ranges import OffsetRange, QueueOffsets
from gantrymq.spark.datasource import BatchReader
from gantrymq.spark.options.points import EARLIEST
from gantrymq.spark.options.source_options import ClusterAccess, ProgressReports, SourceOptions
from gantrymq.spark.options.source_parser import parse_source_options
from gantrymq.spark.records.fetch import Reader
from gantrymq.spark.source.begin import locate, starting_point
from gantrymq.spark.source.progress import StreamProgress
from gantrymq.spark.source.rows import open_rows
from gantrymq.testing.plugin import GantryCluster

COUNT = 60


def opts(cluster: Processes, **options: str) -> SourceOptions:
    return parse_source_options({"nameServer": cluster.namesrv} | options, streaming=False)


def read(cluster: Processes, *columns: str, **options: str) -> list[tuple[Any, ...]]:
    """The rows of a batch, sorted, with these columns."""
    reader = BatchReader(opts(cluster, columns=",".join(columns or ("body",)), **options))
    batches = [batch for each in reader.partitions() for batch in reader.read(each)]
    return sorted(tuple(row.values()) for batch in batches for row in batch.to_pylist())


def filled(cluster: Processes, topic: str, queues: int = 2) -> None:
    """Numbered messages; every third is of tag `t0`, every fifth has a number above 50."""
    cluster.create_topic(topic, queues=queues)
    cluster.send(
        Message(
            topic, b"%02d" % number, tags=f"t{number % 3}", keys=[f"k{number % 7}", "all"],
            properties={"price": str(number)},
        )
        for number in range(COUNT)
    )  # fmt: skip


def bodies_where(chosen: Any) -> list[tuple[bytes]]:
    return [(b"%02d" % number,) for number in range(COUNT) if chosen(number)]


def test_tags_are_chosen_by_the_broker_and_compared_exactly(cluster: Processes, topic: str) -> None:
    """Two tags of one hash are told apart on the reader: brokers only know the hash."""
    cluster.create_topic(topic, queues=1)
    cluster.send([Message(topic, tag, tags=tag) for tag in ("Aa", "BB", "other")])

    assert [(b"Aa",)] == read(cluster, topic=topic, tags="Aa")
    assert [(b"BB",), (b"other",)] == read(cluster, topic=topic, tags="BB || other")
    assert [] == read(cluster, topic=topic, tags="none")


def test_conditions_and_keys_choose(cluster: Processes, topic: str) -> None:
    """All that was asked for must hold; columns that are needed for it need not be chosen."""
    filled(cluster, topic)

    assert bodies_where(lambda n: n > 50) == read(cluster, topic=topic, sqlFilter="price > 50")
    assert bodies_where(lambda n: n % 7 == 3) == read(cluster, topic=topic, keyFilter="k3")
    assert bodies_where(lambda n: n % 7 in (3, 4)) == read(cluster, topic=topic, keyFilter="k3 k4")
    assert bodies_where(lambda n: n > 50 and n % 3 == 1 and n % 7 == 3) == read(
        cluster, topic=topic, sqlFilter="price > 50", tags="t1", keyFilter="k3 k9"
    )


def test_what_a_filter_leaves_out_is_no_loss_and_the_end_is_kept(
    cluster: Processes, topic: str
) -> None:
    """Gaps are expected, and what lies behind the range's end is not read although it fits."""
    filled(cluster, topic, queues=1)
    ending = json.dumps({topic: {BROKER: {"0": 10}}})

    for pull in ("1", "3", "4096"):
        found = read(cluster, topic=topic, tags="t2", endingOffsets=ending, pullBatchSize=pull)
        assert bodies_where(lambda n: n < 10 and n % 3 == 2) == found


def test_a_condition_that_is_none_is_refused_before_anybody_is_asked(topic: str) -> None:
    """The text says what is wrong with it."""
    with pytest.raises(ConfigError, match="sqlFilter: "):
        parse_source_options(
            {"nameServer": "x:1", "topic": topic, "sqlFilter": "price >"}, streaming=False
        )


def test_topics_are_found_by_pattern_without_system_topics(cluster: Processes, topic: str) -> None:
    """The whole name must fit; retries and dead letters only if the pattern asks for them."""
    for name in (f"{topic}-a", f"{topic}-b", f"{topic}-ab", f"%DLQ%{topic}-c"):
        cluster.create_topic(name, queues=1)
        cluster.send([Message(name, name)])

    assert [(f"{topic}-a",), (f"{topic}-b",)] == read(
        cluster, "topic", subscribePattern=f"{topic}-."
    )
    assert [(f"%DLQ%{topic}-c",)] == read(cluster, "topic", subscribePattern=f"%DLQ%{topic}-.")
    assert [] == read(cluster, "topic", subscribePattern="nothing-.*")


def test_queues_are_assigned_or_numbered(cluster: Processes, topic: str) -> None:
    """Some queues only; one that does not exist is an error, not an empty table."""
    cluster.create_topic(topic, queues=4)
    cluster.fill(topic, [1] * 4)
    assign = json.dumps({topic: {BROKER: [1, 3]}})

    assert [(1,), (3,)] == read(cluster, "queueId", assign=assign)
    assert [(0,), (2,), (3,)] == read(cluster, "queueId", topic=topic, queues="0,2-9")
    with pytest.raises(ConfigError, match="there is no queue 7 of"):
        read(cluster, assign=json.dumps({topic: {BROKER: [7]}}))


def test_times_choose_exactly(cluster: Processes, topic: str) -> None:
    """From the first message stored at a time, up to the first stored at another."""
    cluster.create_topic(topic, queues=2)
    marks = []
    for first in range(0, 9, 3):
        cluster.fill(topic, [3, 1], first=first)
        time.sleep(0.02)
        marks.append(int(time.time() * 1000))
        time.sleep(0.02)
    text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(marks[0] / 1000))
    iso = f"{text}.{marks[0] % 1000:03d}+00:00"

    def bodies(**options: str) -> list[str]:
        return [body.decode() for (body,) in read(cluster, topic=topic, **options)]

    middle = ["0:3", "0:4", "0:5", "1:3"]
    assert middle == bodies(startingTimestamp=str(marks[0]), endingTimestamp=str(marks[1]))
    assert middle == bodies(startingTimestamp=iso, endingTimestamp=str(marks[1]))
    assert [] == bodies(startingTimestamp=str(marks[2]))
    assert 12 == len(bodies(startingTimestamp="0"))
    by_queue = json.dumps({topic: {BROKER: {"0": marks[1], "1": iso}}})
    assert ["0:6", "0:7", "0:8", "1:3", "1:6"] == bodies(startingOffsetsByTimestamp=by_queue)


def test_a_search_by_time_finds_every_message(cluster: Processes, topic: str) -> None:
    """Whatever hint the broker gives, the answer is the first message of that time or later."""
    cluster.create_topic(topic, queues=1)
    for number in range(20):
        cluster.fill(topic, [1 + number % 3], first=number)
        time.sleep(0.002)
    queue = Queue(topic, BROKER, 0)
    with open_rows(opts(cluster, topic=topic)) as rows:
        stored = [
            int(value.timestamp() * 1000)
            for batch in rows.batches(_whole(rows.bounds()[1], queue), ("storeTimestamp",))
            for value in batch["storeTimestamp"].to_pylist()
        ]
        times = sorted({*stored, *(ms + 1 for ms in stored), stored[0] - 5, stored[-1] + 5})
        for at_ms in times:
            expected = sum(ms < at_ms for ms in stored)
            assert {queue: expected} == rows.offsets_at({queue: at_ms})


def _whole(highs: QueueOffsets, queue: Queue) -> Any:

    return OffsetRange(queue, 0, highs[queue])


def test_the_groups_progress_is_a_place_to_begin(cluster: Processes, topic: str) -> None:
    """Queues without progress begin at their first message."""
    cluster.create_topic(topic, queues=2)
    cluster.fill(topic, [5, 2])
    progress = StreamProgress(
        ClusterAccess(namesrv=cluster.namesrv, group=topic), ProgressReports(commits=True)
    )
    progress.report({Queue(topic, BROKER, 0): 3})
    progress.close()

    found = read(cluster, topic=topic, group=topic, startingOffsets="committed")
    assert [(b"0:3",), (b"0:4",), (b"1:0",), (b"1:1",)] == found


def test_a_time_in_the_future_is_no_beginning_unless_allowed(
    cluster: Processes, topic: str
) -> None:
    """Messages of the meantime would be read although they are older."""
    cluster.create_topic(topic, queues=1)
    cluster.fill(topic, [3])
    later = {"topic": topic, "startingTimestamp": str(int(time.time() * 1000) + 60_000)}

    with pytest.raises(ConfigError, match="lies in the future"):
        read(cluster, **later)
    assert [] == read(cluster, startingOffsetsByTimestampStrategy="latest", **later)


def test_a_body_can_be_text(cluster: Processes, topic: str) -> None:
    """What is not UTF-8 is replaced, never an error."""
    cluster.create_topic(topic, queues=1)
    cluster.send([Message(topic, "größe".encode()), Message(topic, b"a\xffb")])

    assert [("a\ufffdb",), ("größe",)] == read(cluster, topic=topic, bodyAs="text")


def test_large_queues_are_cut_and_small_ones_share(cluster: Processes, topic: str) -> None:
    """By rows, by bytes, by a number of tasks at least or at most; always every row once."""
    cluster.create_topic(topic, queues=3)
    cluster.fill(topic, [60, 20, 4])
    everything = sorted((f"{q}:{n}".encode(),) for q, c in enumerate([60, 20, 4]) for n in range(c))

    def tasks(**options: str) -> list[int]:
        reader = BatchReader(opts(cluster, topic=topic, columns="body", **options))
        slices = reader.partitions()
        rows = [row for each in slices for batch in reader.read(each) for row in batch["body"]]
        assert everything == sorted((row.as_py(),) for row in rows)
        return sorted(sum(each.rows for each in task.ranges) for task in slices)

    assert [4, 20, 60] == tasks()
    assert [4, 20, 20, 20, 20] == tasks(maxRecordsPerPartition="20")
    assert [4, 15, 15, 15, 15, 20] == tasks(minPartitions="6")
    assert [24, 60] == tasks(maxPartitions="2")
    assert [20, 20, 20, 24] == tasks(maxRecordsPerPartition="20", maxPartitions="4")
    sizes = tasks(maxBytesPerPartition="4k")
    assert max(sizes) * 100 <= 4096 < 2 * max(sizes) * 300


def test_a_connection_is_kept_for_the_next_task(cluster: Processes, topic: str) -> None:
    """Workers live on between tasks: the second one finds the first one's connection."""
    cluster.create_topic(topic, queues=1)
    made = []
    for _ in range(3):
        with open_rows(opts(cluster, topic=topic, group=topic)) as rows:
            rows.bounds()
            made.append(rows._reader)  # type: ignore[attr-defined]

    assert 1 == len(set(map(id, made)))
    assert isinstance(made[0], Reader)


def test_looking_up_a_beginning_is_the_same_for_all_kinds(cluster: Processes, topic: str) -> None:
    """One function answers for streams, batches and pipelines."""
    cluster.create_topic(topic, queues=1)
    cluster.fill(topic, [4])
    queue = Queue(topic, BROKER, 0)
    wanted = {"earliest": 0, json.dumps({topic: {BROKER: {"0": 3}}}): 3}
    for text, offset in wanted.items():
        options = opts(cluster, topic=topic, startingOffsets=text)
        with open_rows(options) as rows:
            point = starting_point(options.span, 0)
            assert {queue: offset} == locate(options.queues, point, rows, otherwise=EARLIEST)


def test_a_broker_that_takes_no_conditions_says_so_before_anything_is_read(topic: str) -> None:
    """RocketMQ's refuse them unless they are switched on: the error says how."""
    cluster = GantryCluster(enable_property_filter=False)
    cluster.create_topic(topic, queues=1)
    given = {"nameServer": cluster.namesrv, "topic": topic, "sqlFilter": "a = 1"}
    reader = BatchReader(parse_source_options(given))
    with pytest.raises(ConfigError, match=r"broker-a does not take sqlFilter .*enableProperty"):
        reader.partitions()
    cluster.close()
