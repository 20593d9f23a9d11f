"""SYNC_MASTER: a send is answered when a slave that is in sync has it."""

import asyncio
import logging

from gantrymq.base.watermark import Watermark
from gantrymq.replication.ha.in_sync import InSyncSlaves
from gantrymq.store.append import PutStatus

log = logging.getLogger(__name__)


class SyncCopies:
    """Holds records back until a slave has them; without a slave in sync it holds nothing back.

    A slave that falls out of sync frees those who wait for it: their records are stored here only,
    and the answer SLAVE_NOT_AVAILABLE says so.
    """

    counts_flush = False
    """A slave is asked once the master's own flush is over."""

    def __init__(self, slaves: InSyncSlaves, written: Watermark, timeout_ms: int) -> None:
        self._slaves, self._written = slaves, written
        self.mark = Watermark(written.value)
        self.timeout_ms = timeout_ms
        self._had_slave: bool | None = None

    def wrote(self, end: int) -> None:
        """Hold the records up to `end` back only if some slave can be waited for."""
        if not self._has_slave(end):
            self.mark.advance(end)

    def slaves_changed(self) -> None:
        """A slave has acknowledged, came, went or fell behind: let through what it allows."""
        end = self._written.value
        reached = min(self._slaves.copied, end) if self._has_slave(end) else end
        if reached > self.mark.value:
            self.mark.advance(reached)

    def status(self, end: int) -> PutStatus:
        """PUT_OK if a slave has it, SLAVE_NOT_AVAILABLE if there was none to wait for."""
        is_copied = self._slaves.copied >= end
        return PutStatus.PUT_OK if is_copied else PutStatus.SLAVE_NOT_AVAILABLE

    def late(self) -> tuple[PutStatus, str]:
        """FLUSH_SLAVE_TIMEOUT: the record is stored here, and no slave had it in time."""
        return PutStatus.FLUSH_SLAVE_TIMEOUT, f"not copied to a slave within {self.timeout_ms} ms"

    def _has_slave(self, end: int) -> bool:
        has_slave = bool(self._slaves.in_sync(end, asyncio.get_running_loop().time()))
        if has_slave is not self._had_slave:
            self._had_slave = has_slave
            if has_slave:
                log.info("a slave is in sync: sends wait for it")
            else:
                log.warning("no slave is in sync: sends are answered with SLAVE_NOT_AVAILABLE")
        return has_slave
