"""Duplicates: by id, by key and body, and by acknowledgement."""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from gantrymq.pipelines.marts.frames import foremost, nothing
from gantrymq.pipelines.marts.mart import SOME_GROUP, TOPIC, Field, Mart, tally

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
        TOPIC,
        SOME_GROUP,
        Field("kind", "string", "Kind"),
        Field("values", "bigint", "Different ones", "values"),
        tally("extra", "Further copies"),
    ),
    key=("topic", "group", "kind"),
)
LISTED: Final = Mart(
    name="duplicates",
    title="Duplicates, one by one",
    about=f"Up to {LISTED_MAX} of each kind, those with the most copies first.",
    fields=(
        TOPIC,
        SOME_GROUP,
        Field("kind", "string", "Kind"),
        Field("value", "string", "Id or key"),
        Field("crc", "int", "Body checksum", null=True),
        tally("copies", "Copies"),
        Field("firstTime", "timestamp", "First", null=True),
        Field("lastTime", "timestamp", "Last", null=True),
        Field("firstPlace", "string", "First place"),
        Field("lastPlace", "string", "Last place"),
    ),
    key=("topic", "group", "kind", "value", "crc"),
)


def repeats(messages: DataFrame, standing: DataFrame) -> DataFrame:
    """All duplicates; `listed` and `totals` are made of it."""
    inside = messages.where("inside")
    place = fn.concat_ws(":", "brokerName", "queueId", "queueOffset")
    at = fn.struct("storedMs", place.alias("place"))
    ends = [fn.min(at).alias("first"), fn.max(at).alias("last")]
    by_id = inside.groupBy("topic", fn.col("msgId").alias("value")).agg(
        fn.count("*").alias("copies"), *ends
    )
    keyed = inside.select(
        "topic",
        "msgId",
        "crc",
        "storedMs",
        "brokerName",
        "queueId",
        "queueOffset",
        fn.explode(fn.split("keys", " ")).alias("value"),
    )
    by_key = (
        keyed.where("value <> ''")
        .groupBy("topic", "value", "crc")
        .agg(fn.countDistinct("msgId").alias("copies"), *ends)
    )
    by_ack = standing.where("acks > 1").select(
        "topic",
        "group",
        fn.lit(BY_ACK).alias("kind"),
        fn.col("msgId").alias("value"),
        nothing("crc", "int"),
        fn.col("acks").alias("copies"),
        at.alias("first"),
        at.alias("last"),
    )
    columns = ["copies", "first", "last"]
    return (
        by_id.where("copies > 1")
        .select(
            "topic",
            nothing("group"),
            fn.lit(BY_ID).alias("kind"),
            "value",
            nothing("crc", "int"),
            *columns,
        )
        .unionByName(
            by_key.where("copies > 1").select(
                "topic", nothing("group"), fn.lit(BY_KEY).alias("kind"), "value", "crc", *columns
            )
        )
        .unionByName(by_ack)
    )


def totals(found: DataFrame) -> DataFrame:
    return found.groupBy("topic", "group", "kind").agg(
        fn.count("*").alias("values"), fn.sum(fn.col("copies") - 1).alias("extra")
    )


def listed(found: DataFrame, limit: int = LISTED_MAX) -> DataFrame:
    kind = ["topic", "group", "kind"]
    return foremost(found, limit, of=kind, by=[fn.desc("copies"), "value", "crc"]).select(
        "topic",
        "group",
        "kind",
        "value",
        "crc",
        "copies",
        fn.timestamp_millis("first.storedMs").alias("firstTime"),
        fn.timestamp_millis("last.storedMs").alias("lastTime"),
        fn.col("first.place").alias("firstPlace"),
        fn.col("last.place").alias("lastPlace"),
    )
