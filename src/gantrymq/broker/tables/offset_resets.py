"""Progress that an operator has reset, until the consumer of the queue has followed. Pure.

A member of the group still has the old offset in its memory: it would pull on from there and undo
the reset with its next commit. So the broker ignores its commits and answers its pulls with the new
offset, until a pull begins there: then that member, or its successor, has followed.
"""

from dataclasses import dataclass

from gantrymq.broker.tables.registry import Offsets

FOLLOW_SECONDS_MAX = 60.0
"""How long a consumer may go on elsewhere after its first answer with the new offset.

RocketMQ's clients need 10 s to let go of a queue and up to 20 s to take it again. One that never
follows is not refused for ever.
"""

Place = tuple[str, str, int]
"""Group, topic and queue."""


@dataclass
class _Moved:
    offset: int
    redirected_at: float | None = None


class Resets:
    """Every commit of a consumer passes here, so that a reset wins over later commits."""

    def __init__(self, offsets: Offsets) -> None:
        self._offsets = offsets
        self._moved: dict[Place, _Moved] = {}

    def move(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Overwrite the stored progress; consumers have not followed yet."""
        self._moved[group, topic, queue_id] = _Moved(offset)
        self._offsets.commit(group, topic, queue_id, offset)
        self._offsets.note_pull(group, topic, queue_id, offset)

    def commit(self, group: str, topic: str, queue_id: int, offset: int) -> bool:
        """Store a consumer's progress; False if it is ignored because the queue was reset."""
        if self._moved and self._find(group, topic, queue_id) is not None:
            return False
        self._offsets.commit(group, topic, queue_id, offset)
        return True

    def note_pull(self, group: str, topic: str, queue_id: int, next_offset: int) -> None:
        """Note the offset at which a consumer's next pull begins."""
        self._offsets.note_pull(group, topic, queue_id, next_offset)

    def redirect(
        self, group: str, topic: str, queue_id: int, offset: int, now: float
    ) -> int | None:
        """The new offset for a pull at `offset`; None if the pull may go on.

        A consumer that has not followed after `FOLLOW_SECONDS_MAX` may go on, too.
        """
        if not self._moved:
            return None
        moved = self._find(group, topic, queue_id)
        if moved is None:
            return None
        late = moved.redirected_at is not None and now - moved.redirected_at > FOLLOW_SECONDS_MAX
        if offset == moved.offset or late:
            del self._moved[group, topic, queue_id]
            return None
        if moved.redirected_at is None:
            moved.redirected_at = now
        return moved.offset

    def unread(self, group: str, topic: str) -> dict[int, int]:
        """The new offset of each queue that no consumer has pulled since the reset."""
        return {
            queue_id: moved.offset
            for (of, name, queue_id), moved in self._moved.items()
            if (of, name) == (group, topic) and moved.redirected_at is None
        }

    def _find(self, group: str, topic: str, queue_id: int) -> _Moved | None:
        """The open reset of a queue.

        It ends, too, when the progress was deleted or changed elsewhere.
        """
        moved = self._moved.get((group, topic, queue_id))
        if moved is not None and self._offsets.get(group, topic, queue_id) != moved.offset:
            del self._moved[group, topic, queue_id]
            return None
        return moved
