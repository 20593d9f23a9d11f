"""The page of one broker."""

from starlette.responses import Response

from gantrymq.console.api.brokers import WantedBroker, list_producers, show_broker
from gantrymq.console.pages.page import PageTable, View

TABLE = PageTable("overview")


@TABLE.page("/c/{cluster}/brokers/{broker}/{id}")
async def broker(view: View) -> Response:
    """Figures, settings and producers."""
    wanted = view.query(WantedBroker)
    found = await show_broker(view.ask, wanted)
    return view.show("broker.html", found=found, producers=await list_producers(view.ask, wanted))
