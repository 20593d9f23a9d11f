"""Run a pipeline: start a Spark session, turn errors into one line, handle Ctrl-C."""

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
    """Spark failed with an error that is not GantryMQ's."""


@contextmanager
def spark_run(
    app: str,
    *,
    master: str | None = None,
    settings: Mapping[str, str] | None = None,
    verbose: bool = False,
) -> Iterator[Any]:
    """A session for one run; a session that is open in this process is used and left open.

    Spark's own output goes into a log file, unless `verbose`; the file is deleted after success,
    and named in the error after a failure. Errors come out as a `GantryError` of one line.
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
    """Stop the session at the end; an error of that is ignored, as Java may be gone."""
    try:
        yield
    finally:
        with suppress(Exception):
            spark.stop()


@contextmanager
def _translated(log: Path | None) -> Iterator[None]:
    """Turn errors of Spark into a GantryError; a bug in this package keeps its traceback."""
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
    """The reason that Spark gives, and where its log is; why Java failed stands in the log."""
    text = log.read_text(errors="replace") if log is not None and log.exists() else ""
    if not text:
        return explain(error)
    said = _DIED.search(text) if "JAVA_GATEWAY_EXITED" in str(error) else None
    return f"{said[1] if said is not None else explain(error)}; Spark's log is {log}"


def _was_interrupted(error: BaseException | None) -> bool:
    """Whether a Ctrl-C caused the error: the bridge to Java may fail while it cleans up."""
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
    """Make processes that are started in this block write their stderr into a file.

    The Java process prints dozens of lines about every failed task, and so do its workers. The
    descriptor that they inherit decides where the lines go.
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
    """Keep the handler of Ctrl-C: Spark's own calls Java over a connection in use."""
    before = signal.getsignal(signal.SIGINT)
    yield
    if _is_main():
        signal.signal(signal.SIGINT, before)


@contextmanager
def _quiet_bridge() -> Iterator[None]:
    """Silence the traceback that the bridge to Java logs when a Ctrl-C cuts off a call."""
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
    """Whether the run was asked to stop. Loops look at it between steps."""

    def __init__(self) -> None:
        self.asked = False

    def pause(self, seconds: float) -> bool:
        """Wait so many seconds, or until a stop is requested; returns whether it is."""
        end = elapsed_seconds() + seconds
        while not self.asked and (left := end - elapsed_seconds()) > 0:
            time.sleep(min(left, SLICE_SECONDS))
        return self.asked


@contextmanager
def stop_on_signal(
    note: str = "stopping after this step; once more to stop now",
) -> Iterator[StopRequest]:
    """A flag which the first Ctrl-C (or SIGTERM) sets; the second interrupts at once.

    Without this a Ctrl-C cancels Spark's jobs and interrupts the run wherever it is. That is safe,
    too: the next run repeats a step that is not committed.
    """
    stop = StopRequest()

    def asked(number: int, frame: FrameType | None) -> None:
        if stop.asked:
            raise KeyboardInterrupt
        stop.asked = True
        below = "\n" if os.isatty(2) else ""  # a progress bar may be on the line
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
    """Whether this is the main thread, the only one that can handle signals."""
    return threading.current_thread() is threading.main_thread()
