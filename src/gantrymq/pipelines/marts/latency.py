"""Latencies as exact percentiles: each is a value that some message really had."""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from gantrymq.pipelines.marts.frames import nothing
from gantrymq.pipelines.marts.mart import SOME_GROUP, TOPIC, Field, Mart, tally

PERCENTILES: Final = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}
BORN_TO_STORED: Final = "born to stored"
STORED_TO_HANDED: Final = "stored to handed out"
HANDLING: Final = "handling"
BORN_TO_ACKED: Final = "born to acknowledged"

LATENCY: Final = Mart(
    name="latency",
    title="Latency",
    about="Born by the producer's clock, stored by the broker's, handed out and acknowledged by "
    "the consumer's: clocks that differ show as latency. All but the first need consumers that "
    "trace.",
    fields=(
        TOPIC,
        SOME_GROUP,
        Field("span", "string", "From and to"),
        tally("messages", "Messages"),
        *(Field(name, "bigint", name, "ms") for name in PERCENTILES),
        Field("maxMs", "bigint", "Longest", "ms"),
    ),
    key=("topic", "group", "span"),
)


def latency(messages: DataFrame, standing: DataFrame) -> DataFrame:
    """Percentiles by topic, and by topic and group where trace has the times."""
    born = messages.where("inside").select(
        "topic",
        nothing("group"),
        fn.lit(BORN_TO_STORED).alias("span"),
        (fn.col("storedMs") - fn.col("bornMs")).alias("ms"),
    )
    spans = {
        STORED_TO_HANDED: fn.col("beganMs") - fn.col("storedMs"),
        HANDLING: fn.col("costMs"),
        BORN_TO_ACKED: fn.col("ackedMs") - fn.col("bornMs"),
    }
    each = fn.array(
        *(fn.struct(fn.lit(name).alias("span"), ms.alias("ms")) for name, ms in spans.items())
    )
    by_group = standing.select("topic", "group", fn.inline(each))
    found = born.unionByName(by_group).where("ms is not null")
    return found.groupBy("topic", "group", "span").agg(
        fn.count("*").alias("messages"),
        *(
            fn.expr(f"percentile_disc({share}) within group (order by ms)")
            .cast("bigint")
            .alias(name)
            for name, share in PERCENTILES.items()
        ),
        fn.max("ms").alias("maxMs"),
    )
