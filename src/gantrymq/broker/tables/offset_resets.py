"""Progress that an operator has moved, until whoever reads the queue has followed. Pure.

A member of the group still has the old place in its memory: it would pull on from there and, with
its next commit, undo the reset. So its commits are ignored and its pulls are answered with the new
place, until a pull begins there: that member, or its successor, has understood.
"""

from dataclasses import dataclass

from gantrymq.broker.tables.registry import Offsets

FOLLOW_SECONDS_MAX = 60.0
"""How long after the first hint a reader may still be elsewhere. RocketMQ's clients need 10 s to
let go of a queue and up to 20 s to take it again; one that never follows is not held for ever."""

Place = tuple[str, str, int]
"""Group, topic and queue."""


@dataclass
class _Moved:
    offset: int
    told: float | None = None


class Resets:
    """The one way by which progress of readers gets into the table: resets stand above commits."""

    def __init__(self, offsets: Offsets) -> None:
        self._offsets = offsets
        self._moved: dict[Place, _Moved] = {}

    def move(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Overwrite the stored progress; readers have yet to follow."""
        self._moved[group, topic, queue_id] = _Moved(offset)
        self._offsets.commit(group, topic, queue_id, offset)
        self._offsets.note_pull(group, topic, queue_id, offset)

    def commit(self, group: str, topic: str, queue_id: int, offset: int) -> bool:
        """Store a reader's progress; False when it is ignored because the queue was reset."""
        if self._moved and self._find(group, topic, queue_id) is not None:
            return False
        self._offsets.commit(group, topic, queue_id, offset)
        return True

    def note_pull(self, group: str, topic: str, queue_id: int, next_offset: int) -> None:
        """A reader was given what lies before `next_offset`, or told to go there."""
        self._offsets.note_pull(group, topic, queue_id, next_offset)

    def redirect(
        self, group: str, topic: str, queue_id: int, offset: int, now: float
    ) -> int | None:
        """Where a pull at `offset` has to go instead; None lets it be."""
        if not self._moved:
            return None
        moved = self._find(group, topic, queue_id)
        if moved is None:
            return None
        late = moved.told is not None and now - moved.told > FOLLOW_SECONDS_MAX
        if offset == moved.offset or late:
            del self._moved[group, topic, queue_id]
            return None
        if moved.told is None:
            moved.told = now
        return moved.offset

    def untold(self, group: str, topic: str) -> dict[int, int]:
        """Queue to new place, of those that nobody has pulled since."""
        return {
            queue_id: moved.offset
            for (of, name, queue_id), moved in self._moved.items()
            if (of, name) == (group, topic) and moved.told is None
        }

    def _find(self, group: str, topic: str, queue_id: int) -> _Moved | None:
        """A reset ends as well when its progress is deleted, with the group or the topic."""
        moved = self._moved.get((group, topic, queue_id))
        if moved is not None and self._offsets.get(group, topic, queue_id) != moved.offset:
            del self._moved[group, topic, queue_id]
            return None
        return moved
