"""The lag of groups at each snapshot of progress."""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from gantrymq.pipelines.marts.mart import GROUP, TOPIC, Field, Mart, tally

LAG: Final = Mart(
    name="lag",
    title="Lag",
    about="Unread messages by group and topic, one row each time a report was made. Seconds "
    "behind: the age of what the slowest queue with unread messages read last.",
    fields=(
        GROUP,
        TOPIC,
        tally("lag", "Unread"),
        Field("behindSeconds", "double", "Seconds behind", "s", null=True),
        tally("maxLag", "In one queue"),
        Field("queues", "bigint", "Queues", "queues"),
        Field("time", "timestamp", "At"),
    ),
    key=("group", "topic", "time"),
)


def lag(history: DataFrame) -> DataFrame:
    """Snapshots of progress, summed over the queues of a topic."""
    unread = fn.greatest(fn.col("brokerOffset") - fn.col("groupOffset"), fn.lit(0))
    late = fn.when(fn.col("unread") > 0, (fn.col("atMs") - fn.col("lastMs")) / 1000)
    return (
        history.where("brokerOffset is not null and groupOffset is not null")
        .withColumn("unread", unread)
        .groupBy("atMs", "group", "topic")
        .agg(
            fn.count("*").alias("queues"),
            fn.sum("unread").alias("lag"),
            fn.max("unread").alias("maxLag"),
            fn.round(fn.max(late), 3).alias("behindSeconds"),
        )
        .select(
            "group",
            "topic",
            "lag",
            "behindSeconds",
            "maxLag",
            "queues",
            fn.timestamp_millis("atMs").alias("time"),
        )
    )
