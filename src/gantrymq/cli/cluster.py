"""`gantry cluster`: the members of every broker name, their roles, copies and figures."""

import asyncio
import sys

import click

from gantrymq.base.plurals import counted
from gantrymq.cli.common.guard import describe
from gantrymq.cli.common.output import Row, namesrv_option, output_option, print_rows
from gantrymq.cli.common.times import shown_or_ms
from gantrymq.client.admin.admin import Admin
from gantrymq.client.admin.cluster_members import MemberStanding, member_states


@click.command("cluster")
@namesrv_option
@output_option
def cluster(namesrv: str | None, output: str) -> None:
    """Show every broker: its master and slaves, copies, message rates and disk usage.

    A master shows how many slaves are in sync, a slave whether it is one of them and how many bytes
    it is behind. The exit code is 1 when a member does not answer, or a broker has no master.
    """

    async def run() -> list[MemberStanding]:
        async with Admin(namesrv) as admin:
            return await member_states(admin)

    members = asyncio.run(run())
    print_rows([_row(each, output == "table") for each in members], output)
    names = {each.broker for each in members}
    headless = sorted(names - {each.broker for each in members if _is_serving_master(each)})
    print(f"{counted(len(names), 'broker')}, {counted(len(members), 'member')}", file=sys.stderr)
    for name in headless:
        print(f"{name} has no master: nothing can be sent to it", file=sys.stderr)
    if headless or any(each.trouble for each in members):
        raise SystemExit(1)


def _is_serving_master(member: MemberStanding) -> bool:
    return member.role == "master" and member.trouble is None


def _row(member: MemberStanding, people: bool) -> Row:
    place: Row = {
        "cluster": member.cluster,
        "broker": member.broker,
        "id": member.id,
        "role": member.role,
        "address": member.address,
        "slavesInSync": member.slaves_in_sync,
        "inSync": member.in_sync,
        "behindBytes": member.behind_bytes,
    }
    if member.trouble is not None:
        return place | {"trouble": describe(member.trouble)}
    return place | {
        "version": member.version,
        "since": shown_or_ms(member.boot_ms or 0, people),
        "inPerSecond": member.in_per_second,
        "outPerSecond": member.out_per_second,
        "storedToday": member.stored_today,
        "diskUsedPercent": member.disk_used_percent,
        "permission": member.permission,
        "trouble": None,
    }
