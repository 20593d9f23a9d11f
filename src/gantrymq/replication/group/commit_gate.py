"""What the store asks while this member leads: a send is answered when the group has committed it.

Each leadership has a gate of its own, so writes of an earlier one can never pass through it.
"""

from collections.abc import Callable

from gantrymq.base.watermark import Watermark
from gantrymq.store.append import PutStatus


class CommitGate:
    """Lets records through that a majority of the group has."""

    counts_flush = True
    """A record is committed when enough members have it as durable as they promise, this one
    included."""

    def __init__(self, committed: int, timeout_ms: int, wrote: Callable[[], None]) -> None:
        self.mark = Watermark(committed)
        self.timeout_ms = timeout_ms
        self._wrote = wrote

    def wrote(self, end: int) -> None:
        """The leader wrote: tell the node."""
        self._wrote()

    def status(self, end: int) -> PutStatus:
        """A record that passed is committed."""
        return PutStatus.PUT_OK

    def late(self) -> tuple[PutStatus, str]:
        """An answer after which clients try again, as RocketMQ's raft groups give it.

        FLUSH_SLAVE_TIMEOUT would count as sent, but a record without a majority may be cut off.
        """
        text = f"no majority of the raft group had the message within {self.timeout_ms} ms"
        return PutStatus.PAGECACHE_BUSY, text
