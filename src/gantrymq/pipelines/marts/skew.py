"""Where the load lies: hot keys, uneven queues, and queues over time."""

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as fn

from gantrymq.pipelines.marts.frames import foremost
from gantrymq.pipelines.marts.mart import TOPIC, Field, Mart, tally

KEYS_MAX: Final = 20
"""Keys that are listed, a topic."""

_QUEUE: Final = (
    TOPIC,
    Field("brokerName", "string", "Broker"),
    Field("queueId", "int", "Queue"),
)
_PLACE: Final = tuple(each.name for each in _QUEUE)

KEYS: Final = Mart(
    name="hot_keys",
    title="Hot keys",
    about=f"The {KEYS_MAX} keys of each topic that most messages carry, with their share of all "
    "its messages. A message may have several keys.",
    fields=(
        TOPIC,
        Field("key", "string", "Key"),
        tally("messages", "Messages"),
        Field("share", "double", "Share", "share"),
        Field("bytes", "bigint", "Bytes", "bytes"),
        Field("queues", "bigint", "Queues", "queues"),
    ),
    key=("topic", "key"),
)
QUEUES: Final = Mart(
    name="queues",
    title="Load of queues",
    about="Messages by queue. The ratio is against the mean of the topic's queues: 1 is even.",
    fields=(
        *_QUEUE,
        tally("messages", "Messages"),
        Field("bytes", "bigint", "Bytes", "bytes"),
        Field("share", "double", "Share", "share"),
        Field("ratio", "double", "Against the mean", "times"),
    ),
    key=_PLACE,
)
LOAD: Final = Mart(
    name="queue_load",
    title="Load of queues over time",
    about="Messages stored by queue and time.",
    fields=(
        *_QUEUE,
        Field("startTime", "timestamp", "From"),
        tally("messages", "Messages"),
    ),
    key=(*_PLACE, "startTime"),
)
QUEUES_SCHEMA: Final = "topic string, brokerName string, queueId int"


def hot_keys(messages: DataFrame, limit: int = KEYS_MAX) -> DataFrame:
    """The keys with the most messages, by topic."""
    inside = messages.where("inside")
    totals = inside.groupBy("topic").agg(fn.count("*").alias("all"))
    keyed = inside.select(
        "topic",
        "brokerName",
        "queueId",
        "bytes",
        fn.explode(fn.array_distinct(fn.split(fn.col("keys"), " "))).alias("key"),
    )
    counted = (
        keyed.where("key <> ''")
        .groupBy("topic", "key")
        .agg(
            fn.count("*").alias("messages"),
            fn.sum("bytes").alias("bytes"),
            fn.countDistinct("brokerName", "queueId").alias("queues"),
        )
    )
    return (
        foremost(counted, limit, of=["topic"], by=[fn.desc("messages"), "key"])
        .join(fn.broadcast(totals), "topic")
        .select(
            "topic",
            "key",
            "messages",
            fn.round(fn.col("messages") / fn.col("all"), 6).alias("share"),
            "bytes",
            "queues",
        )
    )


def queues(messages: DataFrame, known: DataFrame) -> DataFrame:
    """Messages by queue. `known` names existing queues: empty ones count in the mean."""
    found = (
        messages.where("inside")
        .groupBy(*_PLACE)
        .agg(fn.count("*").alias("messages"), fn.sum("bytes").alias("bytes"))
    )
    topics = found.select("topic").distinct()
    everywhere = found.join(known.join(topics, "topic", "leftsemi"), [*_PLACE], "full").na.fill(
        0, ["messages", "bytes"]
    )
    topic = Window.partitionBy("topic")
    total, mean = fn.sum("messages").over(topic), fn.avg("messages").over(topic)
    return everywhere.select(
        *_PLACE,
        "messages",
        "bytes",
        fn.round(fn.col("messages") / total, 6).alias("share"),
        fn.round(fn.col("messages") / mean, 3).alias("ratio"),
    )


def queue_load(messages: DataFrame, step_ms: int) -> DataFrame:
    """Messages by queue and time."""
    start = fn.col("storedMs") - fn.col("storedMs") % step_ms
    return (
        messages.where("inside")
        .groupBy(*_PLACE, fn.timestamp_millis(start).alias("startTime"))
        .agg(fn.count("*").alias("messages"))
        .select(*_PLACE, "startTime", "messages")
    )
