"""The no-loss ledger: what was sent, stored, delivered, acknowledged, and every difference."""

from collections.abc import Collection
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from gantrymq.pipelines.marts import standing as st
from gantrymq.pipelines.marts.mart import Field, Mart, Table, check_agree
from gantrymq.protocol.trace import MessageType

LOST: Final = "lost"
DOUBLED: Final = "doubled"
DELAYED: Final = "delayed"
HALF: Final = "half"
ROLLED_BACK: Final = "rolled back"
CALLED_BACK: Final = "called back"
EXPIRED: Final = "expired"

SENT_MEANING: Final = {
    LOST: "its producer wrote down that it was stored, and it is in no queue",
    DOUBLED: "it is stored more often than it was sent on purpose",
    DELAYED: "it was sent to wait, and is not in its topic yet",
    HALF: "nobody has decided on its transaction yet",
    ROLLED_BACK: "its producer decided against it",
    CALLED_BACK: "a recall took it back",
    EXPIRED: "it was sent before the oldest message that brokers still keep",
}
"""What can become of a message that was sent, besides being in its topic once."""
UNEXPLAINED: Final = (LOST, DOUBLED, *st.UNEXPLAINED)
LISTED_MAX: Final = 1_000
"""Differences that are listed message by message, of each topic, group and kind."""

_COUNT: Final = "messages"
TOPICS: Final = Mart(
    name="ledger_topics",
    title="Ledger: sent and stored",
    about="Sent: what traced producers wrote down. Stored: what lies in the topic. Messages are "
    "counted once by their id; a second copy is doubled, unless a mark says it was put there again "
    "on purpose.",
    fields=(
        Field("topic", "string", "Topic"),
        Field("sent", "bigint", "Sent", _COUNT, null=True),
        Field("stored", "bigint", "Stored", _COUNT),
        Field("messages", "bigint", "Different messages", _COUNT),
        Field("untraced", "bigint", "Without a sender's trace", _COUNT),
        Field("again", "bigint", "Again on purpose", _COUNT),
        Field("delayed", "bigint", "Delayed", _COUNT),
        Field("half", "bigint", "Undecided", _COUNT),
        Field("rolledBack", "bigint", "Rolled back", _COUNT),
        Field("calledBack", "bigint", "Called back", _COUNT),
        Field("expired", "bigint", "Expired", _COUNT),
        Field("lost", "bigint", "Lost", _COUNT),
        Field("doubled", "bigint", "Doubled", _COUNT),
    ),
    key=("topic",),
)
GROUPS: Final = Mart(
    name="ledger_groups",
    title="Ledger: delivered and acknowledged",
    about="Each message of a topic, in the one state it is in for each group that reads it. By "
    "trace: consumers wrote it down. By offset: the group's progress is all that is known.",
    fields=(
        Field("topic", "string", "Topic"),
        Field("group", "string", "Group"),
        Field("basis", "string", "Known by"),
        Field("messages", "bigint", "Messages", _COUNT),
        Field("delivered", "bigint", "Delivered", _COUNT),
        Field("acknowledged", "bigint", "Acknowledged", _COUNT),
        Field("dead", "bigint", "Dead", _COUNT),
        Field("retrying", "bigint", "Retrying", _COUNT),
        Field("waiting", "bigint", "Waiting", _COUNT),
        Field("inHand", "bigint", "In hand", _COUNT),
        Field("unwanted", "bigint", "Unwanted", _COUNT),
        Field("earlier", "bigint", "Before its begin", _COUNT),
        Field("unknown", "bigint", "Unknown", _COUNT),
        Field("passedBy", "bigint", "Passed by", _COUNT),
        Field("unfinished", "bigint", "Unfinished", _COUNT),
        Field("dropped", "bigint", "Dropped", _COUNT),
    ),
    key=("topic", "group"),
)
KINDS: Final = Mart(
    name="ledger_kinds",
    title="Differences by kind",
    about=f"How many differences there are; up to {LISTED_MAX} of each kind are listed.",
    fields=(
        Field("topic", "string", "Topic"),
        Field("group", "string", "Group", null=True),
        Field("what", "string", "What"),
        Field("messages", "bigint", "Messages", _COUNT),
        Field("listed", "bigint", "Listed", _COUNT),
        Field("explained", "boolean", "Explained"),
    ),
    key=("topic", "group", "what"),
)
DIFFERENCES: Final = Mart(
    name="ledger_differences",
    title="Differences, message by message",
    about="Messages that are not simply stored once and acknowledged, dead or waiting.",
    fields=(
        Field("topic", "string", "Topic"),
        Field("group", "string", "Group", null=True),
        Field("what", "string", "What"),
        Field("explained", "boolean", "Explained"),
        Field("msgId", "string", "Message"),
        Field("brokerName", "string", "Broker", null=True),
        Field("queueId", "int", "Queue", null=True),
        Field("queueOffset", "bigint", "Offset", null=True),
        Field("copies", "bigint", "Copies", _COUNT),
        Field("atTime", "timestamp", "Stored or sent"),
        Field("detail", "string", "Meaning"),
    ),
    key=("topic", "group", "what", "msgId"),
)


