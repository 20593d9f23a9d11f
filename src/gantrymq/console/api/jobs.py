"""Jobs: long work that was begun here, how far it is, and how to stop it."""

from gantrymq.console.access.user import Role
from gantrymq.console.api.ask import Ask
from gantrymq.console.api.endpoint import Answer, Done, EndpointTable, OfCluster
from gantrymq.console.errors import Forbidden
from gantrymq.console.jobs import ConsoleJob

TABLE = EndpointTable("jobs")


class WantedJobs(OfCluster, frozen=True, kw_only=True):
    """Which jobs to list."""

    subject: str | None = None
    """Only those about this, such as `topic orders`."""


class NamedJob(OfCluster, frozen=True, kw_only=True):
    """A question about one job."""

    job: str


class JobView(Answer, frozen=True, kw_only=True):
    """A job and how far it is."""

    job: str
    subject: str
    title: str
    user: str
    state: str
    """running, done, failed or stopped"""
    started_ms: int
    ended_ms: int | None
    text: str
    """What came of it."""
    done: int
    total: int | None
    """How far it is; null if nobody knows how much there is to do."""
    lines: list[str]
    """The last things it said."""


class JobViews(Answer, frozen=True, kw_only=True):
    """Jobs, the newest first."""

    jobs: list[JobView]


class JobStarted(Answer, frozen=True, kw_only=True):
    """A job was begun."""

    job: str
    text: str


def started(job: ConsoleJob) -> JobStarted:
    """The answer of an endpoint that began a job."""
    return JobStarted(job=job.id, text=f"{job.title}: begun")


@TABLE.get("/clusters/{cluster}/jobs")
async def list_jobs(ask: Ask, wanted: WantedJobs) -> JobViews:
    """The jobs that run, and those that ended since the console was started."""
    ask.clusters.address(wanted.cluster)
    found = ask.parts.jobs.of(wanted.cluster, wanted.subject)
    return JobViews(jobs=[_view(each) for each in found])


@TABLE.get("/clusters/{cluster}/jobs/{job}")
async def show_job(ask: Ask, wanted: NamedJob) -> JobView:
    """A job, what it says and how far it is."""
    return _view(found_job(ask, wanted))


@TABLE.delete("/clusters/{cluster}/jobs/{job}")
async def stop_job(ask: Ask, wanted: NamedJob) -> Done:
    """Stop a job; what it has done stays."""
    job = job_to_steer(ask, wanted)
    await ask.parts.jobs.stop(job)
    return Done(text=f"{job.title}: {job.state.value}")


def found_job(ask: Ask, wanted: NamedJob) -> ConsoleJob:
    """The job of a question."""
    ask.clusters.address(wanted.cluster)
    return ask.parts.jobs.get(wanted.cluster, wanted.job)


def job_to_steer(ask: Ask, wanted: NamedJob) -> ConsoleJob:
    """The job of a question, if the user may stop it or let it go on.

    Users with keys of the cluster steer their own jobs: another's goes on with other rights.
    """
    job = found_job(ask, wanted)
    if ask.user.role is Role.CLUSTER_USER and job.user != ask.user.name:
        raise Forbidden(f"{job.title} is a job of {job.user}")
    return job


def _view(job: ConsoleJob) -> JobView:
    return JobView(
        job=job.id, subject=job.subject, title=job.title, user=job.user, state=job.state.value,
        started_ms=job.started_ms, ended_ms=job.ended_ms, text=job.text, done=job.done,
        total=job.total, lines=list(job.lines),
    )  # fmt: skip
