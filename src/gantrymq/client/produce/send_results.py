"""The results of a bulk send, as a table: kept by batch, laid out by message when asked for."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice, repeat
from typing import Any, NamedTuple, overload

from gantrymq.base.errors import GantryError
from gantrymq.client.core.errors import SendsFailed
from gantrymq.model import SendResult

SendOutcome = SendResult | GantryError


def rows_of(batch: SendResult, size: int) -> Iterator[SendResult]:
    """The result of each message of a batch. Its own has their ids with a comma between them, and
    the offset of the first message."""
    ids, offset_ids = batch.msg_id.split(","), batch.offset_msg_id.split(",")
    if len(offset_ids) != size:  # a broker that keeps a batch as one unit gives it a single id
        offset_ids = [batch.offset_msg_id] * size
    for at in range(size):
        yield SendResult(batch.status, ids[at], offset_ids[at], batch.queue, batch.offset + at)


class _Part(NamedTuple):
    """Neighbours that share one outcome."""

    start: int
    size: int
    outcome: SendOutcome

    def rows(self) -> Iterator[SendOutcome]:
        found = self.outcome
        if self.size == 1 or isinstance(found, GantryError):
            return repeat(found, self.size)
        return rows_of(found, self.size)


class SendResults(Sequence[SendOutcome]):
    """For each message of a bulk send, in their order, its result or its error."""

    def __init__(self) -> None:
        self._parts: list[_Part] = []
        self._starts: list[int] = []
        self._count = 0
        self.failures: list[tuple[int, GantryError]] = []
        """The place of each message that was not sent, and why."""

    def add(self, count: int, outcome: SendOutcome) -> None:
        """Note the outcome of the next messages: of one, or of a batch."""
        self._parts.append(_Part(self._count, count, outcome))
        self._starts.append(self._count)
        if isinstance(outcome, GantryError):
            self.failures += ((at, outcome) for at in range(self._count, self._count + count))
        self._count += count

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, at: int) -> SendOutcome: ...
    @overload
    def __getitem__(self, at: slice) -> list[SendOutcome]: ...

    def __getitem__(self, at: int | slice) -> SendOutcome | list[SendOutcome]:
        if isinstance(at, slice):
            return [self[each] for each in range(*at.indices(self._count))]
        place = at + self._count if at < 0 else at
        if not 0 <= place < self._count:
            raise IndexError(f"row {at} of {self._count}")
        part = self._parts[bisect_right(self._starts, place) - 1]
        return next(islice(part.rows(), place - part.start, None))

    def __iter__(self) -> Iterator[SendOutcome]:
        for part in self._parts:
            yield from part.rows()

    def __repr__(self) -> str:
        return f"SendResults({self._count} messages, {len(self.failures)} failed)"

    def raise_failures(self) -> None:
        """Raise SendsFailed unless every message was sent."""
        if self.failures:
            raise SendsFailed(self.failures, self._count)

    def columns(self) -> dict[str, list[Any]]:
        """A list for each field, as pandas and pyarrow take them."""
        names = "status", "msg_id", "offset_msg_id", "broker_name", "queue_id", "offset", "error"
        rows = [
            (None, None, None, None, None, None, str(row))
            if isinstance(row, GantryError)
            else (
                row.status,
                row.msg_id,
                row.offset_msg_id,
                row.queue.broker_name,
                row.queue.queue_id,
                row.offset,
                None,
            )
            for row in self
        ]
        return {name: [row[at] for row in rows] for at, name in enumerate(names)}
