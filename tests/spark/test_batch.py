"""Batches through a real Spark from a real broker."""

import json
from pathlib import Path
from typing import Any

import pytest
from sparkkit import BROKER, Processes, bodies_of, numbered

from gantrymq import Message

pytestmark = pytest.mark.timeout(240)


def load(spark: Any, cluster: Processes, topic: str, **options: str) -> Any:
    return (
        spark.read.format("rocketmq")
        .options(nameServer=cluster.namesrv, topic=topic, **options)
        .load()
    )


def test_a_table_holds_what_was_sent(spark: Any, cluster: Processes, topic: str) -> None:
    """Bodies, tags, keys, properties, ids and places: all as the producer knows them."""
    cluster.create_topic(topic, queues=4)
    messages = [
        Message(topic, b"\x00\xff body %d" % number, tags=f"t{number % 3}",
                keys=[f"k{number}", "all"], properties={"größe": str(number)}, flag=number)
        for number in range(50)
    ]  # fmt: skip
    messages.append(Message(topic, b"large and packed " * 1000))
    results = cluster.send(messages)

    rows = {row.msgId: row for row in load(spark, cluster, topic).collect()}

    assert len(rows) == len(messages)
    for message, result in zip(messages, results, strict=True):
        row = rows[result.msg_id]
        assert bytes(row.body) == message.body
        assert (row.topic, row.brokerName) == (topic, BROKER)
        assert (row.queueId, row.queueOffset) == (result.queue.queue_id, result.offset)
        assert row.offsetMsgId == result.offset_msg_id
        assert (row.tags, row.keys) == (message.tags, " ".join(message.keys) or None)
        assert message.properties.items() <= row.properties.items()
        assert row.flag == message.flag
        assert row.bornTimestamp <= row.storeTimestamp


def test_kafkas_columns_hold_the_same(spark: Any, cluster: Processes, topic: str) -> None:
    """For queries that were written for Kafka: key, value, partition, offset and headers."""
    cluster.create_topic(topic, queues=2)
    messages = [Message(topic, b"one", keys=["k"], properties={"colour": "red"}),
                Message(topic, b"two")]  # fmt: skip
    first, second = cluster.send(messages)

    table = load(spark, cluster, topic, schema="kafka", includeHeaders="true")
    ours = {row.msgId: row for row in load(spark, cluster, topic).collect()}
    found = {bytes(row.value): row for row in table.collect()}

    one, two = found[b"one"], found[b"two"]
    assert (bytes(one.key), two.key) == (b"k", None)
    assert (one.topic, one.partition, one.offset) == (topic, first.queue.queue_id, first.offset)
    assert (one.timestamp, one.timestampType) == (ours[first.msg_id].storeTimestamp, 1)
    headers = {header.key: bytes(header.value) for header in one.headers}
    assert {"colour": b"red", "KEYS": b"k", "UNIQ_KEY": first.msg_id.encode()}.items() <= (
        headers.items()
    )
    text = load(spark, cluster, topic, schema="kafka", bodyAs="text", keyFilter="k")
    assert [("one",)] == [tuple(row) for row in text.select("value").collect()]
    assert second.msg_id in ours


def test_offsets_choose_what_is_read(spark: Any, cluster: Processes, topic: str) -> None:
    """Starts are inclusive, ends exclusive; a queue that is not named is read whole."""
    cluster.create_topic(topic, queues=3)
    cluster.fill(topic, [10, 10, 2])
    starting = json.dumps({topic: {BROKER: {"0": 4, "1": -2}}})
    ending = json.dumps({topic: {BROKER: {"0": 6, "1": 3}}})

    table = load(spark, cluster, topic, startingOffsets=starting, endingOffsets=ending)

    assert bodies_of(table.collect()) == sorted(["0:4", "0:5", "1:0", "1:1", "1:2", "2:0", "2:1"])


