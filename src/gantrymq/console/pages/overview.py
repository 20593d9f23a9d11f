"""The overview: brokers, rates, and what needs attention."""

from urllib.parse import urlencode

from starlette.responses import Response

from gantrymq.console.api.endpoint import OfCluster
from gantrymq.console.api.overview import list_findings, list_members
from gantrymq.console.api.samples import WantedSamples
from gantrymq.console.pages.page import PageTable, View

TABLE = PageTable("overview")


@TABLE.page("/c/{cluster}/overview")
async def overview(view: View) -> Response:
    """Members and charts; `name` in the address chooses a broker for the rates."""
    charts = view.query(WantedSamples, kind="rates")
    found = await list_members(view.ask, OfCluster(cluster=view.cluster))
    brokers = sorted({each.broker for each in found.members})

    def address(period: str, broker: str | None) -> str:
        query = {"period": period} | ({"name": broker} if broker else {})
        return f"?{urlencode(query)}"

    return view.show(
        "overview.html", found=found, charts=charts, brokers=brokers, chart_address=address
    )


@TABLE.page("/c/{cluster}/overview/findings")
async def findings(view: View) -> Response:
    """The part of the page that takes longer: it asks every group."""
    found = await list_findings(view.ask, OfCluster(cluster=view.cluster))
    return view.show("findings.html", findings=found.findings, count=found.count)
