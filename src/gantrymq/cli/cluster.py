"""`gantry cluster`: the members of every broker name, their roles, copies and figures."""

import asyncio
import sys
from dataclasses import dataclass

import click
from msgspec import UNSET

from gantrymq.base.errors import GantryError
from gantrymq.base.network import split_address
from gantrymq.base.plurals import counted
from gantrymq.cli.common.guard import describe
from gantrymq.cli.common.output import Row, namesrv_option, output_option, print_rows
from gantrymq.cli.common.times import shown_or_ms
from gantrymq.client.admin.admin import Admin
from gantrymq.protocol.bodies import HaConnectionInfo, HaStatus

MASTER_ID = 0


@dataclass(frozen=True)
class MemberAnswer:
    """What a member said; without figures the text says why."""

    figures: dict[str, str]
    config: dict[str, str]
    copies: HaStatus | None
    """None if it does not know the question, as RocketMQ 4.9 does not."""
    trouble: str | None = None


@click.command("cluster")
@namesrv_option
@output_option
def cluster(namesrv: str | None, output: str) -> None:
    """Show every broker: its master and slaves, copies, message rates and disk usage.

    A master shows how many slaves are in sync, a slave whether it is one of them and how many bytes
    it is behind. The exit code is 1 when a member does not answer, or a broker has no master.
    """

    async def run() -> list[Row]:
        async with Admin(namesrv) as admin:
            info = await admin.cluster()
            clusters = {
                name: group for group, names in info.cluster_addr_table.items() for name in names
            }
            rows = []
            for name, members in (await admin.members()).items():
                group = {"cluster": clusters.get(name), "broker": name}
                rows += [group | row for row in await _rows(admin, members, output == "table")]
            return rows

    rows = asyncio.run(run())
    print_rows(rows, output)
    names = {row["broker"] for row in rows}
    headless = sorted(names - {row["broker"] for row in rows if _is_serving_master(row)})
    print(f"{counted(len(names), 'broker')}, {counted(len(rows), 'member')}", file=sys.stderr)
    for name in headless:
        print(f"{name} has no master: nothing can be sent to it", file=sys.stderr)
    if headless or any(row["trouble"] for row in rows):
        raise SystemExit(1)


def _is_serving_master(row: Row) -> bool:
    return row["role"] == "master" and row["trouble"] is None


async def _rows(admin: Admin, members: dict[int, str], people: bool) -> list[Row]:
    """A row for each member of one broker name, the master first."""
    asked = await asyncio.gather(*(_ask(admin, address) for address in members.values()))
    answers = dict(zip(members, asked, strict=True))
    return [
        {
            "id": number,
            "role": "slave" if number else "master",
            "address": members[number],
            **_copy_state(number, members, answers),
            **_state(answers[number], people),
        }
        for number in sorted(members)
    ]


async def _ask(admin: Admin, address: str) -> MemberAnswer:
    try:
        figures = await admin.broker_runtime(address)
        config = await admin.broker_config(address)
    except GantryError as error:
        return MemberAnswer({}, {}, None, describe(error))
    try:
        return MemberAnswer(figures, config, await admin.ha_status(address))
    except GantryError:
        return MemberAnswer(figures, config, None)


def _copy_state(number: int, members: dict[int, str], answers: dict[int, MemberAnswer]) -> Row:
    """Of a master how many slaves are in sync; of a slave whether its master counts it as one,
    and how far it is behind. None if nobody knows."""
    own = answers[number].copies
    state: Row = {"slavesInSync": None, "inSync": None, "behindBytes": None}
    if own is None:
        return state
    if number == MASTER_ID:
        return state | {"slavesInSync": own.in_sync_slave_nums}
    head, link = answers.get(MASTER_ID), own.ha_client_runtime_info
    if link.activated is not True or head is None or head.copies is None:
        return state | {"inSync": False}
    behind = max(0, head.copies.master_commit_log_max_offset - link.max_offset)
    seen = _seen_by_master(number, members, head.copies.ha_connection_info)
    return state | {"inSync": seen.in_sync if seen else None, "behindBytes": behind}


def _seen_by_master(
    number: int, members: dict[int, str], rows: list[HaConnectionInfo]
) -> HaConnectionInfo | None:
    """What the master says of one slave.

    Our masters name the slaves that have introduced themselves. Of another one they know the host
    only, so it is found if it is the only slave there.
    """
    for row in rows:
        if row.broker_id == number:
            return row
    named = {row.broker_id for row in rows}
    host = split_address(members[number])[0]
    there = [
        each
        for each, address in members.items()
        if each and each not in named and split_address(address)[0] == host
    ]
    found = [
        row
        for row in rows
        if row.broker_id is UNSET and split_address(row.addr.lstrip("/"))[0] == host
    ]
    return found[0] if len(there) == len(found) == 1 else None


def _state(answer: MemberAnswer, people: bool) -> Row:
    if answer.trouble is not None:
        return {"trouble": answer.trouble}
    found = answer.figures
    return {
        "version": found.get("brokerVersionDesc"),
        "since": shown_or_ms(int(found.get("bootTimestamp", 0)), people),
        "inPerSecond": _first(found.get("putTps")),
        "outPerSecond": _first(found.get("getTransferredTps") or found.get("getTransferedTps")),
        "storedToday": _difference(found, "msgPutTotalTodayNow", "msgPutTotalTodayMorning"),
        "diskUsedPercent": _percent(found.get("commitLogDiskRatio")),
        "permission": answer.config.get("brokerPermission"),
        "trouble": None,
    }


def _first(rates: str | None) -> float | None:
    """RocketMQ gives rates of 10 s, 1 min and 10 min in one text."""
    return round(float(rates.split()[0]), 1) if rates and rates.split() else None


def _difference(figures: dict[str, str], now: str, morning: str) -> int | None:
    return int(figures[now]) - int(figures[morning]) if {now, morning} <= figures.keys() else None


def _percent(ratio: str | None) -> int | None:
    return round(float(ratio) * 100) if ratio else None
