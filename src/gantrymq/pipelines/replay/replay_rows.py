"""Prepare messages to be sent again: marked, without properties of their first delivery.

The order is that of the origin. Messages that belong together (by sharding key, else by their first
key, else by their queue) are sent to one queue, those of one origin queue in the order of their
offsets and others by their store time.
"""

from collections.abc import Sequence
from typing import Any, Final

from gantrymq.message_fields import RESERVED
from gantrymq.model import Queue
from gantrymq.pipelines.common.replay_marks import (
    MARKS,
    REPLAY_BORN,
    REPLAY_ID,
    REPLAY_ORIGIN,
    REPLAY_STORED,
)
from gantrymq.pipelines.replay.request import BY_QUEUE
from gantrymq.protocol import properties as names

LEFT_BEHIND: Final = frozenset(
    {
        *RESERVED,
        *names.FAILURE,
        *MARKS,
        names.RESENT_FROM,
        names.SPREAD_FROM,
        names.INSTANCE_ID,
        names.TRANSACTION_ID,
        names.TIMER_DELIVER_MS,
        names.TIMER_DELAY_SEC,
        names.TIMER_DELAY_MS,
        names.TIMER_OUT_MS,
        names.TIMER_ENQUEUE_MS,
        names.TIMER_DEQUEUE_MS,
        names.TIMER_ROLL_TIMES,
        names.TIMER_DELETE_UNIQ_KEY,
        names.POP_CHECKPOINT,
        names.FIRST_POP_TIME,
        names.CORRELATION_ID,
        names.REPLY_TO_CLIENT,
        names.TIME_TO_LIVE,
        names.MESSAGE_TYPE,
        names.ARRIVE_TIME,
        names.PUSH_REPLY_TIME,
        names.SHARDING_KEY,
        "__STARTDELIVERTIME",
        "__CRC32#",
        "INNER_NUM",
        "INNER_MULTI_DISPATCH",
        "INNER_MULTI_QUEUE_OFFSET",
        "DUP_INFO",
        "BORNHOST",
        "BORNTIMESTAMP",
    }
)
"""Properties of the first journey: delays and timers, transactions, requests, retries, ids. Keys,
tags and the sharding key travel as columns."""

NEEDED: Final = (
    "topic",
    "brokerName",
    "queueId",
    "queueOffset",
    "msgId",
    "keys",
    "tags",
    "properties",
    "body",
    "flag",
    "bornTimestamp",
    "storeTimestamp",
)


def mark_rows(frame: Any, replay: str, order: str, queues: Sequence[Queue], tasks: int) -> Any:
    """A frame of messages with the sink's columns, in tasks that keep the order."""
    from pyspark.sql import functions as f
    from pyspark.sql.window import Window

    origin = ("topic", "brokerName", "queueId")
    sharding = f.col("properties")[names.SHARDING_KEY]
    first_key = f.nullif(f.split(f.trim("keys"), " +")[0], f.lit(""))
    together = f.concat_ws("/", *origin)
    if order != BY_QUEUE:
        together = f.coalesce(sharding, first_key, together)
    # A clock that was set back must not change the order within a queue.
    before = Window.partitionBy("together", *origin).orderBy("queueOffset")
    stored = f.max("storeTimestamp").over(before)
    target = _target(order, queues)
    return (
        frame.withColumn("together", together)
        .repartition(tasks, "together")
        .withColumn("stored", stored)
        .sortWithinPartitions("stored", *origin, "queueOffset")
        .select(
            "body",
            "keys",
            "tags",
            f.map_concat(_kept(), _marks(replay)).alias("properties"),
            "flag",
            sharding.alias("shardingKey"),
            f.element_at(f.array(*(f.lit(q.broker_name) for q in queues)), target).alias(
                "brokerName"
            ),
            f.element_at(f.array(*(f.lit(q.queue_id) for q in queues)), target).alias("queueId"),
        )
    )


def _target(order: str, queues: Sequence[Queue]) -> Any:
    """The index of the target queue, from 1; an origin queue keeps its name if it can."""
    from pyspark.sql import functions as f

    count = len(queues)
    if order != BY_QUEUE:
        return (f.pmod(f.xxhash64("together"), f.lit(count)) + 1).cast("int")
    namesake = f.create_map(
        *(f.lit(word) for at, queue in enumerate(queues) for word in (_name(queue), at))
    )
    own = namesake[f.concat_ws("/", "brokerName", "queueId")]
    return (f.coalesce(own, f.pmod(f.col("queueId"), f.lit(count))) + 1).cast("int")


def _name(queue: Queue) -> str:
    return f"{queue.broker_name}/{queue.queue_id}"


def _kept() -> Any:
    from pyspark.sql import functions as f

    left = sorted(LEFT_BEHIND)
    return f.map_filter("properties", lambda name, _: ~name.isin(*left))


def _marks(replay: str) -> Any:
    from pyspark.sql import functions as f

    place = f.concat_ws("/", "topic", "brokerName", "queueId", "queueOffset")
    return f.create_map(
        f.lit(REPLAY_ID),
        f.lit(replay),
        f.lit(REPLAY_ORIGIN),
        f.concat_ws("@", "msgId", place),
        f.lit(REPLAY_BORN),
        f.unix_millis("bornTimestamp").cast("string"),
        f.lit(REPLAY_STORED),
        f.unix_millis("storeTimestamp").cast("string"),
    )
