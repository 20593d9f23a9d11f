"""The alarms of a cluster."""

from starlette.responses import Response

from gantrymq.console.api.alarms import list_alarms
from gantrymq.console.api.endpoint import OfCluster
from gantrymq.console.pages.page import PageTable, View

TABLE = PageTable("alarms")


@TABLE.page("/c/{cluster}/alarms")
async def alarms(view: View) -> Response:
    found = await list_alarms(view.ask, OfCluster(cluster=view.cluster))
    return view.show("alarms.html", found=found)
