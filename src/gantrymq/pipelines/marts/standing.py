"""The state of each message for each group that reads its topic; the ledger counts them."""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from gantrymq.model import RETRY_PREFIX

TRACE, OFFSET, NOTHING = "trace", "offset", "nothing"

ACKNOWLEDGED: Final = "acknowledged"
DEAD: Final = "dead"
RETRYING: Final = "retrying"
WAITING: Final = "waiting"
IN_HAND: Final = "in hand"
UNWANTED: Final = "unwanted"
UNKNOWN: Final = "unknown"
EARLIER: Final = "earlier"
PASSED_BY: Final = "passed by"
UNFINISHED: Final = "unfinished"
DROPPED: Final = "dropped"
UNTRACED: Final = "trace missing"

MEANING: Final = {
    ACKNOWLEDGED: "a consumer is done with it",
    DEAD: "given up, among the dead letters",
    RETRYING: "given back, waits for its next try",
    WAITING: "not read yet",
    IN_HAND: "handed out, not finished yet",
    UNWANTED: "the group's subscription does not let it through",
    UNKNOWN: "how it went on cannot be seen from what was read",
    EARLIER: "it was there before the group's first delivery, and the group began behind it",
    PASSED_BY: "the group's progress is past it, and no consumer wrote down that it got it",
    UNFINISHED: "the group's progress is past it, and no end of its handling was written down",
    DROPPED: "it failed, and is neither waiting for a retry nor among the dead letters",
    UNTRACED: "the group's progress is past it, and the trace that would tell more is not complete",
}
"""Every state that a message can be in, and what it means."""
UNEXPLAINED: Final = (PASSED_BY, UNFINISHED, DROPPED)

READERS: Final = "topic string, group string, traced boolean, hasProgress boolean"
GAPS: Final = "group string, untilMs bigint"
SUBSCRIPTIONS: Final = "group string, topic string, wanted array<string>, judged boolean"
"""`wanted`: tags that are let through, null for all; not `judged`: a filter not known here."""


def distinct(messages: DataFrame) -> DataFrame:
    """One row a message of the period, with the place of its first copy."""
    place = fn.struct("storedMs", "brokerName", "queueId", "queueOffset", "bornMs", "bytes", "tags")
    marked = fn.col("origin").isNotNull()
    return (
        messages.where("inside")
        .groupBy("topic", "msgId")
        .agg(
            fn.min(place).alias("first"),
            fn.count("*").alias("copies"),
            fn.count_if(marked).alias("marked"),
            fn.max("origin").alias("origin"),
        )
        .select("topic", "msgId", "first.*", "copies", "marked", "origin")
    )


def readers(
    singles: DataFrame, tries: DataFrame, dead: DataFrame, retries: DataFrame, progress: DataFrame
) -> DataFrame:
    """The groups that read each topic, by trace, progress, retries and dead letters."""
    pair = ["topic", "group"]
    traced = tries.join(singles.select("topic", "msgId"), "msgId").select(
        *pair, fn.lit(True).alias("traced"), fn.lit(False).alias("hasProgress")
    )
    committed = progress.where(~fn.col("topic").startswith(RETRY_PREFIX)).select(
        *pair, fn.lit(False).alias("traced"), fn.lit(True).alias("hasProgress")
    )
    found = traced.unionByName(committed)
    for copies in (dead, retries):
        found = found.unionByName(
            copies.where("topic is not null").select(
                *pair, fn.lit(False).alias("traced"), fn.lit(False).alias("hasProgress")
            )
        )
    return (
        found.groupBy(*pair)
        .agg(fn.max("traced").alias("traced"), fn.max("hasProgress").alias("hasProgress"))
        .join(singles.select("topic").distinct(), "topic", "leftsemi")
    )


def standing(
    singles: DataFrame,
    readers: DataFrame,
    tries: DataFrame,
    dead: DataFrame,
    retries: DataFrame,
    progress: DataFrame,
    subscriptions: DataFrame,
    *,
    copies_known: bool,
) -> DataFrame:
    """One row a message and reading group, with its state.

    `copies_known` is False where retries and dead letters could not be read.
    """
    place = ["topic", "group", "brokerName", "queueId"]
    began = tries.groupBy("group").agg(fn.min("beganMs").alias("firstMs"))
    committed = progress.select(*place, "groupOffset")
    found = (
        singles.join(fn.broadcast(readers), "topic")
        .join(_attempts(tries), ["group", "msgId"], "left")
        .join(
            dead.select("group", "msgId", fn.lit(True).alias("died")).distinct(),
            ["group", "msgId"],
            "left",
        )
        .join(_pending(retries, progress), ["group", "msgId"], "left")
        .join(fn.broadcast(committed), place, "left")
        .join(fn.broadcast(_first_offsets(singles, tries)), place, "left")
        .join(fn.broadcast(began), "group", "left")
        .join(fn.broadcast(subscriptions), ["group", "topic"], "left")
    )
    basis = (
        fn.when(fn.col("traced"), TRACE)
        .when(fn.col("hasProgress"), OFFSET)
        .otherwise(fn.lit(NOTHING))
    )
    return found.select(
        "topic",
        "group",
        "msgId",
        "brokerName",
        "queueId",
        "queueOffset",
        "storedMs",
        "bornMs",
        "bytes",
        basis.alias("basis"),
        _state(copies_known).alias("state"),
        fn.coalesce("attempts", fn.lit(0)).alias("attempts"),
        fn.coalesce("acks", fn.lit(0)).alias("acks"),
        "beganMs",
        "ackedMs",
        "costMs",
    )


