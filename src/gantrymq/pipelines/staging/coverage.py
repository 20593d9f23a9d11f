"""Whether trace is complete, group by group: only then does a missing record mean anything.

A message that a group's progress has passed and that has no trace record may have been lost, or
consumed by a member that does not trace. It counts as lost only if all of this is known:

1. A member that traces was in the group at any time since the message was stored.
2. Every member that those members met has traced, also those that have left.
3. No record of these members is missing, or fewer than would explain the messages.

GantryMQ's consumers number their trace records and name the members that they met
(`protocol.trace.TraceCount`). RocketMQ's clients drop trace silently and name no members.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from gantrymq.base.plurals import counted
from gantrymq.base.time_text import describe
from gantrymq.protocol.trace import COUNT_NAME

CLOCK_SLACK_MS: Final = 10_000
"""How far the clocks of clients and brokers may be apart before a gap is put at a wrong time."""
CONSUME: Final = "CONSUME"


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """What is known to be missing of the trace that the consumers of one group wrote."""

    group: str
    dropped: int = 0
    """Records that consumers dropped, because more came than they could write."""
    absent: int = 0
    """Records that were written and are not there: not stored, or expired."""
    waiting: int = 0
    """Records that running consumers had not written yet."""
    cut_off: int = 0
    """Consumers that ended without writing down that they ended."""
    silent: int = 0
    """Members that do not trace: connected ones, and those that members which trace have met."""
    unnamed: int = 0
    """Members that were met, and whose names are in trace records that are missing."""
    uncounted: int = 0
    """Records of consumers that do not count: what they dropped is not known."""
    gap_ms: int | None = None
    """When the last record was written that tells of missing ones before it."""
    watched_ms: int | None = None
    """Since then members that trace were in the group at any time; None: there is none now."""

    @property
    def missing(self) -> int:
        """Records that are known to be missing."""
        return self.dropped + self.absent + self.waiting

    @property
    def bounded(self) -> bool:
        """Whether the missing records are all counted, so that no others can be missing."""
        return not (self.cut_off or self.silent or self.unnamed or self.uncounted)

    @property
    def sure_ms(self) -> int | None:
        """The store time (ms) from which on all members traced, except for missing records.

        None if there is no such time.
        """
        if not self.bounded or self.watched_ms is None:
            return None
        return self.watched_ms + CLOCK_SLACK_MS

    @property
    def whole_ms(self) -> int | None:
        """The store time (ms) from which on no record is missing; None if there is none."""
        return None if self.waiting or self.gap_ms is None else self.gap_ms + CLOCK_SLACK_MS

    def why(self, zone: str = "UTC") -> str:
        """What is missing, and how to avoid it the next time."""
        reasons = [*self._records_missing(), *self._members_missing(zone)]
        return f"the trace of group {self.group} is not complete: {'; '.join(reasons)}"

    def _records_missing(self) -> Iterator[str]:
        if self.dropped:
            yield (
                f"{_records(self.dropped)} dropped by its consumers, which had more to trace than "
                "they could send: run more consumers, or more brokers with the trace topic"
            )
        if self.absent:
            yield (
                f"{_records(self.absent)} written and not in the trace topic: brokers did not "
                "store them, or they expired (archive the trace topic, and report with --archive)"
            )
        if self.waiting:
            yield f"{_records(self.waiting)} still to be written: report again later"
        if self.uncounted:
            yield (
                f"{_records(self.uncounted)} written by clients that do not tell what they "
                "dropped, as RocketMQ's do: consume with GantryMQ's clients"
            )

    def _members_missing(self, zone: str) -> Iterator[str]:
        if self.cut_off:
            yield (
                f"{self.cut_off:,} of its consumers ended without writing their last trace records:"
                " close consumers, or let them end by SIGTERM"
            )
        if self.silent:
            yield f"{self.silent:,} of its consumers did not trace: set trace=True for all"
        if self.unnamed:
            yield (
                f"{self.unnamed:,} of its consumers cannot be named, because their trace records "
                "are missing: set trace=True for all"
            )
        if self.watched_ms is None:
            yield (
                "no consumer that traces is connected, and others may have read since: report "
                "while its consumers run, with trace=True for all"
            )
        elif not self.missing and self.bounded:
            yield (
                "consumers that trace were connected without a break only since "
                f"{describe(self.watched_ms, zone)}: set trace=True for all, and start a new one "
                "before the last one ends"
            )


def _records(number: int) -> str:
    """`2 trace records were`."""
    return f"{counted(number, 'trace record', form=',')} {'was' if number == 1 else 'were'}"


def coverage(
    found: DataFrame,
    records: Mapping[str, int],
    online: Collection[tuple[str, str]],
    now_ms: int,
) -> list[Coverage]:
    """What is known about the trace of each group of `records`.

    `records` is how many records of consumptions each group has in `found`; `online` are groups and
    client ids of consumers that were connected at `now_ms`, when progress was asked for.
    """
    writers: dict[str, list[Any]] = {}
    for row in _writers(found).collect():
        writers.setdefault(row["group"], []).append(row)
    return [
        _of_group(
            group,
            writers.get(group, []),
            count,
            {client for name, client in online if name == group},
            now_ms,
        )
        for group, count in records.items()
    ]


def _writers(found: DataFrame) -> DataFrame:
    """One row a writer: its records, those missing between its messages, members it met."""
    writer = ["group", "clientId", "begunMs"]
    counts = found.where((fn.col("kind") == COUNT_NAME) & (fn.col("state") == CONSUME))
    before = Window.partitionBy(*writer).orderBy("first", "atMs")
    end = fn.col("first") + fn.col("records")
    hole = fn.col("first") - fn.coalesce(fn.lag(end).over(before), fn.lit(0))
    newly = fn.col("dropped") - fn.coalesce(fn.lag("dropped").over(before), fn.lit(0))
    gaps = counts.withColumns({"hole": hole, "newly": newly})
    gap = (fn.col("hole") > 0) | (fn.col("newly") > 0)
    return gaps.groupBy(*writer).agg(
        fn.sum("hole").alias("absent"),
        fn.sum("newly").alias("dropped"),
        fn.sum("records").alias("records"),
        fn.max(fn.when(gap, fn.col("atMs"))).alias("gapMs"),
        _last("waiting").alias("waiting"),
        fn.max("ok").alias("closed"),
        fn.max("atMs").alias("lastMs"),
        fn.max("met").alias("met"),
        fn.array_distinct(fn.flatten(fn.collect_list("members"))).alias("members"),
    )


def _last(name: str) -> Column:
    return fn.max_by(name, fn.struct("first", "atMs"))


def _of_group(
    group: str, writers: list[Any], count: int, online: Collection[str], now_ms: int
) -> Coverage:
    open_ended = [each for each in writers if not each["closed"]]
    known = {each["clientId"] for each in writers}
    met = {member for each in writers for member in each["members"]}
    return Coverage(
        group=group,
        dropped=sum(each["dropped"] for each in writers),
        absent=sum(each["absent"] for each in writers),
        waiting=sum(each["waiting"] for each in open_ended),
        cut_off=sum(each["clientId"] not in online for each in open_ended),
        silent=len((met - known) | (set(online) - {each["clientId"] for each in open_ended})),
        # A member meets at least itself: one that names no member leaves names out.
        unnamed=sum(max(1, each["met"]) - len(each["members"]) for each in writers),
        uncounted=max(0, count - sum(each["records"] for each in writers)),
        gap_ms=max((each["gapMs"] for each in writers if each["gapMs"] is not None), default=None),
        watched_ms=_watched(writers, online, now_ms),
    )


def _watched(writers: list[Any], online: Collection[str], now_ms: int) -> int | None:
    """Since when (ms) some writer was always present; None if none is present now."""
    since = None
    for each in sorted(writers, key=lambda each: _end(each, online, now_ms), reverse=True):
        if _end(each, online, now_ms) < (now_ms if since is None else since):
            break
        since = each["begunMs"] if since is None else min(since, each["begunMs"])
    return since


def _end(writer: Any, online: Collection[str], now_ms: int) -> int:
    """When a writer was last known to be present (ms)."""
    if not writer["closed"] and writer["clientId"] in online:
        return now_ms
    return int(writer["lastMs"])
