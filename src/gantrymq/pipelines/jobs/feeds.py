"""Where a job's messages come from: topics of a cluster, or an archive of them."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, reduce
from operator import or_
from typing import Any, Final, Protocol

from gantrymq.base.errors import ConfigError
from gantrymq.model import Queue
from gantrymq.model.offset_ranges import QueueOffsets, to_json
from gantrymq.pipelines.common.selection import Selection, check_selection, select_messages
from gantrymq.pipelines.jobs.results import ResultPeriod
from gantrymq.pipelines.lake import open_table
from gantrymq.pipelines.lake.file_rows import by_queue
from gantrymq.pipelines.lake.files import DataFile, pruned, spans
from gantrymq.pipelines.lake.files import OffsetSpan as Hole
from gantrymq.protocol.subscription import ALL
from gantrymq.spark.options.option_table import canonical
from gantrymq.spark.options.row_shape import parse_row_shape
from gantrymq.spark.options.source_parser import parse_source_options
from gantrymq.spark.source.rows import open_rows

FOR_EVER: Final = 253_370_764_800_000
"""The year 9999: nothing is stored later."""
BROKERS_ONLY: Final = ("queues", "keyFilter", "bodyAs")
"""Options that would change what a job is given, and that an archive does not have."""


class Feed(Protocol):
    """A source of messages, by offset and by time."""

    def bounds(self) -> tuple[QueueOffsets, QueueOffsets]:
        """The first and the next offset of every queue."""
        ...

    def reaches_back(self) -> dict[str, int]:
        """For each broker that has deleted messages, the time (ms) from which on it has all."""
        ...

    def lacks(self, span: ResultPeriod, known: QueueOffsets) -> list[str]:
        """What is missing of a period, as texts; empty if nothing is.

        `known` is how far a table has read each queue already.
        """
        ...

    def ends_at(self, until_ms: int, highs: QueueOffsets) -> QueueOffsets:
        """For each queue the first offset stored at a time (ms) or later, else its end."""
        ...

    def frame(
        self,
        spark: Any,
        span: ResultPeriod,
        starts: QueueOffsets,
        ends: QueueOffsets,
        *,
        times_only: bool = False,
    ) -> Any:
        """The messages before `ends` that were stored in a period or lie at `starts` or later.

        Others may be among them: the caller must check their times. With `times_only`
        storeTimestamp is the only column.
        """
        ...


class TopicFeed:
    """Topics of a cluster or of store files, as the source's options name them."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = dict(options)

    def bounds(self) -> tuple[QueueOffsets, QueueOffsets]:
        with open_rows(parse_source_options(self._options)) as rows:
            return rows.bounds()

    def reaches_back(self) -> dict[str, int]:
        with open_rows(parse_source_options(self._options)) as rows:
            lows, highs = rows.bounds()
            gone = {queue.broker_name for queue, low in lows.items() if low > 0}
            there = {q: low for q, low in lows.items() if q.broker_name in gone and low < highs[q]}
            samples = rows.samples(there) if there else {}
        return oldest({queue: sample.store_ms for queue, sample in samples.items()}, gone)

    def lacks(self, span: ResultPeriod, known: QueueOffsets) -> list[str]:
        """Nothing is missing: brokers have all messages up to the newest."""
        return []

    def ends_at(self, until_ms: int, highs: QueueOffsets) -> QueueOffsets:
        with open_rows(parse_source_options(self._options)) as rows:
            found = rows.offsets_at(dict.fromkeys(highs, until_ms))
        return {queue: min(high, found.get(queue, high)) for queue, high in highs.items()}

    def frame(
        self,
        spark: Any,
        span: ResultPeriod,
        starts: QueueOffsets,
        ends: QueueOffsets,
        *,
        times_only: bool = False,
    ) -> Any:
        by_time = self.ends_at(span.since_ms, ends)
        begin = {queue: min(by_time[queue], starts.get(queue, end)) for queue, end in ends.items()}
        places = {
            "startingOffsets": json.dumps(to_json(begin)),
            "endingOffsets": json.dumps(to_json(ends)),
        }
        if times_only:
            places["columns"] = "storeTimestamp"
        return spark.read.format("rocketmq").options(**self._options | places).load()


