"""Progress that is saved only when what makes it safe is on disk.

A pop moves its group's progress at once, so that the next pop finds the next messages. But the
checkpoint that remembers the messages may still be in memory only; were the progress saved first,
a power cut between the two would lose them. So the table shows the new progress, and its file gets
the old one, until the log is flushed behind the checkpoint. The same holds for the revive log's own
progress and the copies it republished.
"""

from collections import deque

from gantrymq.broker.tables.registry import Offsets
from gantrymq.store.engine import Store

NEVER = 1 << 62


class Move:
    """One step of progress, safe once the log is flushed up to `log_end`."""

    __slots__ = ("before", "key", "log_end", "queue_id")

    def __init__(self, key: str, queue_id: int, before: int) -> None:
        self.key, self.queue_id, self.before = key, queue_id, before
        self.log_end = NEVER

    def safe_behind(self, log_end: int) -> None:
        self.log_end = log_end


class SafeProgress:
    """The only way by which popping moves progress."""

    def __init__(self, offsets: Offsets, store: Store) -> None:
        self._offsets, self._store = offsets, store
        self._moves: deque[Move] = deque()
        offsets.ceilings = self.ceilings

    def move(self, group: str, topic: str, queue_id: int, offset: int) -> Move:
        """Move now; say later behind which place of the log that is safe."""
        before = self._offsets.get(group, topic, queue_id)
        self._offsets.commit(group, topic, queue_id, offset)
        move = Move(f"{topic}@{group}", queue_id, max(0, before or 0))
        self._drop_safe()
        self._moves.append(move)
        return move

    def take_back(self, group: str, topic: str, queue_id: int, offset: int, move: Move) -> None:
        """What should have made it safe failed: the messages are to be popped again."""
        now = self._offsets.get(group, topic, queue_id)
        if now is not None and now > offset:
            self._offsets.commit(group, topic, queue_id, offset)
        move.safe_behind(0)

    def _drop_safe(self) -> None:
        flushed, moves = self._store.flushed.value, self._moves
        while moves and moves[0].log_end <= flushed:
            moves.popleft()

    def hurry(self) -> None:
        """Whoever moved progress does not wait for the next thorough flush."""
        self._drop_safe()
        if self._moves:
            self._store.request_flush()

    def ceilings(self) -> dict[tuple[str, int], int]:
        """The highest offsets that may be saved, where that is not what the table says."""
        self._drop_safe()
        found: dict[tuple[str, int], int] = {}
        flushed = self._store.flushed.value
        for move in self._moves:
            if move.log_end > flushed:
                place = move.key, move.queue_id
                found[place] = min(move.before, found.get(place, move.before))
        return found