def sent(
    pubs: DataFrame,
    messages: DataFrame,
    *,
    topics: Collection[str],
    since_ms: int | None,
    until_ms: int | None,
    kept_since_ms: int | None,
) -> DataFrame:
    """What became of everything that was sent in the period, or is stored in it.

    `messages` also holds what was stored shortly before and behind the period, so that what was
    sent at its edge is not taken for lost. A topic of `topics` may have none at all.
    """
    stored = messages.groupBy("topic", "msgId").agg(fn.max("inside").alias("inside"))
    in_time = fn.col("sentMs").isNotNull()
    if since_ms is not None:
        in_time = in_time & (fn.col("sentMs") >= since_ms)
    if until_ms is not None:
        in_time = in_time & (fn.col("sentMs") < until_ms)
    missing = fn.col("inside").isNull() & in_time
    kept = fn.lit(False) if kept_since_ms is None else fn.col("sentMs") < kept_since_ms
    kind = fn.col("messageType")
    transaction = kind.isin(int(MessageType.HALF), int(MessageType.COMMIT))
    what = (
        fn.when(fn.col("inside"), fn.lit("stored"))
        .when(fn.col("recalled"), CALLED_BACK)
        .when(transaction & (fn.col("state") == "ROLLBACK_MESSAGE"), ROLLED_BACK)
        .when(transaction & fn.col("state").isNull(), HALF)
        .when(kind == int(MessageType.DELAY), DELAYED)
        .when(kept, EXPIRED)
        .otherwise(fn.lit(LOST))
    )
    return (
        pubs.join(stored, ["topic", "msgId"], "left")
        .where(fn.col("topic").isin(list(topics)))
        .where(fn.coalesce("inside", fn.lit(False)) | missing)
        .select("topic", "msgId", "sentMs", what.alias("what"))
    )


def topic_ledger(singles: DataFrame, sent: DataFrame) -> DataFrame:
    """Sent against stored, a row a topic."""
    doubled = fn.greatest(fn.col("copies") - fn.col("marked") - 1, fn.lit(0))
    stored = (
        singles.join(
            sent.where("what = 'stored'").select("topic", "msgId", fn.lit(1).alias("traced")),
            ["topic", "msgId"],
            "left",
        )
        .groupBy("topic")
        .agg(
            fn.sum("copies").alias("stored"),
            fn.count("*").alias("messages"),
            fn.count_if(fn.col("traced").isNull()).alias("untraced"),
            fn.sum(fn.col("copies") - 1 - doubled).alias("again"),
            fn.sum(doubled).alias("doubled"),
        )
    )
    kinds = {
        "delayed": DELAYED, "half": HALF, "rolledBack": ROLLED_BACK, "calledBack": CALLED_BACK,
        "expired": EXPIRED, "lost": LOST,
    }  # fmt: skip
    told = sent.groupBy("topic").agg(
        fn.count("*").alias("sent"),
        *(fn.count_if(fn.col("what") == word).alias(name) for name, word in kinds.items()),
    )
    nothing = fn.lit(0).cast("bigint")
    counted = {"stored", "messages", "untraced", "again", "doubled", *kinds}
    return stored.join(told, "topic", "full").select(
        *(
            fn.coalesce(fn.col(each.name), nothing).alias(each.name)
            if each.name in counted
            else fn.col(each.name)
            for each in TOPICS.fields
        )
    )


def group_ledger(standing: DataFrame) -> DataFrame:
    """Messages by state, a row a topic and group."""
    names = {
        "acknowledged": st.ACKNOWLEDGED, "dead": st.DEAD, "retrying": st.RETRYING,
        "waiting": st.WAITING, "inHand": st.IN_HAND, "unwanted": st.UNWANTED, "earlier": st.EARLIER,
        "unknown": st.UNKNOWN, "passedBy": st.PASSED_BY, "unfinished": st.UNFINISHED,
        "dropped": st.DROPPED,
    }  # fmt: skip
    state = fn.col("state")
    reached = (fn.col("attempts") > 0) | state.isin(st.ACKNOWLEDGED, st.DEAD, st.RETRYING)
    return standing.groupBy("topic", "group", "basis").agg(
        fn.count("*").alias("messages"),
        fn.count_if(reached).alias("delivered"),
        *(fn.count_if(state == word).alias(name) for name, word in names.items()),
    )


