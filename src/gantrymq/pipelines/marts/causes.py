"""Why messages became dead letters: one row a group and cause, with an example."""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from gantrymq.pipelines.marts.frames import foremost
from gantrymq.pipelines.marts.mart import GROUP, Field, Mart, tally

NOT_NOTED: Final = "(no cause was noted)"
LISTED_MAX: Final = 1_000
"""Causes that are told apart, a group; those with the most letters."""
TOPICS_MAX: Final = 5

CAUSES: Final = Mart(
    name="causes",
    title="Causes of dead letters",
    about="Letters with the same fingerprint failed with the same error in the same code. "
    "Consumers of other makes note no cause.",
    fields=(
        GROUP,
        tally("letters", "Letters"),
        Field("error", "string", "Error", null=True),
        Field("text", "string", "Example text", null=True),
        Field("reason", "string", "Reason", null=True),
        Field("topics", "string", "Topics"),
        Field("tries", "int", "Most tries", "tries"),
        Field("firstTime", "timestamp", "First died"),
        Field("lastTime", "timestamp", "Last died"),
        Field("cause", "string", "Fingerprint or reason"),
        Field("exampleId", "string", "Newest letter"),
    ),
    key=("group", "cause"),
)


def causes(dead: DataFrame, limit: int = LISTED_MAX) -> DataFrame:
    """Dead letters by fingerprint, else by the given reason."""
    cause = fn.coalesce("fingerprint", "reason", fn.lit(NOT_NOTED))
    newest = fn.struct("diedMs", "deadId", "error", "text", "reason")
    topics = fn.array_sort(fn.collect_set(fn.coalesce("topic", fn.lit("?"))))
    found = dead.groupBy("group", cause.alias("cause")).agg(
        fn.max(newest).alias("newest"),
        fn.count("*").alias("letters"),
        fn.array_join(fn.slice(topics, 1, TOPICS_MAX), " ").alias("topics"),
        fn.max("tries").alias("tries"),
        fn.timestamp_millis(fn.min("diedMs")).alias("firstTime"),
        fn.timestamp_millis(fn.max("diedMs")).alias("lastTime"),
    )
    return foremost(found, limit, of=["group"], by=[fn.desc("letters"), "cause"]).select(
        "group",
        "letters",
        "newest.error",
        "newest.text",
        "newest.reason",
        "topics",
        "tries",
        "firstTime",
        "lastTime",
        "cause",
        fn.col("newest.deadId").alias("exampleId"),
    )
