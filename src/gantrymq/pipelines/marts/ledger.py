"""The no-loss ledger: what was sent, stored, delivered, acknowledged, and every difference."""

from collections.abc import Collection
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from gantrymq.pipelines.marts import standing as st
from gantrymq.pipelines.marts.frames import foremost, nothing
from gantrymq.pipelines.marts.mart import (
    GROUP,
    SOME_GROUP,
    TOPIC,
    Field,
    Mart,
    MartTable,
    check_agree,
    tally,
)
from gantrymq.pipelines.staging.messages import within
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

_BECAME: Final = {
    "delayed": DELAYED,
    "half": HALF,
    "rolledBack": ROLLED_BACK,
    "calledBack": CALLED_BACK,
    "expired": EXPIRED,
    "lost": LOST,
}
"""The columns for what was sent and is not stored."""
_STATES: Final = {
    "acknowledged": st.ACKNOWLEDGED,
    "dead": st.DEAD,
    "retrying": st.RETRYING,
    "waiting": st.WAITING,
    "inHand": st.IN_HAND,
    "unwanted": st.UNWANTED,
    "earlier": st.EARLIER,
    "unknown": st.UNKNOWN,
    "passedBy": st.PASSED_BY,
    "unfinished": st.UNFINISHED,
    "dropped": st.DROPPED,
    "untraced": st.UNTRACED,
}
"""The columns for where a message stands with a group: each message is in one of them."""

