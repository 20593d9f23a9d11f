"""Spark archives all topics in a Delta table and holds them against what was promised."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from demo.books import Books
from demo.claims import Claim, claim_of
from gantrymq.base.clock import SystemClock
from gantrymq.pipelines.archive.run import Archive as Archiving
from gantrymq.pipelines.archive.run import ArchiveRequest
from gantrymq.pipelines.lake import open_table
from gantrymq.spark.options.source_parser import parse_source_options
from gantrymq.testing.invariants import (
    acknowledged_is_kept,
    nothing_from_nowhere,
    order_is_kept,
    sent_once_stored_once,
)


@dataclass(frozen=True, slots=True)
class Found:
    """What Spark found in one topic."""

    rows: int
    lost: int
    """Promised, but not in the archive."""
    strangers: int
    """In the archive, but never promised: not acknowledged, rolled back, recalled."""
    repeats: int
    doubled: int
    """Stored more than once although every answer had come."""


@dataclass(frozen=True, slots=True)
class Archive:
    """What Spark found in all of them."""

    topics: Mapping[str, Found]
    misplaced: int
    """Events that lie before an earlier event of their customer, or in another queue."""
    second_run: int
    """Rows that a second run added."""

    def total(self, name: str) -> int:
        return sum(getattr(found, name) for found in self.topics.values())

    def _where(self, name: str) -> str:
        """A total, and where it comes from if it is not 0."""
        counts = {topic: getattr(found, name) for topic, found in self.topics.items()}
        places = ", ".join(f"{count:,} in {topic}" for topic, count in counts.items() if count)
        return places or f"0 in {len(counts)} topics"

    def claims(self) -> list[Claim]:
        rows, topics = self.total("rows"), len(self.topics)
        return [
            claim_of(
                acknowledged_is_kept,
                "Spark",
                self._where("lost"),
                rows > 0 and topics > 0 and self.total("lost") == 0,
            ),
            claim_of(
                nothing_from_nowhere,
                "Spark",
                self._where("strangers"),
                self.total("strangers") == 0,
            ),
            claim_of(
                sent_once_stored_once,
                "Spark",
                f"{self.total('repeats'):,} of {rows:,} repeat; unexcused: "
                f"{self._where('doubled')}",
                self.total("doubled") == 0,
            ),
            claim_of(
                order_is_kept,
                "Spark",
                f"{self.misplaced:,} events of customers misplaced",
                self.misplaced == 0,
            ),
            Claim(
                "a second archive run adds nothing",
                f"{self.second_run:,} rows",
                self.second_run == 0,
            ),
        ]


def prove(
    spark: Any, namesrv: str, books: Mapping[str, Books], ordered_topic: str, folder: Path
) -> Archive:
    """Archive the topics, then ask the archive."""
    _archive(spark, namesrv, books, folder, "first")
    second_run = _archive(spark, namesrv, books, folder, "second")
    (
        open_table(str(folder / "archive"))
        .frame(spark)
        .selectExpr("topic", "coalesce(keys, '') AS id", "queueId", "queueOffset")
        .cache()
        .createOrReplaceTempView("stored")
    )
    _write_promises(spark, books, folder / "promised.csv")
    return Archive(_compare(spark, books), _misplaced(spark, ordered_topic), second_run)


def _archive(spark: Any, namesrv: str, books: Mapping[str, Books], folder: Path, run: str) -> int:
    """One run of the pipeline: everything that is new, into the table. Returns the rows."""
    table = open_table(str(folder / "archive"), create=True)
    options = parse_source_options({"nameServer": namesrv, "topic": ",".join(books)})
    work = Archiving(spark, table, ArchiveRequest(options=options), run=run, clock=SystemClock())
    return work.run().rows


def _write_promises(spark: Any, books: Mapping[str, Books], file: Path) -> None:
    with file.open("w") as lines:
        for topic, book in books.items():
            for each in book.expected:
                lines.write(f"{topic},{each},{str(each in book.doubtful).lower()}\n")
    schema = "topic string, id string, doubtful boolean"
    spark.read.csv(str(file), schema=schema).createOrReplaceTempView("promised")


def _compare(spark: Any, books: Mapping[str, Books]) -> dict[str, Found]:
    rows = spark.sql(
        """
        WITH copies AS (SELECT topic, id, count(*) AS copies FROM stored GROUP BY topic, id)
        SELECT topic, sum(coalesce(copies, 0)), count_if(copies IS NULL),
               count_if(doubtful IS NULL), sum(coalesce(copies, 1) - 1),
               count_if(copies > 1 AND NOT coalesce(doubtful, false))
        FROM copies FULL OUTER JOIN promised USING (topic, id) GROUP BY topic
        """
    ).collect()
    found = {row[0]: Found(*row[1:]) for row in rows}
    return {topic: found.get(topic, Found(0, 0, 0, 0, 0)) for topic in books}


def _misplaced(spark: Any, topic: str) -> int:
    """Of every event the first copy counts; it must lie behind the one numbered before it."""
    (row,) = spark.sql(
        """
        WITH firsts AS (
          SELECT split_part(id, '/', 1) AS customer, int(split_part(id, '/', 2)) AS number,
                 min(queueOffset) AS place, min(queueId) AS low, max(queueId) AS high
          FROM stored WHERE topic = :topic GROUP BY id
        ), neighbours AS (
          SELECT *, lag(place, 1, -1) OVER by_number AS before,
                 lag(low, 1, low) OVER by_number AS home
          FROM firsts WINDOW by_number AS (PARTITION BY customer ORDER BY number)
        )
        SELECT count_if(place <= before OR low <> high OR low <> home) FROM neighbours
        """,
        args={"topic": topic},
    ).collect()
    return int(row[0])