class ArchiveFeed:
    """An archive, which still has messages that brokers have deleted.

    Options of the source mean the same here as for brokers, or are refused.
    """

    def __init__(
        self, path: str, topics: Sequence[str], options: Mapping[str, str] | None = None
    ) -> None:
        given = canonical(options or {})
        wrong = [name for name in BROKERS_ONLY if name in given]
        if wrong:
            raise ConfigError(
                f"{wrong[0]} is no option for an archive: choose in the job's function"
            )
        self._selection = Selection(tags=given.get("tags", ALL), sql=given.get("sqlFilter"))
        check_selection(self._selection)
        self._columns = parse_row_shape(given).columns if given else ()
        self._table, self._topics = open_table(path), tuple(topics)

    @cached_property
    def _files(self) -> list[DataFile]:
        """The files of the topics; a file with several queues is listed once a queue."""
        files = pruned(self._table.files(), topics=self._topics)
        return [part for each in files for part in by_queue(self._table.root, each)]

    def bounds(self) -> tuple[QueueOffsets, QueueOffsets]:
        found = {q: at for q, at in self._table.positions().items() if q.topic in self._topics}
        lows = dict(found)
        for each in self._files:
            if each.queue in lows:
                lows[each.queue] = min(lows[each.queue], each.first)
        return lows, found

    def reaches_back(self) -> dict[str, int]:
        lows, _ = self.bounds()
        gone = {queue.broker_name for queue, low in lows.items() if low > 0}
        firsts: dict[Queue, int] = {}
        for each in self._files:
            if each.queue in lows and each.queue.broker_name in gone:
                firsts[each.queue] = min(firsts.get(each.queue, each.since_ms), each.since_ms)
        return oldest(firsts, gone)

    def lacks(self, span: ResultPeriod, known: QueueOffsets) -> list[str]:
        _, highs = self.bounds()
        there = {queue.topic for queue in highs}
        found = [
            f"the archive {self._table.root} has nothing of {topic}: look at the name, or archive "
            "the topic first"
            for topic in self._topics
            if topic not in there
        ]
        ends = highs if span.until_ms is None else self.ends_at(span.until_ms, highs)
        found += [
            f"the archive {self._table.root} ends at {high} of {queue.text}, and the table knows "
            f"it up to {known[queue]}: archive the topic first"
            for queue, high in sorted(highs.items())
            if known.get(queue, high) > high and ends[queue] == high
        ]
        files = [each for each in self._files if each.queue in highs]
        return found + [
            f"the archive {self._table.root} lacks some of {hole.start} to "
            f"{hole.end - 1} of {hole.queue.text}: choose a period before or behind"
            for hole in holes(files, highs, span)
        ]

    def ends_at(self, until_ms: int, highs: QueueOffsets) -> QueueOffsets:
        found = dict(highs)
        for each in self._files:
            if each.queue in found and each.until_ms >= until_ms:
                found[each.queue] = min(found[each.queue], each.first)
        return found

    def frame(
        self,
        spark: Any,
        span: ResultPeriod,
        starts: QueueOffsets,
        ends: QueueOffsets,
        *,
        times_only: bool = False,
    ) -> Any:
        from pyspark.sql import functions as f

        # The files were listed when `ends` were looked up, so they hold nothing beyond.
        if not starts:
            found = self._table.frame(
                spark, topics=self._topics, since_ms=span.since_ms, until_ms=span.until_ms
            )
        else:
            new = [
                (f.col("topic") == queue.topic)
                & (f.col("brokerName") == queue.broker_name)
                & (f.col("queueId") == queue.queue_id)
                & (f.col("queueOffset") >= start)
                for queue, start in starts.items()
            ]
            late = f.unix_millis("storeTimestamp") >= span.since_ms
            found = self._table.frame(spark, topics=self._topics).where(reduce(or_, new, late))
        found = select_messages(found, self._selection)
        return found.select(*self._columns) if self._columns else found


def holes(files: Iterable[DataFile], highs: QueueOffsets, span: ResultPeriod) -> list[Hole]:
    """Offsets that no file has and whose messages may belong to a period.

    They were stored no earlier than the messages before them, and no later than those after.
    """
    files = list(files)
    found = _inner_holes(files, span)
    last: dict[Queue, tuple[int, int]] = {}
    known = ((each.queue, each) for each in files if each.queue is not None)
    until = FOR_EVER if span.until_ms is None else span.until_ms
    for queue, each in sorted(known, key=lambda pair: (pair[0], pair[1].first)):
        end, ms = last.get(queue, (each.first, each.since_ms))
        if each.first > end and ms < until and each.since_ms >= span.since_ms:
            found.append(Hole(queue, end, each.first))
        last[queue] = max(end, each.last + 1), max(ms, each.until_ms)
    return found + [
        Hole(queue, end, highs[queue])
        for queue, (end, ms) in last.items()
        if highs[queue] > end and ms < until
    ]


def _inner_holes(files: Sequence[DataFile], span: ResultPeriod) -> list[Hole]:
    """Files of a period that lack offsets which no other file has; each counts as a hole.

    Another program may have joined files around a gap into one.
    """
    rows = Counter[Queue]()
    for each in files:
        if each.queue is not None:
            rows[each.queue] += each.rows
    lengths = {
        queue: sum(part.end - part.start for part in parts) for queue, parts in spans(files).items()
    }
    until = FOR_EVER if span.until_ms is None else span.until_ms
    return [
        Hole(each.queue, each.first, each.last + 1)
        for each in files
        if each.queue is not None
        and rows[each.queue] < lengths[each.queue]
        and each.rows <= each.last - each.first
        and each.since_ms < until
        and each.until_ms >= span.since_ms
    ]


def oldest(firsts: Mapping[Queue, int], brokers: set[str]) -> dict[str, int]:
    """The time (ms) from which on each broker has all messages.

    A broker deletes its log from the old end, all queues together. So where one queue still has a
    message, all messages that are not older exist, in every queue.
    """
    return {
        broker: min(
            (ms for queue, ms in firsts.items() if queue.broker_name == broker), default=FOR_EVER
        )
        for broker in brokers
    }
