"""Copies of messages that brokers make for a group: retries, and dead letters."""

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from gantrymq.model import DEAD_PREFIX, RETRY_PREFIX, dead_topic, retry_topic
from gantrymq.pipelines.staging.messages import ms_of, property_of
from gantrymq.protocol import properties
from gantrymq.protocol.pop import pop_retry_topic

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
    "reconsumeTimes",
    "bornTimestamp",
    "storeTimestamp",
)

RETRIES: Final = (
    "group string, topic string, msgId string, place string, brokerName string, queueId int, "
    "queueOffset bigint, tries int, storedMs bigint, parked boolean"
)
"""`parked`: the copy lies in a waiting room until its time comes; else in the topic `place`."""
DEAD_LETTERS: Final = (
    "group string, topic string, msgId string, deadId string, keys string, tags string, "
    "tries int, bornMs bigint, diedMs bigint, fingerprint string, error string, text string, "
    "reason string"
)


def owners_of(groups: Iterable[str], topics: Iterable[str]) -> dict[str, str]:
    """The retry and dead-letter topics that may exist, and the group of each."""
    found = {}
    names = list(topics)
    for group in groups:
        found[retry_topic(group)] = group
        found[dead_topic(group)] = group
        for topic in names:
            for v2 in (False, True):
                found[pop_retry_topic(group, topic, v2)] = group
    return found


def retries(rows: DataFrame, owners: Mapping[str, str]) -> DataFrame:
    """Copies that were sent back, in retry topics and in the system topic of delays."""
    real = property_of(properties.REAL_TOPIC)
    parked = ~fn.col("topic").startswith(RETRY_PREFIX)
    place = fn.when(parked, real).otherwise(fn.col("topic"))
    return rows.where(place.startswith(RETRY_PREFIX)).select(
        _owner(place, owners).alias("group"),
        property_of(properties.RETRY_TOPIC).alias("topic"),
        _id().alias("msgId"),
        place.alias("place"),
        "brokerName",
        "queueId",
        "queueOffset",
        fn.col("reconsumeTimes").alias("tries"),
        ms_of("storeTimestamp").alias("storedMs"),
        parked.alias("parked"),
    )


def dead_letters(rows: DataFrame) -> DataFrame:
    """Dead letters, with their reason if it was recorded."""
    error, text, fingerprint, reason = (property_of(name) for name in properties.FAILURE)
    return rows.where(fn.col("topic").startswith(DEAD_PREFIX)).select(
        fn.substring(fn.col("topic"), len(DEAD_PREFIX) + 1, 1 << 20).alias("group"),
        fn.coalesce(
            property_of(properties.RETRY_TOPIC), property_of(properties.DEAD_ORIGIN_TOPIC)
        ).alias("topic"),
        _id().alias("msgId"),
        fn.col("offsetMsgId").alias("deadId"),
        "keys",
        "tags",
        fn.col("reconsumeTimes").alias("tries"),
        ms_of("bornTimestamp").alias("bornMs"),
        ms_of("storeTimestamp").alias("diedMs"),
        fingerprint.alias("fingerprint"),
        error.alias("error"),
        text.alias("text"),
        reason.alias("reason"),
    )


def _id() -> Column:
    """The id of the original message."""
    return fn.coalesce(
        property_of(properties.UNIQ_KEY),
        property_of(properties.DEAD_ORIGIN_MESSAGE_ID),
        property_of(properties.ORIGIN_MESSAGE_ID),
        fn.col("msgId"),
    )


def _owner(place: Column, owners: Mapping[str, str]) -> Column:
    plain = fn.substring(place, len(RETRY_PREFIX) + 1, 1 << 20)
    if not owners:
        return plain
    table = fn.create_map(*(fn.lit(word) for word in chain.from_iterable(owners.items())))
    return fn.coalesce(table[place], plain)
