"""Jobs: how they end, that one runs about a subject, and that old ones are forgotten."""

import asyncio

import pytest

from gantrymq.base.clock import SystemClock
from gantrymq.console.errors import BadInput, NotThere
from gantrymq.console.jobs import KEPT_MAX, RUNNING_MAX, ConsoleJob, Jobs, JobState
from gantrymq.testing.loop import simulate


async def fine(job: ConsoleJob) -> str:
    job.say("half")
    return "all of it"


async def failing(job: ConsoleJob) -> str:
    raise BadInput("no such thing")


async def broken(job: ConsoleJob) -> str:
    raise KeyError("bug")


async def endless(job: ConsoleJob) -> str:
    await asyncio.Event().wait()
    return ""


def test_how_jobs_end() -> None:
    """A job is done, failed with its reason, or stopped, also when the console ends."""

    async def work() -> list[tuple[JobState, str]]:
        jobs = Jobs(SystemClock())
        begun = [
            jobs.start("test", name, name, "me", each)
            for name, each in (("a", fine), ("b", failing), ("c", broken), ("d", endless))
        ]
        await asyncio.sleep(1)
        await jobs.close()
        assert ["half"] == list(begun[0].lines)
        return [(each.state, each.text) for each in begun]

    assert [
        (JobState.DONE, "all of it"),
        (JobState.FAILED, "no such thing"),
        (JobState.FAILED, "KeyError: 'bug'"),
        (JobState.STOPPED, "stopped"),
    ] == simulate(work)


def test_jobs_are_limited() -> None:
    """One job runs about a subject, few run at once, and ended ones are forgotten in the end."""

    async def work() -> int:
        jobs = Jobs(SystemClock())
        first = jobs.start("test", "topic a", "x", "me", endless)
        with pytest.raises(BadInput, match="runs already"):
            jobs.start("test", "topic a", "x", "me", fine)
        for number in range(RUNNING_MAX - 1):
            jobs.start("test", f"{number}", "x", "me", endless)
        with pytest.raises(BadInput, match="16 jobs run already"):
            jobs.start("test", "one more", "x", "me", fine)
        with pytest.raises(NotThere):
            jobs.get("other", first.id)
        await jobs.close()
        for number in range(KEPT_MAX + 50):
            jobs.start("test", f"{number}", "x", "me", fine)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        return len(jobs.of("test"))

    assert KEPT_MAX >= simulate(work)


def test_a_job_that_is_stopped_before_its_first_step_has_ended() -> None:
    """Or else nothing about its subject could be begun any more."""

    async def work() -> tuple[JobState, JobState]:
        jobs = Jobs(SystemClock())
        first = jobs.start("test", "topic a", "x", "me", endless)
        await jobs.stop(first)
        second = jobs.start("test", "topic a", "x", "me", fine)
        await asyncio.sleep(1)
        return first.state, second.state

    assert (JobState.STOPPED, JobState.DONE) == simulate(work)
