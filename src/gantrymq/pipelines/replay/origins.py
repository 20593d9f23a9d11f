"""Frames of messages from a live topic, store files or an archive."""

import json
from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import Any

from gantrymq.model.offset_ranges import OffsetRange, to_json
from gantrymq.pipelines.common.selection import Selection
from gantrymq.pipelines.replay.request import ARCHIVE, STORE, Origin
from gantrymq.spark.options.columns import COLUMNS


def messages(
    spark: Any,
    origin: Origin,
    namesrv: str,
    topic: str,
    selection: Selection,
    *,
    columns: Sequence[str] = tuple(COLUMNS),
    ranges: Sequence[OffsetRange] | None = None,
) -> Any:
    """Messages of a topic, few more than are selected; with `ranges` only those offsets."""
    if origin.kind == ARCHIVE:
        return _archived(spark, origin.place, topic, selection, columns, ranges)
    options = {"columns": ",".join(columns)}
    if origin.kind == STORE:
        options |= {"via": "store", "storePath": origin.place}
    else:
        options |= {"nameServer": namesrv}
    options |= {"topic": topic, **_times(selection)} if ranges is None else _offsets(ranges)
    return spark.read.format("rocketmq").options(**options).load()


def _times(selection: Selection) -> dict[str, str]:
    """Options that limit where reading begins and ends; the exact choice is made row by row."""
    found = {"startingOffsetsByTimestampStrategy": "latest"}
    if selection.since_ms is not None:
        found["startingTimestamp"] = str(selection.since_ms)
    if selection.until_ms is not None:
        found["endingTimestamp"] = str(selection.until_ms)
    return found if len(found) > 1 else {}


def _offsets(ranges: Sequence[OffsetRange]) -> dict[str, str]:
    queues: dict[str, dict[str, list[int]]] = {}
    for each in ranges:
        brokers = queues.setdefault(each.queue.topic, {})
        brokers.setdefault(each.queue.broker_name, []).append(each.queue.queue_id)
    return {
        "assign": json.dumps(queues),
        "startingOffsets": json.dumps(to_json({each.queue: each.start for each in ranges})),
        "endingOffsets": json.dumps(to_json({each.queue: each.end for each in ranges})),
    }


def _archived(
    spark: Any,
    path: str,
    topic: str,
    selection: Selection,
    columns: Sequence[str],
    ranges: Sequence[OffsetRange] | None,
) -> Any:
    from pyspark.sql import functions as f

    from gantrymq.pipelines.lake import open_table

    frame = open_table(path).frame(
        spark, topics=[topic], since_ms=selection.since_ms, until_ms=selection.until_ms
    )
    if ranges is not None:
        inside = [
            (f.col("brokerName") == each.queue.broker_name)
            & (f.col("queueId") == each.queue.queue_id)
            & f.col("queueOffset").between(each.start, each.end - 1)
            for each in ranges
        ]
        frame = frame.where(reduce(or_, inside))
    return frame.select(*columns)
