"""How far a long run is: a bar on a terminal, a line now and then anywhere else."""

import sys
import time
from collections.abc import Callable
from typing import Any, Final, Protocol, TextIO

LINE_SECONDS: Final = 10.0
"""How often a run that nobody watches says where it is."""


class Progress(Protocol):
    """Told by a run how far it is. Runs may be told nothing: then it is `Silent`."""

    def start(self, total: int | None, unit: str) -> None:
        """Begin to count; without a total there is a count, but no end in sight."""
        ...

    def advance(self, count: int = 1) -> None:
        """So many more are done."""
        ...

    def note(self, text: str) -> None:
        """Say something that stays."""
        ...

    def done(self) -> None:
        """Nothing more comes; harmless when nothing was begun."""
        ...


class Silent:
    """Says nothing."""

    def start(self, total: int | None, unit: str) -> None: ...

    def advance(self, count: int = 1) -> None: ...

    def note(self, text: str) -> None: ...

    def done(self) -> None: ...


class Lines:
    """A line every few seconds, and one at the end; for logs and pipes."""

    def __init__(
        self,
        out: TextIO,
        every: float = LINE_SECONDS,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._out, self._every, self._now = out, every, now
        self._running = False

    def start(self, total: int | None, unit: str) -> None:
        self.done()
        self._total, self._unit, self._count = total, unit, 0
        self._began = self._said = self._now()
        self._running = True

    def advance(self, count: int = 1) -> None:
        self._count += count
        if self._now() - self._said >= self._every:
            self._say()

    def note(self, text: str) -> None:
        print(text, file=self._out, flush=True)

    def done(self) -> None:
        if self._running:
            self._say()
            self._running = False

    def _say(self) -> None:
        self._said = self._now()
        seconds = self._said - self._began
        rate = f", {self._count / seconds:,.0f}/s" if seconds > 0 else ""
        share = f" ({self._count / self._total:.0%})" if self._total else ""
        of = f" of {self._total:,}" if self._total is not None else ""
        self.note(f"{self._count:,}{of} {self._unit}{share} in {seconds:.0f} s{rate}")


class Bar:
    """A bar that moves, with rate and time left; for people at a terminal."""

    def __init__(self, out: TextIO) -> None:
        from rich.console import Console

        self._console = Console(file=out)
        self._bar: Any = None

    def start(self, total: int | None, unit: str) -> None:
        from rich import progress as parts

        self.done()
        self._bar = parts.Progress(
            parts.TextColumn("{task.description}"),
            parts.BarColumn(),
            parts.TextColumn("{task.completed:,.0f}" + (" of {task.total:,.0f}" if total else "")),
            parts.TimeElapsedColumn(),
            parts.TimeRemainingColumn(),
            console=self._console,
        )
        self._task = self._bar.add_task(unit, total=total)
        self._bar.start()

    def advance(self, count: int = 1) -> None:
        self._bar.advance(self._task, count)

    def note(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False)

    def done(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def progress_on(out: TextIO = sys.stderr, *, quiet: bool = False) -> Progress:
    """The kind that suits where it is shown."""
    if quiet:
        return Silent()
    return Bar(out) if out.isatty() else Lines(out)