def excuse(found: DataFrame, gaps: DataFrame) -> DataFrame:
    """Set the state to untraced where trace is known to be incomplete and may explain a gap.

    `gaps` has each group and the time (ms) from which on its trace is complete; null for never.
    """
    absent = fn.col("state").isin(*UNEXPLAINED)
    within = fn.col("gapped") & (
        fn.col("untilMs").isNull() | (fn.col("storedMs") < fn.col("untilMs"))
    )
    return (
        found.join(fn.broadcast(gaps.withColumn("gapped", fn.lit(True))), "group", "left")
        .withColumn("state", fn.when(absent & within, UNTRACED).otherwise(fn.col("state")))
        .select(*found.columns)
    )


def missing_records(found: DataFrame) -> dict[str, int]:
    """How many trace records would explain all unexplained messages, by group."""
    needed = fn.when(fn.col("state") == UNFINISHED, 1).otherwise(2)
    rows = (
        found.where(fn.col("state").isin(*UNEXPLAINED))
        .groupBy("group")
        .agg(fn.sum(needed).alias("needed"))
        .collect()
    )
    return {row["group"]: row["needed"] for row in rows}


def untraced_groups(found: DataFrame) -> set[str]:
    """The groups with messages whose state is not known, because trace is missing."""
    rows = found.where(fn.col("state") == UNTRACED).select("group").distinct().collect()
    return {row["group"] for row in rows}


def _first_offsets(singles: DataFrame, tries: DataFrame) -> DataFrame:
    """The first offset of each queue that each group consumed."""
    return (
        tries.select("group", "msgId")
        .join(singles.select("topic", "msgId", "brokerName", "queueId", "queueOffset"), "msgId")
        .groupBy("topic", "group", "brokerName", "queueId")
        .agg(fn.min("queueOffset").alias("firstOffset"))
    )


def _attempts(tries: DataFrame) -> DataFrame:
    ended = fn.col("ok")
    return tries.groupBy("group", "msgId").agg(
        fn.count("*").alias("attempts"),
        fn.count_if(ended).alias("acks"),
        fn.count_if(ended.isNull()).alias("open"),
        fn.min("beganMs").alias("beganMs"),
        fn.min(fn.when(ended, fn.col("endedMs"))).alias("ackedMs"),
        fn.min(fn.when(ended, fn.col("costMs"))).alias("costMs"),
    )


def _pending(retries: DataFrame, progress: DataFrame) -> DataFrame:
    """Whether a copy waits: unread in the retry topic, or in the system topic of delays.

    The system topic keeps messages that it has delivered; those are found in the retry topic, with
    as many tries.
    """
    read = progress.select(
        "group", fn.col("topic").alias("place"), "brokerName", "queueId", "groupOffset"
    )
    unread = ~fn.col("parked") & (fn.col("queueOffset") >= fn.coalesce("groupOffset", fn.lit(0)))
    tries = fn.col("tries")
    parked = fn.coalesce(fn.max(fn.when(fn.col("parked"), tries)), fn.lit(-1))
    placed = fn.coalesce(fn.max(fn.when(~fn.col("parked"), tries)), fn.lit(-1))
    return (
        retries.join(fn.broadcast(read), ["group", "place", "brokerName", "queueId"], "left")
        .groupBy("group", "msgId")
        .agg((fn.max(unread) | (parked > placed)).alias("pending"))
    )


def _state(copies_known: bool) -> Column:
    tried = fn.col("attempts").isNotNull()
    behind = fn.col("queueOffset") < fn.col("groupOffset")
    filtered = fn.col("wanted").isNotNull() & ~fn.array_contains(
        fn.col("wanted"), fn.coalesce("tags", fn.lit(""))
    )
    earlier = (fn.col("storedMs") < fn.col("firstMs")) & (
        fn.col("firstOffset").isNull() | (fn.col("queueOffset") < fn.col("firstOffset"))
    )
    failed = fn.lit(DROPPED if copies_known else UNKNOWN)
    seen = (
        fn.when(tried & (fn.col("open") > 0), UNFINISHED)
        .when(tried, failed)
        .when(~fn.col("traced"), ACKNOWLEDGED if copies_known else UNKNOWN)
        .when(fn.col("judged").isNotNull() & ~fn.col("judged"), UNKNOWN)
        .when(earlier, EARLIER)
        .otherwise(fn.lit(PASSED_BY))
    )
    return (
        fn.when(fn.col("acks") > 0, ACKNOWLEDGED)
        .when(fn.col("died"), DEAD)
        .when(fn.col("pending"), RETRYING)
        .when(~tried & filtered, UNWANTED)
        .when(fn.col("hasProgress") & behind, seen)
        .when(tried & (fn.col("open") > 0), IN_HAND)
        .when(tried & ~fn.col("hasProgress"), failed)
        .when(tried, IN_HAND)
        .when(fn.col("hasProgress"), WAITING)
        .otherwise(fn.lit(UNKNOWN))
    )
