"""The archive as a stream: commit after commit, until it is stopped."""

from collections.abc import Callable
from typing import Any, Final

from gantrymq.base.clock import WallClock, elapsed_seconds
from gantrymq.pipelines.archive.run import Archive, ArchiveResult
from gantrymq.pipelines.archive.upkeep import SMALL_MAX, compact, sweep
from gantrymq.pipelines.common.progress import RunProgress
from gantrymq.pipelines.common.spark_run import StopRequest

TIDY_COMMITS: Final = 20
"""After so many commits small files are looked for."""
SWEEP_MS: Final = 3_600_000


class Tidy:
    """Joins small files and sweeps the table of a running archive, now and then."""

    def __init__(
        self,
        spark: Any,
        archive: Archive,
        *,
        run: str,
        clock: WallClock,
        say: Callable[[str], None],
    ) -> None:
        self._spark, self._archive, self._clock, self._say = spark, archive, clock, say
        self._run, self._count = run, 0
        self._commits = 0
        self._sweep_ms = 0

    def look(self) -> None:
        """Join small files after enough commits, and sweep when it is time."""
        commits, now_ms = self._archive.totals.commits, self._clock.now_ms()
        if commits - self._commits >= TIDY_COMMITS:
            self._commits = commits
            self.compact(SMALL_MAX)
        if now_ms >= self._sweep_ms:
            self._sweep_ms = now_ms + SWEEP_MS
            self.sweep()

    def sweep(self) -> None:
        """Delete files that killed runs have left behind."""
        sweep(self._archive.table, now_ms=self._clock.now_ms())

    def compact(self, count_min: int) -> None:
        self._count += 1
        before, after = compact(
            self._spark,
            self._archive.table,
            run=f"{self._run}c{self._count}",
            clock=self._clock,
            count_min=count_min,
        )
        if before:
            self._say(f"{before} small files joined to {after}")


def follow(
    archive: Archive, stop: StopRequest, trigger: float, progress: RunProgress, tidy: Tidy | None
) -> ArchiveResult:
    """Archive all new messages every `trigger` seconds, until `stop` is requested."""
    progress.start(None, "rows")
    while not stop.asked:
        began = elapsed_seconds()
        archive.catch_up(stopped=lambda: stop.asked)
        if tidy is not None and not stop.asked:
            tidy.look()
        stop.pause(trigger - (elapsed_seconds() - began))
    progress.done()
    return archive.totals
