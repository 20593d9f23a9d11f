"""What is there more than once: by id, by key and body, and by acknowledgement."""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from gantrymq.pipelines.marts.mart import Field, Mart

BY_ID: Final = "same id"
BY_KEY: Final = "same key and body"
BY_ACK: Final = "acknowledged again"
LISTED_MAX: Final = 500
"""Values that are listed, of each topic, group and kind: those with the most copies."""

TOTALS: Final = Mart(
    name="duplicate_totals",
    title="Duplicates",
    about="Same id: one message stored several times. Same key and body: different messages that "
    "look alike, as an application sends that asks twice. Acknowledged again: a group was done "
    "with a message more than once (needs trace).",
    fields=(
        Field("topic", "string", "Topic"),
        Field("group", "string", "Group", null=True),
        Field("kind", "string", "Kind"),
        Field("values", "bigint", "Different ones", "values"),
        Field("extra", "bigint", "Further copies", "messages"),
    ),
    key=("topic", "group", "kind"),
)
LISTED: Final = Mart(
    name="duplicates",
    title="Duplicates, one by one",
    about=f"Up to {LISTED_MAX} of each kind, those with the most copies first.",
    fields=(
        Field("topic", "string", "Topic"),
        Field("group", "string", "Group", null=True),
        Field("kind", "string", "Kind"),
        Field("value", "string", "Id or key"),
        Field("crc", "int", "Body checksum", null=True),
        Field("copies", "bigint", "Copies", "messages"),
        Field("firstTime", "timestamp", "First", null=True),
        Field("lastTime", "timestamp", "Last", null=True),
        Field("firstPlace", "string", "First place"),
        Field("lastPlace", "string", "Last place"),
    ),
    key=("topic", "group", "kind", "value", "crc"),
)


def repeats(messages: DataFrame, standing: DataFrame) -> DataFrame:
    """Everything that is there more than once; `listed` and `totals` are made of it."""
    inside = messages.where("inside")
    place = fn.concat_ws(":", "brokerName", "queueId", "queueOffset")
    at = fn.struct("storedMs", place.alias("place"))
    nobody = fn.lit(None).cast("string").alias("group")
    by_id = inside.groupBy("topic", fn.col("msgId").alias("value")).agg(
        fn.count("*").alias("copies"), fn.min(at).alias("first"), fn.max(at).alias("last")
    )
    keyed = inside.select("topic", "msgId", "crc", "storedMs", "brokerName", "queueId",
                          "queueOffset", _keys().alias("value"))  # fmt: skip
    by_key = (
        keyed.where("value <> ''")
        .groupBy("topic", "value", "crc")
        .agg(fn.countDistinct("msgId").alias("copies"), fn.min(at).alias("first"),
             fn.max(at).alias("last"))
    )  # fmt: skip
    by_ack = standing.where("acks > 1").select(
        "topic", "group", fn.lit(BY_ACK).alias("kind"), fn.col("msgId").alias("value"),
        fn.lit(None).cast("int").alias("crc"), fn.col("acks").alias("copies"),
        at.alias("first"), at.alias("last"),
    )  # fmt: skip
    columns = ["copies", "first", "last"]
    return (
        by_id.where("copies > 1")
        .select("topic", nobody, fn.lit(BY_ID).alias("kind"), "value",
                fn.lit(None).cast("int").alias("crc"), *columns)
        .unionByName(by_key.where("copies > 1").select(
            "topic", nobody, fn.lit(BY_KEY).alias("kind"), "value", "crc", *columns))
        .unionByName(by_ack)
    )  # fmt: skip


def totals(found: DataFrame) -> DataFrame:
    return found.groupBy("topic", "group", "kind").agg(
        fn.count("*").alias("values"), fn.sum(fn.col("copies") - 1).alias("extra")
    )


def listed(found: DataFrame, limit: int = LISTED_MAX) -> DataFrame:
    order = Window.partitionBy("topic", "group", "kind").orderBy(fn.desc("copies"), "value", "crc")
    return (
        found.withColumn("at", fn.row_number().over(order))
        .where(fn.col("at") <= limit)
        .select(
            "topic", "group", "kind", "value", "crc", "copies",
            fn.timestamp_millis("first.storedMs").alias("firstTime"),
            fn.timestamp_millis("last.storedMs").alias("lastTime"),
            fn.col("first.place").alias("firstPlace"), fn.col("last.place").alias("lastPlace"),
        )
    )  # fmt: skip


def _keys() -> Column:
    return fn.explode(fn.split(fn.col("keys"), " "))
