"""Trace messages as spans: one row a trace record."""

from collections.abc import Iterable, Iterator
from typing import Any, Final
from zlib import crc32

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from gantrymq.pipelines.common.arrow import arrow_schema
from gantrymq.protocol import trace

COLUMNS: Final = ("body",)
SPANS: Final = (
    "kind string, msgId string, topic string, group string, atMs bigint, costMs bigint, "
    "ok boolean, requestId string, messageType int, outcome int, state string, clientId string, "
    "begunMs bigint, first bigint, records bigint, dropped bigint, waiting bigint, met bigint, "
    "members array<string>"
)
"""The columns from `clientId` on are those of writers' counts: their side is the `state`, and `ok`
says that the writer was closed."""
CONSUMPTIONS: Final = ("SubBefore", "SubAfter")
UNREADABLE: Final = "unreadable"
"""The kind of a row that stands for a record that nobody can read."""

DELIVERIES: Final = (
    "group string, msgId string, requestId string, beganMs bigint, endedMs bigint, "
    "costMs bigint, ok boolean"
)
"""One attempt of a group at a message; `ok` is null while nothing tells how it ended."""
PUBS: Final = (
    "topic string, msgId string, sentMs bigint, producer string, ok boolean, messageType int, "
    "state string, recalled boolean"
)
"""One message that was sent; `state` is what was decided on its transaction."""


def spans(rows: DataFrame) -> DataFrame:
    """All records in the bodies of trace messages, each once."""

    def read(batches: Iterator[Any]) -> Iterator[Any]:
        schema = arrow_schema(SPANS)
        for batch in batches:
            names = batch.schema.names
            bodies = batch.column(names.index("body")).to_pylist()
            yield pa.RecordBatch.from_pylist(list(_rows(bodies)), schema=schema)

    # A trace message may be stored twice, by a retry of its producer. Messages are compared, not
    # their records: there are a hundred times fewer, and a record names its message and attempt.
    return rows.select("body").dropDuplicates().mapInArrow(read, SPANS)


def _rows(bodies: Iterable[bytes | None]) -> Iterator[dict[str, Any]]:
    for body in bodies:
        records, unreadable = trace.decode(body or b"")
        for record in records:
            told = _told(record)
            # RocketMQ's clients write one record for a batch, with all its ids.
            for msg_id in record.msg_id.split(","):
                yield told | {"msgId": msg_id}
        for count in trace.decode_counts(body or b""):
            yield _counted(count)
        for number in range(unreadable):
            yield {"kind": UNREADABLE, "costMs": number, "requestId": str(crc32(body or b""))}


def _told(record: trace.Record) -> dict[str, Any]:
    told: dict[str, Any] = {
        "kind": type(record).__name__,
        "group": record.group or None,
        "atMs": record.at_ms or None,
    }
    if isinstance(record, trace.Pub):
        told |= {
            "topic": record.topic,
            "costMs": record.cost_ms,
            "ok": record.ok,
            "messageType": record.message_type,
        }
    elif isinstance(record, trace.SubBefore):
        told |= {"requestId": record.request_id}
    elif isinstance(record, trace.SubAfter):
        told |= {
            "requestId": record.request_id,
            "costMs": record.cost_ms,
            "ok": record.ok,
            "outcome": record.outcome,
        }
    elif isinstance(record, trace.EndTransaction):
        told |= {"topic": record.topic, "state": record.state}
    elif isinstance(record, trace.Recall):
        told |= {"topic": record.topic, "ok": record.ok}
    return told


def _counted(count: trace.TraceCount) -> dict[str, Any]:
    return {
        "kind": trace.COUNT_NAME,
        "group": count.group,
        "atMs": count.at_ms,
        "ok": count.closed,
        "state": count.side,
        "clientId": count.client_id,
        "begunMs": count.begun_ms,
        "first": count.first,
        "records": count.records,
        "dropped": count.dropped,
        "waiting": count.waiting,
        "met": count.met,
        "members": list(count.members),
    }


def deliveries(found: DataFrame) -> DataFrame:
    """Deliveries with their ends.

    Some writers leave out group and time in the end record: the begin record has them.
    """
    before, after = fn.col("kind") == "SubBefore", fn.col("kind") == "SubAfter"
    tried = (
        found.where(before | after)
        .groupBy("msgId", "requestId")
        .agg(
            fn.max("group").alias("group"),
            fn.min(fn.when(before, fn.col("atMs"))).alias("began"),
            fn.max(fn.when(after, fn.col("atMs"))).alias("ended"),
            fn.max(fn.when(after, fn.col("costMs"))).alias("costMs"),
            fn.max(fn.when(after, fn.col("ok"))).alias("ok"),
        )
        .where(fn.col("group").isNotNull())
    )
    cost = fn.coalesce("costMs", fn.lit(0))
    return tried.select(
        "group",
        "msgId",
        "requestId",
        fn.coalesce(fn.col("began"), fn.col("ended") - cost).alias("beganMs"),
        fn.when(
            fn.col("ok").isNotNull(), fn.coalesce(fn.col("ended"), fn.col("began") + cost)
        ).alias("endedMs"),
        "costMs",
        "ok",
    )


def pubs(found: DataFrame) -> DataFrame:
    """What producers traced as sent, one row a message."""
    pub = fn.col("kind") == "Pub"
    recall = fn.col("kind") == "Recall"
    decided = fn.col("state").isin("COMMIT_MESSAGE", "ROLLBACK_MESSAGE")
    return (
        found.where(fn.col("kind").isin("Pub", "EndTransaction", "Recall"))
        .groupBy("topic", "msgId")
        .agg(
            fn.min(fn.when(pub, fn.col("atMs"))).alias("sentMs"),
            fn.max(fn.when(pub, fn.col("group"))).alias("producer"),
            fn.max(fn.when(pub, fn.col("ok"))).alias("ok"),
            fn.max(fn.when(pub, fn.col("messageType"))).alias("messageType"),
            # Of two decisions the broker takes the first.
            fn.min_by("state", fn.when(decided, fn.col("atMs"))).alias("state"),
            fn.coalesce(fn.max(fn.when(recall, fn.col("ok"))), fn.lit(False)).alias("recalled"),
        )
        .where(fn.col("sentMs").isNotNull())
    )
