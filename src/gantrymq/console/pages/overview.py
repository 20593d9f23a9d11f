"""The overview: brokers, rates, and what needs attention."""

from starlette.responses import Response

from gantrymq.console.api.endpoint import OfCluster
from gantrymq.console.api.overview import list_findings, list_members
from gantrymq.console.pages.page import PageTable, View

TABLE = PageTable("overview")


@TABLE.page("/c/{cluster}/overview")
async def overview(view: View) -> Response:
    found = await list_members(view.ask, OfCluster(cluster=view.cluster))
    return view.show("overview.html", found=found)


@TABLE.page("/c/{cluster}/overview/findings")
async def findings(view: View) -> Response:
    """The part of the page that takes longer: it asks every group."""
    found = await list_findings(view.ask, OfCluster(cluster=view.cluster))
    return view.show("findings.html", findings=found.findings)
