"""Rows of messages from brokers, and the choice between brokers and store files.

A range of a queue is read as Arrow batches, from a cluster or from the files of a store. Offsets
mean the same in both, so a reader may begin in files and go on at the broker.
"""

import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

from gantrymq.base.clock import elapsed_seconds
from gantrymq.client.core.instance import Instance
from gantrymq.model import Queue
from gantrymq.model.offset_ranges import OffsetRange, QueueOffsets
from gantrymq.spark.options.source_options import STORE, SourceOptions
from gantrymq.spark.records import survey
from gantrymq.spark.records.decode import decode
from gantrymq.spark.records.fetch import BROKER_AWAY, Pull, borrow_reader, gather_records
from gantrymq.spark.records.losses import on_loss
from gantrymq.spark.records.row_filter import RowFilter
from gantrymq.spark.records.rows import Rows
from gantrymq.spark.records.survey import Sample


class BrokerRows:
    """Rows of any RocketMQ cluster, pulled over the wire."""

    def __init__(self, options: SourceOptions) -> None:
        self._options, cluster = options, options.cluster
        self._checked: set[str] = set()
        self._topics: Sequence[str] = options.queues.topics
        self._looked = -math.inf
        self._opened = ExitStack()
        self._reader = self._opened.enter_context(
            borrow_reader(
                cluster.namesrv, cluster.group, cluster.patience_ms / 1000, cluster.security
            )
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._opened.__exit__(kind, error, trace)

    def close(self) -> None:
        self._opened.close()

    def bounds(self) -> tuple[QueueOffsets, QueueOffsets]:
        queues, pattern = self._options.queues, self._options.queues.pattern
        now, tries = elapsed_seconds(), itertools.count()
        is_old = now - self._looked >= self._options.cluster.metadata_ms / 1000

        async def look(instance: Instance) -> tuple[QueueOffsets, QueueOffsets]:
            anew = next(tries) > 0 or is_old  # brokers may be back elsewhere
            if anew and pattern is not None:
                self._topics = await survey.matching_topics(instance, pattern)
            return await survey.bounds(
                instance, self._topics, may_vanish=pattern is not None, anew=anew
            )

        lows, highs = self._reader.ask(look)
        if is_old:
            self._looked = now
        self._check_condition({queue.topic for queue in highs})
        return queues.select(lows), queues.select(highs)

    def _check_condition(self, topics: set[str]) -> None:
        """Check the SQL condition once a topic while planning: a refused task could only fail."""
        group, condition = self._reader.group, self._options.messages.sql
        new = sorted(topics - self._checked)
        if condition is not None and new:
            self._reader.ask(
                lambda instance: survey.check_condition(instance, group, condition, new)
            )
        self._checked |= topics

    def offsets_at(self, times: Mapping[Queue, int]) -> QueueOffsets:
        group = self._reader.group
        return self._reader.ask(lambda instance: survey.offsets_at(instance, group, times))

    def samples(self, starts: QueueOffsets) -> dict[Queue, Sample]:
        group = self._reader.group
        return self._reader.ask(
            lambda instance: survey.samples(instance, group, starts), BROKER_AWAY
        )

    def committed(self, queues: Sequence[Queue]) -> QueueOffsets:
        group = self._reader.group
        return self._reader.ask(lambda instance: survey.committed(instance, group, queues))

    def proven(self, queues: Collection[Queue]) -> set[Queue]:
        async def look(instance: Instance) -> set[Queue]:
            return {each for each in queues if instance.routes.has_master(each.broker_name)}

        return self._reader.ask(look)

    def batches(self, wanted: OffsetRange, columns: Sequence[str]) -> Iterator[Any]:
        options, messages = self._options, self._options.messages
        sieve = RowFilter(options, columns)
        pull = Pull(
            count=options.pull.count,
            size=options.pull.size,
            timeout=options.pull.timeout_ms / 1000,
            tags=messages.tags if messages.tag_names else None,
            sql=messages.sql,
        )
        end = wanted.end if pull.is_filtered else None
        for records in gather_records(self._reader.replies(wanted, pull, on_loss(options))):
            batch = sieve.sift(decode(records, wanted.queue, sieve.needed), end)
            if len(batch):
                yield batch


def open_rows(options: SourceOptions) -> Rows:
    """The rows that the options name."""
    if options.files.via == STORE:
        from gantrymq.spark.files.stores import stored_rows  # imports this module

        return stored_rows(options, BrokerRows)
    return BrokerRows(options)
