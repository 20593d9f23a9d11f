"""Messages of topics: short names, times as milliseconds, no bodies."""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from gantrymq.pipelines.common.replay_marks import REPLAY_ID
from gantrymq.protocol import properties

ORIGIN_MARKS: Final = {
    properties.RESENT_FROM: "resent",
    properties.SPREAD_FROM: "moved",
    REPLAY_ID: "replayed",
}
"""Properties by which a message says that it was put into its topic again on purpose."""

COLUMNS: Final = (
    "topic",
    "brokerName",
    "queueId",
    "queueOffset",
    "msgId",
    "offsetMsgId",
    "keys",
    "tags",
    "properties",
    "storeSize",
    "bodyCRC",
    "reconsumeTimes",
    "bornTimestamp",
    "storeTimestamp",
)
"""What is read of a message; without the body a row is small whatever was sent."""

SCHEMA: Final = (
    "topic string, brokerName string, queueId int, queueOffset bigint, msgId string, "
    "offsetMsgId string, keys string, tags string, bytes bigint, crc int, tries int, "
    "bornMs bigint, storedMs bigint, origin string, inside boolean"
)
"""`inside`: stored within the period of the report; the rest is there to tell late from lost."""


def messages(
    rows: DataFrame, *, since_ms: int | None = None, until_ms: int | None = None
) -> DataFrame:
    """The messages of plain topics."""
    stored = ms_of("storeTimestamp")
    return rows.select(
        "topic",
        "brokerName",
        "queueId",
        "queueOffset",
        "msgId",
        "offsetMsgId",
        "keys",
        "tags",
        fn.col("storeSize").cast("bigint").alias("bytes"),
        fn.col("bodyCRC").alias("crc"),
        fn.col("reconsumeTimes").alias("tries"),
        ms_of("bornTimestamp").alias("bornMs"),
        stored.alias("storedMs"),
        origin_of().alias("origin"),
        within(stored, since_ms, until_ms).alias("inside"),
    )


def origin_of() -> Column:
    """Why a message is stored again, by its mark; null without a mark."""
    found = fn.lit(None).cast("string")
    for name, word in ORIGIN_MARKS.items():
        found = fn.when(property_of(name).isNotNull(), fn.lit(word)).otherwise(found)
    return found


def within(ms: Column, since_ms: int | None, until_ms: int | None) -> Column:
    """Whether a time lies in [since, until); None is no limit."""
    inside = fn.lit(True)
    if since_ms is not None:
        inside = inside & (ms >= since_ms)
    if until_ms is not None:
        inside = inside & (ms < until_ms)
    return inside


def property_of(name: str) -> Column:
    return fn.col("properties").getItem(name)


def ms_of(name: str) -> Column:
    """Milliseconds since 1970 of a column of times."""
    return fn.unix_millis(fn.col(name))
