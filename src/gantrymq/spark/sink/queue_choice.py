"""Which queue a row goes to. Pure: the routes are an argument.

A row may name its queue; a sharding key always leads to the same one, by the rule of RocketMQ's
clients; all others are spread in runs of neighbours, so that sends are large.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gantrymq.client.sending.send_policy import sharded_index
from gantrymq.model import Queue
from gantrymq.spark.sink.encode import GOOD, NO_QUEUE, NO_TOPIC

RUN_ROWS_MIN: Final = 64
"""Fewer rows are not worth a send of their own."""

Queues = Mapping[str, Sequence[Queue]]
"""The queues of every topic that may be written to; none for one that does not exist."""


class Targets:
    """Chooses queues for one task. Numbers stand for queues; see `queue`."""

    def __init__(self, turn: int) -> None:
        self._turn = turn
        self._numbers: dict[Queue, int] = {}
        self._queues: list[Queue] = []

    def queue(self, number: int) -> Queue:
        return self._queues[number]

    def _number(self, queue: Queue) -> int:
        number = self._numbers.get(queue)
        if number is None:
            number = self._numbers[queue] = len(self._queues)
            self._queues.append(queue)
        return number

    def choose(self, batch: Any, topic: str | None, known: Queues, faults: Any) -> tuple[Any, Any]:
        """A number for every row, -1 for bad ones; and whether a row may go to another queue, too.

        Rows whose topic or queue does not exist are added to the faults.
        """
        chosen = np.full(batch.num_rows, -1, np.int64)
        free = np.zeros(batch.num_rows, bool)
        names = topics_of(batch, topic)
        for name, where in names.items():
            rows = where[faults[where] == GOOD]
            queues = known.get(name or "", ())
            if not queues:
                faults[rows] = NO_TOPIC
                continue
            numbers = np.array([self._number(queue) for queue in queues], np.int64)
            self._place(batch, rows, queues, numbers, chosen, free, faults)
        return chosen, free

    def _place(
        self,
        batch: Any,
        rows: Any,
        queues: Sequence[Queue],
        numbers: Any,
        chosen: Any,
        free: Any,
        faults: Any,
    ) -> None:
        left = np.ones(len(rows), bool)
        if "queueId" in batch.schema.names:
            left = self._by_number(batch, rows, queues, chosen, faults)
        if "shardingKey" in batch.schema.names and left.any():
            keys = batch.column("shardingKey").take(pa.array(rows)).dictionary_encode()
            indices = keys.indices.fill_null(-1).to_numpy(zero_copy_only=False)
            count = len(queues)
            places = [sharded_index(key, count) for key in keys.dictionary.to_pylist()]
            keyed = left & (indices >= 0)
            if places:
                chosen[rows[keyed]] = numbers[np.array(places)[indices[keyed]]]
            left &= ~keyed
        spread = rows[left]
        if len(spread):
            runs = min(len(numbers), max(1, len(spread) // RUN_ROWS_MIN))
            turns = np.arange(len(spread)) * runs // len(spread)
            chosen[spread] = numbers[(turns + self._turn) % len(numbers)]
            free[spread] = True
            self._turn += runs

    def _by_number(
        self, batch: Any, rows: Any, queues: Sequence[Queue], chosen: Any, faults: Any
    ) -> Any:
        """Choose for the rows that name their queue; returns which rows name none."""
        some = pa.array(rows)
        wanted = batch.column("queueId").take(some).cast(pa.int64())
        brokers = None
        if "brokerName" in batch.schema.names:
            brokers = batch.column("brokerName").take(some)
        left = pc.is_null(wanted).to_numpy(zero_copy_only=False)
        found = np.full(len(rows), -1, np.int64)
        for queue in reversed(
            queues
        ):  # the last match wins: without a broker name the first broker
            hit = pc.equal(wanted, queue.queue_id)
            if brokers is not None:
                named = pc.fill_null(pc.equal(brokers, queue.broker_name), True)
                hit = pc.and_(hit, named)
            found[pc.fill_null(hit, False).to_numpy(zero_copy_only=False)] = self._number(queue)
        chosen[rows] = found
        faults[rows[~left & (found < 0)]] = NO_QUEUE
        return left


def topics_of(batch: Any, topic: str | None) -> dict[str | None, Any]:
    """Which rows are for which topic; without a column, or where it is null, for the option's."""
    if "topic" not in batch.schema.names:
        return {topic: np.arange(batch.num_rows)}
    names = batch.column("topic").dictionary_encode()
    indices = names.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    found: dict[str | None, Any] = {}
    for number, name in [(-1, topic), *enumerate(names.dictionary.to_pylist())]:
        rows = np.flatnonzero(indices == number)
        if len(rows):
            before = found.get(name)
            found[name] = rows if before is None else np.sort(np.concatenate([before, rows]))
    return found
