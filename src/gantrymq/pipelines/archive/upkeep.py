"""Keep a table in order: join small files, sweep up files that are not part of it."""

import os
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from gantrymq.base.clock import WallClock
from gantrymq.pipelines.archive.work import TaskReport, Work, run_work
from gantrymq.pipelines.lake import Change, DataFile, Table, TableError
from gantrymq.pipelines.lake.commits import commit
from gantrymq.pipelines.lake.file_rows import batches
from gantrymq.pipelines.lake.file_writer import FileWriter
from gantrymq.pipelines.lake.table import found_in

SMALL_BYTES: Final = 64 * 1024 * 1024
"""A file below this is small."""
JOINED_BYTES: Final = 256 * 1024 * 1024
"""Small files are joined up to about this size."""
SMALL_MAX: Final = 8
"""So many small neighbours are joined without being asked."""
SAFE_MS: Final = 24 * 3_600_000
"""Files outside the table are left alone so long: a run may be about to commit them, and a reader
may still be reading what was replaced."""


def joinable(files: Iterable[DataFile], count_min: int = 2) -> list[tuple[DataFile, ...]]:
    """Small files that follow each other in a queue and a day, in groups to be joined."""
    known = [each for each in files if each.queue is not None]
    known.sort(key=lambda each: (each.queue, each.day, each.first))
    found: list[tuple[DataFile, ...]] = []
    for _, day in groupby(known, key=lambda each: (each.queue, each.day)):
        group: list[DataFile] = []
        for each in day:
            follows = bool(group) and each.first == group[-1].last + 1
            full = sum(one.size for one in group) + each.size > JOINED_BYTES
            if group and (not follows or full or each.size >= SMALL_BYTES):
                found.append(tuple(group))
                group = []
            if each.size < SMALL_BYTES:
                group.append(each)
        found.append(tuple(group))
    return [group for group in found if len(group) >= max(2, count_min)]


def build_join_work(root: Path) -> Work:
    """The function that a task runs: it writes the rows of neighbouring files into one."""

    def join(group: tuple[DataFile, ...], token: str) -> TaskReport:
        queue = group[0].queue
        assert queue is not None
        with FileWriter(root, queue, token) as writer:
            for each in group:
                for batch in batches(root, each):
                    writer.add(batch)
            files = writer.close()
            if sum(each.rows for each in files) != sum(each.rows for each in group):
                raise TableError(f"{group[0].path} and its neighbours have lost rows")
        return TaskReport(files=files)

    return join


def compact(
    spark: Any, table: Table, *, run: str, clock: WallClock, count_min: int = 2
) -> tuple[int, int]:
    """Join small files; returns their number before and after. Rows do not change."""
    table.refresh()
    groups = joinable(table.files(), count_min)
    if not groups:
        return 0, 0
    old = tuple(each for group in groups for each in group)
    new = tuple(run_work(spark, table.root, groups, build_join_work(table.root), run).files)
    change = Change(clock.now_ms(), new, old, reason="compact", same_rows=True)
    if not replaced(table, change):
        return 0, 0
    return len(old), len(new)


def replaced(table: Table, change: Change) -> bool:
    """Commit a change that replaces files; False, without effect, if another run replaced them."""
    now = change.at_ms / 1000
    for each in change.removed:
        _touch(table.root / each.path, now)

    def there() -> bool:
        paths = {each.path for each in table.files()}
        return all(each.path in paths for each in change.removed)

    return commit(table, change, there)


def _touch(path: Path, now: float) -> None:
    """Set the file's time: its age outside the table counts from when it was replaced."""
    os.utime(path, (now, now))


def sweep(table: Table, *, now_ms: int, age_ms: int = SAFE_MS) -> int:
    """Delete files outside the table that are older than `age_ms`; returns how many."""
    table.refresh()
    table.forget(now_ms - age_ms)
    known = {each.path for each in table.files()}
    count = 0
    for path in found_in(table.root):
        ours = path.name.endswith((".parquet", ".part"))
        if not ours or str(path.relative_to(table.root)) in known:
            continue
        try:
            if path.stat().st_mtime * 1000 < now_ms - age_ms:
                path.unlink()
                count += 1
        except FileNotFoundError:
            continue  # another sweep deleted it
    return count
