"""A run of a pipeline: a Spark session around it, errors in one line, and Ctrl-C that may wait."""

import logging
import os
import re
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any, Final

from gantrymq.base.clock import elapsed_seconds
from gantrymq.base.errors import GantryError
from gantrymq.spark.explain import explain, ours
from gantrymq.spark.runtime.session import active_session, local_session

LOG: Final = "spark.log"
_DIED: Final = re.compile(
    r"^(?:Exception in thread .main. )?((?:Invalid |\S+Exception: ).*)$", re.M
)
SLICE_SECONDS: Final = 0.1
"""A pause looks at its stop flag so often."""


class RunFailed(GantryError):
    """Spark gave up on something that is no error of ours."""


@contextmanager
def spark_run(
    app: str,
    *,
    master: str | None = None,
    settings: Mapping[str, str] | None = None,
    verbose: bool = False,
) -> Iterator[Any]:
    """A session for one run. Where there is one in this process already, that one, left open.

    What Spark has to say goes into a log file, unless `verbose`; the file is deleted when all went
    well, and named when not. Whatever fails comes out as a `GantryError` with one clear line.
    """
    running = active_session()
    if running is not None:
        with _translated(None):
            yield running
        return
    folder = Path(tempfile.mkdtemp(prefix="gantrymq-spark-"))
    log = None if verbose else folder / LOG
    kept = {"spark.sql.warehouse.dir": str(folder / "warehouse"), **(settings or {})}
    keep = False
    try:
        with _translated(log):
            with _errors_into(log), _own_signals():
                spark = local_session(app, master=master, settings=kept)
            with _quiet_bridge(), _closed(spark):
                yield spark
    except RunFailed as failed:
        keep = str(log) in str(failed)
        raise
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _closed(spark: Any) -> Iterator[None]:
    """End the session after use; one whose Java process is gone has nothing left to end."""
    try:
        yield
    finally:
        with suppress(Exception):
            spark.stop()


@contextmanager
def _translated(log: Path | None) -> Iterator[None]:
    """Errors of Spark's as ours. A mistake in our own code keeps its traceback."""
    try:
        yield
    except GantryError:
        raise
    except Exception as error:
        if _was_interrupted(error):
            raise KeyboardInterrupt from None
        said = ours(error)
        if said is not None:
            raise GantryError(said) from error
        if not _is_sparks(error):
            raise
        raise RunFailed(f"Spark failed: {_reason(error, log)}") from error


def _reason(error: Exception, log: Path | None) -> str:
    """What Spark says, and where it says more; a Java that did not start has said it in its log."""
    text = log.read_text(errors="replace") if log is not None and log.exists() else ""
    if not text:
        return explain(error)
    said = _DIED.search(text) if "JAVA_GATEWAY_EXITED" in str(error) else None
    return f"{said[1] if said is not None else explain(error)}; Spark's log is {log}"


def _was_interrupted(error: BaseException | None) -> bool:
    """Whether it came of a Ctrl-C: the bridge to Java may fail while it cleans up after one."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False


def _is_sparks(error: Exception) -> bool:
    """Whether Spark or the bridge to it raised this."""
    return any(
        kind.__module__.partition(".")[0] in ("pyspark", "py4j") for kind in type(error).__mro__
    )


@contextmanager
def _errors_into(log: Path | None) -> Iterator[None]:
    """Let processes that start in here write their errors into a file, for good.

    The Java process says dozens of lines about every failed task, and so do the workers that it
    starts. Nothing but the descriptor that they inherit decides where that goes.
    """
    if log is None:
        yield
        return
    sys.stderr.flush()
    own = os.dup(2)
    with log.open("ab") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(own, 2)
        os.close(own)


@contextmanager
def _own_signals() -> Iterator[None]:
    """Keep what Ctrl-C does. Spark's own answer to it asks Java through a line that is in use."""
    before = signal.getsignal(signal.SIGINT)
    yield
    if _is_main():
        signal.signal(signal.SIGINT, before)


@contextmanager
def _quiet_bridge() -> Iterator[None]:
    """The bridge to Java logs a traceback when a Ctrl-C cuts a call off: that is no news."""
    root, bridge = logging.getLogger(), logging.getLogger("py4j")
    level = bridge.level

    def is_news(record: logging.LogRecord) -> bool:
        return record.module not in ("java_gateway", "clientserver")

    root.addFilter(is_news)
    bridge.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        root.removeFilter(is_news)
        bridge.setLevel(level)


class StopRequest:
    """Whether a run was asked to end. Loops look at it between steps."""

    def __init__(self) -> None:
        self.asked = False

    def pause(self, seconds: float) -> bool:
        """Wait, but not longer than until the run is asked to end; whether it is."""
        end = elapsed_seconds() + seconds
        while not self.asked and (left := end - elapsed_seconds()) > 0:
            time.sleep(min(left, SLICE_SECONDS))
        return self.asked


@contextmanager
def stopping(
    note: str = "stopping after this step; once more to stop now",
) -> Iterator[StopRequest]:
    """A flag which the first Ctrl-C (or SIGTERM) sets; the second interrupts at once.

    Without this a Ctrl-C cancels Spark's jobs and interrupts the run wherever it is. That is safe
    too: a step that is not committed is done anew by the next run.
    """
    stop = StopRequest()

    def asked(number: int, frame: FrameType | None) -> None:
        if stop.asked:
            raise KeyboardInterrupt
        stop.asked = True
        below = "\n" if os.isatty(2) else ""  # the line may have a bar on it
        os.write(2, f"{below}{note}\n".encode())

    signals = (signal.SIGINT, signal.SIGTERM) if _is_main() else ()
    before = {each: signal.signal(each, asked) for each in signals}
    try:
        yield stop
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
    if stop.asked:
        raise KeyboardInterrupt


def _is_main() -> bool:
    """Only the main thread is told of signals."""
    return threading.current_thread() is threading.main_thread()
