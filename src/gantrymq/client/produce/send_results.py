"""The results of a bulk send, as a table: kept by batch, laid out by message when asked for."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, overload

from gantrymq.base.errors import GantryError
from gantrymq.client.core.errors import SendsFailed
from gantrymq.model import SendResult

SendOutcome = SendResult | GantryError


class _Part(NamedTuple):
    """Neighbours that share one outcome."""

    start: int
    size: int
    outcome: SendOutcome
    """Of a batch: ids with a comma between them, and the offset of the first message."""

    def row(self, at: int) -> SendOutcome:
        found = self.outcome
        if self.size == 1 or isinstance(found, GantryError):
            return found
        return self._row(found, at, found.msg_id.split(","), found.offset_msg_id.split(","))

    def rows(self) -> Iterator[SendOutcome]:
        found = self.outcome
        if self.size == 1 or isinstance(found, GantryError):
            yield from [found] * self.size
            return
        ids, offset_ids = found.msg_id.split(","), found.offset_msg_id.split(",")
        for at in range(self.size):
            yield self._row(found, at, ids, offset_ids)

    def _row(self, found: SendResult, at: int, ids: list[str], offset_ids: list[str]) -> SendResult:
        # Brokers that keep a batch as one unit give it a single id.
        offset_id = offset_ids[at] if len(offset_ids) == self.size else found.offset_msg_id
        return SendResult(found.status, ids[at], offset_id, found.queue, found.offset + at)


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
        return part.row(place - part.start)

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
