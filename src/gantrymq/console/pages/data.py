"""The pipelines on Spark: archives, reports, replays, and the jobs that make them."""

from starlette.responses import Response

from gantrymq.console.api.endpoint import OfCluster
from gantrymq.console.api.jobs import JobView, WantedJobs, list_jobs
from gantrymq.console.api.pipelines.overview import show_data
from gantrymq.console.api.pipelines.work import (
    NewArchive,
    NewReplay,
    NewReport,
    start_archive,
    start_replay,
    start_report,
)
from gantrymq.console.pages.page import PageTable, View

TABLE = PageTable("data")

SUBJECTS = ("archive ", "replay ", "report ")


@TABLE.page("/c/{cluster}/data")
async def data(view: View) -> Response:
    """What there is, and forms to make more."""
    found = await show_data(view.ask, OfCluster(cluster=view.cluster))
    return view.show("data.html", found=found, jobs=await _jobs(view))


@TABLE.page("/c/{cluster}/data/jobs")
async def data_jobs(view: View) -> Response:
    """The part that moves while jobs run."""
    return view.show("data_jobs.html", jobs=await _jobs(view))


async def _jobs(view: View) -> list[JobView]:
    found = await list_jobs(view.ask, WantedJobs(cluster=view.cluster))
    return [each for each in found.jobs if each.subject.startswith(SUBJECTS)][:20]


@TABLE.act("/c/{cluster}/data/archive")
async def archive(view: View) -> str:
    return (await start_archive(view.ask, await view.form(NewArchive))).text


@TABLE.act("/c/{cluster}/data/replay")
async def replay(view: View) -> str:
    return (await start_replay(view.ask, await view.form(NewReplay, lists=["keys"]))).text


@TABLE.act("/c/{cluster}/data/report")
async def report(view: View) -> str:
    asked = await view.form(NewReport, lists=["topics", "groups"])
    return (await start_report(view.ask, asked)).text
