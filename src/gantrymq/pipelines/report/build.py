"""Make the tables of a report: staging, marts and their checks, in the needed order."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import sleep
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from gantrymq.base.clock import SystemClock, WallClock, elapsed_seconds
from gantrymq.base.plurals import are, counted
from gantrymq.model import DEAD_PREFIX, RETRY_PREFIX, SCHEDULE_TOPIC, TIMER_TOPIC
from gantrymq.pipelines.common.progress import RunProgress, Silent
from gantrymq.pipelines.marts import causes, duplicates, lag, latency, ledger, skew, traffic
from gantrymq.pipelines.marts import standing as st
from gantrymq.pipelines.marts.mart import Mart, MartTable, check_agree, settle, sums
from gantrymq.pipelines.report.facts import ClusterFacts, gather
from gantrymq.pipelines.report.request import STORE, ReportRequest
from gantrymq.pipelines.report.sources import Sources
from gantrymq.pipelines.report.steps import step_for
from gantrymq.pipelines.staging import copies, group_progress, messages, spans
from gantrymq.pipelines.staging.coverage import Coverage, coverage
from gantrymq.protocol.trace import COUNT_NAME

SETTLE_SECONDS: Final = 2.0
"""Time between the look at progress and the reading of trace: clients hold it back for half a
second."""
HEAT_POINTS_MAX: Final = 48
COMPILING: Final = "spark.sql.codegen.wholeStage"
FEW_ROWS: Final = 100_000
MARTS: Final = (
    ledger.TOPICS, ledger.GROUPS, ledger.KINDS, ledger.DIFFERENCES, traffic.TOTALS,
    traffic.TRAFFIC, lag.LAG, latency.LATENCY, duplicates.TOTALS, duplicates.LISTED,
    causes.CAUSES, skew.KEYS, skew.QUEUES, skew.LOAD,
)  # fmt: skip
"""All tables of a report, in its order."""


@dataclass(kw_only=True)
class Report:
    """Everything a report says, before pages and pictures are made."""

    wanted: ReportRequest
    made_ms: int
    step_ms: int
    """The step of lines over time."""
    heat_ms: int = 0
    """The step of the heat map."""
    tables: dict[str, MartTable] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    traced: bool = False
    gaps: list[Coverage] = field(default_factory=list)
    """Groups with messages whose fate is not known, because trace is missing."""
    page: Path | None = None
    """The path of the page, once it is written."""

    def table(self, mart: Mart) -> MartTable:
        return self.tables[mart.name]

    @property
    def unexplained(self) -> int:
        """How many messages have a state that nothing explains."""
        rows = self.table(ledger.KINDS).rows
        return sum(row["messages"] for row in rows if row["explained"] is False)

    @property
    def untraced(self) -> int:
        """How many messages have an unknown state, because trace is missing."""
        return self.table(ledger.GROUPS).total("untraced")


def build_report(
    spark: SparkSession,
    request: ReportRequest,
    *,
    clock: WallClock | None = None,
    history: Path | None = None,
    progress: RunProgress | None = None,
) -> Report:
    """Make all tables. The snapshot of progress is added to the history, if there is one."""
    progress, clock = progress or Silent(), clock or SystemClock()
    progress.start(len(MARTS), "tables")
    began = elapsed_seconds()
    facts = gather(request, clock)
    if history is not None:
        group_progress.append(
            history, [each for each in facts.progress if each["brokerOffset"] is not None]
        )
    if request.namesrv is not None:
        sleep(max(0.0, SETTLE_SECONDS - (elapsed_seconds() - began)))
    making = _Making(spark, request, facts, progress, clock.now_ms())
    try:
        with _compiled_if_many(spark, facts.rows):
            making.run(group_progress.history(history) if history is not None else facts.progress)
    finally:
        making.release()
        progress.done()
    return making.report


@contextmanager
def _compiled_if_many(spark: SparkSession, rows: int | None) -> Iterator[None]:
    """Switch off Spark's compilation of queries for few rows: it would take longer than they do."""
    before = spark.conf.get(COMPILING)
    if rows is not None and rows <= FEW_ROWS:
        spark.conf.set(COMPILING, "false")
    try:
        yield
    finally:
        spark.conf.set(COMPILING, before or "true")


