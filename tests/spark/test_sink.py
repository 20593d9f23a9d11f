"""Rows into topics through a real Spark: batches and streams, exactly once and at least once."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as f
from sparkkit import Processes, bodies_of, numbered

pytestmark = pytest.mark.timeout(240)

END_SECONDS_MAX = 120


def table(spark: Any, count: int, first: int = 0) -> Any:
    """Numbered rows in two partitions."""
    numbers = spark.range(first, first + count, 1, 2)
    return numbers.select(f.concat(f.lit("0:"), f.col("id").cast("string")).alias("body"))


def write(rows: Any, cluster: Processes, topic: str, **options: str) -> None:
    (
        rows.write.format("rocketmq")
        .options(nameServer=cluster.namesrv, topic=topic, **options)
        .mode("append")
        .save()
    )


def read(spark: Any, cluster: Processes, topic: str) -> list[Any]:
    source = spark.read.format("rocketmq").options(nameServer=cluster.namesrv, topic=topic)
    return list(source.load().collect())


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
def test_a_batch_arrives_with_everything_its_columns_say(
    spark: Any, cluster: Processes, topic: str, delivery: str
) -> None:
    """Body, keys, tags, properties, flag; a key keeps to one queue, in order."""
    cluster.create_topic(topic, queues=4)
    rows = spark.range(0, 1_000, 1, 2).select(
        f.concat(f.lit("0:"), f.col("id").cast("string")).alias("body"),
        f.lit("t").alias("tags"),
        f.array(f.lit("k"), f.col("id").cast("string")).alias("keys"),
        f.create_map(f.lit("colour"), f.lit("red")).alias("properties"),
        (f.col("id") % 100).cast("int").alias("flag"),
        (f.col("id") % 7).cast("string").alias("shardingKey"),
    )
    write(rows, cluster, topic, delivery=delivery, sendBatchBytes="16k")
    found = read(spark, cluster, topic)
    of_one_key = [row for row in found if row.properties["__SHARDINGKEY"] == "3"]
    second = [row for row in of_one_key if int(bytes(row.body)[2:]) >= 500]
    in_order = sorted(second, key=lambda row: row.queueOffset)

    assert bodies_of(found) == numbered([1_000])
    assert {(row.tags, row.properties["colour"]) for row in found} == {("t", "red")}
    assert {row.keys.split()[1] for row in found} == {str(number) for number in range(1_000)}
    assert {row.queueId for row in of_one_key} == {of_one_key[0].queueId}
    assert [row.flag for row in in_order] == [int(bytes(row.body)[2:]) % 100 for row in in_order]
    assert sorted(int(bytes(row.body)[2:]) for row in second) == [
        int(bytes(row.body)[2:]) for row in in_order
    ]
    assert len({row.msgId for row in found}) == 1_000


def test_an_epoch_written_twice_is_there_once(spark: Any, cluster: Processes, topic: str) -> None:
    """With a writer's id and a number a batch write may be repeated, whatever it holds."""
    cluster.create_topic(topic, queues=2)
    for _ in range(2):
        write(table(spark, 50), cluster, topic, writerId=f"w-{topic}", epoch="3")
    write(table(spark, 5, first=50), cluster, topic, writerId=f"w-{topic}", epoch="4")

    assert bodies_of(read(spark, cluster, topic)) == numbered([55])


def test_topics_and_queues_may_come_from_columns(
    spark: Any, cluster: Processes, topic: str
) -> None:
    """One frame for several topics; a row may name its queue."""
    for suffix in ("-a", "-b"):
        cluster.create_topic(topic + suffix, queues=4)
    rows = spark.range(0, 40, 1, 2).select(
        f.concat(f.lit("0:"), f.col("id").cast("string")).alias("body"),
        f.when(f.col("id") < 20, topic + "-a").otherwise(topic + "-b").alias("topic"),
        f.when(f.col("id") % 2 == 0, 3).cast("int").alias("queueId"),
    )
    rows.write.format("rocketmq").option("nameServer", cluster.namesrv).mode("append").save()
    first = read(spark, cluster, topic + "-a")
    second = read(spark, cluster, topic + "-b")

    assert bodies_of(first + second) == numbered([40])
    assert len(first) == len(second) == 20
    assert {row.queueId for row in first if int(bytes(row.body)[2:]) % 2 == 0} == {3}


def test_rows_that_nobody_takes_go_where_the_option_says(
    spark: Any, cluster: Processes, topic: str
) -> None:
    """Fail names the reason and publishes nothing; skip leaves them out; dlq keeps them."""
    cluster.create_topic(topic, queues=2)
    cluster.create_topic(topic + "-dead", queues=1)
    rows = table(spark, 4).withColumn("tags", f.when(f.col("body") == "0:2", "a\x01b"))

    with pytest.raises(Exception, match="a tag, key or property contains a byte that separates"):
        write(rows, cluster, topic)
    after_fail = read(spark, cluster, topic)
    write(rows, cluster, topic, onError="skip")
    after_skip = bodies_of(read(spark, cluster, topic))
    write(rows, cluster, topic, onError="dlq", dlqTopic=topic + "-dead")
    (dead,) = read(spark, cluster, topic + "-dead")

    assert after_fail == []
    assert after_skip == ["0:0", "0:1", "0:3"]
    assert bytes(dead.body) == b"0:2"
    assert dead.properties["DLQ_ORIGIN_TOPIC"] == topic
    assert "separates" in dead.properties["GANTRY_REASON"]


