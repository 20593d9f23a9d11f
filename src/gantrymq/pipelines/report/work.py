"""The state while one report is made: what is read once and used by several sections."""

from collections import Counter
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from gantrymq.base.plurals import are, counted
from gantrymq.model import DEAD_PREFIX, RETRY_PREFIX, SCHEDULE_TOPIC, TIMER_TOPIC
from gantrymq.pipelines.common.progress import RunProgress
from gantrymq.pipelines.marts.mart import Mart, MartTable, settle
from gantrymq.pipelines.report.facts import ClusterFacts
from gantrymq.pipelines.report.report import Report
from gantrymq.pipelines.report.request import ReportRequest
from gantrymq.pipelines.report.sources import Sources
from gantrymq.pipelines.report.steps import step_for
from gantrymq.pipelines.staging import copies, group_progress, messages, spans
from gantrymq.protocol.trace import COUNT_NAME

HEAT_POINTS_MAX: Final = 48


class ReportWork:
    """Reads the frames that sections share, keeps them, and adds tables to the report."""

    standing: DataFrame
    """Where each message stands with each group; made by the ledger's section."""

    def __init__(
        self,
        spark: SparkSession,
        request: ReportRequest,
        facts: ClusterFacts,
        history: group_progress.Snapshot,
        progress: RunProgress,
        now_ms: int,
    ) -> None:
        self.spark, self.request, self.facts, self.history = spark, request, facts, history
        self._progress = progress
        self._sources = Sources(spark, request, facts)
        self._kept: list[DataFrame] = []
        self.consumptions: Counter[str] = Counter()
        """Trace records of consumptions, by group."""
        self.report = Report(
            request=request, made_ms=now_ms, step_ms=request.step_ms or 0, notes=facts.notes
        )

    def read(self) -> None:
        """Read trace, retries, dead letters and messages.

        Trace comes first: a trace record is written after its message was stored, so the message
        is among the rows that are read later.
        """
        self.trace = self.keep(
            spans.spans(self._sources.about([self.request.trace_topic], spans.COLUMNS))
        )
        self._note_trace()
        self.retries, self.dead = self.keep(self._retries()), self.keep(self._dead())
        self.retries.count()
        self.dead.count()
        self.stored = self.keep(self._messages())
        self._choose_steps()

    def keep(self, frame: DataFrame) -> DataFrame:
        """A frame that is computed once, at its first use, and used by several marts."""
        kept = frame.persist()
        self._kept.append(kept)
        return kept

    def release(self) -> None:
        for frame in self._kept:
            frame.unpersist()

    def add(self, mart: Mart, frame: DataFrame) -> MartTable:
        """Compute and check a table, and add it to the report."""
        found = self.report.tables[mart.name] = settle(mart, frame)
        self._progress.advance()
        return found

    def of_groups(self, frame: DataFrame) -> DataFrame:
        """Only the rows of the requested groups."""
        groups = self.request.groups
        return frame.where(fn.col("group").isin(list(groups))) if groups else frame

    def _note_trace(self) -> None:
        totals = self.trace.groupBy("kind", "group").count().collect()
        kinds: Counter[str] = Counter()
        for row in totals:
            kinds[row["kind"]] += row["count"]
            if row["kind"] in spans.CONSUMPTIONS and row["group"] is not None:
                self.consumptions[row["group"]] += row["count"]
        kinds.pop(COUNT_NAME, None)
        unreadable = kinds.pop(spans.UNREADABLE, 0)
        self.report.traced = bool(kinds)
        notes = self.report.notes
        if self.request.trace_topic not in self.facts.known:
            notes.append(
                f"there is no trace ({self.request.trace_topic}): what was sent is not "
                "known, and deliveries are told by offset"
            )
        elif not kinds:
            notes.append(
                "nobody has traced anything: what was sent is not known, and deliveries "
                "are told by offset"
            )
        if unreadable:
            records = counted(unreadable, "trace record")
            notes.append(f"{records} could not be read and {are(unreadable)} left out")

    def _names(self, prefix: str) -> list[str]:
        return sorted(name for name in self.facts.known if name.startswith(prefix))

    def _retries(self) -> DataFrame:
        names = [SCHEDULE_TOPIC, TIMER_TOPIC, *self._names(RETRY_PREFIX)]
        found = self._sources.about(names, copies.COLUMNS)
        owners = copies.owners_of(self.facts.groups, self.facts.topics)
        there = self.facts.known
        known = {name: group for name, group in owners.items() if name in there}
        return self.of_groups(copies.retries(found, known))

    def _dead(self) -> DataFrame:
        found = self._sources.about(self._names(DEAD_PREFIX), copies.COLUMNS)
        dead = copies.dead_letters(found).dropDuplicates(["deadId"])
        topics, about = self.facts.topics, fn.col("topic")
        unsaid = about.isNull()
        if self.request.topics:  # one without its topic counts if its group reads one of them
            readers = {each["group"] for each in self.facts.progress if each["topic"] in topics}
            unsaid &= fn.col("group").isin(sorted(readers))
        return self.of_groups(dead.where(unsaid | about.isin(topics)))

    def _messages(self) -> DataFrame:
        period = self.request.period
        return messages.messages(
            self._sources.messages(messages.COLUMNS),
            since_ms=period.since_ms,
            until_ms=period.until_ms,
        )

    def _choose_steps(self) -> None:
        """Choose the time steps of lines and of the heat map."""
        first, last = (
            self.stored.where("inside").agg(fn.min("storedMs"), fn.max("storedMs")).collect()[0]
        )
        if first is None:
            first = last = self.facts.at_ms
            if self.facts.topics:
                self.report.notes.append("no message was stored in this period")
        self.report.step_ms = self.report.step_ms or step_for(first, last)
        self.report.heat_ms = step_for(first, last, HEAT_POINTS_MAX)