class _Making:
    """The state while one report is made; keeps frames that several marts use."""

    def __init__(
        self,
        spark: SparkSession,
        wanted: ReportRequest,
        facts: ClusterFacts,
        told: RunProgress,
        now_ms: int,
    ) -> None:
        self._spark, self._wanted, self._facts, self._told = spark, wanted, facts, told
        self._sources = Sources(spark, wanted, facts)
        self._kept: list[DataFrame] = []
        self._told_of: dict[str, int] = {}
        """Trace records of consumptions, by group."""
        self.report = Report(
            wanted=wanted, made_ms=now_ms, step_ms=wanted.step_ms or 0, notes=facts.notes
        )

    def release(self) -> None:
        for frame in self._kept:
            frame.unpersist()

    def run(self, history: group_progress.Snapshot) -> None:
        # Trace first: a trace record is written after its message was stored, so the message is
        # among the rows that are read later.
        found = self._keep(self._spans())
        self._note_trace(found)
        retries, dead = self._keep(self._retries()), self._keep(self._dead())
        retries.count()
        dead.count()
        self._stored = self._keep(self._messages())
        self._steps()
        self._ledger(found, retries, dead)
        self._traffic()
        self._history(history)
        self._add(latency.LATENCY, latency.latency(self._stored, self._standing))
        repeats = self._keep(duplicates.repeats(self._stored, self._standing))
        self._add(duplicates.TOTALS, duplicates.totals(repeats))
        self._add(duplicates.LISTED, duplicates.listed(repeats))
        self._causes(dead)
        self._skew()

    # frames

    def _keep(self, frame: DataFrame) -> DataFrame:
        """A frame that is computed once, at its first use, and used by several marts."""
        kept = frame.persist()
        self._kept.append(kept)
        return kept

    def _spans(self) -> DataFrame:
        return spans.spans(self._sources.about([self._wanted.trace_topic], spans.COLUMNS))

    def _note_trace(self, found: DataFrame) -> None:
        totals = found.groupBy("kind", "group").count().collect()
        kinds: dict[str, int] = {}
        for row in totals:
            kinds[row["kind"]] = kinds.get(row["kind"], 0) + row["count"]
            if row["kind"] in spans.CONSUMPTIONS and row["group"] is not None:
                self._told_of[row["group"]] = self._told_of.get(row["group"], 0) + row["count"]
        kinds.pop(COUNT_NAME, None)
        unreadable = kinds.pop(spans.UNREADABLE, 0)
        self.report.traced = bool(kinds)
        notes = self.report.notes
        if self._wanted.trace_topic not in self._facts.known:
            notes.append(
                f"there is no trace ({self._wanted.trace_topic}): what was sent is not "
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
        return sorted(name for name in self._facts.known if name.startswith(prefix))

    def _retries(self) -> DataFrame:
        names = [SCHEDULE_TOPIC, TIMER_TOPIC, *self._names(RETRY_PREFIX)]
        found = self._sources.about(names, copies.COLUMNS)
        owners = copies.owners_of(self._facts.groups, self._facts.topics)
        there = self._facts.known
        known = {name: group for name, group in owners.items() if name in there}
        return self._of_groups(copies.retries(found, known))

    def _dead(self) -> DataFrame:
        found = self._sources.about(self._names(DEAD_PREFIX), copies.COLUMNS)
        dead = copies.dead_letters(found).dropDuplicates(["deadId"])
        topics, about = self._facts.topics, fn.col("topic")
        unsaid = about.isNull()
        if self._wanted.topics:  # one without its topic counts if its group reads one of them
            readers = {each["group"] for each in self._facts.progress if each["topic"] in topics}
            unsaid &= fn.col("group").isin(sorted(readers))
        return self._of_groups(dead.where(unsaid | about.isin(topics)))

    def _of_groups(self, frame: DataFrame) -> DataFrame:
        """Only the rows of the requested groups."""
        groups = self._wanted.groups
        return frame.where(fn.col("group").isin(list(groups))) if groups else frame

    def _messages(self) -> DataFrame:
        period = self._wanted.period
        return messages.messages(
            self._sources.messages(messages.COLUMNS),
            since_ms=period.since_ms,
            until_ms=period.until_ms,
        )

    def _steps(self) -> None:
        """Choose the time steps of lines and of the heat map."""
        first, last = (
            self._stored.where("inside").agg(fn.min("storedMs"), fn.max("storedMs")).collect()[0]
        )
        if first is None:
            first = last = self._facts.at_ms
            if self._facts.topics:
                self.report.notes.append("no message was stored in this period")
        self.report.step_ms = self.report.step_ms or step_for(first, last)
        self.report.heat_ms = step_for(first, last, HEAT_POINTS_MAX)

    # marts

    def _add(self, mart: Mart, frame: DataFrame) -> MartTable:
        found = self.report.tables[mart.name] = settle(mart, frame)
        self._told.advance()
        return found

    def _ledger(self, found: DataFrame, retries: DataFrame, dead: DataFrame) -> None:
        wanted, facts = self._wanted, self._facts
        tries = self._of_groups(spans.deliveries(found))
        singles = self._keep(st.distinct(self._stored))
        now = group_progress.progress(self._spark, self._named(facts.progress))
        subscriptions = self._spark.createDataFrame(list(facts.subscriptions), st.SUBSCRIPTIONS)
        readers = st.readers(singles, tries, dead, retries, now)
        stands = self._keep(
            st.standing(
                singles,
                readers,
                tries,
                dead,
                retries,
                now,
                subscriptions,
                copies_known=self._copies_known,
            )
        )
        self._standing = self._excused(stands, found)
        sent = self._keep(
            ledger.sent(
                spans.pubs(found),
                self._stored,
                topics=facts.topics,
                since_ms=wanted.period.since_ms,
                until_ms=wanted.period.until_ms,
                kept_since_ms=facts.kept_since_ms,
            )
        )
        topics = self._add(ledger.TOPICS, ledger.topic_ledger(singles, sent))
        ledger.check_topics(topics)
        groups = self._add(ledger.GROUPS, ledger.group_ledger(self._standing))
        ledger.check_groups(groups, topics)
        differences = self._keep(ledger.differences(singles, sent, self._standing))
        kinds = self._add(ledger.KINDS, ledger.kinds(differences))
        listed = self._add(ledger.DIFFERENCES, ledger.listed(differences))
        check_agree(
            listed.mart,
            "listed differences, and their count by kind",
            {"listed": len(listed.rows)},
            {"listed": kinds.total("listed")},
        )

    def _excused(self, stands: DataFrame, found: DataFrame) -> DataFrame:
        """Mark unexplained messages as untraced where missing trace may be the reason."""
        needed = st.missing_records(stands)
        told_of = {group: count for group, count in self._told_of.items() if group in needed}
        if not told_of:
            return stands
        every = coverage(found, told_of, self._facts.online, self._facts.at_ms)
        sure = self._keep(self._excuse(stands, {each.group: each.sure_ms for each in every}))
        needed = st.missing_records(sure)
        whole = {
            each.group: each.whole_ms
            for each in every
            if each.missing and needed.get(each.group, 0) <= each.missing
        }
        excused = self._keep(self._excuse(sure, whole)) if whole else sure
        untraced = st.untraced_groups(excused)
        self.report.gaps = [each for each in every if each.group in untraced]
        self.report.notes += [each.why(self._wanted.zone) for each in self.report.gaps]
        return excused

    def _excuse(self, stands: DataFrame, since: Mapping[str, int | None]) -> DataFrame:
        return st.excuse(stands, self._spark.createDataFrame(list(since.items()), st.GAPS))

    @property
    def _copies_known(self) -> bool:
        """Whether delayed retries can be read: their system topic is rarely archived.

        In a store the topic exists from the first delayed message on.
        """
        return self._wanted.kind == STORE or SCHEDULE_TOPIC in self._facts.known

    def _named(self, rows: group_progress.Snapshot) -> group_progress.Snapshot:
        """Add the broker's name to the progress of a store: only its rows have it."""
        if self._wanted.kind != STORE:
            return rows
        names = self._stored.select("brokerName").limit(1).collect()
        return [{**row, "brokerName": names[0][0] if names else ""} for row in rows]

    def _traffic(self) -> None:
        done = self._standing.where(fn.col("state") == st.ACKNOWLEDGED)
        flows = self._keep(traffic.flows(self._stored, done))
        totals = self._add(traffic.TOTALS, traffic.totals(flows))
        by_time = self._add(traffic.TRAFFIC, traffic.traffic(flows, self.report.step_ms))
        ins = _only(totals, lambda row: row["direction"] == traffic.IN)
        outs = _only(totals, lambda row: row["direction"] == traffic.OUT)
        topics = self.report.table(ledger.TOPICS)
        check_agree(
            totals.mart,
            "messages in, and the ledger's stored ones",
            sums(ins, ["topic"], "messages"),
            sums(topics, ["topic"], "stored"),
        )
        check_agree(
            totals.mart,
            "messages out, and the ledger's acknowledged ones",
            sums(outs, ["topic", "group"], "messages"),
            sums(self.report.table(ledger.GROUPS), ["topic", "group"], "acknowledged"),
        )
        check_agree(
            by_time.mart,
            "messages in by time, and in total",
            sums(_only(by_time, lambda row: row["direction"] == traffic.IN), ["topic"], "messages"),
            sums(ins, ["topic"], "messages"),
        )

    def _history(self, rows: group_progress.Snapshot) -> None:
        topics, period = self._facts.topics, self._wanted.period
        groups = {each["group"] for each in rows if each["topic"] in topics}
        if self._wanted.groups:
            groups &= set(self._wanted.groups)
        chosen = [
            each
            for each in rows
            if each["group"] in groups
            and (each["topic"] in topics or each["topic"].startswith(RETRY_PREFIX))
            and (period.since_ms is None or each["atMs"] >= period.since_ms)
        ]
        self._add(lag.LAG, lag.lag(group_progress.progress(self._spark, chosen)))

    def _causes(self, dead: DataFrame) -> None:
        period = self._wanted.period
        died = dead.where(messages.within(fn.col("diedMs"), period.since_ms, period.until_ms))
        found = self._add(causes.CAUSES, causes.causes(died))
        silent = sum(row["letters"] for row in found.rows if row["cause"] == causes.NOT_NOTED)
        if silent:
            self.report.notes.append(
                f"no cause is noted for {silent} dead letters: only GantryMQ's consumers on its "
                "own brokers note one"
            )
        if len(found.rows) < causes.LISTED_MAX:
            check_agree(
                found.mart,
                "letters by cause, and all letters",
                {"letters": found.total("letters")},
                {"letters": died.count()},
            )

    def _skew(self) -> None:
        places = [(each.topic, each.broker_name, each.queue_id) for each in self._facts.queues]
        known = self._spark.createDataFrame(
            places if self._wanted.kind != STORE else [], skew.QUEUES_SCHEMA
        )
        self._add(skew.KEYS, skew.hot_keys(self._stored))
        queues = self._add(skew.QUEUES, skew.queues(self._stored, known))
        self._add(skew.LOAD, skew.queue_load(self._stored, self.report.heat_ms))
        check_agree(
            queues.mart,
            "messages by queue, and in total",
            sums(queues, ["topic"], "messages"),
            sums(self.report.table(ledger.TOPICS), ["topic"], "stored"),
        )


def _only(table: MartTable, keep: Callable[[dict[str, object]], bool]) -> MartTable:
    return MartTable(table.mart, [row for row in table.rows if keep(row)], None)
