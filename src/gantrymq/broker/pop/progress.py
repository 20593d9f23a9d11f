"""Progress of pops, saved only when the checkpoints behind it are durable.

A pop moves its group's progress at once, so that the next pop gets the next messages. But its
checkpoint may still be in memory only: if the progress were on disk first, a power cut would lose
the messages. So the table shows the new progress, and its file gets the old one, until the log is
flushed behind the checkpoint. The same holds for the progress of the revive log and the copies that
it stored.
"""

from collections import deque

from gantrymq.broker.tables.registry import Offsets
from gantrymq.store.engine import Store

NEVER = 1 << 62


class Move:
    """One step of progress; it may be saved once the log is kept up to `log_end`."""

    __slots__ = ("before", "key", "log_end", "queue_id")

    def __init__(self, key: str, queue_id: int, before: int) -> None:
        self.key, self.queue_id, self.before = key, queue_id, before
        self.log_end = NEVER

    def safe_behind(self, log_end: int) -> None:
        self.log_end = log_end


class SafeProgress:
    """Moves the progress of popping groups; nothing else may."""

    def __init__(self, offsets: Offsets, store: Store) -> None:
        self._offsets, self._store = offsets, store
        self._cuts = store.cuts
        self._moves: deque[Move] = deque()
        offsets.ceilings = self.ceilings

    def move(self, group: str, topic: str, queue_id: int, offset: int) -> Move:
        """Move progress now; the caller then tells the Move the log offset that makes it safe."""
        before = self._offsets.get(group, topic, queue_id)
        self._offsets.commit(group, topic, queue_id, offset)
        move = Move(f"{topic}@{group}", queue_id, max(0, before or 0))
        self._drop_safe()
        self._moves.append(move)
        return move

    def take_back(self, group: str, topic: str, queue_id: int, offset: int, move: Move) -> None:
        """The checkpoint was not stored: move back, so that the messages are popped again."""
        now = self._offsets.get(group, topic, queue_id)
        if now is not None and now > offset:
            self._offsets.commit(group, topic, queue_id, offset)
        move.safe_behind(0)

    def withdraw(self) -> None:
        """Move back what is not safe: this broker serves no more, and its log may be cut.

        A member of a raft group that lost its leadership may get it back before it has copied the
        progress of the leader between. What it had popped without a majority would be skipped.
        """
        # In a log that was cut and has grown again the marks of what was cut mean nothing.
        is_cut = self._store.cuts != self._cuts
        found = self._limits(kept=0) if is_cut else self.ceilings()
        for (key, queue_id), offset in found.items():
            topic, _, group = key.rpartition("@")
            if self._offsets.get(group, topic, queue_id) not in (None, offset):
                self._offsets.commit(group, topic, queue_id, offset)

    def _drop_safe(self) -> None:
        kept, moves = self._store.kept.value, self._moves
        while moves and moves[0].log_end <= kept:
            moves.popleft()

    def hurry(self) -> None:
        """Request a flush if progress waits for one."""
        self._drop_safe()
        if self._moves:
            self._store.request_flush()

    def ceilings(self) -> dict[tuple[str, int], int]:
        """The highest offset that may be saved, for queues where the table is ahead of it."""
        self._drop_safe()
        return self._limits(self._store.kept.value)

    def _limits(self, kept: int) -> dict[tuple[str, int], int]:
        found: dict[tuple[str, int], int] = {}
        for move in self._moves:
            if move.log_end > kept:
                place = move.key, move.queue_id
                found[place] = min(move.before, found.get(place, move.before))
        return found
