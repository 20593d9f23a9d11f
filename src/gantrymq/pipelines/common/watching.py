"""How far Spark is inside a job: looked at from the side while a block of work runs.

Between two steps a run tells by itself how far it is. One step may be a job of minutes, and then
the thread that would tell waits for it: a second thread asks Spark for the tasks that are done.
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


def told(stages: Iterable[JobStage]) -> tuple[str, float]:
    """The stages that run, in a few words, and the share of their tasks that is done."""
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
def watching(spark: Any, progress: RunProgress) -> Iterator[None]:
    """Tell `progress` how far Spark's jobs are while the block runs; with it the progress ends.

    Nothing that goes wrong with looking ends the run: then there is less to see, and no more.
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


# a session whose Java process is ours


@contextmanager
def _asking(tracker: Any, progress: RunProgress) -> Iterator[None]:
    ended = threading.Event()
    thread = threading.Thread(
        target=_ask, args=(tracker, progress, ended), name="watching", daemon=True
    )
    with suppress(RuntimeError):  # no room for a thread
        thread.start()
    try:
        yield
    finally:
        ended.set()
        if thread.ident is not None:
            thread.join(END_SECONDS_MAX)


def _ask(tracker: Any, progress: RunProgress, ended: threading.Event) -> None:
    """Look until the block has ended, or Java is gone: then the run itself says so."""
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))  # the main thread's
    with suppress(Exception):
        while not ended.wait(LOOK_SECONDS):
            seen = told(_running(tracker))
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
    """A server of Spark Connect tells by itself, and has nobody to ask."""

    def heard(*, stages: Any, done: bool, **_: Any) -> None:
        with suppress(Exception):
            active = (each for each in stages or () if not (done or each.done))
            found = islice(active, STAGES_MAX)
            progress.working(
                *told(JobStage(one.num_tasks, one.num_completed_tasks) for one in found)
            )

    with suppress(Exception):
        spark.registerProgressHandler(heard)
    try:
        yield
    finally:
        with suppress(Exception):
            spark.removeProgressHandler(heard)
