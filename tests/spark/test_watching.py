"""What is shown while one job of Spark's runs."""

import io
import os
import pty
import signal
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from storekeeping import keep_store, message

from gantrymq.pipelines.common.job_progress import (
    LOOK_SECONDS,
    JobStage,
    describe_stages,
    watch_jobs,
)
from gantrymq.pipelines.common.progress import Lines, ProgressBar, RunProgress
from gantrymq.pipelines.common.spark_run import stop_on_signal
from gantrymq.spark.runtime.java import find_java
from gantrymq.spark.runtime.session import jvm_options
from gantrymq.spark.runtime.tasks import run_tasks

pytestmark = pytest.mark.timeout(240)

COLUMNS, ROWS = 100, 30
COMMAND_SECONDS_MAX = 120
SHOW_CURSOR = "\x1b[?25h"


@pytest.mark.parametrize(
    ("stages", "shown"),
    [
        ([], ("", 0.0)),
        ([JobStage(0, 0)], ("", 0.0)),
        ([JobStage(1, 0)], ("Spark: 0 of 1 task", 0.0)),
        ([JobStage(8, 0)], ("Spark: 0 of 8 tasks", 0.0)),
        ([JobStage(8, 2)], ("Spark: 2 of 8 tasks", 0.25)),
        ([JobStage(3000, 1500), JobStage(1000, 500)], ("Spark: 2,000 of 4,000 tasks", 0.5)),
        ([JobStage(4, 1, failed=2)], ("Spark: 1 of 4 tasks, 2 failed", 0.25)),
        ([JobStage(4, 5)], ("Spark: 4 of 4 tasks", 1.0)),
    ],
)
def test_stages_are_told_in_a_few_words(stages: list[JobStage], shown: tuple[str, float]) -> None:
    """All that run are added up; no task is counted twice; nothing is said of nothing."""
    assert shown == describe_stages(stages)


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal wide enough for the longest line."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    return Terminal()


def until(screen: Terminal, text: str, seconds: float = 20.0) -> None:
    """Wait for something on a screen."""
    end = time.monotonic() + seconds
    while text not in screen.getvalue():
        assert time.monotonic() < end, f"{text!r} not in {screen.getvalue()!r}"
        time.sleep(0.02)


def watchers() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == "watching"]


def slow() -> Callable[[float], Iterator[Any]]:
    """A task that takes as long as it is told; made here, because workers cannot import tests."""

    def patient(seconds: float) -> Iterator[Any]:
        time.sleep(seconds)
        yield pa.RecordBatch.from_pydict({"a": pa.array([1], pa.int32())})

    return patient


@pytest.mark.parametrize("counts", [True, False])
def test_a_running_job_is_seen_beside_the_count_or_alone(
    spark: Any, screen: Terminal, counts: bool
) -> None:
    """The quick task is told while the slow one runs; with the block all of it ends."""
    progress = ProgressBar(screen)
    with watch_jobs(spark, progress):
        if counts:
            progress.start(7, "rows")
        found = run_tasks(spark, [LOOK_SECONDS, 30 * LOOK_SECONDS], slow(), "a int").collect()

    assert 2 == len(found)
    assert "Spark: 1 of 2 tasks" in screen.getvalue()
    assert counts == ("0 of 7" in screen.getvalue())
    assert screen.getvalue().rindex(SHOW_CURSOR) > screen.getvalue().rindex("Spark:")
    assert [] == watchers()


def test_without_a_terminal_a_long_job_is_lines(spark: Any) -> None:
    """Also while nothing is counted: the run itself waits for Spark and cannot tell."""
    out = io.StringIO()
    progress: RunProgress = Lines(out, every=2 * LOOK_SECONDS)
    with watch_jobs(spark, progress):
        progress.start(7, "rows")
        run_tasks(spark, [LOOK_SECONDS, 12 * LOOK_SECONDS], slow(), "a int").collect()

    *lines, last = out.getvalue().splitlines()
    assert any("; Spark: 1 of 2 tasks" in line for line in lines)
    assert "Spark" not in last
    assert [] == watchers()


class Gone:
    """What is left of a tracker whose Java process has died."""

    def __init__(self) -> None:
        self.asked = threading.Event()

    def getActiveStageIds(self) -> list[int]:
        self.asked.set()
        raise ConnectionRefusedError("Java is gone")