def differences(singles: DataFrame, sent: DataFrame, standing: DataFrame) -> DataFrame:
    """Every message that is not simply where it should be; not yet cut to what is listed."""
    nobody, nowhere = fn.lit(None).cast("string"), fn.lit(None)
    missing = sent.where("what <> 'stored'").select(
        "topic", nobody.alias("group"), "what", "msgId", nobody.alias("brokerName"),
        nowhere.cast("int").alias("queueId"), nowhere.cast("bigint").alias("queueOffset"),
        fn.lit(0).cast("bigint").alias("copies"), fn.col("sentMs").alias("atMs"),
    )  # fmt: skip
    unmarked = fn.col("copies") - fn.col("marked")
    place = ["brokerName", "queueId", "queueOffset"]
    copied = singles.where("copies > 1").select(
        "topic", nobody.alias("group"),
        fn.when(unmarked > 1, DOUBLED).otherwise(fn.col("origin")).alias("what"),
        "msgId", *place, "copies", fn.col("storedMs").alias("atMs"),
    )  # fmt: skip
    astray = standing.where(fn.col("state").isin(*st.UNEXPLAINED)).select(
        "topic", "group", fn.col("state").alias("what"), "msgId", *place,
        fn.lit(1).cast("bigint").alias("copies"), fn.col("storedMs").alias("atMs"),
    )  # fmt: skip
    found = missing.unionByName(copied).unionByName(astray)
    return found.select(
        "topic", "group", "what", _explained().alias("explained"), "msgId", *place, "copies",
        fn.timestamp_millis(fn.col("atMs")).alias("atTime"), _detail().alias("detail"),
    )  # fmt: skip


def listed(found: DataFrame, limit: int = LISTED_MAX) -> DataFrame:
    """The first differences of each kind, by time."""
    order = Window.partitionBy("topic", "group", "what").orderBy("atTime", "msgId")
    numbered = found.withColumn("at", fn.row_number().over(order))
    return numbered.where(fn.col("at") <= limit).drop("at")


def kinds(found: DataFrame, limit: int = LISTED_MAX) -> DataFrame:
    """How many there are of each kind."""
    counted = found.groupBy("topic", "group", "what", "explained").agg(
        fn.count("*").alias("messages"),
        fn.least(fn.count("*"), fn.lit(limit).cast("bigint")).alias("listed"),
    )
    return counted.select(*(each.name for each in KINDS.fields))


def _explained() -> Column:
    return ~fn.col("what").isin(*UNEXPLAINED)


def _detail() -> Column:
    words = fn.lit("it was put there again on purpose")
    for what, meaning in {**SENT_MEANING, **st.MEANING}.items():
        words = fn.when(fn.col("what") == what, fn.lit(meaning)).otherwise(words)
    return words


def check_topics(table: Table) -> None:
    """Every column is a part of its sum, and nothing is counted twice."""
    rows = {row["topic"]: row for row in table.rows}
    check_agree(
        table.mart, "stored, and different messages with their further copies",
        {topic: row["stored"] for topic, row in rows.items()},
        {topic: row["messages"] + row["again"] + row["doubled"] for topic, row in rows.items()},
    )  # fmt: skip
    ways = ("delayed", "half", "rolledBack", "calledBack", "expired", "lost")
    told = {topic: row for topic, row in rows.items() if row["sent"] is not None}
    check_agree(
        table.mart, "sent, and what became of it",
        {topic: row["sent"] for topic, row in told.items()},
        {topic: row["messages"] - row["untraced"] + sum(row[way] for way in ways)
         for topic, row in told.items()},
    )  # fmt: skip


def check_groups(table: Table, topics: Table) -> None:
    """A group's states are the messages of the topic, each one once."""
    stored = {row["topic"]: row["messages"] for row in topics.rows}
    states = [each.name for each in table.mart.fields[5:]]
    pairs = {(row["topic"], row["group"]): row for row in table.rows}
    check_agree(
        table.mart, "messages of a topic, and its messages by state",
        {pair: stored[pair[0]] for pair in pairs},
        {pair: sum(row[state] for state in states) for pair, row in pairs.items()},
    )  # fmt: skip