def test_topics_that_do_not_exist_are_created_on_request(
    spark: Any, cluster: Processes, topic: str
) -> None:
    """The one of the option and those that rows name, with as many queues as asked for."""
    other = topic + "-other"
    rows = table(spark, 4).withColumn("topic", f.when(f.col("body") == "0:2", other))

    write(rows, cluster, topic, createTopic="true", createTopicQueues="3")

    assert bodies_of(read(spark, cluster, topic)) == ["0:0", "0:1", "0:3"]
    assert bodies_of(read(spark, cluster, other)) == ["0:2"]
    assert [3, 3] == [len(cluster.queues(name)) for name in (topic, other)]


@pytest.mark.parametrize(
    "columns, options, words",
    [
        ({"body": "a"}, {"topic": "nowhere"}, "topic nowhere does not exist: create it, or write"),
        ({"text": "a"}, {}, "the sink has no column 'text'"),
        ({"body": "a", "Tags": "b"}, {}, "no column 'Tags'; did you mean tags?"),
        ({"body": 7}, {}, "column body of the sink is binary or string, not int"),
        ({"tags": "a"}, {}, "the sink needs a column body"),
        ({"value": "a"}, {}, "column value is Kafka's: here it is the column body: rename it"),
        ({"body": "a"}, {"kafka.bootstrap.servers": "x"}, "Kafka's: here it is nameServer"),
        ({"body": "a"}, {"createTopicQueues": "2"}, "is for createTopic=true"),
        ({"body": "a"}, {"delivry": "auto"}, "unknown option delivry.*did you mean delivery?"),
        ({"body": "a"}, {"epoch": "1"}, "writerId and epoch belong together"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_before_anything_is_sent(
    spark: Any,
    cluster: Processes,
    topic: str,
    columns: dict[str, Any],
    options: dict[str, str],
    words: str,
) -> None:
    """One clear line names the column, the option or the topic."""
    cluster.create_topic("refusals", queues=1)
    rows = spark.range(1).select(*[f.lit(value).alias(name) for name, value in columns.items()])
    given = {"topic": "refusals", **options}
    with pytest.raises(Exception, match=words):
        write(rows, cluster, given.pop("topic"), **given)


def test_modes_other_than_append_are_refused(spark: Any, cluster: Processes, topic: str) -> None:
    """A topic cannot be overwritten."""
    cluster.create_topic(topic, queues=1)
    writer = table(spark, 1).write.format("rocketmq").options(
        nameServer=cluster.namesrv, topic=topic
    )  # fmt: skip
    with pytest.raises(Exception, match="a topic is not overwritten"):
        writer.mode("overwrite").save()


class Copy:
    """One topic into another, run after run with one checkpoint."""

    def __init__(self, spark: Any, cluster: Processes, topic: str, folder: Path) -> None:
        self.spark, self.cluster, self.source = spark, cluster, topic
        self.target, self.checkpoint = f"{topic}-copy", str(folder / "checkpoint")

    def rows(self) -> Any:
        options = {"nameServer": self.cluster.namesrv, "topic": self.source}
        source = self.spark.readStream.format("rocketmq").options(**options)
        return source.option("startingOffsets", "earliest").load().select("body", "tags", "keys")

    def run(self, rows: Any, **options: str) -> None:
        query = (
            rows.writeStream.format("rocketmq")
            .options(nameServer=self.cluster.namesrv, topic=self.target, **options)
            .option("checkpointLocation", self.checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(END_SECONDS_MAX)


def test_a_stream_goes_on_where_it_was(
    spark: Any, cluster: Processes, topic: str, tmp_path: Path
) -> None:
    """Every micro-batch is an epoch of the query; runs follow each other without a repeat."""
    copy = Copy(spark, cluster, topic, tmp_path)
    cluster.create_topic(copy.source, queues=2)
    cluster.create_topic(copy.target, queues=2)
    cluster.fill(copy.source, [300, 100])
    copy.run(copy.rows())
    cluster.fill(copy.source, [10, 5], first=300)
    copy.run(copy.rows())

    expected = sorted(numbered([300, 100]) + numbered([10, 5], first=300))
    assert bodies_of(read(spark, cluster, copy.target)) == expected


def test_a_task_that_fails_after_staging_leaves_nothing_behind(
    spark: Any, cluster: Processes, topic: str, tmp_path: Path
) -> None:
    """One partition dies, the other was staged: nothing is visible, and the next run has it all."""
    copy = Copy(spark, cluster, topic, tmp_path)
    cluster.create_topic(copy.source, queues=2)
    cluster.create_topic(copy.target, queues=2)
    cluster.fill(copy.source, [40, 40])
    text = f.col("body").cast("string")
    crash = f.raise_error(f.lit("in the last row of one task"))
    fragile = f.when(text == "1:39", crash.cast("string")).otherwise(text)

    with pytest.raises(Exception, match="in the last row of one task"):
        copy.run(copy.rows().select(fragile.alias("body")))
    before = read(spark, cluster, copy.target)
    copy.run(copy.rows().select(text.alias("body")))

    assert before == []
    assert bodies_of(read(spark, cluster, copy.target)) == numbered([40, 40])


def test_delays_wait_on_the_broker(spark: Any, cluster: Processes, topic: str) -> None:
    """Rows with a delay are not there yet; the others are."""
    cluster.create_topic(topic, queues=1)
    rows = table(spark, 4).withColumn(
        "delaySeconds", f.when(f.col("body") == "0:1", 3600).cast("int")
    )
    write(rows, cluster, topic, delivery="exactly-once")
    write(table(spark, 1, first=9).withColumn("delayLevel", f.lit(18)), cluster, topic,
          delivery="at-least-once")  # fmt: skip

    assert bodies_of(read(spark, cluster, topic)) == ["0:0", "0:2", "0:3"]
