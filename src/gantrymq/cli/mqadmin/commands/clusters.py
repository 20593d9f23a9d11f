"""Commands about clusters: the list of brokers, and how long sends take."""

import asyncio
import itertools
from typing import Final

from gantrymq.base.errors import GantryError
from gantrymq.cli.mqadmin.command import AdminOption, Invocation, command
from gantrymq.cli.mqadmin.output import Column
from gantrymq.client.admin.admin import Admin
from gantrymq.client.admin.groups.members import together
from gantrymq.client.core.errors import ClientError

HOUR_MS: Final = 3_600_000
LISTED = (
    Column("clusterName", "#Cluster Name", 22),
    Column("brokerName", "#Broker Name", 22),
    Column("brokerId", "#BID", 4),
    Column("address", "#Addr", 22),
    Column("version", "#Version", 16),
    Column("in", "#InTPS(LOAD)", 16, right=True),
    Column("out", "#OutTPS(LOAD)", 30, right=True),
    Column("timer", "#Timer(Progress)", 22),
    Column("pageCacheWaitMs", "#PCWait(ms)", 11),
    Column("hours", "#Hour", 12, show=lambda hours: f"{hours:2.2f}"),
    Column("diskRatio", "#SPACE", 8, show=lambda ratio: f"{ratio:.4f}"),
    Column("active", "#ACTIVATED", 10, show=lambda active: str(active).lower()),
)
TOTALS = (
    Column("clusterName", "#Cluster Name", 16),
    Column("brokerName", "#Broker Name", 32),
    Column("inYesterday", "#InTotalYest", 14, right=True),
    Column("outYesterday", "#OutTotalYest", 14, right=True),
    Column("inToday", "#InTotalToday", 14, right=True),
    Column("outToday", "#OutTotalToday", 14, right=True),
)
Place = tuple[str, str, int, str]
"""Cluster, broker name, broker id and address."""


@command(
    "clusterList",
    "List cluster infos.",
    AdminOption("m", "moreStats", "Print totals of yesterday and today.", is_flag=True),
    AdminOption("i", "interval", "Print again every so many seconds.", read=float),
    AdminOption("c", "clusterName", "Only this cluster."),
)
async def cluster_list(call: Invocation) -> None:
    while True:
        places = await _places(call.admin, call["clusterName"])
        figures = await together(_figures(call.admin, address) for *_, address in places)
        row = call.out.table(TOTALS if call["moreStats"] else LISTED)
        for place, found in zip(places, figures, strict=True):
            row(*(_totals if call["moreStats"] else _state)(call, place, found))
        if call["interval"] is None:
            return
        await asyncio.sleep(call["interval"])


async def _places(admin: Admin, cluster: str | None) -> list[Place]:
    info = await admin.cluster()
    if cluster is not None and cluster not in info.cluster_addr_table:
        raise ClientError(
            f"cluster [{cluster}] not exist; known: {', '.join(sorted(info.cluster_addr_table))}"
        )
    return [
        (name, broker, int(number), address)
        for name, brokers in sorted(info.cluster_addr_table.items())
        if cluster in (None, name)
        for broker in sorted(brokers)
        if broker in info.broker_addr_table
        for number, address in sorted(info.broker_addr_table[broker].broker_addrs.items())
    ]


async def _figures(admin: Admin, address: str) -> dict[str, str]:
    """The broker's figures; none of a broker that does not answer: the list shows the others."""
    try:
        return await admin.broker_runtime(address)
    except GantryError:
        return {}


def _state(call: Invocation, place: Place, found: dict[str, str]) -> tuple[object, ...]:
    def load(kind: str) -> str:
        size = found.get(f"{kind}ThreadPoolQueueSize", "N")
        return f"{size},{found.get(f'{kind}ThreadPoolQueueHeadWaitTimeMills', 'N')}ms"

    sent = first_rate(found.get("putTps"))
    got = first_rate(found.get("getTransferredTps") or found.get("getTransferedTps"))
    earliest = int(found.get("earliestMessageTimeStamp") or 0)
    age_ms = call.admin.instance.clock.now_ms() - earliest if earliest > 0 else 0
    timer = (
        f"{found.get('timerReadBehind', 0)}-{found.get('timerOffsetBehind', 0)}"
        f"({int(found.get('timerCongestNum', 0)) / 10_000:.1f}w, "
        f"{float(found.get('timerEnqueueTps', 0)):.1f}, "
        f"{float(found.get('timerDequeueTps', 0)):.1f})"
    )
    return (
        *place,
        found.get("brokerVersionDesc", ""),
        f"{sent:9.2f}({load('send')})",
        f"{got:9.2f}({load('pull')}|{load('ack')})",
        timer,
        found.get("pageCacheLockTimeMills", ""),
        age_ms / HOUR_MS,
        float(found.get("commitLogDiskRatio") or 0),
        found.get("brokerActive") == "true",
    )


def _totals(call: Invocation, place: Place, found: dict[str, str]) -> tuple[object, ...]:
    def between(kind: str, first: str, last: str) -> int:
        return int(found.get(f"msg{kind}{last}", 0)) - int(found.get(f"msg{kind}{first}", 0))

    days = (("TotalYesterdayMorning", "TotalTodayMorning"), ("TotalTodayMorning", "TotalTodayNow"))
    counts = (between(kind, *day) for day, kind in itertools.product(days, ("Put", "Get")))
    return (*place[:2], *counts)


def first_rate(rates: str | None) -> float:
    """RocketMQ gives rates of 10 s, 1 min and 10 min in one text; this is the first."""
    return float(rates.split()[0]) if rates and rates.split() else 0.0


COMMANDS = (cluster_list,)
