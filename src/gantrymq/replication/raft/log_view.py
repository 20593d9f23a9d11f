"""What a raft core knows of the commit log: where it begins and ends, and the epoch table. Pure.

A raft index is a byte offset of the commit log at a record boundary, and entries are ranges of
bytes. The epoch table says where in the log each term begins. One leader writes in a term, and only
at the end: two logs whose tables share a row have the same bytes up to the end of that row in the
shorter of both. So two tables show in one comparison where their logs part.
"""

import msgspec


class EpochStart(msgspec.Struct, frozen=True):
    """A row of the epoch table: the bytes from `offset` on were written by the leader of `term`."""

    term: int
    offset: int


class LogView(msgspec.Struct, frozen=True):
    """The commit log as a value. Changes return a new one."""

    first: int = 0
    """The first byte that was not deleted."""
    end: int = 0
    """One past the last byte written."""
    synced: int = 0
    """Up to here the bytes survive a power cut."""
    epochs: tuple[EpochStart, ...] = ()
    """Terms and offsets, both rising. The first row may begin before `first`."""

    def __post_init__(self) -> None:
        if not self.first <= self.synced <= self.end:
            raise ValueError(
                f"a log from {self.first} to {self.end} is not synced to {self.synced}"
            )
        if self.end > self.first and (not self.epochs or self.epochs[0].offset > self.first):
            raise ValueError(f"the epoch table says nothing of the byte at {self.first}")

    @property
    def last_term(self) -> int:
        """The term of the last record."""
        return self.term_before(self.end)

    def term_before(self, offset: int) -> int:
        """The term of the record that ends at an offset; 0 where no log was ever written."""
        for epoch in reversed(self.epochs):
            if epoch.offset < offset:
                return epoch.term
        return 0

    def holds(self, offset: int, term: int) -> bool:
        """Whether the log has an offset, and its last record before it is of that term."""
        return self.first <= offset <= self.end and self.term_before(offset) == term

    def is_newer_than(self, end: int, last_term: int) -> bool:
        """Whether a candidate with such a log must not get the vote of this one's owner."""
        return (self.last_term, self.end) > (last_term, end)

    def epochs_of(self, start: int, end: int) -> tuple[EpochStart, ...]:
        """The rows of the table that a range of bytes belongs to, looked for from the end."""
        rows: list[EpochStart] = []
        for epoch in reversed(self.epochs if start < end else ()):
            if epoch.offset < end:
                rows.append(epoch)
            if epoch.offset <= start:
                break
        return tuple(reversed(rows))

    def grow(self, term: int, size: int) -> "LogView":
        """The log after its own leader of `term` wrote so many bytes."""
        epochs = self.epochs
        if not epochs or epochs[-1].term != term:
            epochs = (*epochs, EpochStart(term, self.end))
        return LogView(self.first, self.end + size, self.synced, epochs)

    def append(self, epochs: tuple[EpochStart, ...], end: int) -> "LogView":
        """The log after bytes of another's log were written up to `end`."""
        known = self.epochs[-1].offset if self.epochs else -1
        new = tuple(epoch for epoch in epochs if epoch.offset > known)
        return LogView(self.first, end, self.synced, self.epochs + new)

    def truncate(self, end: int) -> "LogView":
        """The log cut back to an earlier end."""
        epochs = tuple(epoch for epoch in self.epochs if epoch.offset < end)
        return LogView(self.first, end, min(self.synced, end), epochs)

    def drop_before(self, first: int) -> "LogView":
        """The log after its oldest files were deleted; keeps the term of the byte before."""
        kept = len(self.epochs)
        while kept > 1 and self.epochs[-kept + 1].offset < first:
            kept -= 1
        return LogView(first, self.end, max(self.synced, first), self.epochs[-kept:])

    def note_synced(self, offset: int) -> "LogView":
        """The log once its bytes up to an offset are durable."""
        return LogView(self.first, self.end, max(self.synced, min(offset, self.end)), self.epochs)

    def agreement(self, start: int, end: int, epochs: tuple[EpochStart, ...]) -> int:
        """Up to where the bytes from `start` are those of another log's range with that table."""
        if start == self.end:
            return start
        own = {epoch: self._stop(index) for index, epoch in enumerate(self.epochs)}
        for index, epoch in enumerate(epochs):
            stop = epochs[index + 1].offset if index + 1 < len(epochs) else end
            common = min(stop, own.get(epoch, start))
            start = max(start, common)
            if common < stop:
                break
        return start

    def base(self) -> int:
        """Where the log began before anything was deleted, as far as the table knows."""
        return self.epochs[0].offset if self.epochs else self.end

    def _stop(self, index: int) -> int:
        """Where the bytes of a row end."""
        return self.epochs[index + 1].offset if index + 1 < len(self.epochs) else self.end


def common_offset(leader: LogView, follower: LogView) -> int | None:
    """Up to where a follower's log is its leader's; `None` when the leader's begins later."""
    table = {epoch: leader._stop(index) for index, epoch in enumerate(leader.epochs)}
    common = leader.base()
    for index, epoch in enumerate(follower.epochs):
        if epoch in table:
            common = min(table[epoch], follower._stop(index))
    held = follower.first <= common <= follower.end
    return common if held and common >= leader.first else None
