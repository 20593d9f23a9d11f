"""Jobs: messages to rows of a table, step by step, and again when a job was wrong.

    @job(topic="orders", table="lake/orders", time="hour", every="1h")
    def orders_per_hour(messages):
        hour = functions.date_trunc("hour", "storeTimestamp").alias("hour")
        return messages.groupBy(hour, "tags").count()

A row belongs to the step of time (`every`) that its `time` is in, and is made of messages that
were stored in that step. `run` computes all steps again that have new messages; `again` computes
a given period. Both replace whole steps in one commit of the table.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from gantrymq.base.clock import SystemClock, WallClock
from gantrymq.base.errors import ConfigError, GantryError
from gantrymq.base.time_text import describe, parse_period
from gantrymq.model import check_group_name
from gantrymq.model.offset_ranges import QueueOffsets, count_behind
from gantrymq.pipelines.jobs.feeds import FOR_EVER, ArchiveFeed, Feed, TopicFeed
from gantrymq.pipelines.jobs.periods import Grain, parse_grain
from gantrymq.pipelines.jobs.result_files import Staged, stage
from gantrymq.pipelines.jobs.results import ResultPeriod, Results
from gantrymq.spark.records.fetch import Reader
from gantrymq.spark.source.progress import introduce, store

log = logging.getLogger(__name__)

Work = Callable[[Any], Any]
"""From a frame of messages to a frame of rows."""
REPORT_SECONDS_MAX: Final = 10.0
OWN_OPTIONS: Final = ("starting", "ending", "topic", "subscribe", "assign", "group", "commit")
"""Options of the source that begin so are the job's to give."""