def test_java_that_is_gone_ends_the_looking_and_not_the_run(screen: Terminal) -> None:
    """The run has its own way to find out."""
    tracker, progress = Gone(), ProgressBar(screen)
    session = SimpleNamespace(sparkContext=SimpleNamespace(statusTracker=lambda: tracker))
    with watch_jobs(session, progress):
        progress.start(2, "rows")
        assert tracker.asked.wait(20)
        progress.advance(2)
    assert "2 of 2" in screen.getvalue()


class Remote:
    """The part of a Connect session that tells how far it is; it has no `sparkContext`."""

    def __init__(self) -> None:
        self.handlers: list[Any] = []

    def registerProgressHandler(self, handler: Any) -> None:
        self.handlers.append(handler)

    def removeProgressHandler(self, handler: Any) -> None:
        self.handlers.remove(handler)


def test_a_remote_session_tells_by_itself(screen: Terminal) -> None:
    """Stages that are done do not count, and nothing of it can fail the run."""
    remote, progress = Remote(), ProgressBar(screen)
    ended = SimpleNamespace(num_tasks=9, num_completed_tasks=9, done=True)
    active = SimpleNamespace(num_tasks=8, num_completed_tasks=3, done=False)
    with watch_jobs(remote, progress):
        [tell] = remote.handlers
        tell(stages=[ended, active], inflight_tasks=2, operation_id="x", done=False)
        until(screen, "Spark: 3 of 8 tasks")
        tell(stages=[object()], inflight_tasks=0, operation_id="x", done=False)
        tell(stages=None, inflight_tasks=0, operation_id="x", done=True)
    assert [] == remote.handlers


def test_a_session_that_tells_nothing_is_worked_with_all_the_same(screen: Terminal) -> None:
    """An older server, say."""
    progress = ProgressBar(screen)
    with watch_jobs(object(), progress):
        progress.start(1, "rows")
        progress.advance()
    assert "1 of 1" in screen.getvalue()


def test_ctrl_c_is_the_runs_own_and_gives_the_terminal_back(spark: Any, screen: Terminal) -> None:
    """The first is a question, the second an end; then nobody looks, and the cursor is there."""
    progress, asked = ProgressBar(screen), []

    def run() -> None:
        with watch_jobs(spark, progress), stop_on_signal() as stop:
            progress.start(7, "rows")
            os.kill(os.getpid(), signal.SIGINT)
            asked.append(stop.pause(20))
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(20)

    with pytest.raises(KeyboardInterrupt):
        run()
    assert [True] == asked
    assert [] == watchers()
    assert screen.getvalue().endswith(SHOW_CURSOR)


def at_terminal(words: list[str]) -> tuple[int, str]:
    """Run a command at a terminal of its own; its exit code, and all that the terminal got."""
    ours, its = pty.openpty()
    termios.tcsetwinsize(its, (ROWS, COLUMNS))
    child = subprocess.Popen(
        words, stdin=its, stdout=its, stderr=its, start_new_session=True,
        env={**os.environ, "TERM": "xterm"},
    )  # fmt: skip
    os.close(its)
    ending = threading.Timer(COMMAND_SECONDS_MAX, os.killpg, (child.pid, signal.SIGKILL))
    ending.start()
    got = bytearray()
    try:
        with suppress(OSError):  # so a terminal says that nobody has it open any more
            while data := os.read(ours, 65536):
                got += data
        return child.wait(COMMAND_SECONDS_MAX), got.decode()
    finally:
        ending.cancel()
        os.close(ours)


def test_who_audits_at_a_terminal_sees_spark_at_work(tmp_path: Path) -> None:
    """The whole command: the job's tasks beside the bar while it runs, and the answer below."""
    keep_store(tmp_path, [message(n % 2, f"{n}" * 80, keys=f"k{n}") for n in range(40)])
    gantry = str(Path(sys.executable).with_name("gantry"))

    soon = f"spark.driver.extraJavaOptions={jvm_options(find_java(), brief=True)}"

    code, shown = at_terminal(
        [gantry, "pipeline", "audit", str(tmp_path), "--master", "local[1]", "--conf", soon]
    )

    assert 0 == code, shown
    assert "parts of the store" in shown
    assert "Spark: 0 of " in shown
    assert shown.index("Spark: 0 of ") < shown.index("nothing is wrong")
    assert SHOW_CURSOR in shown
