"""Child processes of the interop suite: started in their own directory, watched line by line."""

import contextlib
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType

STOP_SECONDS_MAX = 60
LINE_QUEUE_MAX = 1_000_000
# Below the range from which the kernel takes the ports of outgoing connections.


class ProcessFailed(AssertionError):
    """A program ended badly, or did not say in time what was waited for."""


class Process:
    """A running program; its stdout is read by a thread, its stderr goes to a file."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        directory: Path,
        name: str,
        env: Mapping[str, str] | None = None,
        listens: bool = False,
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.name = name
        self.errors = directory / f"{name}.stderr"
        self.seen: list[str] = []
        self._lines: queue.Queue[str | None] = queue.Queue(LINE_QUEUE_MAX)
        with self.errors.open("wb") as stderr:
            self._child = subprocess.Popen(
                command,
                cwd=directory,
                env={**os.environ, **(env or {})},
                stdin=subprocess.PIPE if listens else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
            )
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._child.stdout is not None
        for line in self._child.stdout:
            self._lines.put(line.rstrip("\n"))
        self._lines.put(None)

    @property
    def pid(self) -> int:
        return self._child.pid

    def say(self, line: str) -> None:
        """A line for a program that listens."""
        assert self._child.stdin is not None
        self._child.stdin.write(f"{line}\n")
        self._child.stdin.flush()

    def lines(self, timeout: float) -> Iterator[str]:
        """Lines of stdout as they come; ends with the program, raises when the time is up."""
        end = time.monotonic() + timeout
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                raise self.failure(f"said nothing more for {timeout:.0f} s") from None
            if line is None:
                self._lines.put(None)
                return
            self.seen.append(line)
            yield line

    def wait_for(self, wanted: Callable[[str], bool], timeout: float) -> str:
        """The first line from here on that is wanted."""
        for line in self.lines(timeout):
            if wanted(line):
                return line
        raise self.failure("ended before it was ready")

    def wait(self, timeout: float) -> int:
        """The exit code of a program that ends by itself."""
        for _ in self.lines(timeout):
            pass
        return self._child.wait(timeout)

    def stop(self) -> int:
        """Ask the program to end and wait until it has."""
        if self._child.poll() is None:
            self._child.send_signal(signal.SIGTERM)
        try:
            return self._child.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
            raise self.failure(f"did not stop within {STOP_SECONDS_MAX} s of SIGTERM") from None

    def kill(self) -> None:
        """End the program at once, as a crash would."""
        self._child.kill()
        self._child.wait()

    def failure(self, why: str) -> ProcessFailed:
        """What to raise when this program disappoints: the reason and its last words."""
        said = "\n".join(self.seen[-20:])
        errors = self.errors.read_text(errors="replace")[-4000:]
        return ProcessFailed(f"{self.name} {why}\n--- stdout\n{said}\n--- stderr\n{errors}")

    def __enter__(self) -> "Process":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.stop()
            return
        # What went wrong inside matters more than how the program ends.
        with contextlib.suppress(ProcessFailed):
            self.stop()
