"""The messages that a request selects, counted without bodies: for dry run and plan."""

from datetime import UTC, date, datetime
from typing import Any, Final

from gantrymq.base.errors import ConfigError
from gantrymq.model import Queue
from gantrymq.pipelines.common.selection import Selection, select_messages
from gantrymq.pipelines.replay.chunks import CountedBlock, by_day, chunked
from gantrymq.pipelines.replay.journal import ReplayPlan
from gantrymq.pipelines.replay.origins import messages
from gantrymq.pipelines.replay.request import ReplayRequest

BLOCK_ROWS: Final = 1024
"""Offsets that are counted together; chunks are made of whole blocks."""
BLOCKS_MAX: Final = 2_000_000
"""Blocks a plan may have: it is held in memory and written to a file."""
DAY_MS: Final = 86_400_000
DAYS_TO_1970: Final = date(1970, 1, 1).toordinal()
CHUNK_BYTES: Final = 64 * 1024 * 1024


def plan_replay(
    spark: Any,
    request: ReplayRequest,
    namesrv: str,
    now_ms: int,
    *,
    queues: tuple[Queue, ...],
    rows_max: int,
    tasks: int,
) -> ReplayPlan:
    """The plan of a new replay; nothing is sent or saved."""
    selection, _ = request.selection(now_ms)
    block_rows = max(1, min(BLOCK_ROWS, rows_max // 4))
    counts = count(spark, request, namesrv, selection, block_rows)
    began = datetime.fromtimestamp(now_ms // 1000, UTC)
    return ReplayPlan(
        id=f"{began:%Y%m%d-%H%M%S}{now_ms % 1000:03}-{request.fingerprint()}",
        begun_ms=now_ms,
        request=request,
        selection=selection,
        namesrv=namesrv,
        queues=queues,
        tasks=tasks,
        chunks=tuple(chunked(counts, rows_max, CHUNK_BYTES)),
        days=tuple(by_day(counts)),
    )


def count(
    spark: Any, request: ReplayRequest, namesrv: str, selection: Selection, block_rows: int
) -> list[CountedBlock]:
    """The selected messages by queue, block and day of the request's zone."""
    from pyspark.sql import functions as f

    frame = messages(
        spark,
        request.origin,
        namesrv,
        request.topic,
        selection,
        columns=(*COUNTED_COLUMNS, *selection_columns(selection)),
    )
    stored = f.unix_millis("storeTimestamp")
    # Spark shifts the instant by the zone's offset, so days can be counted as if it were UTC.
    local = f.unix_millis(f.from_utc_timestamp("storeTimestamp", request.zone))
    found = (
        select_messages(frame, selection)
        .groupBy(
            "brokerName",
            "queueId",
            f.floor(f.col("queueOffset") / block_rows).alias("block"),
            f.floor(local / DAY_MS).alias("day"),
        )
        .agg(
            f.count("*").alias("rows"),
            f.sum(f.col("storeSize").cast("bigint")).alias("size"),
            f.min("queueOffset").alias("first"),
            f.max("queueOffset").alias("last"),
            f.min(stored).alias("first_ms"),
            f.max(stored).alias("last_ms"),
        )
        .limit(BLOCKS_MAX + 1)
        .toArrow()
        .to_pylist()
    )
    if len(found) > BLOCKS_MAX:
        raise ConfigError(
            "more messages were chosen than one replay takes: choose a shorter period"
        )
    return [_counted(request.topic, row) for row in found]


COUNTED_COLUMNS: Final = ("brokerName", "queueId", "queueOffset", "storeSize", "storeTimestamp")


def selection_columns(selection: Selection) -> list[str]:
    """The further columns that the selection needs."""
    columns = {
        "tags": selection.tags.strip() not in ("", "*"),
        "keys": bool(selection.keys),
        "msgId": bool(selection.ids),
        "offsetMsgId": bool(selection.ids),
        "properties": selection.sql is not None,
    }
    return [name for name, needed in columns.items() if needed]


def _counted(topic: str, row: dict[str, Any]) -> CountedBlock:
    return CountedBlock(
        Queue(topic, row["brokerName"], row["queueId"]),
        row["block"],
        date.fromordinal(DAYS_TO_1970 + row["day"]).isoformat(),
        row["rows"],
        row["size"] or 0,
        row["first"],
        row["last"],
        row["first_ms"],
        row["last_ms"],
    )