@dataclass(frozen=True, slots=True)
class JobResult:
    """What a run did."""

    since_ms: int | None
    until_ms: int | None
    """The period; None twice if there was nothing to do, an end of None is open."""
    rows_before: int = 0
    rows: int = 0
    """Rows of the period, before and after."""
    version: int | None = None
    """Of the table; None if nothing was written."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """A function from messages to rows, with its source and the table that it fills."""

    work: Work
    name: str
    topic: str
    """One topic, or several with commas between."""
    table: str
    time: str
    every: str
    zone: str = "UTC"
    archive: str | None = None
    group: str | None = None
    """Its progress shows how far the job is; the job itself goes by its table."""
    source: Mapping[str, str] = field(default_factory=dict)
    """Further options of the source, such as columns or tags."""
    clock: WallClock = field(default_factory=SystemClock)

    def __post_init__(self) -> None:
        parse_grain(self.every, self.zone)
        if not self.name or "/" in self.name:
            raise ConfigError(f"a job's name is one word without a slash, not {self.name!r}")
        if self.group is not None:
            check_group_name(self.group)
        given = {name.lower(): value for name, value in self.source.items()}
        own = [name for name in self.source if name.lower().startswith(OWN_OPTIONS)]
        if own:
            raise ConfigError(f"{own[0]} is no option of a job's source: the job decides where")
        if "storeTimestamp" not in given.get("columns", "storeTimestamp"):
            raise ConfigError("the columns of a job's source must have storeTimestamp among them")

    def __call__(self, messages: Any) -> Any:
        """Call the plain function, for tests of it."""
        return self.work(messages)

    @property
    def grain(self) -> Grain:
        return parse_grain(self.every, self.zone)

    def results(self) -> Results:
        """The job's table."""
        if "://" in self.table:
            raise ConfigError(f"{self.table} is no folder: mount the storage, and give its path")
        return Results(Path(self.table).expanduser().absolute(), self.name, self.time)

    # running

    def run(self, spark: Any, namesrv: str = "") -> JobResult:
        """Compute all steps that have messages which the table has not seen."""
        results, feed = self.results(), self._feed(namesrv, self.archive)
        results.check_own()
        lows, highs = feed.bounds()
        known = results.positions(highs)
        starts = {queue: known.get(queue, low) for queue, low in lows.items()}
        _check_not_begun_anew(known, highs)
        if not any(count_behind(starts, highs).values()):
            return JobResult(None, None)
        since = self._first_new(spark, feed, starts, highs)
        if since is None:  # the options select none of them: do not look again
            version = results.advance(highs, f"{self.name} past what it does not read")
            self._tell(namesrv, highs)
            return JobResult(None, None, version=version)
        span = ResultPeriod(self.grain.floor(since), None)
        if known:
            self._check_reach(feed, span.since_ms)
        outcome = self._replace(spark, results, feed, span, starts, highs, highs)
        self._tell(namesrv, highs)
        return outcome

    def again(
        self,
        spark: Any,
        namesrv: str = "",
        *,
        since: str,
        until: str | None = None,
        zone: str | None = None,
        archive: str | None = None,
        commit_progress: bool = False,
        dry_run: bool = False,
    ) -> JobResult:
        """Compute a period again and replace its rows.

        The job's positions do not change, and the group's progress changes only with
        `commit_progress`. With `dry_run` nothing is replaced.
        """
        if commit_progress and self.group is None:
            raise ConfigError(f"the job {self.name} has no group to commit progress of")
        if commit_progress and not namesrv:
            raise ConfigError("progress is committed to brokers: give a name server, -n host:port")
        span = self.span(since, until, zone)
        results, feed = self.results(), self._feed(namesrv, archive or self.archive)
        results.check_own()
        _, highs = feed.bounds()
        self._check_reach(feed, span.since_ms)
        lacking = feed.lacks(span, results.positions(highs))
        if lacking:
            raise ConfigError(f"{lacking[0]}. Nothing was replaced")
        ends = highs if span.until_ms is None else feed.ends_at(span.until_ms, highs)
        outcome = self._replace(spark, results, feed, span, {}, ends, {}, is_trial=dry_run)
        if commit_progress and not dry_run:
            self._report(namesrv, ends)
        return outcome

    def span(self, since: str, until: str | None, zone: str | None = None) -> ResultPeriod:
        """The period that two texts mean; refused unless it consists of whole steps."""
        period = parse_period(since, until, zone or self.zone, self.clock.now_ms())
        assert period.since_ms is not None
        self.grain.check(period.since_ms, period.until_ms)
        return ResultPeriod(period.since_ms, period.until_ms)

    def notes(self, since: str, until: str | None, zone: str | None = None) -> tuple[str, ...]:
        """Notes about times that clocks skip or show twice."""
        return parse_period(since, until, zone or self.zone, self.clock.now_ms()).notes

    # the parts

    def _feed(self, namesrv: str, archive: str | None) -> Feed:
        if archive is not None:
            topics = [word.strip() for word in self.topic.split(",")]
            return ArchiveFeed(archive, topics, self.source)
        options = {"topic": self.topic, **self.source}
        return TopicFeed({"nameServer": namesrv, **options} if namesrv else options)

    def _first_new(
        self, spark: Any, feed: Feed, starts: QueueOffsets, ends: QueueOffsets
    ) -> int | None:
        """The store time of the earliest new message (ms); all are read, as clocks may go back."""
        from pyspark.sql import functions as f

        found = feed.frame(spark, ResultPeriod(FOR_EVER, None), starts, ends, times_only=True)
        [row] = found.agg(f.min(f.unix_millis("storeTimestamp")).alias("first")).collect()
        return None if row.first is None else int(row.first)

    def _check_reach(self, feed: Feed, since_ms: int) -> None:
        """Raise ConfigError if the messages since a time are deleted: rows would be lost."""
        for broker, reach in sorted(feed.reaches_back().items()):
            if reach > since_ms:
                where = (
                    "anything" if reach == FOR_EVER else f"what is older than {self._said(reach)}"
                )
                raise ConfigError(
                    f"{broker} no longer has {where} of {self.topic}: the rows since "
                    f"{self._said(since_ms)} cannot be computed from it. Take an archive, or a "
                    "later --since"
                )

    def _said(self, ms: int) -> str:
        return describe(ms, self.zone)

    def _replace(
        self,
        spark: Any,
        results: Results,
        feed: Feed,
        span: ResultPeriod,
        starts: QueueOffsets,
        ends: QueueOffsets,
        positions: QueueOffsets,
        *,
        is_trial: bool = False,
    ) -> JobResult:
        from gantrymq.pipelines.staging.messages import ms_of, within

        found = feed.frame(spark, span, starts, ends)
        inside = within(ms_of("storeTimestamp"), span.since_ms, span.until_ms)
        with results.staging() as folder:
            staged = stage(self.work(found.where(inside)), folder, self.time)
            self._check_inside(staged, span)
            before = results.rows_in(span)
            version = None
            if not is_trial:
                reason = f"{self.name} since {self._said(span.since_ms)}"
                version = results.replace(span, staged, positions, reason)
        return JobResult(span.since_ms, span.until_ms, before, staged.rows, version)

    def _check_inside(self, staged: Staged, span: ResultPeriod) -> None:
        """Raise ConfigError if a row lies outside its period: later runs would add it again."""
        since, until = span.since_ms, span.until_ms
        first, last = staged.first_us, staged.last_us
        if first is not None and first < since * 1000:
            example = self._said(first // 1000)
        elif last is not None and until is not None and last >= until * 1000:
            example = self._said(last // 1000)
        elif staged.blank:
            example = "none"
        else:
            return
        end = "on" if until is None else f"to {self._said(until)}"
        raise ConfigError(
            f"the job {self.name} makes rows whose {self.time} is not in its period (from "
            f"{self._said(since)} {end}), for instance {example}: nothing was written. "
            f"Take {self.time} from storeTimestamp, or a longer step than {self.every}"
        )

    def _tell(self, namesrv: str, offsets: QueueOffsets) -> None:
        try:
            self._report(namesrv, offsets)
        except GantryError as error:  # the rows are stored, and the next run reports, too
            log.warning("progress of %s not reported: %s", self.group, error)

    def _report(self, namesrv: str, offsets: QueueOffsets) -> None:
        group = self.group
        if group is None or not namesrv:
            return
        with Reader(namesrv, group, patience=REPORT_SECONDS_MAX) as reader:
            reader.ask(lambda instance: introduce(instance, group))
            reader.ask(lambda instance: store(instance, group, offsets))


def job(
    *, topic: str, table: str, time: str, every: str, name: str | None = None, **settings: Any
) -> Callable[[Work], Job]:
    """Make a job of a function; its name is the function's unless `name` is given."""

    def make(work: Work) -> Job:
        chosen = name or str(getattr(work, "__name__", "job"))
        return Job(
            work=work, name=chosen, topic=topic, table=table, time=time, every=every, **settings
        )

    return make


def _check_not_begun_anew(known: QueueOffsets, highs: QueueOffsets) -> None:
    for queue, at in known.items():
        if at > highs.get(queue, at):
            raise ConfigError(
                f"the table knows {queue.text} up to {at}, but it ends at {highs[queue]}: the "
                "topic was begun anew. Give the job another table"
            )