TOPICS: Final = Mart(
    name="ledger_topics",
    title="Ledger: sent and stored",
    about="Sent: what traced producers wrote down. Stored: what lies in the topic. Messages are "
    "counted once by their id; a second copy is doubled, unless a mark says it was put there again "
    "on purpose.",
    fields=(
        TOPIC,
        tally("sent", "Sent", null=True),
        tally("stored", "Stored"),
        tally("messages", "Different messages"),
        tally("untraced", "Without a sender's trace"),
        tally("again", "Again on purpose"),
        tally("delayed", "Delayed"),
        tally("half", "Undecided"),
        tally("rolledBack", "Rolled back"),
        tally("calledBack", "Called back"),
        tally("expired", "Expired"),
        tally("lost", "Lost"),
        tally("doubled", "Doubled"),
    ),
    key=("topic",),
)
GROUPS: Final = Mart(
    name="ledger_groups",
    title="Ledger: delivered and acknowledged",
    about="Each message of a topic, in the one state it is in for each group that reads it. By "
    "trace: consumers wrote it down. By offset: the group's progress is all that is known.",
    fields=(
        TOPIC,
        GROUP,
        Field("basis", "string", "Known by"),
        tally("messages", "Messages"),
        tally("delivered", "Delivered"),
        tally("acknowledged", "Acknowledged"),
        tally("dead", "Dead"),
        tally("retrying", "Retrying"),
        tally("waiting", "Waiting"),
        tally("inHand", "In hand"),
        tally("unwanted", "Unwanted"),
        tally("earlier", "Before its begin"),
        tally("unknown", "Unknown"),
        tally("passedBy", "Passed by"),
        tally("unfinished", "Unfinished"),
        tally("dropped", "Dropped"),
        tally("untraced", "Trace missing"),
    ),
    key=("topic", "group"),
)
KINDS: Final = Mart(
    name="ledger_kinds",
    title="Differences by kind",
    about=f"How many differences there are; up to {LISTED_MAX} of each kind are listed.",
    fields=(
        TOPIC,
        SOME_GROUP,
        Field("what", "string", "What"),
        tally("messages", "Messages"),
        tally("listed", "Listed"),
        Field("explained", "boolean", "Explained", null=True),
    ),
    key=("topic", "group", "what"),
)
DIFFERENCES: Final = Mart(
    name="ledger_differences",
    title="Differences, message by message",
    about="Messages that are not simply stored once and acknowledged, dead or waiting.",
    fields=(
        TOPIC,
        SOME_GROUP,
        Field("what", "string", "What"),
        Field("explained", "boolean", "Explained", null=True),
        Field("msgId", "string", "Message"),
        Field("brokerName", "string", "Broker", null=True),
        Field("queueId", "int", "Queue", null=True),
        Field("queueOffset", "bigint", "Offset", null=True),
        tally("copies", "Copies"),
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
    """The outcome of everything that was sent in the period, or is stored in it.

    `messages` also holds messages stored shortly before and after the period, so that one sent at
    its edge does not count as lost. A topic of `topics` may have no messages.
    """
    stored = messages.groupBy("topic", "msgId").agg(fn.max("inside").alias("inside"))
    sent_ms = fn.col("sentMs")
    missing = fn.col("inside").isNull() & sent_ms.isNotNull() & within(sent_ms, since_ms, until_ms)
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
    told = sent.groupBy("topic").agg(
        fn.count("*").alias("sent"),
        *(fn.count_if(fn.col("what") == word).alias(name) for name, word in _BECAME.items()),
    )
    names = [each.name for each in TOPICS.fields]
    counts = [name for name in names if name not in ("topic", "sent")]
    return stored.join(told, "topic", "full").na.fill(0, counts).select(*names)


def group_ledger(standing: DataFrame) -> DataFrame:
    """Messages by state, a row a topic and group."""
    state = fn.col("state")
    reached = (fn.col("attempts") > 0) | state.isin(st.ACKNOWLEDGED, st.DEAD, st.RETRYING)
    return standing.groupBy("topic", "group", "basis").agg(
        fn.count("*").alias("messages"),
        fn.count_if(reached).alias("delivered"),
        *(fn.count_if(state == word).alias(name) for name, word in _STATES.items()),
    )


def differences(singles: DataFrame, sent: DataFrame, standing: DataFrame) -> DataFrame:
    """Messages not stored, stored more than once, or unexplained; not yet cut to a limit."""
    missing = sent.where("what <> 'stored'").select(
        "topic",
        nothing("group"),
        "what",
        "msgId",
        nothing("brokerName"),
        nothing("queueId", "int"),
        nothing("queueOffset", "bigint"),
        fn.lit(0).cast("bigint").alias("copies"),
        fn.col("sentMs").alias("atMs"),
    )
    unmarked = fn.col("copies") - fn.col("marked")
    place = ["brokerName", "queueId", "queueOffset"]
    copied = singles.where("copies > 1").select(
        "topic",
        nothing("group"),
        fn.when(unmarked > 1, DOUBLED).otherwise(fn.col("origin")).alias("what"),
        "msgId",
        *place,
        "copies",
        fn.col("storedMs").alias("atMs"),
    )
    astray = standing.where(fn.col("state").isin(*st.UNEXPLAINED, st.UNTRACED)).select(
        "topic",
        "group",
        fn.col("state").alias("what"),
        "msgId",
        *place,
        fn.lit(1).cast("bigint").alias("copies"),
        fn.col("storedMs").alias("atMs"),
    )
    found = missing.unionByName(copied).unionByName(astray)
    return found.select(
        "topic",
        "group",
        "what",
        _explained().alias("explained"),
        "msgId",
        *place,
        "copies",
        fn.timestamp_millis(fn.col("atMs")).alias("atTime"),
        _detail().alias("detail"),
    )


def listed(found: DataFrame, limit: int = LISTED_MAX) -> DataFrame:
    """The first differences of each kind, by time."""
    return foremost(found, limit, of=["topic", "group", "what"], by=["atTime", "msgId"])


def kinds(found: DataFrame, limit: int = LISTED_MAX) -> DataFrame:
    """How many differences there are of each kind."""
    counted = found.groupBy("topic", "group", "what", "explained").agg(
        fn.count("*").alias("messages"),
        fn.least(fn.count("*"), fn.lit(limit).cast("bigint")).alias("listed"),
    )
    return counted.select(*(each.name for each in KINDS.fields))


def _explained() -> Column:
    """Whether the state is explained; null if only missing trace could tell."""
    what = fn.col("what")
    return fn.when(what != st.UNTRACED, ~what.isin(*UNEXPLAINED))


def _detail() -> Column:
    words = fn.lit("it was put there again on purpose")
    for what, meaning in {**SENT_MEANING, **st.MEANING}.items():
        words = fn.when(fn.col("what") == what, fn.lit(meaning)).otherwise(words)
    return words


def check_topics(table: MartTable) -> None:
    """Check that columns add up to their sums, and that nothing is counted twice."""
    rows = {row["topic"]: row for row in table.rows}
    check_agree(
        table.mart,
        "stored, and different messages with their further copies",
        {topic: row["stored"] for topic, row in rows.items()},
        {topic: row["messages"] + row["again"] + row["doubled"] for topic, row in rows.items()},
    )
    told = {topic: row for topic, row in rows.items() if row["sent"] is not None}
    check_agree(
        table.mart,
        "sent, and what became of it",
        {topic: row["sent"] for topic, row in told.items()},
        {
            topic: row["messages"] - row["untraced"] + sum(row[way] for way in _BECAME)
            for topic, row in told.items()
        },
    )


def check_groups(table: MartTable, topics: MartTable) -> None:
    """Check that the states of a group add up to the messages of the topic."""
    stored = {row["topic"]: row["messages"] for row in topics.rows}
    pairs = {(row["topic"], row["group"]): row for row in table.rows}
    check_agree(
        table.mart,
        "messages of a topic, and its messages by state",
        {pair: stored[pair[0]] for pair in pairs},
        {pair: sum(row[state] for state in _STATES) for pair, row in pairs.items()},
    )
