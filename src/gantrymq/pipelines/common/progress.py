"""How far a long run is: a bar on a terminal, a line now and then anywhere else, or JSON for a
program that started it.
"""

import json
import os
import sys
import threading
from collections.abc import Callable
from typing import Any, Final, Protocol, TextIO

from gantrymq.base.clock import elapsed_seconds

LINE_SECONDS: Final = 10.0
"""How often a run that nobody watches says where it is."""
JSON_SECONDS: Final = 0.5
VARIABLE: Final = "GANTRY_PROGRESS"
"""An environment variable: with `json` progress is lines of JSON for a program."""
BETWEEN: Final = "working"
"""What is shown between two jobs where nothing is counted."""


class RunProgress(Protocol):
    """Shows how far a run is. `Silent` shows nothing."""

    @property
    def moves(self) -> bool:
        """Whether it can show changes within a step; if not, `working` need not be called."""
        ...

    def start(self, total: int | None, unit: str) -> None:
        """Begin to count; `total` is None if it is not known."""
        ...

    def advance(self, count: int = 1) -> None:
        """Add to the number of things that are done."""
        ...

    def working(self, text: str, share: float) -> None:
        """Show the work inside the present step, and the share of it that is done (0 to 1).

        May be called from another thread, also before `start`.
        """
        ...

    def note(self, text: str) -> None:
        """Print a line that stays."""
        ...

    def done(self) -> None:
        """End the display; harmless if nothing was begun."""
        ...


class Silent:
    """Shows nothing."""

    moves = False

    def start(self, total: int | None, unit: str) -> None: ...

    def advance(self, count: int = 1) -> None: ...

    def working(self, text: str, share: float) -> None: ...

    def note(self, text: str) -> None: ...

    def done(self) -> None: ...


class Lines:
    """Prints a line every few seconds, and one at the end; for logs and pipes.

    A line needs no `advance`: calls of `working` bring it, too.
    """

    moves = True

    def __init__(
        self,
        out: TextIO,
        every: float = LINE_SECONDS,
        now: Callable[[], float] = elapsed_seconds,
    ) -> None:
        self._out, self._every, self._now = out, every, now
        self._lock = threading.RLock()  # `working` is called by another thread
        self._running = False
        self._began = self._said = now()
        self._beside = self._unit = ""
        self._total: int | None = None
        self._count = 0

    def start(self, total: int | None, unit: str) -> None:
        with self._lock:
            self.done()
            self._total, self._unit, self._count = total, unit, 0
            self._began = self._said = self._now()
            self._running = True

    def advance(self, count: int = 1) -> None:
        with self._lock:
            self._count += count
            self._say_in_time()

    def working(self, text: str, share: float) -> None:
        with self._lock:
            self._beside = text
            self._say_in_time()

    def _say_in_time(self) -> None:
        if self._now() - self._said >= self._every:
            self._say()

    def note(self, text: str) -> None:
        print(text, file=self._out, flush=True)

    def done(self) -> None:
        with self._lock:
            self._beside = ""
            if self._running:
                self._say()
                self._running = False

    def _say(self) -> None:
        self._said = self._now()
        seconds = self._said - self._began
        if not self._running:
            self.note(f"{self._beside or BETWEEN}, for {seconds:.0f} s")
            return
        rate = f", {self._count / seconds:,.0f}/s" if seconds > 0 else ""
        share = f" ({self._count / self._total:.0%})" if self._total else ""
        of = f" of {self._total:,}" if self._total is not None else ""
        beside = f"; {self._beside}" if self._beside else ""
        self.note(f"{self._count:,}{of} {self._unit}{share} in {seconds:.0f} s{rate}{beside}")


class JsonLines(Lines):
    """Prints objects of JSON, a line each, at most two a second.

    `{"progress": "working", "text": ..., "done": 1200, "total": 5000, "unit": "messages"}`, where
    what is not known is null; and `{"progress": "note", "text": ...}`.
    """

    def __init__(self, out: TextIO, now: Callable[[], float] = elapsed_seconds) -> None:
        super().__init__(out, JSON_SECONDS, now)

    def note(self, text: str) -> None:
        self._print({"progress": "note", "text": text})

    def _say(self) -> None:
        self._said = self._now()
        counted = (self._count, self._total, self._unit) if self._running else (None, None, None)
        done, total, unit = counted
        self._print(
            {
                "progress": "working",
                "text": self._beside,
                "done": done,
                "total": total,
                "unit": unit,
            }
        )

    def _print(self, line: dict[str, Any]) -> None:
        print(json.dumps(line), file=self._out, flush=True)


class ProgressBar:
    """A bar that moves, with rate and time left; for people at a terminal.

    It takes one line, so that the output of others on the terminal stays.
    """

    moves = True

    def __init__(self, out: TextIO) -> None:
        from rich.console import Console

        self._console = Console(file=out)
        self._lock = threading.RLock()  # `working` is called by another thread
        self._bar: Any = None
        self._counts = False

    def start(self, total: int | None, unit: str) -> None:
        from rich import progress as parts

        with self._lock:
            self.done()
            self._counts = True
            self._open(
                parts.TextColumn("{task.description}"),
                parts.BarColumn(),
                parts.TextColumn(
                    "{task.completed:,.0f}" + (" of {task.total:,.0f}" if total else "")
                ),
                parts.TimeElapsedColumn(),
                parts.TimeRemainingColumn(),
                parts.TextColumn("{task.fields[beside]}", markup=False),
            )
            self._task = self._bar.add_task(unit, total=total, beside="")

    def advance(self, count: int = 1) -> None:
        with self._lock:
            self._bar.advance(self._task, count)

    def working(self, text: str, share: float) -> None:
        with self._lock:
            if self._bar is not None and self._counts:
                self._bar.update(self._task, beside=text)
            elif self._bar is not None:
                self._bar.update(self._task, description=text or BETWEEN, completed=share)
            elif text:
                self._work_alone(text, share)

    def _work_alone(self, text: str, share: float) -> None:
        """Show the work of a step while nothing is counted, and erase it at the end."""
        from rich import progress as parts

        self._counts = False
        self._open(
            parts.SpinnerColumn(),
            parts.TextColumn("{task.description}", markup=False),
            parts.BarColumn(),
            parts.TimeElapsedColumn(),
            transient=True,
        )
        self._task = self._bar.add_task(text, total=1.0, completed=share)

    def _open(self, *columns: Any, transient: bool = False) -> None:
        from rich.progress import Progress as Display

        self._bar = Display(
            *columns,
            console=self._console,
            transient=transient,
            redirect_stdout=sys.stdout.isatty(),  # what a pipe waits for must not end up here
        )
        self._bar.start()

    def note(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False)

    def done(self) -> None:
        with self._lock:
            if self._bar is not None:
                if self._counts:
                    self._bar.update(self._task, beside="")
                self._bar.stop()
                self._bar = None


def progress_on(out: TextIO = sys.stderr, *, quiet: bool = False) -> RunProgress:
    """The display that suits the output: a bar on a terminal, else lines."""
    if quiet:
        return Silent()
    if os.environ.get(VARIABLE) == "json":
        return JsonLines(out)
    return ProgressBar(out) if out.isatty() else Lines(out)