def test_a_queue_is_a_partition_in_order(spark: Any, cluster: Processes, topic: str) -> None:
    """Within a partition rows come in the order of the queue, however many pulls that takes."""
    cluster.create_topic(topic, queues=2)
    cluster.fill(topic, [9_000, 20])

    table = load(spark, cluster, topic, pullBatchSize="1000", columns="queueId,queueOffset")
    parts = table.rdd.mapPartitions(lambda rows: [[tuple(row) for row in rows]]).collect()

    assert [part for part in parts if part[0][0] == 0] == [[(0, at) for at in range(9_000)]]
    assert [part for part in parts if part[0][0] == 1] == [[(1, at) for at in range(20)]]


def test_topics_can_be_read_together_and_be_empty(
    spark: Any, cluster: Processes, topic: str
) -> None:
    """Several topics are one table; a topic without messages has no rows, but its columns."""
    for name, counts in ((f"{topic}-a", [3, 0]), (f"{topic}-b", [0, 2]), (f"{topic}-c", [0])):
        cluster.create_topic(name, queues=len(counts))
        cluster.fill(name, counts)

    both = load(spark, cluster, f"{topic}-a, {topic}-b")
    empty = load(spark, cluster, f"{topic}-c")

    assert {(row.topic, row["count"]) for row in both.groupBy("topic").count().collect()} == {
        (f"{topic}-a", 3),
        (f"{topic}-b", 2),
    }
    assert empty.count() == 0
    assert empty.columns == both.columns


def test_columns_are_chosen_by_option_or_schema(spark: Any, cluster: Processes, topic: str) -> None:
    """What is not chosen is neither decoded nor carried over to Spark."""
    cluster.create_topic(topic, queues=1)
    cluster.fill(topic, [2])

    by_option = load(spark, cluster, topic, columns="body,queueOffset")
    by_schema = (
        spark.read.format("rocketmq")
        .schema("queueOffset bigint, tags string")
        .options(namesrvAddr=cluster.namesrv, subscribe=topic)
        .load()
    )

    assert by_option.dtypes == [("body", "binary"), ("queueOffset", "bigint")]
    assert [tuple(row) for row in by_schema.collect()] == [(0, None), (1, None)]


def test_a_mistake_in_an_option_reaches_the_user(
    spark: Any, cluster: Processes, topic: str
) -> None:
    """The text that helps is in the error Spark shows."""
    with pytest.raises(Exception, match="unknown option startingofset; did you mean startingOffs"):
        load(spark, cluster, topic, startingOfset="earliest")
    with pytest.raises(Exception, match="no route for topic"):
        load(spark, cluster, topic).count()


def test_lost_messages_fail_the_query(spark: Any, cluster: Processes, topic: str) -> None:
    """Offsets that the queue does not have are an error, unless that was allowed."""
    cluster.create_topic(topic, queues=1)
    cluster.fill(topic, [5])
    ending = json.dumps({topic: {BROKER: {"0": 50}}})

    with pytest.raises(Exception, match="has lost its messages 5 to 49"):
        load(spark, cluster, topic, endingOffsets=ending).count()
    assert load(spark, cluster, topic, endingOffsets=ending, failOnDataLoss="false").count() == 5


def test_a_topic_becomes_parquet(
    spark: Any, cluster: Processes, topic: str, tmp_path: Path
) -> None:
    """Written to files and read back, every message is there once."""
    cluster.create_topic(topic, queues=2)
    cluster.fill(topic, [20, 30])
    path = str(tmp_path / "archive")

    load(spark, cluster, topic).write.parquet(path)

    assert bodies_of(spark.read.parquet(path).collect()) == numbered([20, 30])


def test_the_format_is_found_without_being_registered(
    spark: Any, cluster: Processes, topic: str
) -> None:
    """An installed package is enough: Spark looks for sources by itself."""
    cluster.create_topic(topic, queues=1)
    cluster.fill(topic, [3])

    assert load(spark.newSession(), cluster, topic).count() == 3
