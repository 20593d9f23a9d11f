"""The overview: brokers, rates, and what needs attention."""

from collections.abc import Iterable
from itertools import groupby
from typing import Final, NamedTuple
from urllib.parse import urlencode

from starlette.responses import Response

from gantrymq.console.api.endpoint import OfCluster
from gantrymq.console.api.overview import ClusterMember, list_findings, list_members
from gantrymq.console.api.samples import WantedSamples
from gantrymq.console.pages.page import PageTable, View

TABLE = PageTable("overview")
LEADING: Final = ("master", "leader")


class BrokerSet(NamedTuple):
    """The members of a broker name: who leads it first, then its copies."""

    broker: str
    cluster: str | None
    leads: list[ClusterMember]
    """One member, or nobody; two as long as a raft group's brokers do not agree."""
    members: list[ClusterMember]


def broker_sets(members: Iterable[ClusterMember]) -> list[BrokerSet]:
    """The members by broker name. A leader that does not answer does not lead."""
    made = []
    by_name = sorted(members, key=lambda each: (each.broker, each.role not in LEADING, each.id))
    for broker, rows in groupby(by_name, key=lambda each: each.broker):
        found = list(rows)
        leads = [each for each in found if each.role in LEADING and not each.trouble]
        made.append(BrokerSet(broker, found[0].cluster, leads, found))
    return made


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
        "overview.html",
        found=found,
        sets=broker_sets(found.members),
        charts=charts,
        brokers=brokers,
        chart_address=address,
    )


@TABLE.page("/c/{cluster}/overview/findings")
async def findings(view: View) -> Response:
    """The part of the page that takes longer: it asks every group."""
    found = await list_findings(view.ask, OfCluster(cluster=view.cluster))
    return view.show("findings.html", findings=found.findings, count=found.count)
