"""What the writer asks about copies of the log on other brokers; `replication` answers."""

from typing import Protocol

from gantrymq.base.watermark import Watermark
from gantrymq.store.append import PutStatus


class Copies(Protocol):
    """Holds back what is written until it is copied."""

    mark: Watermark
    """Records below this offset are held back no longer: readers see them, sends are answered."""
    timeout_ms: int
    """How long a send waits before it gets the answer `late`."""
    counts_flush: bool
    """Whether the mark says how durable a record is here as well: then writes do not wait for the
    flush before they are copied."""

    def wrote(self, end: int) -> None:
        """Records up to `end` may be copied now."""

    def status(self, end: int) -> PutStatus:
        """The answer to a send whose record ends at `end`, once the mark has passed it."""

    def late(self) -> tuple[PutStatus, str]:
        """The answer to a send that waited too long, and the reason."""
