"""Frames of messages from live topics, store files, an archive, or two of them."""

from collections.abc import Collection, Mapping, Sequence
from functools import reduce
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from gantrymq.pipelines.lake import open_table
from gantrymq.pipelines.report.facts import ClusterFacts
from gantrymq.pipelines.report.request import ReportRequest
from gantrymq.spark.options.columns import COLUMNS, ddl

PLACE: Final = ("topic", "brokerName", "queueId", "queueOffset")


class Sources:
    """The sources of a report. A topic that a source lacks is an empty frame, not an error."""

    def __init__(self, spark: SparkSession, wanted: ReportRequest, facts: ClusterFacts) -> None:
        self._spark, self._wanted, self._facts = spark, wanted, facts

    def messages(self, columns: Sequence[str]) -> DataFrame:
        """The messages of the report's topics, in its period and a margin around it.

        With an archive and a cluster both are read, each message once: a message that was traced
        and is not archived yet is not lost.
        """
        topics, until_ms = self._facts.topics, self._wanted.read_until_ms
        if self._wanted.archive is None:
            return self._live(topics, columns, until_ms=until_ms)
        hot = sorted(set(topics) & self._facts.live)
        if not hot:
            return self._archived(topics, columns, until_ms=until_ms)
        needed = tuple(dict.fromkeys((*columns, *PLACE)))
        cold = self._archived(topics, needed, until_ms=until_ms)
        both = cold.unionByName(self._live(hot, needed, until_ms=until_ms))
        return both.dropDuplicates([*PLACE]).select(*columns)

    def about(self, topics: Collection[str], columns: Sequence[str]) -> DataFrame:
        """Messages of other topics up to their end: later ones may be about the period, too.

        With an archive and a cluster both are read: one has old messages, the other new ones.
        """
        found = []
        cold = sorted(set(topics) & self._facts.archived)
        if self._wanted.archive is not None and cold:
            found.append(self._archived(cold, columns))
        hot = sorted(set(topics) & self._facts.live)
        if hot:
            found.append(self._live(hot, columns))
        if not found:
            return self._nothing(columns)
        return reduce(DataFrame.unionByName, found)

    def _nothing(self, columns: Sequence[str]) -> DataFrame:
        return self._spark.createDataFrame([], ddl({name: COLUMNS[name] for name in columns}))

    def _live(
        self, topics: Sequence[str], columns: Sequence[str], *, until_ms: int | None = None
    ) -> DataFrame:
        if not topics:
            return self._nothing(columns)
        options = {"topic": ",".join(topics), "columns": ",".join(columns), **self._place()}
        if self._wanted.read_since_ms is not None:
            options["startingTimestamp"] = str(self._wanted.read_since_ms)
            options["startingOffsetsByTimestampStrategy"] = "latest"
        if until_ms is not None:
            options["endingTimestamp"] = str(until_ms)
        return self._spark.read.format("rocketmq").options(**options).load()

    def _place(self) -> Mapping[str, str]:
        """The source's options; messages that retention deletes meanwhile are no error."""
        wanted = self._wanted
        if wanted.store is not None:
            place = {"via": "store", "storePath": str(wanted.store)}
        else:
            place = {"nameServer": wanted.namesrv or ""}
        return {**place, "failOnDataLoss": "false"}

    def _archived(
        self, topics: Sequence[str], columns: Sequence[str], *, until_ms: int | None = None
    ) -> DataFrame:
        assert self._wanted.archive is not None
        rows: DataFrame = open_table(self._wanted.archive).frame(
            self._spark, topics=topics, since_ms=self._wanted.read_since_ms, until_ms=until_ms
        )
        return rows.select(*columns)
