"""Queue locks of ordered consumers: one owner a queue and group, for a lease. Pure."""

from collections.abc import Iterable

from gantrymq.model import Queue

LEASE_SECONDS = 60.0


class QueueLocks:
    """group -> queue -> (owner, since). A lease that ran out may be taken by anybody."""

    def __init__(self) -> None:
        self._held: dict[str, dict[Queue, tuple[str, float]]] = {}

    def lock(self, group: str, queues: Iterable[Queue], owner: str, now: float) -> list[Queue]:
        """Take or renew what is free or already owned; returns what the owner holds now."""
        held = self._held.setdefault(group, {})
        taken = []
        for queue in queues:
            holder, since = held.get(queue, (owner, now))
            if holder == owner or now - since > LEASE_SECONDS:
                held[queue] = (owner, now)
                taken.append(queue)
        return taken

    def unlock(self, group: str, queues: Iterable[Queue], owner: str) -> None:
        """Let go; what somebody else owns by now is left alone."""
        held = self._held.get(group, {})
        for queue in queues:
            if held.get(queue, (None, 0.0))[0] == owner:
                del held[queue]
