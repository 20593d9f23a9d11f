"""The audit trail."""

from starlette.responses import Response

from gantrymq.console.api.account import AuditQuestion, list_changes
from gantrymq.console.pages.page import PageTable, View

TABLE = PageTable("access")


@TABLE.page("/c/{cluster}/access")
async def audit(view: View) -> Response:
    """Changes of all clusters, the newest first."""
    asked = view.query(AuditPage)
    wanted = AuditQuestion(
        containing=asked.containing, count=asked.count, before_ms=asked.before_ms
    )
    found = await list_changes(view.ask, wanted)
    return view.show("audit.html", found=found, asked=asked)


class AuditPage(AuditQuestion, frozen=True, kw_only=True):
    """The question of the page, which stands below a cluster like all pages."""

    cluster: str
