"""Which slaves are in sync, and how far the log is copied. Pure.

A slave is in sync while it is connected, has acknowledged something within the last seconds and is
not too far behind. SYNC_MASTER waits for one slave that is in sync; without any it does not wait,
and says so in the answer.
"""

from dataclasses import dataclass
from typing import Final

BEHIND_BYTES_MAX: Final = 256 << 20
"""haMaxGapNotInSync of RocketMQ."""
SILENT_SECONDS_MAX: Final = 15.0


@dataclass(slots=True, eq=False)
class SlaveProgress:
    """What the master knows of one connected slave."""

    address: str
    sent: int
    """Up to where the log was sent to it."""
    acknowledged: int
    """Up to where the slave has it."""
    heard_at: float
    """When it last acknowledged, in seconds of the event loop."""


class InSyncSlaves:
    """The slaves whose acknowledgements count."""

    def __init__(
        self,
        behind_bytes_max: int = BEHIND_BYTES_MAX,
        silent_seconds_max: float = SILENT_SECONDS_MAX,
    ) -> None:
        self.behind_bytes_max, self._silent_seconds_max = behind_bytes_max, silent_seconds_max
        self._slaves: list[SlaveProgress] = []
        self.copied = 0
        """Up to where some slave has had the log, whether it is still connected or not. Only
        acknowledgements count, not the log that a slave brings along."""

    @property
    def all(self) -> list[SlaveProgress]:
        return list(self._slaves)

    def join(self, slave: SlaveProgress) -> None:
        """Count a slave from now on."""
        if slave not in self._slaves:
            self._slaves.append(slave)

    def leave(self, slave: SlaveProgress) -> None:
        """Count a slave no longer; what it has acknowledged stays copied."""
        if slave in self._slaves:
            self._slaves.remove(slave)

    def acknowledge(self, slave: SlaveProgress, offset: int, now: float) -> None:
        """Note how far a slave has come."""
        slave.acknowledged, slave.heard_at = offset, now
        if slave in self._slaves:
            self.copied = max(self.copied, offset)

    def in_sync(self, end: int, now: float) -> list[SlaveProgress]:
        """The slaves that a write which ends at `end` may wait for."""
        return [
            slave
            for slave in self._slaves
            if end - slave.acknowledged <= self.behind_bytes_max
            and now - slave.heard_at <= self._silent_seconds_max
        ]
