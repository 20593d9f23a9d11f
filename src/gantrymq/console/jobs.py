"""Long work that goes on when the request that began it is answered.

A job says what it does in lines, and may say how far it is. It ends by itself, by an error, or when
somebody stops it. Ended jobs are kept for a while; a console that ends stops those that run.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from gantrymq.base.clock import WallClock
from gantrymq.base.errors import GantryError
from gantrymq.console.errors import BadInput, NotThere

log = logging.getLogger(__name__)

RUNNING_MAX: Final = 16
KEPT_MAX: Final = 200
LINES_MAX: Final = 200


class JobState(Enum):
    """How a job stands."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"


@dataclass
class ConsoleJob:
    """One piece of work."""

    id: str
    cluster: str
    subject: str
    """What it is about, such as `topic orders`."""
    title: str
    user: str
    started_ms: int
    state: JobState = JobState.RUNNING
    ended_ms: int | None = None
    text: str = ""
    """What came of it, in a sentence."""
    done: int = 0
    total: int | None = None
    """How far it is; None if nobody knows how much there is to do."""
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=LINES_MAX))

    def say(self, line: str) -> None:
        """Add a line to what the job says."""
        self.lines.append(line)


Work = Callable[[ConsoleJob], Awaitable[str]]
"""Does the work, and returns a sentence that says what came of it."""


class Jobs:
    """The jobs of a console."""

    def __init__(self, clock: WallClock) -> None:
        self._clock = clock
        self._jobs: dict[str, ConsoleJob] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._number = 0

    def start(self, cluster: str, subject: str, title: str, user: str, work: Work) -> ConsoleJob:
        """Begin a job; one at a time for a subject."""
        running = [each for each in self._jobs.values() if each.state is JobState.RUNNING]
        if any((each.cluster, each.subject) == (cluster, subject) for each in running):
            raise BadInput(f"a job about {subject} runs already: wait for it, or stop it")
        if len(running) >= RUNNING_MAX:
            raise BadInput(f"{RUNNING_MAX} jobs run already: wait for one of them, or stop one")
        self._number += 1
        now_ms = self._clock.now_ms()
        job = ConsoleJob(f"{now_ms}-{self._number}", cluster, subject, title, user, now_ms)
        self._jobs[job.id] = job
        self._tasks[job.id] = asyncio.create_task(self._run(job, work))
        self._forget_old()
        return job

    async def _run(self, job: ConsoleJob, work: Work) -> None:
        try:
            job.text = await work(job)
            job.state = JobState.DONE
        except GantryError as error:
            job.text, job.state = str(error), JobState.FAILED
        except asyncio.CancelledError:
            job.text, job.state = "stopped", JobState.STOPPED
        except Exception as error:
            log.exception("job %s: %s", job.id, job.title)
            job.text, job.state = f"{type(error).__name__}: {error}", JobState.FAILED
        finally:
            job.ended_ms = self._clock.now_ms()
            self._tasks.pop(job.id, None)

    def _forget_old(self) -> None:
        ended = [each.id for each in self._jobs.values() if each.state is not JobState.RUNNING]
        for number in ended[: max(0, len(self._jobs) - KEPT_MAX)]:
            del self._jobs[number]

    @property
    def all(self) -> list[ConsoleJob]:
        """The jobs of all clusters."""
        return list(self._jobs.values())

    def of(self, cluster: str, subject: str | None = None) -> list[ConsoleJob]:
        """The jobs of a cluster, the newest first; about one subject, or about all."""
        found = [
            each
            for each in self._jobs.values()
            if each.cluster == cluster and subject in (None, each.subject)
        ]
        return found[::-1]

    def get(self, cluster: str, number: str) -> ConsoleJob:
        """The job of an id."""
        found = self._jobs.get(number)
        if found is None or found.cluster != cluster:
            raise NotThere(f"no job {number!r}: the console forgets old ones, and all at its end")
        return found

    async def stop(self, job: ConsoleJob) -> None:
        """End a job; returns when it has ended."""
        task = self._tasks.get(job.id)
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        if job.state is JobState.RUNNING:  # it was cancelled before its first step
            job.text, job.state, job.ended_ms = "stopped", JobState.STOPPED, self._clock.now_ms()
            self._tasks.pop(job.id, None)

    async def close(self) -> None:
        """End all jobs, at once: some take a while to stop."""
        await asyncio.gather(*(self.stop(job) for job in self._jobs.values()))
