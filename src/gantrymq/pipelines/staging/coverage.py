"""Whether trace is complete, group by group: only then does a missing record mean anything.

GantryMQ's clients number their trace records (`protocol.trace.TraceCount`), so dropped, lost and
expired records are known by number. RocketMQ's clients drop trace without a word.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

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
    """Connected consumers that have not traced anything."""
    uncounted: int = 0
    """Records of consumers that do not count: what they dropped is not known."""
    until_ms: int | None = None
    """Trace is complete for messages stored then or later; None: for none of them."""

    @property
    def complete(self) -> bool:
        return self.bounded and not self.missing

    @property
    def missing(self) -> int:
        """Records that are known to be missing."""
        return self.dropped + self.absent + self.waiting

    @property
    def bounded(self) -> bool:
        """No more than the missing records are missing."""
        return not (self.cut_off or self.silent or self.uncounted)

    def why(self) -> str:
        """What is missing, and how to have it the next time."""
        reasons = []
        if self.dropped:
            reasons.append(
                f"{self.dropped:,} trace records were dropped by its consumers, which had more to "
                "trace than they could send: run more consumers, or more brokers with the trace "
                "topic"
            )
        if self.absent:
            reasons.append(
                f"{self.absent:,} trace records were written and are not in the trace topic: "
                "brokers did not store them, or they expired (archive the trace topic, and report "
                "with --archive)"
            )
        if self.waiting:
            reasons.append(
                f"{self.waiting:,} trace records were still to be written: report again later"
            )
        if self.cut_off:
            reasons.append(
                f"{self.cut_off:,} of its consumers ended without writing their last trace records:"
                " close consumers, or let them end by SIGTERM"
            )
        if self.silent:
            reasons.append(f"{self.silent:,} of its consumers do not trace: set trace=True for all")
        if self.uncounted:
            reasons.append(
                f"{self.uncounted:,} trace records are from clients that do not tell what they "
                "dropped, as RocketMQ's do: consume with GantryMQ's clients"
            )
        return f"the trace of group {self.group} is not complete: {'; '.join(reasons)}"


def coverage(
    found: DataFrame, records: Mapping[str, int], online: Collection[tuple[str, str]]
) -> list[Coverage]:
    """The groups whose trace may lack something.

    `records` is how many records of consumptions each group has in `found`; `online` are groups and
    client ids of consumers that were connected when progress was asked for.
    """
    writers: dict[str, list[Any]] = {}
    for row in _writers(found).collect():
        writers.setdefault(row["group"], []).append(row)
    every = [
        _of_group(group, writers.get(group, []), count, online) for group, count in records.items()
    ]
    return [each for each in every if not each.complete]


def _writers(found: DataFrame) -> DataFrame:
    """One row a writer: what it wrote, and what is missing between its messages."""
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
    )


def _last(name: str) -> Column:
    return fn.max_by(name, fn.struct("first", "atMs"))


def _of_group(
    group: str, writers: list[Any], count: int, online: Collection[tuple[str, str]]
) -> Coverage:
    open_ended = [each for each in writers if not each["closed"]]
    cut_off = sum((group, each["clientId"]) not in online for each in open_ended)
    waiting = sum(each["waiting"] for each in open_ended)
    uncounted = max(0, count - sum(each["records"] for each in writers))
    known = {each["clientId"] for each in writers}
    silent = sum(name == group and client not in known for name, client in online)
    gaps = [each["gapMs"] for each in writers if each["gapMs"] is not None]
    bounded = not (cut_off or silent or uncounted or waiting)
    return Coverage(
        group=group,
        dropped=sum(each["dropped"] for each in writers),
        absent=sum(each["absent"] for each in writers),
        waiting=waiting, cut_off=cut_off, silent=silent, uncounted=uncounted,
        until_ms=max(gaps, default=0) + CLOCK_SLACK_MS if bounded else None,
    )  # fmt: skip
