"""`gantry cluster`: the state of every broker."""

import asyncio
import sys

import click

from gantrymq.base.errors import GantryError
from gantrymq.base.plurals import counted
from gantrymq.cli.common.guard import describe
from gantrymq.cli.common.output import Row, namesrv_option, output_option, print_rows
from gantrymq.cli.common.times import shown_or_ms
from gantrymq.client.admin.admin import Admin


@click.command("cluster")
@namesrv_option
@output_option
def cluster(namesrv: str | None, output: str) -> None:
    """Show every broker: address, start time, message rates and disk usage.

    The exit code is 1 when a broker does not answer.
    """

    async def run() -> list[Row]:
        async with Admin(namesrv) as admin:
            info = await admin.cluster()
            clusters = {
                name: group for group, names in info.cluster_addr_table.items() for name in names
            }
            rows = []
            for name, members in (await admin.members()).items():
                for number, address in sorted(members.items()):
                    row = {
                        "cluster": clusters.get(name),
                        "broker": name,
                        "id": number,
                        "address": address,
                    }
                    rows.append(row | await _figures(admin, address, output == "table"))
            return rows

    rows = asyncio.run(run())
    print_rows(rows, output)
    silent = [row for row in rows if row["trouble"]]
    print(counted(len(rows), "broker"), file=sys.stderr)
    if silent:
        raise SystemExit(1)


async def _figures(admin: Admin, address: str, people: bool) -> Row:
    try:
        found = await admin.broker_runtime(address)
        config = await admin.broker_config(address)
    except GantryError as error:
        return {"trouble": describe(error)}
    return {
        "version": found.get("brokerVersionDesc"),
        "since": shown_or_ms(int(found.get("bootTimestamp", 0)), people),
        "inPerSecond": _first(found.get("putTps")),
        "outPerSecond": _first(found.get("getTransferredTps") or found.get("getTransferedTps")),
        "storedToday": _difference(found, "msgPutTotalTodayNow", "msgPutTotalTodayMorning"),
        "diskUsedPercent": _percent(found.get("commitLogDiskRatio")),
        "permission": config.get("brokerPermission"),
        "trouble": None,
    }


def _first(rates: str | None) -> float | None:
    """RocketMQ gives rates of 10 s, 1 min and 10 min in one text."""
    return round(float(rates.split()[0]), 1) if rates and rates.split() else None


def _difference(figures: dict[str, str], now: str, morning: str) -> int | None:
    return int(figures[now]) - int(figures[morning]) if {now, morning} <= figures.keys() else None


def _percent(ratio: str | None) -> int | None:
    return round(float(ratio) * 100) if ratio else None
