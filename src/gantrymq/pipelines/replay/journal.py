"""The files of a replay: its plan, its progress, and a line for the auditor.

    <folder>/<id>/plan.json     written once, before the first message is sent
    <folder>/<id>/done          how many chunks are published
    <folder>/<id>/dropped       the user began a new replay instead
    <folder>/replays.jsonl      a line when a replay begins, ends, fails or is stopped

A chunk is published before `done` is written. After a crash between the two it is published once
more as the same epoch, which the broker recognises: see the sink's guarantees.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from gantrymq.base.disk import Disk, OsDisk
from gantrymq.base.errors import DECODE_ERRORS, ConfigError, GantryError
from gantrymq.base.files import load_text, save_text
from gantrymq.model import Queue
from gantrymq.pipelines.common.selection import Selection
from gantrymq.pipelines.replay.chunks import Chunk, DayCount
from gantrymq.pipelines.replay.request import ReplayRequest

AUDIT: Final = "replays.jsonl"
PLAN, DONE, DROPPED = "plan.json", "done", "dropped"


class ReplayPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A replay with every choice made, so that it stays the same when it is resumed."""

    id: str
    begun_ms: int
    request: ReplayRequest
    selection: Selection
    namesrv: str
    queues: tuple[Queue, ...]
    """Of the target: a key stays in its queue however often the replay is gone on with."""
    tasks: int
    """Spark tasks that send a chunk; part of the plan because stable ids depend on it."""
    chunks: tuple[Chunk, ...]
    days: tuple[DayCount, ...]

    @property
    def messages(self) -> int:
        return sum(chunk.rows for chunk in self.chunks)

    @property
    def bytes(self) -> int:
        return sum(day.bytes for day in self.days)


def default_folder() -> Path:
    """The folder of replays, unless the user gives another."""
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state) / "gantrymq" / "replays"


class Journal:
    """The folder of all replays of a user."""

    def __init__(self, folder: Path | str, disk: Disk | None = None) -> None:
        self._folder, self._disk = str(folder), disk or OsDisk()

    def _path(self, *names: str) -> str:
        return "/".join([self._folder, *names])

    # plans

    def save(self, plan: ReplayPlan) -> None:
        """Save a new plan."""
        text = msgspec.json.encode(plan).decode()
        save_text(self._disk, self._path(plan.id, PLAN), text)

    def load(self, replay: str) -> ReplayPlan:
        """The plan of an id."""
        path = self._path(replay, PLAN)
        text = load_text(self._disk, path) if replay and "/" not in replay else None
        if text is None:
            raise ConfigError(f"there is no replay {replay} in {self._folder}: see --history")
        try:
            return msgspec.json.decode(text, type=ReplayPlan)
        except DECODE_ERRORS as error:
            raise GantryError(f"the plan {path} cannot be read: {error}") from error

    def unfinished(self, request: ReplayRequest, namesrv: str) -> ReplayPlan | None:
        """The latest unfinished replay of an equal request on the same cluster; None if none."""
        if not self._disk.exists(self._folder):
            return None
        mark = f"-{request.fingerprint()}"
        for name in sorted(self._disk.list(self._folder), reverse=True):
            if name.endswith(mark) and self._disk.exists(self._path(name, PLAN)):
                plan = self.load(name)
                same = plan.request == request and plan.namesrv == namesrv
                if same and not self._is_over(plan):
                    return plan
        return None

    def _is_over(self, plan: ReplayPlan) -> bool:
        dropped = self._disk.exists(self._path(plan.id, DROPPED))
        return dropped or self.done(plan) >= len(plan.chunks)

    def drop(self, plan: ReplayPlan) -> None:
        """Mark a replay so that no later run resumes it by itself."""
        save_text(self._disk, self._path(plan.id, DROPPED), "begun anew\n")

    @contextmanager
    def claim(self, plan: ReplayPlan) -> Iterator[None]:
        """Lock the replay: no other process works on it meanwhile."""
        lock = self._disk.lock(self._path(plan.id, "lock"))
        try:
            yield
        finally:
            lock.release()

    # how far

    def done(self, plan: ReplayPlan) -> int:
        """How many chunks are known to be published."""
        text = load_text(self._disk, self._path(plan.id, DONE), str.isdecimal)
        return 0 if text is None else int(text)

    def advance(self, plan: ReplayPlan, done: int) -> None:
        save_text(self._disk, self._path(plan.id, DONE), str(done))

    # the auditor

    def note(self, line: dict[str, Any]) -> None:
        """Append a line, durably. A line that a crash cut off is ended first."""
        if not self._disk.exists(self._folder):
            self._disk.make_dirs(self._folder)
        file = self._disk.open(self._path(AUDIT), create=True)
        try:
            end = file.size()
            cut = b"\n" if end and file.pread(1, end - 1) != b"\n" else b""
            file.pwrite(cut + json.dumps(line, ensure_ascii=False).encode() + b"\n", end)
            file.sync()
        finally:
            file.close()
        self._disk.sync_dir(self._folder)

    def history(self) -> list[dict[str, Any]]:
        """All lines that can be read, the oldest first."""
        if not self._disk.exists(self._path(AUDIT)):
            return []
        file = self._disk.open_read(self._path(AUDIT))
        try:
            data = file.pread(file.size(), 0)
        finally:
            file.close()
        lines = []
        for raw in data.splitlines():
            with suppress(ValueError):
                lines.append(json.loads(raw))
        return [line for line in lines if isinstance(line, dict)]
