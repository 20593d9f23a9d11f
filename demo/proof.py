"""Spark reads the whole topic into Parquet and holds it against what was acknowledged."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from demo.shop import TOPIC
from gantrymq.spark.session import local_session

STREAM_SECONDS_MAX = 120


@dataclass(frozen=True, slots=True)
class Archive:
    """What Spark found."""

    rows: int
    lost: int
    """Acknowledged, but not in the archive."""
    strangers: int
    """In the archive, but never acknowledged."""
    repeats: int
    misplaced: int
    """Events that lie before an earlier event of their customer, or in another queue."""
    second_run: int
    """Rows a second run with the same checkpoint read."""


def prove_alone(namesrv: str, acknowledged: Sequence[str], folder: Path) -> Archive:
    """The same with a Spark of its own, which is gone afterwards. Blocking."""
    settings = {
        "spark.local.dir": str(folder / "spark"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.shuffle.partitions": "2",
    }
    spark = local_session("gantrymq-demo", master="local[2]", settings=settings)
    try:
        return prove(spark, namesrv, TOPIC, acknowledged, folder)
    finally:
        spark.stop()


def prove(
    spark: Any, namesrv: str, topic: str, acknowledged: Sequence[str], folder: Path
) -> Archive:
    """Archive a topic, then ask the archive."""
    ids = folder / "acknowledged.txt"
    ids.write_text("\n".join(acknowledged))
    rows = _archive(spark, namesrv, topic, folder)
    second_run = _archive(spark, namesrv, topic, folder)
    events = _events(spark, folder)
    sent = spark.read.text(str(ids)).withColumnRenamed("value", "id")
    return Archive(
        rows=rows,
        lost=sent.join(events, "id", "left_anti").count(),
        strangers=events.join(sent, "id", "left_anti").count(),
        repeats=rows - events.select("id").distinct().count(),
        misplaced=_misplaced(events),
        second_run=second_run,
    )


def _archive(spark: Any, namesrv: str, topic: str, folder: Path) -> int:
    """One run of the pipeline: everything that is new, into Parquet."""
    query = (
        spark.readStream.format("rocketmq")
        .options(nameServer=namesrv, topic=topic, startingOffsets="earliest")
        .load()
        .writeStream.format("parquet")
        .options(path=str(folder / "archive"), checkpointLocation=str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    if not query.awaitTermination(STREAM_SECONDS_MAX):
        query.stop()
        raise TimeoutError("the archive was not written in time")
    return sum(progress["numInputRows"] for progress in query.recentProgress)


def _events(spark: Any, folder: Path) -> Any:
    """The archive as events: customer, number, place."""
    return (
        spark.read.parquet(str(folder / "archive"))
        .selectExpr(
            "keys AS id",
            "split_part(keys, '/', 1) AS customer",
            "int(split_part(keys, '/', 2)) AS number",
            "queueId",
            "queueOffset",
        )
        .cache()
    )


def _misplaced(events: Any) -> int:
    """Of every event the first copy counts; it must lie behind the one numbered before it."""
    events.createOrReplaceTempView("events")
    (row,) = events.sparkSession.sql(
        """
        WITH firsts AS (
          SELECT customer, number, min(queueOffset) AS place, min(queueId) AS low,
                 max(queueId) AS high
          FROM events GROUP BY customer, number
        ), neighbours AS (
          SELECT *, lag(place, 1, -1) OVER by_number AS before,
                 lag(low, 1, low) OVER by_number AS home
          FROM firsts WINDOW by_number AS (PARTITION BY customer ORDER BY number)
        )
        SELECT count_if(place <= before OR low <> high OR low <> home) FROM neighbours
        """
    ).collect()
    return int(row[0])
