"""Messages stored and messages acknowledged: totals, and rates by time."""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from gantrymq.pipelines.marts.frames import nothing
from gantrymq.pipelines.marts.mart import SOME_GROUP, TOPIC, Field, Mart, tally

IN, OUT = "in", "out"

TOTALS: Final = Mart(
    name="totals",
    title="Messages in and out",
    about="Stored in each topic, and acknowledged by each group. By trace: acknowledgements that "
    "consumers wrote down. By offset: messages below the group's progress.",
    fields=(
        TOPIC,
        SOME_GROUP,
        Field("direction", "string", "Direction"),
        Field("basis", "string", "Counted by"),
        tally("messages", "Messages"),
        Field("bytes", "bigint", "Bytes", "bytes"),
        Field("firstTime", "timestamp", "First", null=True),
        Field("lastTime", "timestamp", "Last", null=True),
        Field("perSecond", "double", "Mean rate", "messages/s", null=True),
    ),
    key=("topic", "direction", "group"),
)
TRAFFIC: Final = Mart(
    name="traffic",
    title="Traffic over time",
    about="Messages stored (in) and, where consumers trace, acknowledged (out) by time.",
    fields=(
        TOPIC,
        SOME_GROUP,
        Field("direction", "string", "Direction"),
        Field("startTime", "timestamp", "From"),
        tally("messages", "Messages"),
        Field("bytes", "bigint", "Bytes", "bytes"),
        Field("perSecond", "double", "Rate", "messages/s"),
    ),
    key=("topic", "direction", "group", "startTime"),
)


def flows(messages: DataFrame, acknowledged: DataFrame) -> DataFrame:
    """Each message that was stored and each first acknowledgement, by group.

    `acknowledged` has group, msgId, basis, and the time where trace has it (ledger.standing).
    """
    inside = messages.where("inside")
    stored = inside.select(
        "topic",
        nothing("group"),
        fn.lit(IN).alias("direction"),
        fn.lit("store").alias("basis"),
        "bytes",
        fn.col("storedMs").alias("atMs"),
    )
    done = acknowledged.select(
        "topic",
        "group",
        fn.lit(OUT).alias("direction"),
        "basis",
        "bytes",
        fn.col("ackedMs").alias("atMs"),
    )
    return stored.unionByName(done)


def totals(found: DataFrame) -> DataFrame:
    """Flows, summed over the whole time."""
    seconds = (fn.max("atMs") - fn.min("atMs")) / 1000
    return found.groupBy("topic", "group", "direction", "basis").agg(
        fn.count("*").alias("messages"),
        fn.sum("bytes").alias("bytes"),
        fn.timestamp_millis(fn.min("atMs")).alias("firstTime"),
        fn.timestamp_millis(fn.max("atMs")).alias("lastTime"),
        fn.when(seconds > 0, fn.round(fn.count("atMs") / seconds, 3)).alias("perSecond"),
    )


def traffic(found: DataFrame, step_ms: int) -> DataFrame:
    """Flows by time; those without a time are only in the totals."""
    start = fn.col("atMs") - fn.col("atMs") % step_ms
    return (
        found.where("atMs is not null")
        .groupBy("topic", "group", "direction", start.alias("startMs"))
        .agg(fn.count("*").alias("messages"), fn.sum("bytes").alias("bytes"))
        .select(
            "topic",
            "group",
            "direction",
            fn.timestamp_millis(fn.col("startMs")).alias("startTime"),
            "messages",
            "bytes",
            fn.round(fn.col("messages") * 1000 / step_ms, 3).alias("perSecond"),
        )
    )
