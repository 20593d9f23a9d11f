"""How far Spark is inside a job, while a block of work runs.

A run itself reports its progress between steps. One step may be a job of minutes, during which the
reporting thread waits: a second thread asks Spark for the number of finished tasks.
"""

import signal
import threading
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from gantrymq.pipelines.common.progress import RunProgress

LOOK_SECONDS: Final = 0.5
STAGES_MAX: Final = 16
"""Stages that are asked about in one look; more than a few at once are rare."""
END_SECONDS_MAX: Final = 2.0
"""A Java process that does not answer is not waited for longer."""


@dataclass(frozen=True, slots=True)
class JobStage:
    """A part of a job whose tasks run side by side."""

    tasks: int
    done: int
    failed: int = 0


def describe_stages(stages: Iterable[JobStage]) -> tuple[str, float]:
    """The running stages in a few words, and the share of their tasks that is done."""
    known = [each for each in stages if each.tasks > 0]
    if not known:
        return "", 0.0
    tasks = sum(each.tasks for each in known)
    done = sum(min(each.done, each.tasks) for each in known)  # a task may have been run twice
    failed = sum(each.failed for each in known)
    trouble = f", {failed:,} failed" if failed else ""
    unit = "task" if tasks == 1 else "tasks"
    return f"Spark: {done:,} of {tasks:,} {unit}{trouble}", done / tasks


@contextmanager
def watch_jobs(spark: Any, progress: RunProgress) -> Iterator[None]:
    """Show in `progress` how far Spark's jobs are while the block runs; ends the progress.

    Errors of the watching never end the run: then less is shown.
    """
    try:
        with _watch(spark, progress) if progress.moves else nullcontext():
            yield
    finally:
        progress.done()


def _watch(spark: Any, progress: RunProgress) -> AbstractContextManager[None]:
    with suppress(Exception):
        return _asking(spark.sparkContext.statusTracker(), progress)
    return _listening(spark, progress)


# a session with its own Java process


@contextmanager
def _asking(tracker: Any, progress: RunProgress) -> Iterator[None]:
    ended = threading.Event()
    thread = threading.Thread(
        target=_ask, args=(tracker, progress, ended), name="watching", daemon=True
    )
    with suppress(RuntimeError):  # no thread can be started
        thread.start()
    try:
        yield
    finally:
        ended.set()
        if thread.ident is not None:
            thread.join(END_SECONDS_MAX)


def _ask(tracker: Any, progress: RunProgress, ended: threading.Event) -> None:
    """Ask until the block has ended or Java is gone; the run itself reports the latter."""
    signal.pthread_sigmask(
        signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM)
    )  # the main thread handles them
    with suppress(Exception):
        while not ended.wait(LOOK_SECONDS):
            seen = describe_stages(_running(tracker))
            if not ended.is_set():
                progress.working(*seen)


def _running(tracker: Any) -> Iterator[JobStage]:
    for number in tracker.getActiveStageIds()[:STAGES_MAX]:
        info = tracker.getStageInfo(number)
        if info is not None:  # it may have ended meanwhile
            yield JobStage(info.numTasks, info.numCompletedTasks, info.numFailedTasks)


# a remote session


@contextmanager
def _listening(spark: Any, progress: RunProgress) -> Iterator[None]:
    """Show the progress that a Spark Connect server sends; it cannot be asked."""

    def heard(*, stages: Any, done: bool, **_: Any) -> None:
        with suppress(Exception):
            active = (each for each in stages or () if not (done or each.done))
            found = islice(active, STAGES_MAX)
            progress.working(
                *describe_stages(JobStage(one.num_tasks, one.num_completed_tasks) for one in found)
            )

    with suppress(Exception):
        spark.registerProgressHandler(heard)
    try:
        yield
    finally:
        with suppress(Exception):
            spark.removeProgressHandler(heard)
