"""Queue locks of ordered consumers: one owner for each queue and group, for a lease. Pure.

A lock ends when its owner unlocks it, leaves the group, or does not renew it for 60 s. When the
connection of an owner is lost its work may go on, so the lock stays. An owner that promised to
start nothing new without its connection (our client does) keeps it for 10 s only, long enough to
reconnect or to finish running work. So a crashed member blocks its queues for 10 s instead of 60.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from gantrymq.model import Queue

LEASE_SECONDS = 60.0
LOST_LEASE_SECONDS = 10.0
"""What is left of a lease when the connection of an owner that stops by itself is lost."""


@dataclass
class _Lease:
    owner: str
    ends: float
    stops_when_lost: bool = False


class QueueLockTable:
    """group -> queue -> lease. Any member may take a lock whose lease ran out."""

    def __init__(self) -> None:
        self._held: dict[str, dict[Queue, _Lease]] = {}

    def lock(
        self,
        group: str,
        queues: Iterable[Queue],
        owner: str,
        now: float,
        *,
        stops_when_lost: bool = False,
    ) -> list[Queue]:
        """Take or renew locks that are free or already owned; returns those queues."""
        held = self._held.setdefault(group, {})
        taken = []
        for queue in queues:
            lease = held.get(queue)
            if lease is None or lease.owner == owner or now > lease.ends:
                held[queue] = _Lease(owner, now + LEASE_SECONDS, stops_when_lost)
                taken.append(queue)
        return taken

    def unlock(self, group: str, queues: Iterable[Queue], owner: str) -> None:
        """Release the owner's locks; a lock that another member owns by now stays."""
        held = self._held.get(group, {})
        for queue in queues:
            lease = held.get(queue)
            if lease is not None and lease.owner == owner:
                del held[queue]

    def leave(self, group: str, owner: str) -> None:
        """Release all locks of a member that leaves the group."""
        self.unlock(group, list(self._held.get(group, {})), owner)

    def lose(self, group: str, owner: str, now: float) -> None:
        """Shorten the leases of a member whose last connection is gone, if it promised to stop."""
        for lease in self._held.get(group, {}).values():
            if lease.owner == owner and lease.stops_when_lost:
                lease.ends = min(lease.ends, now + LOST_LEASE_SECONDS)
