"""What Spark does once the trade is over: proof, an hour again, and a report."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from demo.books import Books
from demo.claims import Claim
from demo.proof import Archive, prove
from gantrymq.pipelines import (
    Journal,
    ReplayRequest,
    ReplayRun,
    ReportRequest,
    ReportRun,
    parse_origin,
    run_replay,
    run_report,
)
from gantrymq.pipelines.common.spark_run import spark_run
from gantrymq.pipelines.marts.ledger import TOPICS

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Again:
    """An hour of orders, sent into another topic."""

    meant: int
    rows: int
    originals: int
    """Different messages among them."""
    turned: int
    """Neighbours of one customer that lie the other way round than they did."""

    def claims(self) -> list[Claim]:
        once = 0 < self.meant == self.rows == self.originals
        return [
            Claim(
                "an hour again: every order once, marked",
                f"{self.rows:,} sent, {self.originals:,} of {self.meant:,}",
                once,
            ),
            Claim(
                "an hour again: each customer's order is kept",
                f"{self.turned:,} turned",
                self.turned == 0,
            ),
        ]


@dataclass(frozen=True, slots=True)
class Told:
    """The report."""

    pictures: int
    doubled: int
    """Messages that the ledger found stored once more than they were sent."""
    otherwise: int
    """Other messages whose fate nothing explains."""
    repeats: int
    """What the proof found stored more than once."""

    def claims(self) -> list[Claim]:
        return [
            Claim(
                "the report's ledger finds those repeats, and no loss",
                f"{self.doubled:,} doubled, {self.otherwise:,} otherwise open; "
                f"{self.pictures} pictures",
                self.doubled == self.repeats and self.otherwise == 0 and self.pictures > 0,
            )
        ]


class Afterwards:
    """Spark, for as long as it is needed. Blocking."""

    def __init__(self, namesrv: str, folder: Path, say: Say) -> None:
        self._namesrv, self._folder, self._say = namesrv, folder, say

    def run(
        self, books: Mapping[str, Books], topic: str, into: str, pages: Path
    ) -> tuple[Archive, Again, Told]:
        folder = self._folder
        settings = {
            "spark.local.dir": str(folder / "spark"),
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            "spark.sql.shuffle.partitions": "2",
        }
        # What Spark and its workers have to say is not the story: it is told if something fails.
        with spark_run("gantrymq-demo", master="local[2]", settings=settings) as spark:
            archive = prove(spark, self._namesrv, books, topic, folder)
            rows = ", ".join(f"{found.rows:,} {name}" for name, found in archive.topics.items())
            self._say(f"archived in a Delta table and compared: {rows}")
            again = self._again(spark, topic, into)
            self._say(f"the last hour of {topic} is in {into} as well, {again.rows:,} messages")
            told = self._report(spark, tuple(books), pages, archive.total("repeats"))
        return archive, again, told

    def _again(self, spark: Any, topic: str, into: str) -> Again:
        origin = parse_origin(f"archive:{self._folder / 'archive'}")
        request = ReplayRequest(origin=origin, topic=topic, into=into, since="1h ago")
        journal = Journal(self._folder / "replays")
        run = ReplayRun(request=request, namesrv=self._namesrv, journal=journal, who="demo")
        result = run_replay(spark, run)
        options = {"nameServer": self._namesrv, "topic": into}
        spark.read.format("rocketmq").options(**options).load().createOrReplaceTempView("again")
        (row,) = spark.sql(
            """
            WITH marked AS (
              SELECT split_part(keys, '/', 1) AS customer, queueId, queueOffset,
                     properties['REPLAY_ORIGIN'] AS origin,
                     bigint(regexp_extract(properties['REPLAY_ORIGIN'], '([0-9]+)$')) AS place
              FROM again
            ), neighbours AS (
              SELECT *, lag(place, 1, -1) OVER by_place AS before,
                     lag(queueId, 1, queueId) OVER by_place AS home
              FROM marked WINDOW by_place AS (PARTITION BY customer ORDER BY queueOffset)
            )
            SELECT count(*), count(DISTINCT origin), count_if(place <= before OR home <> queueId)
            FROM neighbours
            """
        ).collect()
        return Again(result.total, *map(int, row))

    def _report(self, spark: Any, topics: tuple[str, ...], pages: Path, repeats: int) -> Told:
        request = ReportRequest(namesrv=self._namesrv, topics=topics)
        made = run_report(spark, ReportRun(request=request, folder=pages))
        pictures = len(list((pages / "pictures").glob("*.svg")))
        doubled = sum(row["doubled"] for row in made.table(TOPICS).rows)
        return Told(pictures, doubled, made.unexplained - doubled, repeats)
