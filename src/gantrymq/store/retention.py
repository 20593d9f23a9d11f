"""Retention: deletes whole log files, oldest first, by age or when the disk is full."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from itertools import pairwise
from typing import NamedTuple

from gantrymq.base.plurals import counted
from gantrymq.kernel import store_ms_of
from gantrymq.store.config import StoreConfig
from gantrymq.store.queues.consumequeue import EntriesOnDisk
from gantrymq.store.shared import StoreFiles, StorePorts

log = logging.getLogger(__name__)

HEAD_BYTES = 76
"""Enough of a record to know when it was stored."""

QUEUES_AT_ONCE = 64
FREE_BYTES_WARN = 4 << 30

MayDelete = Callable[[int], Awaitable[bool]]
"""Called with a log offset: saves what it needs from below, returns whether that may be deleted."""


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
    """The files to delete, oldest first. `sealed` does not contain the file being written."""
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
    """Deletes the files that `expired` chooses, and refuses writes while the disk is too full."""

    def __init__(
        self,
        config: StoreConfig,
        ports: StorePorts,
        files: StoreFiles,
        checkpointed: Callable[[], int],
    ) -> None:
        self._config, self._checkpointed = config, checkpointed
        self._disk, self._clock, self._offload, _ = ports
        self._log, self._queues, self._index = files
        self._until_ms: dict[int, int] = {}
        self.asked_before: list[MayDelete] = []
        """Called before files are deleted; each may say that they have to stay."""
        self.keeps_from: Callable[[], Awaitable[int]] | None = None
        """Asked for the log offset from which on nothing may be deleted; None: no such offset."""
        self._turn = asyncio.Lock()
        self.refusal = ""
        self.judge()
        self._warn_if_tight()

    def _warn_if_tight(self) -> None:
        free = self._disk.free_bytes(self._config.directory)
        if free < FREE_BYTES_WARN and not self._config.judge_by_free_bytes:
            log.warning(
                "only %d MiB are free; writes are refused above diskSpaceWarningLevelRatio=%d, "
                "unless storeProfile=dev",
                free >> 20,
                round(self._config.disk_refuse_ratio * 100),
            )

    def _ratio(self) -> float:
        return self._disk.used_ratio(self._config.commit_log_directory)

    def judge(self) -> None:
        """Check now whether the disk is too full for more messages."""
        self._judge(self._ratio())

    def _judge(self, ratio: float) -> None:
        too_full = ratio > self._config.disk_refuse_ratio and not self._config.judge_by_free_bytes
        self.refusal = (
            f"the disk is {ratio:.0%} full, more than {self._config.disk_refuse_ratio:.0%}"
            if too_full
            else ""
        )

    async def run(self, *, now: bool = False) -> int:
        """Check once and delete; returns how many log files were deleted.

        A round that is asked for waits for the one under way: both would choose the same files.
        """
        async with self._turn:
            return await self._run(now=now)

    async def _run(self, *, now: bool) -> int:
        ratio = self._ratio()
        self._judge(ratio)
        now_ms = self._clock.now_ms()
        hour = datetime.fromtimestamp(now_ms / 1000).hour  # noqa: DTZ006 (deleteWhen is local)
        chosen = expired(
            await self._ages(),
            self._config,
            now_ms=now_ms,
            hour=hour,
            used_ratio=ratio,
            asked=now,
        )
        if chosen and self.keeps_from is not None:
            kept = await self.keeps_from()
            chosen = [base for base in chosen if base + self._config.segment_bytes <= kept]
        if chosen and not await self._may_delete(chosen[-1] + self._config.segment_bytes):
            return 0
        for base in chosen:
            assert base == self._log.bases[0]
            await self._offload.run(self._disk.delete, self._log.drop_first())
            self._until_ms.pop(base, None)
        if chosen:
            said = counted(len(chosen), "log file")
            log.info("%s deleted; the log begins at %d", said, self._log.min)
            await self.follow()
        return len(chosen)

    async def _may_delete(self, upto: int) -> bool:
        """Ask every callback to save what it needs from below a log offset; False if one cannot.

        To save it they write, even if the disk is too full for other messages: the deleted files
        free more space than the copies take.
        """
        refusal, self.refusal = self.refusal, ""
        try:
            for ask in self.asked_before:
                if not await ask(upto):
                    log.warning("log files below %d stay: somebody still needs them", upto)
                    return False
        finally:
            self.refusal = refusal
        return True

    async def _ages(self) -> list[SegmentAge]:
        """The files that may be deleted, each with the store time of the record behind it.

        The file being written is not among them, nor files that recovery could still need.
        """
        ages = []
        safe = self._checkpointed()
        for base, after in pairwise(list(self._log.bases)):
            if after > safe:
                break
            until_ms = self._until_ms.get(base) or await self._first_store_ms(after)
            if not until_ms:  # no record follows yet
                break
            self._until_ms[base] = until_ms
            ages.append(SegmentAge(base, until_ms))
        return ages

    async def _first_store_ms(self, base: int) -> int:
        head = await self._offload.run(self._log.file(base).pread, HEAD_BYTES, 0)
        return store_ms_of(head) if len(head) == HEAD_BYTES else 0

    async def follow(self) -> None:
        """Trim queues and index to the beginning of the log."""
        log_min = self._log.min
        queues = self._queues.known()
        for start in range(0, len(queues), QUEUES_AT_ONCE):
            some = queues[start : start + QUEUES_AT_ONCE]
            firsts = await self._offload.run(_find_firsts, [q.on_disk() for q in some], log_min)
            for queue, first in zip(some, firsts, strict=True):
                # The topic may have been deleted, and a new queue may own these files now.
                if self._queues.get(queue.topic, queue.queue_id) is queue:
                    queue.trim(log_min, first)
        if self._index is not None:
            self._index.trim(log_min)


def _find_firsts(queues: list[EntriesOnDisk], log_min: int) -> list[int]:
    return [queue.first_at_or_above(log_min) for queue in queues]
