"""Retention: whole files, oldest first, by age or by how full the disk is."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple

from gantrymq.base.clock import WallClock
from gantrymq.base.disk import Disk
from gantrymq.kernel import store_ms_of
from gantrymq.store.commitlog import CommitLog
from gantrymq.store.config import StoreConfig
from gantrymq.store.keyindex import KeyIndex
from gantrymq.store.queues import QueueTable

log = logging.getLogger(__name__)


class SegmentAge(NamedTuple):
    """A log file, and when the first record behind it was stored."""

    base: int
    until_ms: int
    """No record in the file is younger. Unlike the file's own time it survives a copy."""


def expired(
    sealed: Sequence[SegmentAge],
    config: StoreConfig,
    *,
    now_ms: int,
    hour: int,
    used_ratio: float,
    asked: bool = False,
) -> list[int]:
    """Choose the files to delete, oldest first. `sealed` leaves out the one being written."""
    if config.judge_by_free_bytes:
        used_ratio = 0.0
    forced = used_ratio >= config.disk_force_ratio
    its_time = f"{hour:02d}" in (part.strip().zfill(2) for part in config.delete_when.split(";"))
    if not (forced or asked or its_time or used_ratio >= config.disk_clean_ratio):
        return []
    chosen: list[int] = []
    for segment in sealed[: config.delete_batch_max]:
        old = segment.until_ms + config.retention_hours * 3_600_000 < now_ms
        if not (old or forced):
            break
        chosen.append(segment.base)
    return chosen


class Cleaner:
    """Looks at ages and at the disk, deletes what `expired` chose, refuses when it is too full."""

    def __init__(
        self,
        config: StoreConfig,
        disk: Disk,
        clock: WallClock,
        commit_log: CommitLog,
        queues: QueueTable,
        index: KeyIndex | None,
        checkpointed: Callable[[], int],
    ) -> None:
        self._config, self._disk, self._clock = config, disk, clock
        self._checkpointed = checkpointed
        self._log, self._queues, self._index = commit_log, queues, index
        self._until_ms: dict[int, int] = {}
        self.refusal = ""
        self._judge(self._ratio())

    def _ratio(self) -> float:
        return self._disk.used_ratio(self._config.commit_log_directory)

    def _judge(self, ratio: float) -> None:
        too_full = ratio > self._config.disk_refuse_ratio and not self._config.judge_by_free_bytes
        self.refusal = (
            f"the disk is {ratio:.0%} full, more than {self._config.disk_refuse_ratio:.0%}"
            if too_full
            else ""
        )

    async def run(self, *, now: bool = False) -> int:
        """One look; returns how many log files were deleted."""
        ratio = self._ratio()
        self._judge(ratio)
        now_ms = self._clock.now_ms()
        hour = datetime.fromtimestamp(now_ms / 1000).hour  # noqa: DTZ006 (deleteWhen is local)
        chosen = expired(
            self._ages(),
            self._config,
            now_ms=now_ms,
            hour=hour,
            used_ratio=ratio,
            asked=now,
        )
        for base in chosen:
            assert base == self._log.bases[0]
            self._log.delete_first()
            self._until_ms.pop(base, None)
            await asyncio.sleep(0)
        if chosen:
            log.info("%d log files deleted; the log begins at %d", len(chosen), self._log.min)
            await self._follow()
        return len(chosen)

    def _ages(self) -> list[SegmentAge]:
        """Every file that may go, with the time of the record that follows it.

        The one being written may not, nor one that recovery could still need.
        """
        ages = []
        safe = self._checkpointed()
        for base, after in zip(self._log.bases, self._log.bases[1:], strict=False):
            if after > safe:
                break
            until_ms = self._until_ms.get(base, 0)
            if not until_ms:
                head = self._log.read(76, after)
                until_ms = store_ms_of(head) if len(head) == 76 else 0
                if not until_ms:  # nothing was written behind it yet
                    break
                self._until_ms[base] = until_ms
            ages.append(SegmentAge(base, until_ms))
        return ages

    async def _follow(self) -> None:
        """Let queues and index begin where the log does."""
        for number, queue in enumerate(self._queues.known()):
            queue.trim(self._log.min)
            if number % 64 == 0:
                await asyncio.sleep(0)
        if self._index is not None:
            self._index.trim(self._log.min)
